//! Sample exports outside the repository are read completely.

use satchel_importer::{
    pam::conversation::Role::{self, Assistant, System, Tool, User},
    testkit::{Sample, conversations, skips, text, warnings},
};
use satchel_plugin_codex::Codex;

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");
const SAMPLE: &str = "agents/codex";

#[test]
fn the_sample_is_read_completely() {
    let Some(sample) = Sample::read::<Codex>(FOLDER, SAMPLE) else { return };
    let lines = sample.lines();
    assert!(sample.unclaimed().is_empty() && skips(&lines).is_empty() && warnings(&lines).is_empty());
    let read = conversations(&lines);
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].id, "fixture-session-0002");
    assert_eq!(read[0].title.as_deref(), Some("Lister le dossier demo"));
    let messages = &read[0].messages;
    let roles: Vec<Role> = messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [System, User, Assistant, Assistant, Tool, Assistant, Tool, Assistant, User]);
    assert_eq!(text(&messages[4]), "fichier_a.txt\nfichier_b.txt");
    assert_eq!(text(&messages[6]), r#"{"output":"Success"}"#, "it has no metadata");
    assert_eq!(messages[8].id, format!("{}:2", messages[1].id), "the last line is a copy of the third");
}
