//! A client that runs on the laptop, in a process of its own: it watches the changes of the daemon, and continues when a
//! stream or a connection ends.

use std::{
    fs::{File, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::Duration,
};

use satchel_devices::Credentials;
use satchel_proto::v1::{self, change::Record, watch_service_client::WatchServiceClient};
use satchel_server::connect::connect_remote;
use tonic::{Status, transport::Channel};

use crate::network::{Host, wait_for};

/// Set in the child: the data directory of the laptop.
const DATA: &str = "SATCHEL_TEST_FOLLOWER_DATA";
const FILE: &str = "followed";
/// Pause between two attempts.
const RETRY: Duration = Duration::from_millis(200);

/// Not a separate test: it is the client, and runs until it is killed.
#[test]
fn follower_of_the_tests() {
    let Some(data) = std::env::var_os(DATA).map(PathBuf::from) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(Box::pin(follow(&data)));
}

async fn follow(data: &Path) {
    let credentials = Credentials::load(data, "desk").unwrap();
    let mut file = OpenOptions::new().create(true).append(true).open(data.join(FILE)).unwrap();
    let channel = connect_remote(&credentials).await.unwrap();
    let mut revision = 0;
    loop {
        // The channel connects again by itself, and the client continues after the last revision that it has.
        let ended = watch(&channel, &mut revision, &mut file).await;
        writeln!(file, "ended: {:?}", ended.code()).unwrap();
        tokio::time::sleep(RETRY).await;
    }
}

/// Writes down each change, until the stream ends.
async fn watch(channel: &Channel, revision: &mut i64, file: &mut File) -> Status {
    let request = v1::WatchChangesRequest { after_revision: Some(*revision), ..Default::default() };
    let mut stream = match WatchServiceClient::new(channel.clone()).watch_changes(request).await {
        Ok(stream) => stream.into_inner(),
        Err(status) => return status,
    };
    loop {
        let message = match stream.message().await {
            Ok(Some(message)) => message,
            Ok(None) => return Status::unavailable("the stream ended"),
            Err(status) => return status,
        };
        for change in message.changes {
            if let Some(Record::Memory(memory)) = change.record {
                writeln!(file, "told: {}", memory.content).unwrap();
            }
        }
        *revision = message.header.unwrap().revision;
    }
}

/// The client. It is killed when it is dropped.
pub(crate) struct Follower {
    child: Child,
    file: PathBuf,
}

impl Follower {
    /// Starts the client on a machine that is paired.
    pub(crate) fn start(host: &Host) -> Self {
        let program = std::env::current_exe().unwrap();
        let words = ["--exact", "follower::follower_of_the_tests", "--test-threads", "1"];
        let mut command = host.run_program(program.to_str().unwrap(), &words);
        command.env(DATA, host.data()).stdout(Stdio::null());
        Self { child: command.spawn().unwrap(), file: host.data().join(FILE) }
    }

    /// Waits until it was told of this memory, and returns the contents of all of which it was told.
    pub(crate) fn told_of(&self, content: &str) -> Vec<String> {
        let last = format!("told: {content}\n");
        let lines = wait_for(&self.file, |text| text.contains(&last));
        lines.lines().filter_map(|line| line.strip_prefix("told: ").map(str::to_owned)).collect()
    }

    /// Waits until a stream has ended, and returns with which codes streams have.
    pub(crate) fn ended(&self) -> Vec<String> {
        let lines = wait_for(&self.file, |text| text.contains("ended: "));
        lines.lines().filter_map(|line| line.strip_prefix("ended: ").map(str::to_owned)).collect()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // It may have ended by itself; in both cases it is gone afterwards.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
