//! Tags of the databases of before October 2024, which have a table for them.

use std::collections::BTreeMap;

use satchel_importer::{
    ImportError, Sink,
    json::array_of,
    sqlite::{ObjectText, Table},
};

use super::{Source, chats::quoted, text, unless_damaged};

/// Tags of all chats.
const MAX_TAGS: usize = 100_000;
/// Bytes of an id or a tag.
const MAX_TEXT: usize = 256;
/// The tag that later became a column.
const PINNED: &str = "pinned";

/// The tags of each chat.
#[derive(Debug, Default)]
pub(super) struct Tags(BTreeMap<String, Vec<String>>);

impl Tags {
    /// Reads the table, unless the chats have their tags themselves.
    pub(super) fn read(source: &Source<'_>, chats: &Table, sink: &mut Sink) -> Result<Self, ImportError> {
        let mut tags = Self::default();
        let table = source.database.table("chatidtag").filter(|table| table.has(&["chat_id", "tag_name"]));
        let Some(table) = table.filter(|_| !chats.has(&["meta"])) else { return Ok(tags) };
        let (mut read, mut unread) = (0_usize, 0_u64);
        for row in source.database.rows(table) {
            let texts = row.and_then(|row| Ok((text(&row, "chat_id")?, text(&row, "tag_name")?)));
            match unless_damaged(texts)? {
                Some((Some(chat), Some(tag))) if chat.len().max(tag.len()) <= MAX_TEXT && read < MAX_TAGS => {
                    tags.0.entry(chat).or_default().push(tag);
                    read += 1;
                }
                _ => unread += 1,
            }
        }
        if unread > 0 {
            sink.warn(source.path, &format!("tags that cannot be read: {unread}"));
        }
        Ok(tags)
    }

    /// Adds the tags of a chat, as the program did when it moved them.
    pub(super) fn add(&self, chat: &str, element: &mut ObjectText) {
        let Some(tags) = self.0.get(chat) else { return };
        let ids = tags.iter().map(|tag| tag.replace(' ', "_").to_lowercase());
        let (pinned, ids): (Vec<String>, Vec<String>) = ids.partition(|id| id == PINNED);
        if !pinned.is_empty() {
            element.json(PINNED, "true");
        }
        if !ids.is_empty() {
            let ids = array_of(ids.iter().map(|id| quoted(id)));
            element.json("meta", &format!("{{\"tags\":{ids}}}"));
        }
    }
}
