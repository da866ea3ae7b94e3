//! First imports: only the importer that reads the source is compiled, and the sessions of agents are found.

#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod home;

use std::{
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use home::{TestHome, code, stderr};

/// A usual export of each provider, among the fixtures of its importer.
const EXPORTS: [&str; 26] = [
    "chatgpt/fixtures/text",
    "claude/fixtures/flat-linear",
    "claude-code/fixtures/tools-and-branches",
    "codex/fixtures/session-with-tools-and-reasoning",
    "copilot/fixtures/oldest-first",
    "deepseek/fixtures/whole-export",
    "dti/fixtures/a-conversation",
    "gemini/fixtures/activity-with-conversation-ids",
    "gemini-cli/fixtures/session-with-tools-and-thoughts",
    "goose/fixtures/a-session-with-tools-and-thoughts",
    "goose/fixtures/sessions-in-a-database",
    "grok/fixtures/single-conversation",
    "jan/fixtures/reasoning-and-tools",
    "librechat/fixtures/a-list-with-branches",
    "lm-studio/fixtures/a-chat-with-thoughts-and-tools",
    "memu/fixtures/memory-answer",
    "memu/fixtures/database-of-version-1",
    "mistral/fixtures/unordered-messages",
    "open-webui/fixtures/branches-and-the-current-answer",
    "open-webui/fixtures/database",
    "opencode/fixtures/an-export",
    "opencode/fixtures/sessions-in-a-database",
    "perplexity/fixtures/turns",
    "snapchat/fixtures/a-chat-with-my-ai",
    "vscode-copilot/fixtures/a-log-of-an-agent",
    "vscode-copilot/fixtures/the-copy-of-a-database",
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

#[test]
fn the_folders_of_agents_are_found_and_watched() {
    let home = TestHome::new();
    let add = |options: &[&str]| home.run(&[&["sources", "add", "--agents"], options].concat());
    let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins");
    let mut import = home.command(&["import"]);
    assert!(import.arg(plugins.join("chatgpt/fixtures/text/input")).status().unwrap().success());
    let nothing = add(&["--yes"]);
    assert_eq!(code(&nothing), Some(2));
    assert!(stderr(&nothing).contains(".codex/sessions (Codex)"), "{}", stderr(&nothing));
    let session = "-home-mara-bakery/5e551000-0000-4000-8000-000000000001.jsonl";
    let text = fs::read(plugins.join("claude-code/fixtures/tools-and-branches/input").join(session)).unwrap();
    home.file(&format!(".claude/projects/{session}"), text);
    fs::create_dir_all(home.path().join(".codex/sessions")).unwrap();
    let asked = add(&[]);
    assert_eq!(code(&asked), Some(2));
    assert!(stderr(&asked).contains("--yes"), "{}", stderr(&asked));
    let wrong = add(&["--yes", "--settle", "2h"]);
    assert!(stderr(&wrong).contains("3600000"), "{}", stderr(&wrong));

    let added = add(&["--yes", "--settle", "100ms"]);
    assert_eq!(code(&added), Some(0), "{}", stderr(&added));
    let added = String::from_utf8(added.stdout).unwrap();
    assert_eq!(added.matches(": now watched").count(), 2, "{added}");
    let daemon = home.serve();
    let begun = Instant::now();
    let listed = loop {
        let listed = home.run(&["conversations", "list"]);
        let listed = String::from_utf8(listed.stdout).unwrap();
        if listed.contains("A failing test for rye") || begun.elapsed() > home::LONG {
            break listed;
        }
        thread::sleep(Duration::from_millis(50));
    };
    assert!(listed.contains("A failing test for rye"), "{listed}");
    home::stop(daemon);
}
