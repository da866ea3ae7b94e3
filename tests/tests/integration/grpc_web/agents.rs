//! Agents on the same listener: the Model Context Protocol over Streamable HTTP, with the token of a device.

use std::{future::Future, net::SocketAddr};

use anyhow::{Context as _, Result};
use satchel_proto::v1::{self, device_service_client::DeviceServiceClient};
use satchel_tests::test_daemon::TestDaemon;
use serde_json::{Value, json};

use crate::grpc_web::{
    HOUR,
    client::{ORIGIN, WebResponse, send, token, web_daemon},
};

const PATH: &str = "/mcp";

type Headers = Vec<(&'static str, String)>;

/// Returns the headers that clients send, with this token.
fn headers(token: &str) -> Headers {
    vec![
        ("content-type", "application/json".to_owned()),
        ("accept", "application/json, text/event-stream".to_owned()),
        ("authorization", format!("Bearer {token}")),
    ]
}

/// Returns the headers with one more, or another value of one.
fn with(headers: &Headers, name: &'static str, value: &str) -> Headers {
    let others = headers.iter().filter(|(other, _)| *other != name).cloned();
    others.chain([(name, value.to_owned())]).collect()
}

fn request(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

fn search() -> String {
    request("tools/call", &json!({"name": "search", "arguments": {"query": "honey"}}))
}

async fn post(address: SocketAddr, headers: &Headers, body: String) -> Result<WebResponse> {
    send(address, ("POST", PATH), headers, body).await
}

/// Sends a request that is answered, and returns its answer.
async fn answer(address: SocketAddr, headers: &Headers, body: String) -> Result<Value> {
    let response = post(address, headers, body).await?;
    let (status, text) = (response.status, response.text().await?);
    anyhow::ensure!(status == 200, "{status}: {text}");
    Ok(serde_json::from_str(&text)?)
}

/// Starts a daemon and returns it with its address and the headers of a device with this role.
async fn daemon(role: v1::DeviceRole) -> Result<(TestDaemon, SocketAddr, Headers)> {
    let (daemon, address) = web_daemon().await?;
    let token = token(&daemon, "agent", role, HOUR).await?.token;
    Ok((daemon, address, headers(&token)))
}

async fn ended(outcome: impl Future<Output = Result<()>>, daemon: TestDaemon) -> Result<()> {
    outcome.await?;
    daemon.stop().await?;
    Ok(())
}

#[tokio::test]
async fn an_agent_begins_lists_and_calls_in_every_version() -> Result<()> {
    let (daemon, address, headers) = daemon(v1::DeviceRole::Reader).await?;
    let outcome = async {
        for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            let client = json!({"name": "test", "version": "1"});
            let begin = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
            let begun = answer(address, &headers, request("initialize", &begin)).await?;
            assert_eq!(begun["result"]["protocolVersion"], version, "{begun}");
            let headers = with(&headers, "mcp-protocol-version", version);
            let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
            assert_eq!(post(address, &headers, note).await?.status, 202);
            let tools = answer(address, &headers, request("tools/list", &json!({}))).await?;
            assert_eq!(tools["result"]["tools"].as_array().context("a list")?.len(), 7);
            let found = answer(address, &headers, search()).await?;
            assert!(found["result"]["structuredContent"]["hits"].is_array(), "{found}");
        }
        Ok(())
    };
    ended(outcome, daemon).await
}

#[tokio::test]
async fn its_calls_are_those_of_its_device() -> Result<()> {
    let (daemon, address, headers) = daemon(v1::DeviceRole::Agent).await?;
    let outcome = async {
        let add = json!({"name": "add_memory", "arguments": {"content": "Mara bakes on Sundays"}});
        let added = answer(address, &headers, request("tools/call", &add)).await?;
        assert_eq!(added["result"]["structuredContent"]["memory"]["waits_for_review"], true, "{added}");
        let mut devices = DeviceServiceClient::new(daemon.channel.clone());
        let request = v1::ListAuditEventsRequest { device: "agent".to_owned(), ..Default::default() };
        let events = devices.list_audit_events(request).await?.into_inner().events;
        let [event] = events.as_slice() else { anyhow::bail!("{events:?}") };
        assert_eq!(event.method, "satchel.v1.MemoryService/CreateMemory");
        assert!(event.address.starts_with("127.0.0.1:"), "{}", event.address);
        let device = devices.list_devices(v1::ListDevicesRequest::default()).await?.into_inner().devices;
        let request = v1::RevokeDeviceRequest { device: device[0].id.clone(), reason: String::new() };
        devices.revoke_device(request).await?;
        assert_eq!(post(address, &headers, search()).await?.status, 401);
        Ok(())
    };
    outcome.await?;
    daemon.stop().await?;
    Ok(())
}

#[tokio::test]
async fn without_a_token_of_an_agent_nothing_is_read() -> Result<()> {
    let (daemon, address, valid) = daemon(v1::DeviceRole::Reader).await?;
    let owner = headers(&token(&daemon, "all", v1::DeviceRole::Owner, HOUR).await?.token);
    let outcome = async {
        let without: Headers = valid.iter().filter(|(name, _)| *name != "authorization").cloned().collect();
        for headers in [&without, &headers(""), &headers("x"), &with(&valid, "authorization", "Basic x")] {
            for body in [search(), request("initialize", &json!({})), "x".repeat(1 << 20)] {
                let response = post(address, headers, body).await?;
                let challenge = response.headers["www-authenticate"].to_str()?;
                assert!(response.status == 401 && challenge.starts_with("Bearer"), "{challenge}");
            }
        }
        let refused = post(address, &owner, search()).await?;
        assert_eq!(refused.status, 403);
        assert!(refused.text().await?.contains("has the role owner"));
        Ok(())
    };
    ended(outcome, daemon).await
}

#[tokio::test]
async fn foreign_pages_reach_nothing() -> Result<()> {
    let (daemon, address, headers) = daemon(v1::DeviceRole::Reader).await?;
    let outcome = async {
        for (name, value) in [
            ("host", "evil.example"),
            ("host", "localhost"),
            ("origin", "http://evil.example"),
            ("origin", "null"),
        ] {
            let response = post(address, &with(&headers, name, value), search()).await?;
            assert_eq!(response.status, 403, "{name}: {value}");
        }
        // What a form can send without a preflight.
        for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
            let response = post(address, &with(&headers, "content-type", kind), search()).await?;
            assert_eq!(response.status, 415, "{kind}");
        }
        let page = with(&headers, "origin", ORIGIN);
        let response = post(address, &page, search()).await?;
        assert_eq!(response.status, 200);
        assert_eq!(response.headers["access-control-allow-origin"], ORIGIN);
        let asked = with(&page, "access-control-request-method", "POST");
        let preflight = send(address, ("OPTIONS", PATH), &asked, "").await?;
        let allowed = preflight.headers["access-control-allow-headers"].to_str()?.to_owned();
        assert!(preflight.status == 204 && allowed.contains("mcp-protocol-version"), "{allowed}");
        Ok(())
    };
    ended(outcome, daemon).await
}

