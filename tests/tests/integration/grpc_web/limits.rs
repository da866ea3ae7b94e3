//! Limits on what a client of gRPC-Web may send, and how slowly.

use std::{net::SocketAddr, time::Duration};

use anyhow::Result;
use satchel_proto::v1;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tonic::Code;

use crate::grpc_web::{
    HOUR, IDENTITY,
    client::{BINARY, bearer, call, send, token, web_daemon},
};

/// Longer than the daemon waits.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sends bytes and returns what comes back until the daemon closes the connection.
async fn exchange(address: SocketAddr, sent: &[u8]) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    // The daemon may close it before all is sent.
    drop(stream.write_all(sent).await);
    let mut answer = Vec::new();
    drop(timeout(PATIENCE, stream.read_to_end(&mut answer)).await?);
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn head(address: SocketAddr, token: &str, more: &str) -> String {
    format!(
        "POST {IDENTITY} HTTP/1.1\r\nhost: {address}\r\ncontent-type: {BINARY}\r\nauthorization: Bearer {token}\r\n{more}\r\n"
    )
}

#[tokio::test]
async fn a_long_body_is_refused() -> Result<()> {
    let (daemon, address) = web_daemon().await?;
    let token = token(&daemon, "page", v1::DeviceRole::Reader, HOUR).await?.token;
    // Refused by its length, before any of it is sent.
    let answer = exchange(address, head(address, &token, "content-length: 99999999\r\n").as_bytes()).await?;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    // One message that is too long.
    let mut response = send(address, ("POST", IDENTITY), &bearer(&token), oversize()).await?;
    assert_eq!(response.code().await?, Code::ResourceExhausted);
    // A chunked body whose messages never end.
    let chunk = [b"100000\r\n".as_slice(), &vec![0; 1 << 20], b"\r\n"].concat();
    let mut endless = head(address, &token, "transfer-encoding: chunked\r\n").into_bytes();
    endless.extend(chunk.repeat(8));
    let answer = exchange(address, &endless).await?;
    assert!(answer.contains("grpc-status") && !answer.contains("grpc-status: 0"), "{answer}");
    let mut response = call(address, IDENTITY, &bearer(&token), &v1::GetCallerIdentityRequest {}).await?;
    assert_eq!(response.code().await?, Code::Ok, "others are served");
    daemon.stop().await?;
    Ok(())
}

/// A message of 4 MiB and one byte.
fn oversize() -> Vec<u8> {
    let length = (4 << 20) + 1;
    let mut body = vec![0; 5 + length];
    body[1..5].copy_from_slice(&u32::try_from(length).unwrap().to_be_bytes());
    body
}

#[tokio::test]
async fn long_headers_are_refused() -> Result<()> {
    let (daemon, address) = web_daemon().await?;
    let long = head(address, &"x".repeat(20 << 10), "");
    let answer = exchange(address, long.as_bytes()).await?;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let many: String = (0..100).flat_map(|number| [format!("x-{number}"), ": 1\r\n".to_owned()]).collect();
    let answer = exchange(address, head(address, "x", &many).as_bytes()).await?;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let answer = exchange(address, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await?;
    assert!(!answer.starts_with("HTTP/1.1 2"), "{answer}");
    daemon.stop().await?;
    Ok(())
}

/// Connections that send nothing, or half of their headers, take all places, until they are closed.
#[tokio::test]
async fn slow_clients_are_cut_off() -> Result<()> {
    let (daemon, address) = web_daemon().await?;
    let token = token(&daemon, "page", v1::DeviceRole::Reader, HOUR).await?.token;
    let mut slow = Vec::new();
    for number in 0..256 {
        let mut stream = TcpStream::connect(address).await?;
        if number % 2 == 0 {
            stream.write_all(b"POST / HTTP/1.1\r\nhost: ").await?;
        }
        slow.push(stream);
    }
    // One more than there are places is closed at once.
    assert_eq!(exchange(address, b"").await?, "");
    for mut stream in slow {
        let mut answer = Vec::new();
        // It may be reset, because bytes were not read.
        drop(timeout(PATIENCE, stream.read_to_end(&mut answer)).await?);
        assert!(!answer.starts_with(b"HTTP/1.1 2"));
    }
    let mut response = call(address, IDENTITY, &bearer(&token), &v1::GetCallerIdentityRequest {}).await?;
    assert_eq!(response.code().await?, Code::Ok);
    daemon.stop().await?;
    Ok(())
}

#[tokio::test]
async fn the_time_limit_of_a_client_is_kept() -> Result<()> {
    let (daemon, address) = web_daemon().await?;
    let token = token(&daemon, "page", v1::DeviceRole::Reader, HOUR).await?.token;
    let mut headers = bearer(&token);
    headers.push(("grpc-timeout", "50m".to_owned()));
    // The body is announced and never sent.
    let sent = head(address, &token, "content-length: 5\r\ngrpc-timeout: 50m\r\n");
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(sent.as_bytes()).await?;
    let mut answer = vec![0; 4_096];
    let read = timeout(Duration::from_secs(10), stream.read(&mut answer)).await??;
    let answer = String::from_utf8_lossy(&answer[..read]);
    assert!(answer.contains("grpc-status: 4"), "{answer}");
    daemon.stop().await?;
    Ok(())
}
