//! The databases in which programs keep their conversations, made of their generated exports.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use rusqlite::{Connection, Transaction, params, types::ValueRef};
use serde_json::Value;

use crate::native_readers::{NativeReader, files};

/// The importers that read a database, with the script whose tables it has, and what fills it.
pub(crate) const DATABASES: [(&str, &str, Fill); 3] = [
    ("goose", "goose/tests/databases/sessions-in-a-database.sql", goose),
    ("open-webui", "open-webui/tests/databases/database.sql", open_webui),
    ("opencode", "opencode/tests/databases/sessions-in-a-database.sql", opencode),
];

/// SQLite itself, with each JSON text parsed.
pub(crate) const NATIVE_READER: (&str, NativeReader) = ("SQLite and serde_json::Value", values);

/// Fills a database with the export in a folder.
type Fill = fn(&Transaction<'_>, &Path) -> Result<()>;

/// Makes a database of the export in `export`.
pub(crate) fn make(path: &Path, script: &str, fill: Fill, export: &Path) -> Result<()> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins").join(script);
    let mut connection = Connection::open(path)?;
    connection.execute_batch("PRAGMA page_size = 4096; PRAGMA foreign_keys = OFF")?;
    // The page size of a fixture is small, so that it has many pages.
    let tables = fs::read_to_string(script)?.replace("PRAGMA page_size", "-- ");
    connection.execute_batch(&tables)?;
    let transaction = connection.transaction()?;
    for table in [
        "session",
        "sessions",
        "message",
        "messages",
        "part",
        "project",
        "todo",
        "chat",
        "chat_message",
        "memory",
    ] {
        // Not every program has each of these tables.
        let _ = transaction.execute(&format!("DELETE FROM {table}"), []);
    }
    fill(&transaction, export)?;
    Ok(transaction.commit()?)
}

/// Reads every value of every table, and returns the number of rows.
fn values(folder: &Path) -> Result<usize> {
    let mut count = 0;
    for path in files(folder)? {
        let connection = Connection::open(path)?;
        let mut names = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")?;
        let names = names.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
        for name in names {
            let mut select = connection.prepare(&format!("SELECT * FROM \"{name}\""))?;
            let columns = select.column_count();
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                for column in 0..columns {
                    if let ValueRef::Text(text) = row.get_ref(column)?
                        && (text.starts_with(b"{") || text.starts_with(b"["))
                    {
                        serde_json::from_slice::<Value>(text)?;
                    }
                }
                count += 1;
            }
        }
    }
    Ok(count)
}

fn json(path: &Path) -> Result<Value> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

/// The value without the members that are columns.
fn without(mut value: Value, keys: &[&str]) -> String {
    if let Some(object) = value.as_object_mut() {
        object.retain(|key, _| !keys.contains(&key.as_str()));
    }
    value.to_string()
}

fn goose(rows: &Transaction<'_>, export: &Path) -> Result<()> {
    for path in files(export)? {
        let id = path.file_stem().and_then(|stem| stem.to_str()).context("a name")?.to_owned();
        let lines = fs::read_to_string(&path)?;
        let mut lines = lines.lines().map(serde_json::from_str::<Value>);
        let head = lines.next().context("a session")??;
        rows.prepare_cached("INSERT INTO sessions (id, description, working_dir) VALUES (?, ?, ?)")?
            .execute(params![id, text(&head, "description"), text(&head, "working_dir")])?;
        let mut insert = rows.prepare_cached(
            "INSERT INTO messages (session_id, role, content_json, created_timestamp) VALUES (?, ?, ?, ?)",
        )?;
        for line in lines {
            let line = line?;
            insert.execute(params![
                id,
                text(&line, "role"),
                line["content"].to_string(),
                line["created"].as_i64()
            ])?;
        }
    }
    Ok(())
}

fn open_webui(rows: &Transaction<'_>, export: &Path) -> Result<()> {
    for path in files(export)? {
        for chat in json(&path)?.as_array().context("a list")? {
            rows.prepare_cached(
                "INSERT INTO chat (id, user_id, title, chat, created_at, updated_at, archived, pinned, meta)
                 VALUES (?, ?, ?, ?, ?, ?, 0, 0, '{}')",
            )?
            .execute(params![
                text(chat, "id"),
                text(chat, "user_id"),
                text(chat, "title"),
                chat["chat"].to_string(),
                chat["created_at"].as_i64(),
                chat["updated_at"].as_i64()
            ])?;
        }
    }
    Ok(())
}

fn opencode(rows: &Transaction<'_>, export: &Path) -> Result<()> {
    for path in files(export)? {
        let value = json(&path)?;
        let kind = path.strip_prefix(export)?.components().next().context("a folder")?;
        let (id, session) = (text(&value, "id").to_owned(), text(&value, "sessionID").to_owned());
        let time = value["time"]["created"].as_i64().unwrap_or(1_770_000_000_000);
        match kind.as_os_str().to_str() {
            Some("session") => rows
                .prepare_cached(
                    "INSERT INTO session (id, project_id, slug, directory, title, version, time_created, time_updated)
                     VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                )?
                .execute(params![
                    id,
                    text(&value, "projectID"),
                    "a-session",
                    text(&value, "directory"),
                    text(&value, "title"),
                    text(&value, "version"),
                    time,
                    value["time"]["updated"].as_i64()
                ])?,
            Some("message") => rows
                .prepare_cached(
                    "INSERT INTO message (id, session_id, time_created, time_updated, data) VALUES (?, ?, ?, ?, ?)",
                )?
                .execute(params![id, session, time, time, without(value, &["id", "sessionID"])])?,
            Some("part") => {
                let message = text(&value, "messageID").to_owned();
                rows.prepare_cached(
                    "INSERT INTO part (id, message_id, session_id, time_created, time_updated, data) VALUES (?, ?, ?, ?, ?, ?)",
                )?
                .execute(params![id, message, session, time, time, without(value, &["id", "sessionID", "messageID"])])?
            }
            _ => 0,
        };
    }
    Ok(())
}
