//! Requests that a foreign web page can cause: they reach no method, even with a valid token.

use anyhow::Result;
use satchel_proto::v1;
use tonic::Code;

use crate::grpc_web::{
    HOUR, IDENTITY,
    client::{BINARY, ORIGIN, bearer, call, send, token, web_daemon},
};

/// Returns the headers with one of them replaced; an empty value removes it.
fn with(headers: &[(&'static str, String)], name: &'static str, value: &str) -> Vec<(&'static str, String)> {
    let others = headers.iter().filter(|(other, _)| *other != name).cloned();
    let own = (!value.is_empty()).then(|| (name, value.to_owned()));
    others.chain(own).collect()
}

/// A host name of the attacker leads to this machine (DNS rebinding), so the page is of the same origin as the daemon.
#[tokio::test]
async fn a_rebound_host_name_is_refused() -> Result<()> {
    let (daemon, address) = web_daemon().await?;
    let headers = bearer(&token(&daemon, "page", v1::DeviceRole::Owner, HOUR).await?.token);
    let port = address.port();
    for host in [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        format!("localhost.evil.example:{port}"),
        format!("127.0.0.1.evil.example:{port}"),
        format!("0.0.0.0:{port}"),
        "localhost".to_owned(),
        format!("localhost:{}", port ^ 1),
    ] {
        let origin = format!("http://{host}");
        for headers in [with(&headers, "origin", &origin), with(&headers, "origin", ""), headers.clone()] {
            let headers = with(&headers, "host", &host);
            let response = call(address, IDENTITY, &headers, &v1::GetCallerIdentityRequest {}).await?;
            assert_eq!(response.status, 403, "{host}");
            assert!(!response.headers.contains_key("access-control-allow-origin"), "{host}");
            assert!(response.text().await?.contains("Host must be one of"), "{host}");
        }
    }
    for host in [format!("localhost:{port}"), format!("[::1]:{port}"), format!("127.0.0.1:{port}")] {
        let headers = with(&headers, "host", &host);
        let mut response = call(address, IDENTITY, &headers, &v1::GetCallerIdentityRequest {}).await?;
        assert_eq!(response.code().await?, Code::Ok, "{host}");
    }
    daemon.stop().await?;
    Ok(())
}

#[tokio::test]
async fn pages_of_other_origins_are_refused() -> Result<()> {
    let (daemon, address) = web_daemon().await?;
    let headers = bearer(&token(&daemon, "page", v1::DeviceRole::Owner, HOUR).await?.token);
    let own = format!("http://{address}");
    for origin in
        ["http://evil.example", "null", "*", "http://localhost:5174", "https://localhost:5173", &own]
    {
        let headers = with(&headers, "origin", origin);
        let response = call(address, IDENTITY, &headers, &v1::GetCallerIdentityRequest {}).await?;
        assert_eq!(response.status, 403, "{origin}");
        assert!(!response.headers.contains_key("access-control-allow-origin"), "{origin}");
        assert!(response.text().await?.contains("web-origins"), "{origin}");
    }
    // A program that is no page sends none.
    let headers = with(&headers, "origin", "");
    let mut response = call(address, IDENTITY, &headers, &v1::GetCallerIdentityRequest {}).await?;
    assert!(!response.headers.contains_key("access-control-allow-origin"));
    assert_eq!(response.code().await?, Code::Ok);
    daemon.stop().await?;
    Ok(())
}

/// Browsers send forms and plain text to other origins without asking.
#[tokio::test]
async fn content_types_of_simple_requests_are_refused() -> Result<()> {
    let (daemon, address) = web_daemon().await?;
    let headers = bearer(&token(&daemon, "page", v1::DeviceRole::Owner, HOUR).await?.token);
    for content_type in [
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json",
        "application/grpc",
        "application/grpc+proto",
        "application/grpc-web+json",
        "text/plain; application/grpc-web",
        "application/grpc-web, text/plain",
    ] {
        let headers = with(&headers, "content-type", content_type);
        let response = call(address, IDENTITY, &headers, &v1::GetCallerIdentityRequest {}).await?;
        assert_eq!(response.status, 415, "{content_type}");
        assert!(response.text().await?.contains(BINARY), "{content_type}");
    }
    for content_type in ["application/grpc-web", BINARY] {
        let headers = with(&headers, "content-type", content_type);
        let mut response = call(address, IDENTITY, &headers, &v1::GetCallerIdentityRequest {}).await?;
        assert_eq!(response.code().await?, Code::Ok, "{content_type}");
    }
    daemon.stop().await?;
    Ok(())
}

#[tokio::test]
async fn only_post_reaches_a_method() -> Result<()> {
    let (daemon, address) = web_daemon().await?;
    let headers = bearer(&token(&daemon, "page", v1::DeviceRole::Owner, HOUR).await?.token);
    for method in ["GET", "HEAD", "PUT", "DELETE", "PATCH", "TRACE", "OPTIONS", "PRI"] {
        let response = send(address, (method, IDENTITY), &headers, "").await?;
        assert_eq!(response.status, 405, "{method}");
        assert_eq!(response.headers["allow"], "POST, OPTIONS", "{method}");
    }
    daemon.stop().await?;
    Ok(())
}

#[tokio::test]
async fn preflights_are_answered_for_allowed_origins_only() -> Result<()> {
    let (daemon, address) = web_daemon().await?;
    let asked = |origin: &str| {
        vec![
            ("origin", origin.to_owned()),
            ("access-control-request-method", "POST".to_owned()),
            ("access-control-request-headers", "authorization,content-type,x-grpc-web".to_owned()),
        ]
    };
    let response = send(address, ("OPTIONS", IDENTITY), &asked(ORIGIN), "").await?;
    assert_eq!(response.status, 204);
    assert_eq!(response.headers["access-control-allow-origin"], ORIGIN);
    assert_eq!(response.headers["access-control-allow-methods"], "POST");
    assert_eq!(response.headers["vary"], "origin");
    let allowed = response.headers["access-control-allow-headers"].to_str()?;
    for name in ["authorization", "content-type", "x-grpc-web"] {
        assert!(allowed.contains(name), "{allowed}");
    }
    assert!(!allowed.contains('*') && !response.headers.contains_key("access-control-allow-credentials"));
    let evil_host = with(&asked(ORIGIN), "host", &format!("evil.example:{}", address.port()));
    for headers in
        [asked("http://evil.example"), asked("null"), with(&asked(ORIGIN), "origin", ""), evil_host]
    {
        let response = send(address, ("OPTIONS", IDENTITY), &headers, "").await?;
        assert!([403, 405].contains(&response.status), "{headers:?}");
        for name in response.headers.keys() {
            assert!(!name.as_str().starts_with("access-control-"), "{headers:?}: {name}");
        }
    }
    daemon.stop().await?;
    Ok(())
}
