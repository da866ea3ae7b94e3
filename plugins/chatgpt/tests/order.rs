//! Group chats and Codex tasks, which are lists, stand by time.

use satchel_importer::{ImportError, order::SORTED, testkit::threads};
use satchel_plugin_chatgpt::ChatGpt;

#[test]
fn messages_of_group_chats_stand_by_time_with_one_warning() -> Result<(), ImportError> {
    let text = r#"{"chats":[{"id":"g","name":"Trip","created_at":"2026-03-01T10:00:00Z","members":[],"messages":[
        {"id":"3","role":"assistant","text":"By train.","created_at":"2026-03-01T10:00:03Z"},
        {"id":"2","role":"user","text":"How?","created_at":"2026-03-01T10:00:03Z"},
        {"id":"1","role":"user","text":"Let us go.","created_at":"2026-03-01T10:00:01Z"}]}]}"#;
    let read = threads::<ChatGpt>("group_chats.json", text)?;
    assert_eq!(read.said, [["Let us go.", "How?", "By train."]]);
    assert_eq!(read.warnings, [SORTED]);
    Ok(())
}

#[test]
fn turns_of_codex_tasks_stand_by_time_with_one_warning() -> Result<(), ImportError> {
    let text = r#"[{"id":"task_e_1","title":"Rename","turns":[
        {"id":"task_e_1~assttrn","role":"assistant","created_at":1772530003,"output_items":["Done"]},
        {"id":"task_e_1~usrtrn","role":"user","created_at":1772530001,"input_items":["Rename it"]}]}]"#;
    let read = threads::<ChatGpt>("codex.json", text)?;
    assert_eq!(read.said, [["Rename it", "Done"]]);
    assert_eq!(read.warnings, [SORTED]);
    Ok(())
}
