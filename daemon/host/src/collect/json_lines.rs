//! Records that arrive as JSON Lines, one `record::Line` each.

use memchr::memchr_iter;
use satchel_pam::record::{ConversationRecord, Line, RecordKind, Skip};

use super::{RecordCollector, RecordNotes};
use crate::text;

impl RecordCollector<'_> {
    /// Takes complete lines. A line that is not a record is skipped with a reason.
    pub(crate) fn json_lines(&mut self, lines: &[u8]) {
        let mut start = 0;
        for end in memchr_iter(b'\n', lines).chain([lines.len()]) {
            let line = lines.get(start..end).unwrap_or_default().trim_ascii();
            start = end + 1;
            if !line.is_empty() {
                self.json_line(line);
            }
        }
    }

    /// Takes a conversation with its messages. The length of the line serves as its size, because the parsed record
    /// takes about as much memory.
    fn json_conversation(&mut self, mut record: ConversationRecord, size: usize) {
        let messages = std::mem::take(&mut record.messages);
        self.conversation(record, RecordNotes::default(), size);
        for message in messages {
            self.message(message, RecordNotes::default(), 0);
        }
    }

    fn json_line(&mut self, line: &[u8]) {
        self.lines += 1;
        match serde_json::from_slice(line) {
            Ok(Line::Conversation(record)) => self.json_conversation(*record, line.len()),
            Ok(Line::Evidence(record)) => self.evidence([(record, RecordNotes::default())].into_iter()),
            Ok(Line::Relation(record)) => self.relations([record].into_iter()),
            Ok(Line::Embedding(record)) => self.embeddings([record].into_iter()),
            Ok(Line::Account(account)) => self.account(account),
            Ok(Line::Skip(skip)) => self.skip(skip),
            Ok(Line::Warning(warning)) => self.warn(warning),
            Err(error) => self.reject(Skip {
                kind: guess_kind(line),
                locator: format!("emitted line {}", self.lines),
                reason: format!(
                    "the plugin emitted a record that cannot be read: {}",
                    text::clean(&error.to_string())
                ),
            }),
        }
    }
}

/// Guesses the kind of a broken line from its first key.
fn guess_kind(line: &[u8]) -> RecordKind {
    let key = line.strip_prefix(b"{").map(<[u8]>::trim_ascii_start).unwrap_or_default();
    if key.starts_with(b"\"conversation\"") {
        RecordKind::Conversation
    } else if ["\"evidence\"", "\"relation\"", "\"embedding\""]
        .iter()
        .any(|name| key.starts_with(name.as_bytes()))
    {
        RecordKind::Memory
    } else {
        RecordKind::File
    }
}
