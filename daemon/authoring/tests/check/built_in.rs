//! The built-in importers pass the checks on their own fixtures.

use std::{
    fs,
    path::{Path, PathBuf},
};

use satchel_authoring::check::{CheckKind, CheckOptions, CheckReport, FixtureReport, Outcome, check};
use satchel_plugins::BUILT_IN;

use crate::project::quick;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins").join(name)
}

/// Checks an importer with its README, to which these sentences are added.
fn report(name: &str, sentences: &str) -> CheckReport {
    let built_in = BUILT_IN.iter().find(|built_in| built_in.name == name).unwrap();
    let readme = tempfile::NamedTempFile::new().unwrap();
    let text = fs::read_to_string(folder(name).join("README.md")).unwrap();
    fs::write(readme.path(), format!("{text}\n{sentences}\n")).unwrap();
    let options = CheckOptions { mutations: 12, readme: Some(readme.path().to_owned()), ..quick() };
    check(built_in.wasm, &folder(name).join("fixtures"), &options, &mut |_| {}).unwrap()
}

/// Checks that an importer fails no check but these, and returns how many of its fixtures have values that were checked
/// with its field table. The table names files as the importer's own tests do; `sentences` say it as this check reads it.
fn assert_passes(name: &str, sentences: &str, except: &[CheckKind]) -> usize {
    let report = report(name, sentences);
    let other: Vec<_> = report.failures().filter(|(_, kind, _)| !except.contains(kind)).collect();
    assert!(other.is_empty(), "{name}: {other:#?}");
    assert!(report.counts.conversations > 3 && report.fixtures.len() > 5, "{name}: {:?}", report.counts);
    for kind in except {
        assert!(report.failures().any(|(_, failed, _)| failed == *kind), "{name}: {kind:?} passes too");
    }
    let checked = |fixture: &&FixtureReport| fixture.outcome(CheckKind::Fields) == Some(&Outcome::Passed);
    report.fixtures.iter().filter(checked).count()
}

#[test]
fn chatgpt_passes() {
    // An edit of a canvas puts "Rain" together by a regular expression.
    let sentences = "`main` is `conversations*.json`.\nWords that it adds: `rain`";
    let checked = assert_passes("chatgpt", sentences, &[]);
    assert!(checked > 60, "the table is checked on {checked} fixtures");
}

#[test]
fn claude_passes() {
    let checked = assert_passes("claude", "`chats` is `conversations.json`.", &[]);
    assert!(checked > 30, "the table is checked on {checked} fixtures");
}

#[test]
fn claude_code_passes() {
    let files = "`line` is `*.jsonl`. `subagent` is `*.meta.json`.";
    let checked = assert_passes("claude-code", files, &[]);
    assert!(checked > 8, "the table is checked on {checked} fixtures");
}

#[test]
fn codex_passes() {
    let checked = assert_passes("codex", "`rollout` is `*.jsonl`. `saved` is `*.json`.", &[]);
    assert!(checked > 8, "the table is checked on {checked} fixtures");
}

#[test]
fn copilot_passes() {
    assert_eq!(assert_passes("copilot", "", &[]), 0, "its files are no JSON");
}

#[test]
fn deepseek_passes() {
    let checked = assert_passes("deepseek", "", &[]);
    assert!(checked > 15, "the table is checked on {checked} fixtures");
}

#[test]
fn dti_passes() {
    let checked = assert_passes("dti", "", &[]);
    assert!(checked > 5, "the table is checked on {checked} fixtures");
}

#[test]
fn gemini_passes() {
    let files = "`list` is `*My Activity/*/*.json`. `studio` is `*AI Studio/*`. `work` is `*Workspace/*`.";
    let checked = assert_passes("gemini", files, &[]);
    assert!(checked > 8, "the table is checked on {checked} fixtures");
}

#[test]
fn gemini_cli_passes() {
    let checked = assert_passes("gemini-cli", "`log` is `*.jsonl`. `saved` is `*.json`.", &[]);
    assert!(checked > 12, "the table is checked on {checked} fixtures");
}

#[test]
fn grok_passes() {
    let files = "`main` is `prod-grok-backend.json`. `account` is `prod-mc-auth-mgmt-api.json`. \
                 `billing` is `prod-mc-billing.json`.";
    let checked = assert_passes("grok", files, &[]);
    assert!(checked > 15, "the table is checked on {checked} fixtures");
}

#[test]
fn jan_passes() {
    let files = "`thread` is `*thread.json`. `messages` is `*messages.jsonl`. `export` is `Rye*.json`.";
    let checked = assert_passes("jan", files, &[]);
    assert!(checked > 6, "the table is checked on {checked} fixtures");
}

#[test]
fn librechat_passes() {
    let checked = assert_passes("librechat", "", &[]);
    assert!(checked > 15, "the table is checked on {checked} fixtures");
}

#[test]
fn lm_studio_passes() {
    let files = "`description` is `*.metadata.json`. `chat` is `*conversation*.json`.";
    let checked = assert_passes("lm-studio", files, &[]);
    assert!(checked > 6, "the table is checked on {checked} fixtures");
}

#[test]
fn memu_passes() {
    // Its tables have another form, which its own test reads.
    assert_passes("memu", "", &[CheckKind::Fields]);
}

#[test]
fn goose_passes() {
    let checked = assert_passes("goose", "`line` is `*.jsonl`. `export` is `*.json`.", &[]);
    assert!(checked > 4, "the table is checked on {checked} fixtures");
}

#[test]
fn mistral_passes() {
    let checked = assert_passes("mistral", "", &[]);
    assert!(checked > 3, "the table is checked on {checked} fixtures");
}

#[test]
fn open_webui_passes() {
    let checked = assert_passes("open-webui", "", &[]);
    assert!(checked > 10, "the table is checked on {checked} fixtures");
}

#[test]
fn opencode_passes() {
    let files = "`export` is `session*.json`. `session` is `*session/*.json`. `message` is `*message/ses*.json`. \
        `part` is `*part/*.json`. `project` is `*project/7*.json`. `tasks` is `*todo/*.json`. \
        `changes` is `*session_diff/*.json`.";
    let checked = assert_passes("opencode", files, &[]);
    assert!(checked > 8, "the table is checked on {checked} fixtures");
}

#[test]
fn perplexity_passes() {
    let checked = assert_passes("perplexity", "", &[]);
    assert!(checked > 5, "the table is checked on {checked} fixtures");
}

#[test]
fn snapchat_passes() {
    let files = "`ai` is `*snapchat_ai.json`. `chats` is `*chat_history.json`. `account` is `*account.json`.";
    let checked = assert_passes("snapchat", files, &[]);
    assert!(checked > 5, "the table is checked on {checked} fixtures");
}

#[test]
fn vscode_copilot_passes() {
    let checked = assert_passes("vscode-copilot", "", &[]);
    assert!(checked > 10, "the table is checked on {checked} fixtures");
}
