//! The sessions of a coding agent, which grow while their folder is watched.

use std::{fs, io::Write as _, path::Path, time::Instant};

use anyhow::{Result, ensure};

use crate::watch::fixture::{POLL_INTERVAL, WAIT_TIMEOUT, WatchFixture, idle};

/// Lines that are appended.
const APPENDED: i64 = 3;

/// Returns a line of a session of Claude Code: a message that answers the one before it.
fn line(session: usize, number: i64) -> String {
    let id = |number: i64| format!("00000000-0000-4000-8000-{session:04}{number:08}");
    let line = serde_json::json!({
        "type": "user", "uuid": id(number), "parentUuid": (number > 0).then(|| id(number - 1)),
        "sessionId": format!("5e551000-0000-4000-8000-{session:012}"), "isSidechain": false,
        "timestamp": format!("2026-05-02T09:00:0{number}.000Z"), "cwd": "/home/mara/bakery", "version": "2.1.0",
        "message": {"role": "user", "content": format!("Message {number} of session {session}")},
    });
    format!("{line}\n")
}

fn append(path: &Path, text: &str) -> Result<()> {
    Ok(fs::File::options().append(true).open(path)?.write_all(text.as_bytes())?)
}

async fn wait_for_messages(fixture: &WatchFixture, count: i64) -> Result<()> {
    let end = Instant::now() + WAIT_TIMEOUT;
    while fixture.stats().await?.messages < count {
        ensure!(Instant::now() < end, "{:?}", fixture.source().await?);
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_grows_is_completed_without_half_a_line_and_nothing_is_doubled() -> Result<()> {
    let fixture = WatchFixture::start().await?;
    let project = fixture.path("projects/-home-mara-bakery");
    fs::create_dir_all(&project)?;
    let sessions = [1, 2].map(|session| project.join(format!("5e551000-0000-4000-8000-{session:012}.jsonl")));
    for (session, path) in sessions.iter().enumerate() {
        fs::write(path, line(session, 0))?;
    }
    wait_for_messages(&fixture, 2).await?;
    for number in 1..=APPENDED {
        let text = line(0, number);
        let (begin, rest) = text.split_at(text.len() / 2);
        append(&sessions[0], begin)?;
        fixture.wait_for_rescans().await;
        fixture.wait_until(idle).await?;
        ensure!(fixture.stats().await?.messages == 1 + number, "half a line is not a message");
        append(&sessions[0], rest)?;
        wait_for_messages(&fixture, 2 + number).await?;
    }
    let source = fixture.wait_for_imported(1).await?;
    ensure!(source.failed_total == 0 && source.unrecognized == 0, "{source:?}");
    let stats = fixture.stats().await?;
    ensure!((stats.conversations, stats.messages) == (2, 2 + APPENDED), "{stats:?}");
    fixture.daemon.stop().await?;
    Ok(())
}
