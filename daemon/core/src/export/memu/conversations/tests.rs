//! Round trips of the conversations in the importer's fixtures.

use std::{fs, path::PathBuf};

use satchel_pam::{
    conversation::{ConversationTemporal, Participant, Provider},
    raw::RawObject,
    record::{ConversationRecord, Line, MessageRecord},
    time::Timestamp,
};
use serde_json::json;

use super::*;

fn read(path: &str) -> Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../plugins/memu/fixtures").join(path);
    serde_json::from_slice(&fs::read(path).expect("the fixture is there")).expect("it is JSON")
}

/// Returns the conversation of a fixture as a store returns it.
fn stored(name: &str) -> (ConversationHeader, Vec<Message>) {
    let exports = read(&format!("{name}/expected.json"));
    let lines = exports[0]["lines"].as_array().expect("there are lines");
    let lines = lines.iter().map(|line| serde_json::from_value(line.clone()).expect("it is a line"));
    let mut record =
        lines.filter_map(|line| if let Line::Conversation(record) = line { Some(*record) } else { None });
    let record: ConversationRecord = record.next_back().expect("there is a conversation");
    let created_at = Timestamp::saturating(record.created_at.unwrap_or_default());
    let messages = record.messages.into_iter().map(|message| stored_message(message, created_at)).collect();
    let header = ConversationHeader {
        id: record.id,
        provider: Provider {
            name: PLATFORM.to_owned(),
            conversation_id: record.provider_conversation_id,
            account_id: record.account,
            export_format_version: record.export_format_version,
        },
        title: None,
        temporal: ConversationTemporal { created_at, updated_at: None },
        participants: record.participants,
        model: None,
        system_instruction: None,
        is_archived: false,
        tags: Vec::new(),
        raw_metadata: record.raw_metadata,
        import_metadata: None,
    };
    (header, messages)
}

fn stored_message(message: MessageRecord, begun: Timestamp) -> Message {
    let mut own = json!({"active_path": true});
    if message.created_at.is_none() {
        own["created_at_source"] = json!("conversation");
    }
    let raw = message.raw_metadata.unwrap_or_default().with("satchel", &own);
    Message {
        id: message.id,
        provider_message_id: message.provider_message_id,
        role: message.role,
        content: message.content,
        created_at: message.created_at.map_or(begun, Timestamp::saturating),
        parent_id: message.parent,
        children_ids: Vec::new(),
        model: None,
        is_thought: false,
        token_count: None,
        attachments: Vec::new(),
        citations: Vec::new(),
        tool_calls: Vec::new(),
        raw_metadata: Some(raw),
    }
}

#[test]
fn a_conversation_round_trips() {
    let (header, messages) = stored("conversation-with-pipeline-result");
    let given = read("conversation-with-pipeline-result/input/conversation.json");
    assert_eq!(Value::from(conversation(&header, &messages, "nobody")), given);
    assert_eq!(save_answer(&header), None);
}

#[test]
fn a_request_and_its_answer_round_trip() {
    let name = "what-was-sent-and-its-answer";
    let (header, messages) = stored(name);
    assert_eq!(save_answer(&header).map(Value::from), Some(read(&format!("{name}/input/answer.json"))));
    let written = conversation(&header, &messages, "nobody");
    for (key, value) in read(&format!("{name}/input/request.json")).as_object().expect("an object") {
        assert_eq!(written.get(key), Some(value), "{key}");
    }
}

#[test]
fn a_conversation_of_another_assistant_is_exported_by_memus_rules() {
    let (mut header, mut messages) = stored("conversation-with-pipeline-result");
    header.provider = Provider { name: "claude".to_owned(), ..Provider::default() };
    header.participants = vec![Participant { role: Role::User, name: None, provider_id: None }];
    header.raw_metadata = None;
    let mut thought = messages[1].clone();
    thought.is_thought = true;
    let mut abandoned = messages[1].clone();
    abandoned.raw_metadata = RawObject::parse(r#"{"satchel":{"active_path":false}}"#.to_owned()).ok();
    messages.splice(1..1, [thought, abandoned]);
    let written = conversation(&header, &messages, "nora");
    assert_eq!(written["agent_id"], "claude");
    assert_eq!(written["user_id"], "nora");
    assert_eq!(written["summary"], "Conversation with 2 turns: Why does a mainspring break?...");
    let numbers: Vec<&Value> =
        written["messages"].as_array().expect("a list").iter().map(|one| &one["message_index"]).collect();
    assert_eq!(numbers, [&json!(0), &json!(1)]);
    assert_eq!(summary(&[]), "Empty conversation");
    let assistant = &messages[3];
    assert_eq!(summary(&[assistant]), "Conversation with 1 turns: No user message...");
}
