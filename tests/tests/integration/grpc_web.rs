//! gRPC-Web on a loopback address: callers with a token get what their policy allows, and all others nothing.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::tests_outside_test_module, reason = "tests")]

mod agents;
mod client;
mod limits;
mod refusals;

use std::time::{Duration, Instant};

use anyhow::Result;
use satchel_proto::v1::{self, device_service_client::DeviceServiceClient};
use satchel_tests::{test_daemon::TestDaemon, test_device};
use tonic::Code;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use self::client::{BINARY, Frame, bearer, call, frame, send, token, web, web_daemon};

const IDENTITY: &str = "/satchel.v1.DeviceService/GetCallerIdentity";
const STATUS: &str = "/satchel.v1.AdminService/GetStatus";
const PAIR: &str = "/satchel.v1.PairingService/CompletePairing";
const WATCH_HEALTH: &str = "/grpc.health.v1.Health/Watch";
/// Longer than any of these tests.
const HOUR: i64 = 3_600;

#[tokio::test]
async fn a_token_calls_as_its_device() -> Result<()> {
    let (daemon, address) = web_daemon().await?;
    let token = token(&daemon, "page", v1::DeviceRole::Reader, HOUR).await?;
    let response = call(address, IDENTITY, &bearer(&token.token), &v1::GetCallerIdentityRequest {}).await?;
    assert_eq!(response.headers["access-control-allow-origin"], client::ORIGIN);
    assert!(!response.headers.contains_key("access-control-allow-credentials"));
    assert_eq!(response.headers["content-type"], BINARY);
    let identity: v1::GetCallerIdentityResponse = response.message().await?;
    assert_eq!(identity.device.unwrap().name, "page");
    let mut refused = call(address, STATUS, &bearer(&token.token), &v1::GetStatusRequest {}).await?;
    assert_eq!(refused.code().await?, Code::PermissionDenied, "a reader does not administer");
    daemon.stop().await?;
    Ok(())
}

