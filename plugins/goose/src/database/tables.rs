//! The tables of the database that have sessions and their messages.

use satchel_importer::sqlite::{Database, Table};

/// Columns of all versions, of which other programs have not all.
const OF_SESSIONS: [&str; 5] = ["id", "working_dir", "created_at", "updated_at", "extension_data"];
const OF_MESSAGES: [&str; 4] = ["session_id", "role", "content_json", "created_timestamp"];
const OF_THREADS: [&str; 3] = ["id", "name", "metadata_json"];
const OF_THREAD_MESSAGES: [&str; 4] = ["thread_id", "role", "content_json", "created_timestamp"];

/// A table of sessions, and that of their messages.
pub(crate) struct List<'d> {
    pub(crate) sessions: &'d Table,
    pub(crate) messages: &'d Table,
    /// The column of a message with the id of its session.
    pub(crate) owner: &'static str,
    /// Whether its sessions may be copies of others.
    pub(crate) copies: bool,
}

/// The tables that are read.
pub(crate) struct Tables<'d> {
    pub(crate) lists: Vec<List<'d>>,
}

impl<'d> Tables<'d> {
    /// None if the database is not one of Goose.
    pub(crate) fn of(database: &'d Database) -> Option<Self> {
        let table = |name, columns: &[&str]| database.table(name).filter(|table| table.has(columns));
        let sessions = table("sessions", &OF_SESSIONS)?;
        let messages = table("messages", &OF_MESSAGES)?;
        let mut lists = vec![List { sessions, messages, owner: "session_id", copies: false }];
        // In spring 2026, some versions kept what the person saw apart from what the model got.
        let threads = table("threads", &OF_THREADS).zip(table("thread_messages", &OF_THREAD_MESSAGES));
        if let Some((sessions, messages)) = threads {
            lists.push(List { sessions, messages, owner: "thread_id", copies: true });
        }
        Some(Self { lists })
    }
}

/// Whether the database is one of Goose.
pub(crate) fn is_of_goose(database: &Database) -> bool {
    Tables::of(database).is_some()
}
