//! Turns of Workspace and chunks of AI Studio keep the order of the file.

use satchel_importer::{ImportError, order::KEPT, testkit::threads};
use satchel_plugin_gemini::Gemini;

#[test]
fn turns_of_workspace_keep_their_order_with_one_warning() -> Result<(), ImportError> {
    let text = r#"{"title":"Tea","conversation_turns":[
        {"user_turn":{"prompt":"Which?","turn_last_modified":"2026-03-01T10:00:09Z"}},
        {"system_turn":{"text":[{"data":"Green."}],"turn_last_modified":"2026-03-01T10:00:02Z"}}]}"#;
    let name = "Takeout/Gemini in Workspace/Conversation History/conversation_1.txt";
    threads::<Gemini>(name, text)?.check(&["Which?", "Green."], &[KEPT]);
    Ok(())
}

#[test]
fn chunks_of_ai_studio_keep_their_order_with_one_warning() -> Result<(), ImportError> {
    let text = r#"{"runSettings":{"model":"models/gemini-2.5-pro"},"chunkedPrompt":{"chunks":[
        {"text":"Which?","role":"user","createTime":"2026-03-01T10:00:09Z"},
        {"text":"Green.","role":"model","createTime":"2026-03-01T10:00:02Z"}]}}"#;
    threads::<Gemini>("Tea", text)?.check(&["Which?", "Green."], &[KEPT]);
    Ok(())
}