#[tokio::test]
async fn hostile_requests_get_an_error_and_cost_nothing_else() -> Result<()> {
    let (daemon, address, headers) = daemon(v1::DeviceRole::Reader).await?;
    let outcome = async {
        for method in ["GET", "DELETE", "PUT"] {
            assert_eq!(send(address, (method, PATH), &headers, "").await?.status, 405, "{method}");
        }
        for body in ["", "not json", "{", "[1]", &"[".repeat(100_000), "{\"jsonrpc\": \"1.0\"}"] {
            let status = post(address, &headers, body.to_owned()).await?.status;
            assert!((400..500).contains(&status), "{status}: {body:.20}");
        }
        let long = json!({"name": "search", "arguments": {"query": "x".repeat(10 << 20)}});
        assert_eq!(post(address, &headers, request("tools/call", &long)).await?.status, 413);
        let long = json!({"name": "search", "arguments": {"query": "x".repeat(2 << 20)}});
        let refused = answer(address, &headers, request("tools/call", &long)).await?;
        assert_eq!(refused["result"]["isError"], true, "{refused:.200}");
        let unknown = with(&headers, "mcp-protocol-version", "1.0");
        assert_eq!(post(address, &unknown, search()).await?.status, 400);
        assert_eq!(send(address, ("POST", "/mcp/"), &headers, search()).await?.status, 200);
        // What a program asks before it sends a token, and after one was refused.
        for path in [
            "/.well-known/oauth-protected-resource/mcp",
            "/.well-known/oauth-authorization-server",
            "/register",
        ] {
            for method in ["GET", "POST"] {
                assert_eq!(send(address, (method, path), &headers, "").await?.status, 404, "{method} {path}");
            }
        }
        let many = json!({"name": "search", "arguments": {"query": vec![0; 500_000]}});
        assert_eq!(post(address, &headers, request("tools/call", &many)).await?.status, 413, "many values");
        let found = answer(address, &headers, search()).await?;
        assert!(found["result"]["structuredContent"]["hits"].is_array(), "{found}");
        Ok(())
    };
    ended(outcome, daemon).await
}
