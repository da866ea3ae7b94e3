//! Sample sessions outside the repository are read completely.

use satchel_importer::testkit::{Sample, conversations, text, warnings};
use satchel_plugin_claude_code::ClaudeCode;

#[test]
fn the_sample_is_read_completely() {
    let Some(sample) = Sample::read::<ClaudeCode>(env!("CARGO_MANIFEST_DIR"), "agents/claude-code") else {
        return;
    };
    let lines = sample.lines();
    let read = conversations(&lines);
    assert_eq!((read.len(), warnings(&lines).len()), (1, 1), "its lines name no parents: {lines:?}");
    assert_eq!(read[0].id, "session-001");
    assert_eq!(read[0].title.as_deref(), Some("Refactor the auth module to use JWT tokens"));
    assert_eq!(read[0].model.as_deref(), Some("claude-sonnet-4-20250514"));
    let ids: Vec<&str> = read[0].messages.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["u1", "a1", "u2", "a2"]);
    assert_eq!(read[0].messages[3].parent.as_deref(), Some("u2"));
    assert_eq!(text(&read[0].messages[3]), "Here's the refactored auth module using JWT tokens.");
    assert_eq!(read[0].messages[3].tool_calls[0].name, "Write");
}
