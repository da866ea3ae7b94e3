//! Broken input: however it is cut or changed, the importer neither panics nor emits inconsistent records.

use satchel_importer::{
    Line, broken_file_tests, names,
    pam::record::RecordKind,
    testkit::{BrokenFiles, FixtureFile, Unclaimed, conversations, nested_json, run_file, skips_of},
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
