//! The rows of the list: hits of a search, or the newest records.

use satchel_proto::{
    integers::unsigned,
    v1::{Conversation, Memory, SearchHit, SearchHitKind},
};

use super::find::Terms;
use crate::cli::{
    labels,
    search::render::{facts, pieces, title},
    text,
    time::Calendar,
};

/// Longest content of a memory that is shown in the list, in characters.
const MAX_PREVIEW: usize = 400;

/// What a row opens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RecordKey {
    Conversation(String),
    Memory(String),
}

/// A record, and which branch of it is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) key: RecordKey,
    /// A message on the branch; `None` for the branch that the person saw last.
    pub(super) message: Option<String>,
    pub(super) title: String,
}

/// A row. All texts are clean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) target: Target,
    pub(super) facts: String,
    /// The passage in pieces, and whether each is a match.
    pub(super) passage: Vec<(String, bool)>,
    /// True if it has only some of the words, or similar ones.
    pub(super) relaxed: bool,
}

impl Hit {
    /// Returns the row of a hit.
    pub(super) fn found(hit: &SearchHit, calendar: &Calendar) -> Self {
        let (key, message) = match hit.kind() {
            SearchHitKind::Memory => (RecordKey::Memory(hit.id.clone()), None),
            SearchHitKind::Message => {
                (RecordKey::Conversation(hit.conversation_id.clone()), Some(hit.id.clone()))
            }
            SearchHitKind::Title | SearchHitKind::Unspecified => {
                (RecordKey::Conversation(hit.conversation_id.clone()), None)
            }
        };
        Self {
            target: Target { key, message, title: title(hit) },
            facts: facts(hit, calendar),
            passage: passage(hit),
            relaxed: hit.relaxed,
        }
    }

    /// Returns the row of a conversation in a list.
    pub(super) fn conversation(conversation: &Conversation, calendar: &Calendar) -> Self {
        let title = text::one_line(conversation.title.as_deref().unwrap_or_default());
        let changed = conversation.updated_at.as_ref().or(conversation.created_at.as_ref());
        let messages = text::count(unsigned(conversation.message_count), "message", "messages");
        Self {
            target: Target {
                key: RecordKey::Conversation(conversation.id.clone()),
                message: None,
                title: if title.is_empty() { "(untitled)".to_owned() } else { title },
            },
            facts: origin(&conversation.platform, &calendar.short_or_unknown(changed)),
            passage: vec![(messages, false)],
            relaxed: false,
        }
    }

    /// Returns the row of a memory in a list.
    pub(super) fn memory(memory: &Memory, calendar: &Calendar) -> Self {
        let temporal = memory.temporal.clone().unwrap_or_default();
        let changed = temporal.updated_at.as_ref().or(temporal.created_at.as_ref());
        let platform = memory.provenance.as_ref().map_or("", |provenance| &provenance.platform);
        let preview: String = memory.content.chars().take(MAX_PREVIEW).collect();
        Self {
            target: Target {
                key: RecordKey::Memory(memory.id.clone()),
                message: None,
                title: format!("Memory ({})", labels::memory_type(memory.r#type)),
            },
            facts: origin(platform, &calendar.short_or_unknown(changed)),
            passage: vec![(text::one_line(&preview), false)],
            relaxed: false,
        }
    }

    /// Returns the words that matched.
    pub(super) fn terms(&self) -> Terms {
        Terms::of_matches(self.passage.iter().filter(|(_, matches)| *matches).map(|(part, _)| part.as_str()))
    }
}

fn origin(platform: &str, time: &str) -> String {
    format!("{} · {time}", text::one_line(platform))
}

/// Returns the passage with its author, and how many further hits the conversation has.
fn passage(hit: &SearchHit) -> Vec<(String, bool)> {
    let mut passage = Vec::new();
    if hit.kind() == SearchHitKind::Message {
        passage.push((format!("{}: ", labels::role(hit.role)), false));
    }
    if let Some(snippet) = &hit.snippet {
        passage.extend(snippet.cut_start.then(|| ("… ".to_owned(), false)));
        passage.extend(pieces(snippet).into_iter().filter(|(part, _)| !part.is_empty()));
        passage.extend(snippet.cut_end.then(|| (" …".to_owned(), false)));
    }
    let more = unsigned(hit.more_in_conversation);
    if more > 0 {
        passage.push((format!("  (+{})", text::number(more)), false));
    }
    passage
}

#[cfg(test)]
mod tests {
    use satchel_proto::v1::{SearchMark, SearchSnippet};

    use super::*;
    use crate::cli::time;

    #[test]
    fn hostile_text_becomes_a_clean_row() {
        let found = SearchHit {
            kind: SearchHitKind::Message.into(),
            title: "Bees\u{1b}]0;owned\u{7}\nsecond".to_owned(),
            platform: "chat\u{202e}gpt".to_owned(),
            snippet: Some(SearchSnippet {
                text: "the \u{1b}[31mBees\r\nsleep".to_owned(),
                marks: vec![SearchMark { start: 9, end: 13 }],
                cut_start: true,
                cut_end: false,
            }),
            more_in_conversation: 2,
            ..SearchHit::default()
        };
        let hit = Hit::found(&found, &time::fixed());
        let passage: String = hit.passage.iter().map(|(part, _)| part.as_str()).collect();
        for shown in [&hit.target.title, &hit.facts, &passage] {
            assert!(!shown.chars().any(text::is_unsafe), "{shown:?}");
        }
        assert!(passage.ends_with("Bees sleep  (+2)"), "{passage}");
        assert_eq!(hit.terms(), Terms::of_matches(["bees"].into_iter()));
        let conversation = Conversation { title: Some("\u{1b}[2J".to_owned()), ..Conversation::default() };
        let listed = Hit::conversation(&conversation, &time::fixed());
        assert!(!listed.target.title.chars().any(text::is_unsafe), "{listed:?}");
        let memory = Memory { content: "\u{9b}2Jbees".to_owned(), ..Memory::default() };
        assert!(!Hit::memory(&memory, &time::fixed()).passage[0].0.chars().any(text::is_unsafe));
    }
}