/// Text is for browsers that cannot read a binary response piece by piece.
#[tokio::test]
async fn calls_and_responses_may_be_base64() -> Result<()> {
    use base64::{Engine as _, engine::general_purpose::STANDARD};

    let (daemon, address) = web_daemon().await?;
    let token = token(&daemon, "page", v1::DeviceRole::Reader, HOUR).await?;
    let mut headers = bearer(&token.token);
    headers[0].1 = "application/grpc-web-text".to_owned();
    headers.push(("accept", "application/grpc-web-text".to_owned()));
    let body = STANDARD.encode(frame(&v1::GetCallerIdentityRequest {}));
    let response = send(address, ("POST", IDENTITY), &headers, body).await?;
    assert_eq!(response.headers["content-type"], "application/grpc-web-text+proto");
    let text = response.text().await?;
    // The first frame and the trailers are encoded one by one.
    let first = text.split_inclusive('=').next().unwrap().trim_end_matches('=');
    assert!(!first.is_empty() && text.is_ascii(), "{text}");
    daemon.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_stream_arrives_message_by_message() -> Result<()> {
    let (daemon, address) = web_daemon().await?;
    let token = token(&daemon, "page", v1::DeviceRole::Reader, HOUR).await?;
    let mut stream =
        call(address, WATCH_HEALTH, &bearer(&token.token), &HealthCheckRequest::default()).await?;
    let Some(Frame::Message(first)) = stream.next().await? else { anyhow::bail!("a message") };
    let first: HealthCheckResponse = prost::Message::decode(first)?;
    assert_eq!(first.status, 1, "it serves");
    // The next message tells that the daemon stops, and the open stream does not keep it from that.
    let stopped = tokio::spawn(daemon.stop());
    let Some(Frame::Message(second)) = stream.next().await? else { anyhow::bail!("a message") };
    let second: HealthCheckResponse = prost::Message::decode(second)?;
    assert_eq!(second.status, 2, "it stops");
    stopped.await??;
    Ok(())
}

#[tokio::test]
async fn a_caller_without_a_valid_token_is_nobody() -> Result<()> {
    let (daemon, address) = web_daemon().await?;
    let valid = token(&daemon, "page", v1::DeviceRole::Owner, HOUR).await?.token;
    let mut without = bearer("");
    without.pop();
    let mut wrong = valid.clone();
    let last = if wrong.pop() == Some('a') { 'b' } else { 'a' };
    wrong.push(last);
    for path in [IDENTITY, STATUS, PAIR, WATCH_HEALTH, "/grpc.health.v1.Health/Check", "/no.Service/Method"] {
        for headers in [&without, &bearer(""), &bearer("x"), &bearer(&wrong)] {
            let mut response = call(address, path, headers, &v1::GetStatusRequest {}).await?;
            assert_eq!(response.code().await?, Code::Unauthenticated, "{path} {headers:?}");
        }
        let mut basic = bearer("");
        basic[2].1 = format!("Basic {valid}");
        let mut response = call(address, path, &basic, &v1::GetStatusRequest {}).await?;
        assert_eq!(response.code().await?, Code::Unauthenticated, "{path}");
    }
    let mut response = call(address, STATUS, &bearer(&valid), &v1::GetStatusRequest {}).await?;
    assert_eq!(response.code().await?, Code::Ok);
    daemon.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_token_ends_with_its_time() -> Result<()> {
    let (daemon, address) = web_daemon().await?;
    let token = token(&daemon, "page", v1::DeviceRole::Reader, 3).await?.token;
    let mut open = call(address, WATCH_HEALTH, &bearer(&token), &HealthCheckRequest::default()).await?;
    assert!(matches!(open.next().await?, Some(Frame::Message(_))));
    assert_eq!(open.code().await?, Code::Unauthenticated, "the open stream ends");
    let mut later = call(address, IDENTITY, &bearer(&token), &v1::GetCallerIdentityRequest {}).await?;
    assert_eq!(later.code().await?, Code::Unauthenticated);
    daemon.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_revoked_token_ends_at_once() -> Result<()> {
    let (daemon, address) = web_daemon().await?;
    let created = token(&daemon, "page", v1::DeviceRole::Reader, HOUR).await?;
    let mut open =
        call(address, WATCH_HEALTH, &bearer(&created.token), &HealthCheckRequest::default()).await?;
    assert!(matches!(open.next().await?, Some(Frame::Message(_))));
    let request = v1::RevokeDeviceRequest { device: created.device.unwrap().id, reason: String::new() };
    DeviceServiceClient::new(daemon.channel.clone()).revoke_device(request).await?;
    let revoked = Instant::now();
    assert_eq!(open.code().await?, Code::PermissionDenied);
    assert!(revoked.elapsed() < Duration::from_secs(2), "{:?}", revoked.elapsed());
    let mut later =
        call(address, IDENTITY, &bearer(&created.token), &v1::GetCallerIdentityRequest {}).await?;
    assert_eq!(later.code().await?, Code::Unauthenticated);
    daemon.stop().await?;
    Ok(())
}

/// Pairing is open on the TLS listener of the same daemon.
#[tokio::test]
async fn pairing_is_not_served() -> Result<()> {
    let daemon = TestDaemon::start_with(tempfile::tempdir()?, |config| {
        test_device::listen(config);
        web(config);
    })
    .await?;
    let address = daemon.web.unwrap();
    let pairing = test_device::create_pairing(&daemon, "phone", test_device::policy(v1::DeviceRole::Owner));
    let secret = satchel_devices::PairingSecret::parse(&pairing.await?.uri)?;
    let (_, certificate_request_der) = satchel_devices::credentials::generate_key_and_csr()?;
    let request = v1::CompletePairingRequest {
        token: secret.token.as_bytes().to_vec(),
        certificate_request_der,
        name: "phone".to_owned(),
    };
    let mut without = bearer("");
    without.pop();
    assert_eq!(call(address, PAIR, &without, &request).await?.code().await?, Code::Unauthenticated);
    let token = token(&daemon, "page", v1::DeviceRole::Owner, HOUR).await?.token;
    assert_eq!(call(address, PAIR, &bearer(&token), &request).await?.code().await?, Code::Unimplemented);
    // The code is still good where it belongs.
    test_device::TestDevice::pair_with(&secret, "phone").await?;
    daemon.stop().await?;
    Ok(())
}

#[tokio::test]
async fn calls_are_in_the_log() -> Result<()> {
    let (daemon, address) = web_daemon().await?;
    let created = token(&daemon, "page", v1::DeviceRole::Reader, HOUR).await?;
    let headers = bearer(&created.token);
    assert_eq!(
        call(address, STATUS, &headers, &v1::GetStatusRequest {}).await?.code().await?,
        Code::PermissionDenied
    );
    let request = v1::ListAuditEventsRequest { device: "page".to_owned(), ..Default::default() };
    let mut devices = DeviceServiceClient::new(daemon.channel.clone());
    let events = devices.list_audit_events(request).await?.into_inner().events;
    let [event] = events.as_slice() else { anyhow::bail!("{events:?}") };
    assert_eq!((event.method.as_str(), event.code), (STATUS.trim_start_matches('/'), 7));
    assert!(event.address.starts_with("127.0.0.1:"), "{}", event.address);
    daemon.stop().await?;
    Ok(())
}

#[tokio::test]
async fn it_is_off_unless_it_is_switched_on() -> Result<()> {
    let daemon = test_device::listening_daemon().await?;
    assert!(daemon.web.is_none());
    daemon.stop().await?;
    Ok(())
}
