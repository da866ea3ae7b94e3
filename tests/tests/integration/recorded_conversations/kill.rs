//! A daemon that is killed has every message that it acknowledged, and a repeated request records nothing twice.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use satchel_proto::v1;
use satchel_server::config::Config;
use satchel_tests::{generate::Rng, test_core::code_cache, test_daemon::TestDaemon};
use uuid::Uuid;

use super::{append_request, client, memu_request, message, messages};

/// Set in the child: the folder with the data directory.
const FOLDER: &str = "SATCHEL_TEST_RECORDING_KILL";
/// What the child prints when it can be called.
const READY: &str = "the daemon is ready";
const ROUNDS: u64 = 5;
/// The longest time that a round runs until the kill, in milliseconds.
const LONGEST: u64 = 400;

/// Not a separate test: it runs in the child process of the test below until it is killed.
#[tokio::test(flavor = "multi_thread")]
async fn child_that_serves() -> Result<()> {
    let Some(folder) = std::env::var_os(FOLDER) else { return Ok(()) };
    let folder = Path::new(&folder);
    let mut config = Config::new(folder.join("data"), folder.to_owned());
    config.code_cache = Some(code_cache());
    // The parent waits for the line; if it cannot be written, the parent says so.
    let ready = |_| drop(writeln!(std::io::stdout(), "{READY}"));
    Ok(satchel_server::run(config, |_| {}, ready, std::future::pending()).await?)
}

/// Starts a daemon in another process, and waits until it can be called.
fn spawn_child(folder: &Path) -> Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    let arguments =
        ["--exact", "recorded_conversations::kill::child_that_serves", "--test-threads", "1", "--nocapture"];
    command.args(arguments).env(FOLDER, folder).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let lines = BufReader::new(child.stdout.take().context("the output")?).lines();
    for line in lines {
        if line?.contains(READY) {
            return Ok(child);
        }
    }
    anyhow::bail!("the daemon ended before it was ready: {:?}", child.wait()?)
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_messages_survive_a_kill() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().to_owned();
    let mut rng = Rng::new(11);
    let (mut id, mut sent, mut unanswered): (String, Vec<String>, Option<v1::AppendMessagesRequest>) =
        (String::new(), Vec::new(), None);
    for round in 0..ROUNDS {
        let mut victim = spawn_child(&path)?;
        let channel = satchel_server::connect::connect(&path.join("data")).await?;
        let mut calls = client(&channel);
        if round == 0 {
            id = calls.record_conversation(memu_request()).await?.into_inner().conversation_id;
        }
        // The request that the last kill interrupted: it may have been executed.
        if let Some(request) = unanswered.take() {
            sent.extend(calls.append_messages(request).await?.into_inner().message_ids);
        }
        // The random moment is the point of the test.
        let moment = Duration::from_millis(rng.below(LONGEST));
        let killer = std::thread::spawn(move || {
            std::thread::park_timeout(moment);
            victim.kill().and_then(|()| victim.wait())
        });
        while unanswered.is_none() {
            let request = v1::AppendMessagesRequest {
                request_id: Uuid::new_v4().to_string(),
                ..append_request(&id, vec![message(v1::Role::User, &format!("message {}", sent.len()))])
            };
            match calls.append_messages(request.clone()).await {
                Ok(appended) => sent.extend(appended.into_inner().message_ids),
                Err(_) => unanswered = Some(request),
            }
        }
        ensure!(killer.join().is_ok_and(|ended| ended.is_ok()), "the child was killed");
    }
    let daemon = TestDaemon::start_in(folder).await?;
    let mut calls = client(&daemon.channel);
    let request = unanswered.context("the last kill interrupted a request")?;
    sent.extend(calls.append_messages(request).await?.into_inner().message_ids);
    let stored: Vec<String> =
        messages(&mut calls, &id).await?.into_iter().map(|message| message.id).collect();
    ensure!(stored.get(2..) == Some(&sent[..]), "{} stored, {} sent", stored.len(), sent.len());
    ensure!(sent.len() > usize::try_from(ROUNDS)?, "some calls were answered");
    daemon.stop().await?;
    Ok(())
}
