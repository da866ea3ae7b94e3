//! Group chats and Codex tasks are ordered by time.

use satchel_importer::{Bundle, ImportError, Line, order::SORTED, testkit::produce};
use satchel_plugin_chatgpt::ChatGpt;

/// A file of conversations, beside which such files are recognised.
const CONVERSATIONS: &str = r#"[{"conversation_id":"c","title":"Tea","create_time":1772530000,"current_node":"m","mapping":{
    "m":{"id":"m","parent":null,"children":[],"message":{"id":"m","author":{"role":"user"},"create_time":1772530001,
        "content":{"content_type":"text","parts":["Which?"]}}}}}]"#;

/// The ids of the messages in the conversation with this tag, each after its parent, and all warnings.
fn read(name: &str, text: &str, tag: &str) -> Result<(Vec<String>, Vec<String>), ImportError> {
    let bundle = Bundle::from_files([("conversations.json", CONVERSATIONS), (name, text)]);
    let (mut ids, mut warnings) = (Vec::new(), Vec::new());
    for line in produce::<ChatGpt>(&bundle)?.exports.into_iter().flat_map(|export| export.lines) {
        match line {
            Line::Conversation(chat) if chat.tags.iter().any(|own| own == tag) => {
                for message in chat.messages {
                    assert_eq!(message.parent.as_ref(), ids.last(), "{}", message.id);
                    ids.push(message.id);
                }
            }
            Line::Warning(warning) => warnings.push(warning.message),
            _ => {}
        }
    }
    Ok((ids, warnings))
}

#[test]
fn messages_of_group_chats_are_sorted_by_time_with_one_warning() -> Result<(), ImportError> {
    let text = r#"{"chats":[{"id":"g","name":"Trip","created_at":"2026-03-01T10:00:00Z","members":[],"messages":[
        {"id":"3","role":"assistant","text":"By train.","created_at":"2026-03-01T10:00:03Z"},
        {"id":"2","role":"user","text":"How?","created_at":"2026-03-01T10:00:03Z"},
        {"id":"1","role":"user","text":"Let us go.","created_at":"2026-03-01T10:00:01Z"}]}]}"#;
    let (ids, warnings) = read("group_chats.json", text, "group-chat")?;
    assert_eq!(ids, ["1", "2", "3"]);
    assert_eq!(warnings, [SORTED]);
    Ok(())
}

#[test]
fn turns_of_codex_tasks_are_sorted_by_time_with_one_warning() -> Result<(), ImportError> {
    let text = r#"[{"id":"task_e_1","title":"Rename","turns":[
        {"id":"answer","role":"assistant","created_at":1772530003,"output_items":["Done"]},
        {"id":"question","role":"user","created_at":1772530001,"input_items":["Rename it"]}]}]"#;
    let (ids, warnings) = read("codex.json", text, "codex-task")?;
    assert_eq!(ids, ["question", "answer"]);
    assert_eq!(warnings, [SORTED]);
    Ok(())
}
