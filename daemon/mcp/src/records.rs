//! Records of the API as JSON for a model: few fields, each record with its id, date and source.

use prost_types::Timestamp;
use satchel_pam::time::Timestamp as PamTime;
use satchel_proto::v1::{
    Change, ChangeKind, Content, Conversation, Memory, MemoryStatus, MemoryType, Message, Role, SearchHit,
    SearchHitKind, change::Record,
};
use serde_json::{Map, Value, json};

/// Bytes of a message's text in a list of messages. The rest is left out, and the message says so.
const MAX_TEXT: usize = 16 * 1024;

/// Characters of a memory that the basic view of the API shows.
const BASIC_CHARS: usize = 280;

/// A memory in a list, whose text may be shortened. One that is has no etag: its text must not be replaced unread.
pub(crate) fn listed_memory(record: &Memory) -> Value {
    let mut fields = memory(record);
    if record.content.chars().count() >= BASIC_CHARS {
        fields["shortened"] = true.into();
        fields.as_object_mut().map(|fields| fields.remove("etag"));
    }
    fields
}

/// A memory with its whole text.
pub(crate) fn memory(memory: &Memory) -> Value {
    let times = memory.temporal.as_ref();
    let created = times.and_then(|times| times.created_at.as_ref());
    let mut fields = Map::new();
    add(&mut fields, "id", Some(memory.id.clone()));
    add(&mut fields, "date", date(created));
    add(&mut fields, "updated", date(times.and_then(|times| times.updated_at.as_ref())));
    add(&mut fields, "source", memory.provenance.as_ref().map(|provenance| provenance.platform.clone()));
    add(&mut fields, "type", Some(label::<MemoryType>(memory.r#type, "MEMORY_TYPE_")));
    add(&mut fields, "status", Some(label::<MemoryStatus>(memory.status, "MEMORY_STATUS_")));
    add(&mut fields, "content", Some(memory.content.clone()));
    add(&mut fields, "summary", memory.summary.clone());
    add(&mut fields, "etag", Some(memory.etag.clone()).filter(|etag| !etag.is_empty()));
    if !memory.tags.is_empty() {
        fields.insert("tags".into(), json!(memory.tags));
    }
    if memory.quarantined {
        fields.insert("waits_for_review".into(), true.into());
    }
    fields.into()
}

/// A result of a search.
pub(crate) fn hit(hit: &SearchHit) -> Value {
    let mut fields = Map::new();
    add(&mut fields, "kind", Some(label::<SearchHitKind>(hit.kind, "SEARCH_HIT_KIND_")));
    add(&mut fields, "id", Some(hit.id.clone()));
    add(&mut fields, "date", date(hit.time.as_ref()));
    add(&mut fields, "source", Some(hit.platform.clone()));
    add(&mut fields, "conversation_id", text(&hit.conversation_id));
    add(&mut fields, "title", text(&hit.title));
    add(&mut fields, "role", Some(label::<Role>(hit.role, "ROLE_")).filter(|role| role != UNKNOWN));
    add(&mut fields, "text", hit.snippet.as_ref().map(|snippet| snippet.text.clone()));
    if hit.kind == i32::from(SearchHitKind::Memory) {
        add(&mut fields, "type", Some(label::<MemoryType>(hit.memory_type, "MEMORY_TYPE_")));
        add(&mut fields, "status", Some(label::<MemoryStatus>(hit.memory_status, "MEMORY_STATUS_")));
    }
    for (key, holds) in [("expired", hit.expired), ("without_some_words", hit.relaxed)] {
        if holds {
            fields.insert(key.to_owned(), true.into());
        }
    }
    fields.into()
}

/// A conversation without its messages.
pub(crate) fn conversation(conversation: &Conversation) -> Value {
    let mut fields = Map::new();
    add(&mut fields, "id", Some(conversation.id.clone()));
    add(&mut fields, "date", date(conversation.created_at.as_ref()));
    add(&mut fields, "updated", date(conversation.updated_at.as_ref()));
    add(&mut fields, "source", Some(conversation.platform.clone()));
    add(&mut fields, "title", conversation.title.clone());
    fields.insert("message_count".into(), conversation.message_count.into());
    fields.into()
}

/// A message of a conversation.
pub(crate) fn message(message: &Message) -> Value {
    let mut fields = Map::new();
    add(&mut fields, "id", Some(message.id.clone()));
    add(&mut fields, "date", date(message.created_at.as_ref()));
    add(&mut fields, "role", Some(label::<Role>(message.role, "ROLE_")));
    let whole = message.content.as_ref().map(text_of).unwrap_or_default();
    let shown = prefix(&whole, MAX_TEXT);
    if shown.len() < whole.len() || message.abridged {
        fields.insert("shortened".into(), true.into());
    }
    add(&mut fields, "text", text(shown));
    let tools: Vec<&str> = message.tool_calls.iter().map(|call| call.name.as_str()).collect();
    if !tools.is_empty() {
        fields.insert("tools_called".into(), json!(tools));
    }
    let files: Vec<&str> = message.attachments.iter().filter_map(|file| file.name.as_deref()).collect();
    if !files.is_empty() {
        fields.insert("files".into(), json!(files));
    }
    fields.into()
}

/// A change of the store; relations are left out.
pub(crate) fn change(change: &Change) -> Option<Value> {
    let (kind, record) = match change.record.as_ref()? {
        Record::Memory(record) => ("memory", listed_memory(record)),
        Record::Conversation(record) => ("conversation", conversation(record)),
        Record::Relation(_) => return None,
    };
    let gone = change.kind == i32::from(ChangeKind::OutOfView);
    Some(json!({"revision": change.revision, "kind": kind, "no_longer_visible": gone, "record": record}))
}

/// All texts of a message, joined by line breaks.
fn text_of(content: &Content) -> String {
    let parts = content.parts.iter().filter_map(|part| part.text.as_deref());
    content.text.as_deref().into_iter().chain(parts).collect::<Vec<_>>().join("\n")
}

/// The first characters of a text, at most `bytes` bytes.
fn prefix(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

fn add(fields: &mut Map<String, Value>, key: &str, value: Option<String>) {
    if let Some(value) = value {
        fields.insert(key.to_owned(), value.into());
    }
}

/// A time as RFC 3339; none if it is not known.
fn date(time: Option<&Timestamp>) -> Option<String> {
    let time = time?;
    let micros = time.seconds.checked_mul(1_000_000)?.checked_add(i64::from(time.nanos / 1_000))?;
    Some(PamTime::saturating(micros).to_string())
}

/// The label of a value that this program does not know.
const UNKNOWN: &str = "unspecified";

/// An enum of the API.
trait Labelled: TryFrom<i32> {
    fn name(&self) -> &'static str;
}

macro_rules! labelled {
    ($($kind:ty),*) => {
        $(impl Labelled for $kind {
            fn name(&self) -> &'static str {
                self.as_str_name()
            }
        })*
    };
}

labelled!(MemoryType, MemoryStatus, Role, SearchHitKind);

/// The name of a value as PAM writes it: without the prefix, in lower case.
fn label<T: Labelled>(value: i32, prefix: &str) -> String {
    let name = T::try_from(value).ok().and_then(|value| value.name().strip_prefix(prefix));
    name.map_or_else(|| UNKNOWN.to_owned(), str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use satchel_proto::v1::{ContentPart, SearchSnippet};

    use super::*;

    #[test]
    fn each_record_has_its_id_date_and_source() {
        let time = Some(Timestamp { seconds: 1_770_000_000, nanos: 500_000_000 });
        let hit = hit(&SearchHit {
            kind: SearchHitKind::Message.into(),
            id: "m1".into(),
            conversation_id: "c1".into(),
            platform: "claude".into(),
            role: Role::User.into(),
            time,
            snippet: Some(SearchSnippet { text: "the bees".into(), ..SearchSnippet::default() }),
            ..SearchHit::default()
        });
        let expected = json!({"kind": "message", "id": "m1", "conversation_id": "c1", "source": "claude", "role": "user",
            "date": "2026-02-02T02:40:00.500000Z", "text": "the bees"});
        assert_eq!(hit, expected);
        let conversation = conversation(&Conversation {
            id: "c1".into(),
            platform: "claude".into(),
            created_at: time,
            ..Conversation::default()
        });
        assert_eq!((&conversation["source"], &conversation["id"]), (&json!("claude"), &json!("c1")));
    }

    #[test]
    fn long_texts_are_shortened_between_characters() {
        let part = |text: &str| ContentPart { text: Some(text.to_owned()), ..ContentPart::default() };
        let content =
            Content { parts: vec![part(&"é".repeat(MAX_TEXT)), part("end")], ..Content::default() };
        let shown = message(&Message { content: Some(content), ..Message::default() });
        assert_eq!(shown["shortened"], true);
        assert_eq!(shown["text"].as_str().map(str::len), Some(MAX_TEXT));
        assert_eq!(prefix("é", 1), "");
    }

    #[test]
    fn a_shortened_memory_says_so_and_has_no_etag() {
        let record = |content: String| Memory { content, etag: "e".into(), ..Memory::default() };
        let (short, long) =
            (listed_memory(&record("x".into())), listed_memory(&record("é".repeat(BASIC_CHARS))));
        assert_eq!((&short["etag"], &short["shortened"]), (&json!("e"), &Value::Null));
        assert_eq!((&long["etag"], &long["shortened"]), (&Value::Null, &json!(true)));
    }

    #[test]
    fn values_of_a_newer_daemon_have_a_label() {
        assert_eq!(label::<MemoryType>(9_999, "MEMORY_TYPE_"), UNKNOWN);
        assert_eq!(label::<MemoryStatus>(MemoryStatus::Active.into(), "MEMORY_STATUS_"), "active");
    }
}
