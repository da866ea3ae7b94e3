//! The first import of a user compiles the importer that reads the source, and no other.

#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod home;

use std::{fs, path::Path};

use home::{TestHome, code, stderr};

/// A usual export of each provider, among the fixtures of its importer.
const EXPORTS: [&str; 12] = [
    "chatgpt/fixtures/text",
    "claude/fixtures/flat-linear",
    "claude-code/fixtures/tools-and-branches",
    "codex/fixtures/session-with-tools-and-reasoning",
    "copilot/fixtures/oldest-first",
    "deepseek/fixtures/whole-export",
    "gemini/fixtures/activity-with-conversation-ids",
    "grok/fixtures/single-conversation",
    "memu/fixtures/memory-answer",
    "mistral/fixtures/unordered-messages",
    "open-webui/fixtures/branches-and-the-current-answer",
    "perplexity/fixtures/turns",
];

#[test]
fn only_the_importer_that_reads_the_source_is_compiled() {
    let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins");
    let mut counts = Vec::new();
    for export in EXPORTS {
        let home = TestHome::new();
        let cache = home.path().join("cache");
        let mut import = home.command(&["import"]);
        import.arg(plugins.join(export).join("input")).env("XDG_CACHE_HOME", &cache);
        let output = import.env("XDG_STATE_HOME", home.path().join("state")).output().unwrap();
        assert_eq!(code(&output), Some(0), "{export}: {}", stderr(&output));
        let entries = fs::read_dir(cache.join("satchel/importers")).unwrap();
        let compiled = entries.filter(|entry| {
            entry.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "code")
        });
        counts.push((export, compiled.count()));
    }
    assert_eq!(counts, EXPORTS.map(|export| (export, 1)));
}
