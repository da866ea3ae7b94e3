//! A daemon that is killed while a client follows it.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use satchel_proto::v1;
use satchel_server::config::Config;
use satchel_tests::{generate::Rng, test_core::code_cache, test_daemon::TestDaemon};
use tonic::transport::Channel;

use crate::watch_changes::{every_status, follower::Follower, writers};

/// Set in the child: the folder with the data directory.
const FOLDER: &str = "SATCHEL_TEST_CHANGES_KILL";
const ROUNDS: u64 = 4;
/// Upper limit for any wait, even on a machine that does other work.
const WAIT_TIMEOUT: Duration = Duration::from_mins(1);

/// Not a separate test: it runs in the child process of the test below until it is killed.
#[tokio::test(flavor = "multi_thread")]
async fn child_that_serves() -> Result<()> {
    let Some(folder) = std::env::var_os(FOLDER) else { return Ok(()) };
    let folder = Path::new(&folder);
    let mut config = Config::new(folder.join("data"), folder.to_owned());
    config.code_cache = Some(code_cache());
    Ok(satchel_server::run(config, |_| {}, |_| {}, std::future::pending()).await?)
}

fn spawn_child(folder: &Path) -> Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["--exact", "watch_changes::killed::child_that_serves", "--test-threads", "1"])
        .env(FOLDER, folder);
    Ok(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
}

async fn connect(folder: &Path) -> Result<Channel> {
    let end = Instant::now() + WAIT_TIMEOUT;
    loop {
        if let Ok(channel) = satchel_server::connect::connect(&folder.join("data")).await
            && writers::revision(&channel).await.is_ok()
        {
            return Ok(channel);
        }
        ensure!(Instant::now() < end, "the daemon does not start");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Follows until the connection breaks.
async fn follow(channel: Channel, mut follower: Follower) -> Follower {
    let broken = follower.follow_until(&channel, i64::MAX).await;
    // What was not complete is sent again.
    follower.drop_pending();
    assert!(broken.is_err_and(|error| error.is::<tonic::Status>()), "the follower found a mistake");
    follower
}

/// Creates memories until the daemon is killed, and returns those that were acknowledged.
async fn write(channel: Channel, round: u64) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for n in 0_u64.. {
        match writers::create(&channel, &format!("Round {round} knows {n}"), v1::Visibility::Public).await {
            Ok(id) => acknowledged.push(id),
            Err(_) => break,
        }
    }
    acknowledged
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_continues_after_the_daemon_was_killed() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut follower = Follower::default();
    let mut acknowledged = Vec::new();
    let mut rng = Rng::new(3);
    for round in 0..ROUNDS {
        let mut victim = spawn_child(folder.path())?;
        let channel = connect(folder.path()).await?;
        let following = tokio::spawn(follow(channel.clone(), follower));
        let writing = tokio::spawn(write(channel, round));
        // The random moment is the point of the test.
        tokio::time::sleep(Duration::from_millis(100 + rng.below(300))).await;
        victim.kill()?;
        victim.wait()?;
        follower = following.await?;
        acknowledged.extend(writing.await?);
    }
    let daemon = TestDaemon::start_in(folder).await?;
    follower.follow_until(&daemon.channel, writers::revision(&daemon.channel).await?).await?;
    ensure!(acknowledged.len() > 10, "{} memories", acknowledged.len());
    ensure!(acknowledged.iter().all(|id| follower.memories.contains_key(id)), "a memory was not told");
    follower.check_against_list(&daemon.channel, every_status()).await?;
    daemon.stop().await?;
    Ok(())
}
