//! The same records in SQLite, with the indexes that the queries need. It runs inside this process and returns the JSON
//! text of a row as it is stored; the daemon is another process, which reads, checks and encodes each record.

use std::path::Path;

use anyhow::Result;
use rusqlite::{Connection, Row, params};

use super::filled_store::{FilledStore, StoredMemory};

/// A page of the list, as in the requests to the daemon.
pub(super) const PAGE: i32 = 50;
const SCHEMA: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA cache_size = -32768;
    CREATE TABLE messages (id TEXT PRIMARY KEY, conversation TEXT, created INTEGER, text TEXT);
    CREATE TABLE memories (id TEXT PRIMARY KEY, type TEXT, platform TEXT, status TEXT, updated INTEGER, document TEXT);
    CREATE INDEX memories_by_kind ON memories (type, platform, status, updated);
    CREATE TABLE tags (tag TEXT, updated INTEGER, id TEXT, PRIMARY KEY (tag, updated, id)) WITHOUT ROWID;
";
const GET: &str = "SELECT document FROM memories WHERE id = ?1";
const BY_TAG: &str = "SELECT document FROM tags JOIN memories USING (id) \
    WHERE tag = ?1 AND status = 'active' ORDER BY tags.updated DESC LIMIT ?2";
const BY_KIND: &str = "SELECT document FROM memories \
    WHERE type = ?1 AND platform = ?2 AND status = 'active' ORDER BY updated DESC LIMIT ?3";
/// Messages of a conversation, and bytes of each, as in the export that the daemon imported.
const CONVERSATION_MESSAGES: u64 = 50;
const MESSAGE: &str = "Water the beans every second day in it.";

/// The database.
pub(super) struct Peer(Connection);

impl Peer {
    /// Fills a new database in `folder`.
    pub(super) fn fill(folder: &Path, store: &FilledStore) -> Result<Self> {
        let mut database = Connection::open(folder.join("peer.sqlite"))?;
        database.execute_batch(SCHEMA)?;
        let filling = database.transaction()?;
        for number in 0..store.messages {
            let (id, conversation) =
                (format!("message-{number:012}"), format!("conversation-{}", number / CONVERSATION_MESSAGES));
            let mut insert = filling.prepare_cached("INSERT INTO messages VALUES (?1, ?2, ?3, ?4)")?;
            insert.execute(params![id, conversation, i64::try_from(number)?, MESSAGE])?;
        }
        for StoredMemory { id, memory_type, platform, tag, created, document } in &store.memories {
            let mut insert =
                filling.prepare_cached("INSERT INTO memories VALUES (?1, ?2, ?3, 'active', ?4, ?5)")?;
            insert.execute(params![id, memory_type, platform, created, document.to_string()])?;
            for tag in [tag.as_str(), "garden"] {
                let mut insert = filling.prepare_cached("INSERT INTO tags VALUES (?1, ?2, ?3)")?;
                insert.execute(params![tag, created, id])?;
            }
        }
        filling.commit()?;
        database.execute_batch("ANALYZE")?;
        Ok(Self(database))
    }

    pub(super) fn get(&self, id: &str) -> Result<String> {
        Ok(self.0.prepare_cached(GET)?.query_row([id], document)?)
    }

    pub(super) fn list_by_tag(&self, tag: &str) -> Result<Vec<String>> {
        let mut query = self.0.prepare_cached(BY_TAG)?;
        let rows = query.query_map(params![tag, PAGE], document)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    pub(super) fn list_by_kind(&self, memory_type: &str, platform: &str) -> Result<Vec<String>> {
        let mut query = self.0.prepare_cached(BY_KIND)?;
        let rows = query.query_map(params![memory_type, platform, PAGE], document)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn document(row: &Row<'_>) -> rusqlite::Result<String> {
    row.get(0)
}
