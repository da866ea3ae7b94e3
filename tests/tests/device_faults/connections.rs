//! Connections: too many of them, slow handshakes, and clients that connect and say nothing.

use std::net::Ipv4Addr;

use anyhow::{Context as _, Result, ensure};
use satchel_devices::{FingerprintPrefix, credentials::pairing_config};
use satchel_proto::v1::DeviceRole;
use satchel_tests::test_device::TestDevice;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
    time::{Duration, Instant, timeout},
};

use crate::{
    daemon_with_devices,
    frames::{RawConnection, connect_tcp, connect_tls},
};

/// Connections that one client opens.
const CONNECTIONS: usize = 1_000;
/// Of which this many are opened at once.
const AT_ONCE: usize = 50;
/// What the daemon grants, as its README says.
const PER_DEVICE: usize = 8;
const PER_ADDRESS: usize = 16;
/// Places for clients without a certificate, of all addresses.
const PLACES: usize = 128;
/// Addresses with slow handshakes: twice as many as could hold all places.
const ADDRESSES: u8 = 16;
/// Files that the daemon may have open besides: those of the other calls, and of clients whose end is not processed yet.
const SLACK: usize = 64;
/// Memory that the allocator may keep after a load, in MiB.
const KEPT_MIB: usize = 64;
/// How long the daemon may take to close connections for which there is no place; less than half of what a handshake may take.
const SOON: Duration = Duration::from_secs(4);
/// How long a client that says nothing is tolerated, with a margin.
const SILENCE: Duration = Duration::from_secs(20);

const fn address(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, last)
}

/// Opens many connections, with or without the certificate of the device. Returns those that the daemon keeps.
async fn open_many(device: &TestDevice, certificate: bool, from: Ipv4Addr) -> Result<Vec<RawConnection>> {
    let config = if certificate {
        device.credentials.client_config()?
    } else {
        pairing_config(&FingerprintPrefix::Full(device.credentials.fingerprint()?))?.tls
    };
    let mut kept = Vec::new();
    for _ in 0..CONNECTIONS / AT_ONCE {
        let opened = (0..AT_ONCE).map(|_| RawConnection::open(device, config.clone(), from, 0));
        for connection in futures_all(opened).await {
            kept.extend(connection);
        }
    }
    Ok(kept)
}

async fn futures_all<T>(futures: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut futures: Vec<_> = futures.map(Box::pin).collect();
    let mut all = Vec::new();
    // They run side by side, because the first poll of each starts it.
    std::future::poll_fn(|context| {
        futures.retain_mut(|future| match future.as_mut().poll(context) {
            std::task::Poll::Ready(value) => {
                all.push(value);
                false
            }
            std::task::Poll::Pending => true,
        });
        if futures.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_connections_are_limited() -> Result<()> {
    let (daemon, device, others) = daemon_with_devices(DeviceRole::Reader).await?;
    let before = daemon.usage()?;
    let kept = open_many(&device, true, address(2)).await?;
    // One of them is the connection of `device` itself.
    ensure!((1..PER_DEVICE).contains(&kept.len()), "{} connections of a device", kept.len());
    let unknown = open_many(&device, false, address(3)).await?;
    ensure!((1..=PER_ADDRESS).contains(&unknown.len()), "{} connections of an address", unknown.len());
    others.all_succeeded().await?;
    drop((kept, unknown));
    daemon.at_rest_as(before, KEPT_MIB).await
}

/// Begins handshakes of which each byte comes late, and some of which no byte comes at all.
#[tokio::test(flavor = "multi_thread")]
async fn handshakes_that_do_not_end_are_ended() -> Result<()> {
    let (daemon, device, others) = daemon_with_devices(DeviceRole::Reader).await?;
    let before = daemon.usage()?;
    let mut handshakes = JoinSet::new();
    for last in 2..8 {
        for number in 0..PER_ADDRESS {
            let stream = connect_tcp(&device, address(last)).await?;
            handshakes.spawn(drip(stream, number % 2 == 0));
        }
    }
    // A handshake ends, and nothing follows: neither from the device, nor from clients that are not paired.
    let config = device.credentials.client_config()?;
    for _ in 1..PER_DEVICE {
        let stream = connect_tls(&device, config.clone(), address(9)).await?;
        handshakes.spawn(closed_in_time(stream));
    }
    let unknown = pairing_config(&FingerprintPrefix::Full(device.credentials.fingerprint()?))?.tls;
    for _ in 0..PER_ADDRESS {
        let stream = connect_tls(&device, unknown.clone(), address(10)).await?;
        handshakes.spawn(closed_in_time(stream));
    }
    while let Some(ended) = handshakes.join_next().await {
        ended??;
    }
    others.all_succeeded().await?;
    daemon.at_rest_as(before, KEPT_MIB).await
}

/// Twice as many addresses as could hold all places try to. Half of the handshakes do not even begin, the others never end.
#[tokio::test(flavor = "multi_thread")]
async fn slow_handshakes_of_many_addresses_do_not_lock_out_others() -> Result<()> {
    let (daemon, device, others) = daemon_with_devices(DeviceRole::Reader).await?;
    let before = daemon.usage()?;
    let mut handshakes = JoinSet::new();
    for last in 2..2 + ADDRESSES {
        for number in 0..PER_ADDRESS {
            let stream = connect_tcp(&device, address(last)).await?;
            handshakes.spawn(drip(stream, number % 2 == 0));
        }
    }
    // A connection that has to leave is told so, and closed when its task runs: soon, and long before its handshake times out.
    let limit = Instant::now() + SOON;
    loop {
        let during = daemon.usage()?;
        if during.files <= before.files + PLACES + SLACK {
            break;
        }
        ensure!(Instant::now() < limit, "{before:?} became {during:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    others.all_succeeded().await?;
    while let Some(ended) = handshakes.join_next().await {
        ended??;
    }
    daemon.at_rest_as(before, KEPT_MIB).await
}

/// Sends the beginning of a handshake, one byte after the other, until the daemon closes the connection.
async fn drip(mut stream: TcpStream, silent: bool) -> Result<()> {
    // A TLS record that announces 512 bytes of a `ClientHello`.
    let begin = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
    let closed = async {
        let mut bytes = begin.into_iter().chain(std::iter::repeat(7));
        let mut answer = [0; 16];
        loop {
            tokio::select! {
                read = stream.read(&mut answer) => match read {
                    // A reset is an end too. Before it there may be an alert.
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                },
                () = tokio::time::sleep(Duration::from_millis(300)), if !silent => {
                    let byte = bytes.next().unwrap_or_default();
                    // The daemon may have closed it by now, which the next read says.
                    drop(stream.write_all(&[byte]).await);
                }
            }
        }
    };
    timeout(SILENCE, closed).await.context("a handshake that does not end is tolerated")
}

/// Waits until the daemon closes a connection on which nothing is sent.
async fn closed_in_time(mut stream: impl tokio::io::AsyncRead + Unpin) -> Result<()> {
    let mut bytes = Vec::new();
    let closed = timeout(SILENCE, stream.read_to_end(&mut bytes)).await;
    // A connection that ends without the goodbye of TLS is an error of `read_to_end`, but closed.
    closed.map(drop).context("a silent connection is tolerated")
}
