//! Stores come in step over a network that is slow and breaks connections in the middle of a message.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use satchel_proto::v1::{self, DeviceRole};
use satchel_tests::{
    test_daemon::{TestDaemon, chatgpt_export},
    test_device::{create_pairing, policy},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, tcp},
};

use super::peer_daemon::{add, content, eventually, in_step, peers, rewrite, start_new};

/// How long each piece of data is under way.
const DELAY: Duration = Duration::from_millis(20);
/// Bytes of a piece.
const PIECE: usize = 16 << 10;

/// Passes connections on to a daemon, slowly, and breaks each after some bytes.
struct BadNetwork {
    address: SocketAddr,
    broken: Arc<AtomicU64>,
}

impl BadNetwork {
    /// `bytes` are the bytes after which the first connections break, one after the other; later ones do not break.
    async fn to(target: SocketAddr, bytes: Vec<usize>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, broken) = (listener.local_addr()?, Arc::<AtomicU64>::default());
        let count = Arc::clone(&broken);
        tokio::spawn(async move {
            let mut limits = bytes.into_iter();
            while let Ok((client, _)) = listener.accept().await {
                let limit = limits.next();
                let count = Arc::clone(&count);
                tokio::spawn(async move {
                    if pass_on(client, target, limit.unwrap_or(usize::MAX)).await {
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        Ok(Self { address, broken })
    }
}

/// Passes on both directions until one of them ends or `limit` bytes have passed in one; returns whether that was so.
async fn pass_on(client: TcpStream, target: SocketAddr, limit: usize) -> bool {
    let Ok(server) = TcpStream::connect(target).await else { return false };
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    tokio::select! {
        broke = one_way(from_client, to_server, limit) => broke,
        broke = one_way(from_server, to_client, limit) => broke,
    }
}

async fn one_way(mut from: tcp::OwnedReadHalf, mut to: tcp::OwnedWriteHalf, limit: usize) -> bool {
    let (mut piece, mut passed) = (vec![0; PIECE], 0);
    loop {
        let Ok(read @ 1..) = from.read(&mut piece).await else { return false };
        tokio::time::sleep(DELAY).await;
        let rest = limit.saturating_sub(passed).min(read);
        if to.write_all(&piece[..rest]).await.is_err() {
            return false;
        }
        passed += rest;
        if rest < read {
            return true;
        }
    }
}

/// Lets `from` connect to `to` through a bad network.
async fn pair_through(network: &BadNetwork, from: &TestDaemon, to: &TestDaemon) -> Result<()> {
    let pairing = create_pairing(to, "laptop", policy(DeviceRole::Peer)).await?;
    let request = v1::AddPeerRequest {
        code: pairing.code,
        addresses: vec![network.address.to_string()],
        name: "desk".to_owned(),
        device_name: "laptop".to_owned(),
        ..Default::default()
    };
    peers(from).add_peer(request).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_break_anywhere_cost_nothing_but_time() -> Result<()> {
    let (desk, laptop, folder) = (start_new().await?, start_new().await?, tempfile::tempdir()?);
    desk.import(&chatgpt_export(folder.path(), 200)?).await?;
    let note = add(&laptop, "Keeps bees").await?;
    let address = create_pairing(&desk, "x", policy(DeviceRole::Peer)).await?.addresses;
    let address = address.first().context("an address")?.parse()?;
    // The first one is that of the pairing. The others break in the handshake, between messages and in the middle of one.
    let breaks = vec![usize::MAX, 700, 3_000, 5_000, 9_000, 20_001, 40_000, 65_537];
    let broken_at_least = 5;
    let network = BadNetwork::to(address, breaks).await?;
    pair_through(&network, &laptop, &desk).await?;
    for round in 0..5 {
        rewrite(&laptop, &note, &format!("Keeps {round} bees")).await?;
        eventually("the edit comes", async || {
            let found = content(&desk, &note).await?;
            if found.is_none_or(|text| text != format!("Keeps {round} bees")) {
                // Does not wait for the next attempt of the daemon.
                peers(&laptop).sync_peers(v1::SyncPeersRequest::default()).await?;
                return Ok(None);
            }
            Ok(Some(()))
        })
        .await?;
    }
    in_step(&[&desk, &laptop]).await?;
    let broken = network.broken.load(Ordering::Relaxed);
    ensure!(broken >= broken_at_least, "only {broken} connections broke");
    Ok(())
}
