//! The sessions of a coding agent, which grow while their folder is watched.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow, ensure};
use satchel_proto::v1::{
    self, conversation_service_client::ConversationServiceClient, memory_service_client::MemoryServiceClient,
};
use satchel_tests::{samples::sample, test_daemon::TestDaemon};
use tempfile::TempDir;
use tonic::transport::Channel;

use crate::watch::fixture::{POLL_INTERVAL, WAIT_TIMEOUT, WatchFixture, configure_watching, idle};

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

pub(super) async fn wait_for_messages(fixture: &WatchFixture, count: i64) -> Result<()> {
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

/// A folder with sessions. Only events tell of changes in it.
async fn start_sessions(folder: TempDir) -> Result<WatchFixture> {
    let downloads = folder.path().join("downloads");
    fs::create_dir_all(&downloads)?;
    let daemon = TestDaemon::start_with(folder, |config| {
        configure_watching(config, &downloads);
        config.watching.intervals.rescan = Duration::from_hours(1);
        config.watching.folders[0].sessions = true;
    });
    Ok(WatchFixture { daemon: daemon.await?, downloads })
}

fn session_path(project: &Path, session: usize) -> PathBuf {
    project.join(format!("5e551000-0000-4000-8000-{session:012}.jsonl"))
}

fn sources(imports: &[v1::Import]) -> BTreeMap<String, usize> {
    let mut sources = BTreeMap::new();
    for import in imports {
        *sources.entry(import.source.clone()).or_default() += 1;
    }
    sources
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_session_that_grows_is_imported_again() -> Result<()> {
    let fixture = start_sessions(tempfile::tempdir()?).await?;
    fixture.wait_until(idle).await?;
    // The folder of the project is new, too.
    let project = fixture.path("-home-mara-bakery");
    fs::create_dir(&project)?;
    for session in 0..2 {
        fs::write(session_path(&project, session), line(session, 0))?;
    }
    wait_for_messages(&fixture, 2).await?;
    fixture.wait_until(idle).await?;
    let before = sources(&fixture.imports().await?);
    for number in 1..=APPENDED {
        let text = line(0, number);
        let (begin, rest) = text.split_at(text.len() / 2);
        append(&session_path(&project, 0), begin)?;
        append(&session_path(&project, 0), rest)?;
        wait_for_messages(&fixture, 2 + number).await?;
    }
    fixture.wait_until(idle).await?;
    let imports = fixture.imports().await?;
    let after = sources(&imports);
    let [grown, other] =
        [0, 1].map(|session| format!("-home-mara-bakery/5e551000-0000-4000-8000-{session:012}.jsonl"));
    ensure!(after.len() == 2 && after[&other] == before[&other], "{after:?}");
    ensure!(after[&grown] > before[&grown], "{after:?}");
    let whole = [v1::ImportStatus::Completed, v1::ImportStatus::CompletedWithSkips];
    ensure!(imports.iter().all(|import| whole.contains(&import.status())), "{imports:?}");
    ensure!(imports.iter().all(|import| import.conversations.is_some_and(|counts| counts.found == 1)));
    fixture.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_read_while_its_program_never_stops_writing() -> Result<()> {
    let fixture = start_sessions(tempfile::tempdir()?).await?;
    let path = session_path(&fixture.downloads, 0);
    fs::write(&path, "")?;
    // Half lines are there most of the time.
    let end = Arc::new(AtomicBool::new(false));
    let writer = std::thread::spawn({
        let (path, end) = (path.clone(), Arc::clone(&end));
        move || -> Result<i64> {
            let mut number = 0;
            while !end.load(Ordering::Relaxed) {
                for part in line(0, number).as_bytes().chunks(100) {
                    append(&path, std::str::from_utf8(part)?)?;
                    std::thread::sleep(Duration::from_millis(3));
                }
                number += 1;
            }
            Ok(number)
        }
    });
    // It is read although it is never quiet.
    let read = wait_for_messages(&fixture, 20).await;
    end.store(true, Ordering::Relaxed);
    let written = writer.join().map_err(|_| anyhow!("the writer panicked"))??;
    read?;
    wait_for_messages(&fixture, written).await?;
    fixture.wait_until(idle).await?;
    let stats = fixture.stats().await?;
    ensure!((stats.conversations, stats.messages) == (1, written), "{stats:?}");
    let imports = fixture.imports().await?;
    ensure!(
        imports.iter().all(|import| import.messages.is_some_and(|counts| counts.skipped == 0)),
        "{imports:?}"
    );
    fixture.daemon.stop().await?;
    Ok(())
}

/// Copies the files of a fixture one by one; those of subagents and of tools come after their session.
fn copy_files(from: &Path, to: &Path) -> Result<()> {
    let mut files = Vec::new();
    let mut folders = vec![from.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort_by_key(|path| (path.components().count(), path.clone()));
    for path in files {
        let target = to.join(path.strip_prefix(from)?);
        fs::create_dir_all(target.parent().context("a folder")?)?;
        fs::copy(path, target)?;
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// What a store shows, without the times and names of its imports.
async fn shown(channel: &Channel) -> Result<Vec<(String, String)>> {
    let mut client = ConversationServiceClient::new(channel.clone());
    let listed = client.list_conversations(v1::ListConversationsRequest::default()).await?.into_inner();
    let mut all = Vec::new();
    for conversation in listed.conversations {
        let request = v1::ListMessagesRequest {
            conversation_id: conversation.id.clone(),
            page_size: 500,
            include_hidden: true,
            include_thoughts: true,
            include_raw_metadata: true,
            ..Default::default()
        };
        let messages = client.list_messages(request).await?.into_inner().messages;
        all.push((conversation.title.unwrap_or_default(), format!("{messages:?}")));
    }
    let mut memories = MemoryServiceClient::new(channel.clone());
    let listed = memories.list_memories(v1::ListMemoriesRequest::default()).await?.into_inner();
    all.extend(listed.memories.into_iter().map(|memory| ("memory".to_owned(), memory.content)));
    all.sort();
    Ok(all)
}

/// However the files of sessions arrive, the store ends as if they had been imported together.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_arrive_one_by_one_are_stored_as_if_they_were_imported_together() -> Result<()> {
    for (provider, behaviour, below) in [
        ("claude-code", "subagents-and-full-outputs", ""),
        ("claude-code", "memory-files", "projects"),
        ("claude-code", "tools-and-branches", ""),
        ("codex", "subagent", "sessions"),
        ("codex", "one-object", "sessions"),
        ("gemini-cli", "session-with-tools-and-thoughts", ""),
        ("gemini-cli", "subagent", ""),
        ("gemini-cli", "memories", "tmp"),
        ("goose", "old-files-and-the-database", "sessions"),
    ] {
        let input = sample(provider, behaviour).join(below);
        let together = TestDaemon::start().await?;
        together.import(&input).await?;
        let expected = shown(&together.channel).await?;
        ensure!(!expected.is_empty(), "{behaviour}");
        let fixture = start_sessions(tempfile::tempdir()?).await?;
        copy_files(&input, &fixture.downloads)?;
        let end = Instant::now() + WAIT_TIMEOUT;
        loop {
            let found = shown(&fixture.channel()).await?;
            if found == expected {
                break;
            }
            ensure!(Instant::now() < end, "{behaviour}: {found:#?}\n{expected:#?}");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        // A restart imports nothing again.
        fixture.wait_until(idle).await?;
        let imports = fixture.imports().await?.len();
        let fixture = start_sessions(fixture.daemon.stop().await?).await?;
        fixture.wait_until(idle).await?;
        ensure!(fixture.imports().await?.len() == imports, "{behaviour}: {:?}", fixture.imports().await?);
        ensure!(shown(&fixture.channel()).await? == expected, "{behaviour}");
        fixture.daemon.stop().await?;
        together.stop().await?;
    }
    Ok(())
}
