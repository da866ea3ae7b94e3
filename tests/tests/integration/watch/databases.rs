//! A database is watched by its own path, while its program writes to it.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context as _, Result, ensure};
use rusqlite::Connection;
use satchel_proto::v1;
use satchel_tests::test_daemon::TestDaemon;
use satchel_watch::WatchSpec;

use crate::watch::{
    fixture::{WatchFixture, chatgpt_file, configure_watching, idle},
    sessions::wait_for_messages,
};

/// Messages that are written one after the other.
const APPENDED: i64 = 4;

/// The tables of Goose, with one session.
const TABLES: &str = "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 2;
    CREATE TABLE sessions (id TEXT PRIMARY KEY, description TEXT NOT NULL DEFAULT '', working_dir TEXT NOT NULL,
      created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
      extension_data TEXT DEFAULT '{}');
    CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL,
      content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL);
    INSERT INTO sessions (id, working_dir) VALUES ('20260402_1', '/home/tomas/bread');";

fn write_message(connection: &Connection, number: i64) -> Result<()> {
    let content = serde_json::json!([{"type": "text", "text": format!("Message {number}")}]).to_string();
    connection.execute(
        "INSERT INTO messages (session_id, role, content_json, created_timestamp) VALUES ('20260402_1', 'user', ?, ?)",
        (content, 1_775_109_600 + number),
    )?;
    Ok(())
}

/// Watches one file of a folder. Only events tell of changes.
async fn watch(database: &Path) -> Result<WatchFixture> {
    let folder = tempfile::tempdir()?;
    let downloads = folder.path().join("downloads");
    let daemon = TestDaemon::start_with(folder, |config| {
        configure_watching(config, &downloads);
        config.watching.intervals.rescan = Duration::from_hours(1);
        config.watching.folders = vec![WatchSpec::with_defaults(database.to_owned())];
    });
    Ok(WatchFixture { daemon: daemon.await?, downloads })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_is_imported_while_its_program_writes_to_it() -> Result<()> {
    let home = tempfile::tempdir()?;
    let path = home.path().join("sessions.db");
    fs::write(home.path().join("credentials.json"), "{\"token\":\"hush\"}")?;
    let connection = Connection::open(&path)?;
    connection.execute_batch(TABLES)?;
    write_message(&connection, 0)?;
    let fixture = watch(&path).await?;
    for number in 1..=APPENDED {
        wait_for_messages(&fixture, number).await?;
        // Some of these are moved from the log into the database, and the log begins anew.
        write_message(&connection, number)?;
    }
    wait_for_messages(&fixture, APPENDED + 1).await?;
    let source = fixture.wait_until(idle).await?;
    ensure!(source.path == path.to_string_lossy() && source.failed_total == 0, "{source:?}");
    ensure!(source.imported == 1 && source.unrecognized == 0, "the other file is not looked at: {source:?}");
    ensure!(fixture.conversation_count().await? == 1);
    let whole = [v1::ImportStatus::Completed, v1::ImportStatus::CompletedWithSkips];
    let imports = fixture.imports().await?;
    ensure!(imports.iter().all(|import| import.source == "sessions.db"), "{imports:?}");
    let last = imports.first().context("an import")?;
    ensure!(whole.contains(&last.status()), "{last:?}");
    fixture.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_watched_before_it_exists_and_others_beside_it_are_not() -> Result<()> {
    let home = tempfile::tempdir()?;
    let path = home.path().join("sessions.db");
    let fixture = watch(&path).await?;
    let scanned = fixture.wait_until(idle).await?;
    ensure!(scanned.imported == 0, "{scanned:?}");
    fs::write(home.path().join("other.json"), chatgpt_file(1))?;
    let connection = Connection::open(&path)?;
    connection.execute_batch(TABLES)?;
    write_message(&connection, 0)?;
    wait_for_messages(&fixture, 1).await?;
    let source = fixture.wait_until(idle).await?;
    ensure!(source.imported == 1 && fixture.conversation_count().await? == 1, "{source:?}");
    fixture.daemon.stop().await?;
    Ok(())
}
