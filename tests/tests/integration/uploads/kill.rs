//! A daemon that is killed between and during chunks has everything that it acknowledged.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use satchel_server::config::Config;
use satchel_tests::test_core;
use tonic::transport::Channel;

use crate::uploads::fixture::{Uploader, noise};

/// Set in the child: the folder of the daemon.
const FOLDER: &str = "SATCHEL_TEST_UPLOAD_FOLDER";

/// Not a separate test: it runs in the child process of the test below.
#[tokio::test(flavor = "multi_thread")]
async fn child_that_serves() -> Result<()> {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return Ok(()) };
    let mut config = Config::new(folder.join("data"), folder.clone());
    config.code_cache = Some(test_core::code_cache());
    satchel_server::run(config, |_| {}, |_| {}, std::future::pending()).await?;
    Ok(())
}

/// A daemon in a process of its own.
struct Daemon {
    process: Child,
    channel: Channel,
}

impl Daemon {
    async fn start(folder: &Path) -> Result<Self> {
        let process = Command::new(std::env::current_exe()?)
            .args(["--exact", "uploads::kill::child_that_serves", "--test-threads", "1"])
            .env(FOLDER, folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let connecting = async {
            loop {
                if let Ok(channel) = satchel_server::connect::connect(&folder.join("data")).await
                    && Uploader::new(&channel)
                        .get("none")
                        .await
                        .is_err_and(|error| error.code() == tonic::Code::NotFound)
                {
                    return channel;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let channel = tokio::time::timeout(Duration::from_mins(1), connecting).await.context("it starts")?;
        Ok(Self { process, channel })
    }

    fn kill(mut self) -> Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_chunks_survive_kills() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let bytes = noise(400_000);
    let size = 10_000;
    let mut id = String::new();
    let mut acknowledged = 0;
    for round in 0..8 {
        let daemon = Daemon::start(folder.path()).await?;
        let mut uploader = Uploader::new(&daemon.channel);
        let upload = uploader.create("a.json", &bytes).await?;
        ensure!(round == 0 || upload.id == id, "it is the same upload");
        id = upload.id;
        let mut at = usize::try_from(upload.committed_bytes)?;
        ensure!(at >= acknowledged, "round {round}: {at} of {acknowledged} bytes are left");
        for _ in 0..round {
            at = uploader.write(&id, at, &bytes[at..at + size]).await?;
        }
        acknowledged = at;
        // One more chunk is on its way when the daemon dies.
        let (next, chunk) = (id.clone(), bytes[at..at + size].to_vec());
        let pending = tokio::spawn(async move { uploader.write(&next, at, &chunk).await });
        tokio::task::yield_now().await;
        daemon.kill()?;
        if let Ok(committed) = pending.await? {
            acknowledged = committed;
        }
    }
    let daemon = Daemon::start(folder.path()).await?;
    let mut uploader = Uploader::new(&daemon.channel);
    // The last byte is accepted only if the hash over all chunks is right.
    uploader.send(&id, &bytes, size).await?;
    ensure!(uploader.get(&id).await?.committed_bytes == 400_000);
    daemon.kill()
}
