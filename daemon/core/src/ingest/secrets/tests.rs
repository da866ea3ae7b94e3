use satchel_pam::conversation::{ContentKind, Part, PartKind};

use super::*;

/// In the format of GitHub; put together here so that no scanner takes this file for a leak.
fn token() -> String {
    format!("ghp_{}", "aB3dE6".repeat(6))
}

fn message(id: &str, role: Role) -> MessageRecord {
    let text =
        Content { kind: ContentKind::Text, text: Some(format!("it printed {}", token())), parts: Vec::new() };
    MessageRecord {
        id: id.to_owned(),
        provider_message_id: None,
        role,
        content: Some(text),
        created_at: None,
        parent: None,
        model: None,
        is_thought: false,
        token_count: None,
        attachments: Vec::new(),
        citations: Vec::new(),
        tool_calls: Vec::new(),
        raw_metadata: None,
    }
}

fn call(input: ToolInput) -> ToolCall {
    let output = Some(format!("TOKEN={}\n", token()));
    ToolCall { id: None, name: "bash".to_owned(), input: Some(input), output }
}

fn object(text: String) -> RawObject {
    RawObject::parse(text).unwrap()
}

/// A conversation in which a tool was given and printed a token, in every place.
fn conversation() -> ConversationRecord {
    let command = || ToolInput::Text(format!("echo {}", token()));
    let nested = object(format!(r#"{{"command": ["echo", "{}"], "n": 1.50}}"#, token()));
    let mut calls = message("calls", Role::Assistant);
    calls.content = None;
    calls.tool_calls = vec![call(command()), call(ToolInput::Object(nested))];
    let mut answer = message("answer", Role::Tool);
    answer.raw_metadata = Some(object(format!(r#"{{"stdout": "a\n{}\n", "code": 0}}"#, token())));
    let mut parts = message("parts", Role::Tool);
    let part =
        Part { kind: PartKind::Text, text: Some(token()), language: None, mime_type: None, reference: None };
    parts.content = Some(Content { kind: ContentKind::Multipart, text: None, parts: vec![part] });
    ConversationRecord {
        locator: "session.jsonl".to_owned(),
        messages: vec![calls, answer, parts],
        ..ConversationRecord::default()
    }
}

#[test]
fn secrets_are_kept_and_told_unless_the_configuration_says_otherwise() {
    let (before, mut record) = (conversation(), conversation());
    let warning = check(&mut record, SecretHandling::default()).unwrap();
    assert_eq!(record, before);
    assert_eq!(warning.locator, "session.jsonl#calls");
    assert!(
        warning
            .message
            .starts_with("3 messages have what looks like keys or tokens (7 × github_token): kept")
    );
}

#[test]
fn removed_secrets_are_nowhere_in_the_record_and_the_rest_is_as_it_was() {
    let mut record = conversation();
    let warning = check(&mut record, SecretHandling::Remove).unwrap();
    assert!(warning.message.contains("(7 × github_token): left out of this import"), "{warning:?}");
    let text = serde_json::to_string(&record).unwrap();
    assert!(!text.contains(&token()), "{text}");
    let expected =
        serde_json::to_string(&conversation()).unwrap().replace(&token(), "[removed: github_token]");
    assert_eq!(text, expected);
    // What is imported once more has none.
    assert!(check(&mut record, SecretHandling::Remove).is_none());
}

#[test]
fn what_people_and_models_write_is_not_looked_at() {
    let mut record = ConversationRecord {
        messages: [Role::User, Role::Assistant].map(|role| message("x", role)).to_vec(),
        ..ConversationRecord::default()
    };
    let before = record.clone();
    assert!(check(&mut record, SecretHandling::Remove).is_none());
    assert_eq!(record, before);
}

#[test]
fn a_message_with_words_of_the_person_and_an_answer_of_a_tool_is_looked_at_as_a_whole() {
    let mut mixed = message("mixed", Role::User);
    mixed.raw_metadata = Some(object(format!(r#"{{"toolUseResult": "{}"}}"#, token())));
    let hook = message("hook", Role::System);
    let mut record = ConversationRecord { messages: vec![mixed, hook], ..ConversationRecord::default() };
    assert!(check(&mut record, SecretHandling::Remove).unwrap().message.contains("3 × github_token"));
    assert!(!serde_json::to_string(&record).unwrap().contains(&token()));
}

#[test]
fn a_private_key_in_an_object_never_reaches_beyond_its_string() {
    let mut answer = message("answer", Role::Tool);
    answer.content = None;
    // Cut off inside the string.
    let key = "aB3dE6".repeat(20);
    let text = format!(
        r#"{{"out": "-----BEGIN RSA PRIVATE KEY-----\n{key}", "next": "-----END RSA PRIVATE KEY-----", "n": 1}}"#
    );
    answer.raw_metadata = Some(object(text));
    let mut record = ConversationRecord { messages: vec![answer], ..ConversationRecord::default() };
    drop(check(&mut record, SecretHandling::Remove));
    let kept = record.messages[0].raw_metadata.as_ref().unwrap();
    assert_eq!(
        kept.as_str(),
        r#"{"out": "[removed: private_key]", "next": "-----END RSA PRIVATE KEY-----", "n": 1}"#
    );
}
