//! Broken input: however it is cut or changed, the importer neither panics nor emits inconsistent records.

use satchel_importer::{
    Line, broken_file_tests, names,
    pam::record::RecordKind,
    testkit::{BrokenFiles, FixtureFile, Unclaimed, conversations, nested_json, run_file, skips, skips_of},
};
use satchel_plugin_perplexity::Perplexity;

const NAME: &str = "thread.json";
const FORMAT: &str = "perplexity-importer/2026.02";

/// The files of all fixtures that hold conversations.
fn files() -> BrokenFiles {
    let chosen = |file: &FixtureFile| {
        names::has_extension(&file.name, "json") && !conversations(&read(&file.bytes)).is_empty()
    };
    BrokenFiles::new(env!("CARGO_MANIFEST_DIR"), chosen, |_, bytes| read(bytes))
}

fn read(bytes: &[u8]) -> Vec<Line> {
    run_file::<Perplexity>(FORMAT, NAME, bytes).checked_lines(Unclaimed::ReadOrRefused)
}

broken_file_tests! { importer: Perplexity, format: FORMAT, files: files() }

#[test]
fn a_file_cut_anywhere_is_reported_and_gives_no_new_message() {
    files().cut_everywhere(|cut| {
        assert!(cut.new_messages().is_empty(), "{cut:?}");
        assert!(cut.lines.is_empty() || cut.has_all_messages() || cut.has_reports(), "{cut:?}");
    });
}

#[test]
fn nesting_beyond_the_limit_skips_the_thread_alone() {
    let text = r#"[{"metadata":{"thread_id":"a"},"conversations":[{"query":"q","answer":"a"}],"odd":$deep},{"metadata":{"thread_id":"b"},"conversations":[{"query":"q","answer":"a"}]}]"#;
    let lines = read(&nested_json(text));
    assert_eq!(conversations(&lines).len(), 1);
    assert!(skips_of(&lines, RecordKind::Conversation) > 0);
}

#[test]
fn no_token_that_gives_access_to_a_thread_is_emitted() {
    let all: Vec<_> = files().files().iter().map(|file| read(&file.bytes)).collect();
    let all = format!("{all:?}");
    assert!(all.contains("Mice") && !all.contains("secret"), "a fixture has secrets, and none is emitted");
}

#[test]
fn a_large_file_that_is_cut_gives_no_thread_twice() {
    let thread = |name: &str| {
        let answer = "x".repeat(9 * 1024 * 1024);
        format!(
            r#"{{"metadata":{{"thread_id":"{name}"}},"conversations":[{{"uuid":"{name}-1","query":"One?","answer":"Yes."}},{{"uuid":"{name}-2","query":"Two?","answer":"{answer}"}}]}}"#
        )
    };
    let whole = format!("[{},{},{}", thread("a"), thread("b"), thread("c"));
    let lines = read(&whole.as_bytes()[..whole.len() - 100]);
    let ids: Vec<&str> = conversations(&lines).iter().map(|thread| thread.id.as_str()).collect();
    assert_eq!(ids, ["a", "b"]);
    assert_eq!(skips(&lines).len(), 1);
}
