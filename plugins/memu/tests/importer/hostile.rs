//! Broken input: the importer neither panics nor emits invalid records.

use std::collections::BTreeSet;

use satchel_importer::{
    ErrorKind, Line, broken_file_tests, names,
    pam::record::{Claim, RecordKind},
    testkit::{
        BrokenFiles, FixtureFile, Unclaimed, cancelled_run, conversation_ids, conversations, evidence,
        json_list, nested_json, run_file, skips, skips_of,
    },
};
use satchel_plugin_memu::MemU;

const FORMAT: &str = "memu-importer/2025.07";

/// Every file of all fixtures of the generation that is read.
fn files() -> BrokenFiles {
    // Databases are damaged in `database.rs`.
    let is_json = |name: &str| names::is_json(name) || names::has_extension(name, "jsonl");
    let chosen = |file: &FixtureFile| !file.fixture.starts_with("other-") && is_json(&file.name);
    BrokenFiles::new(env!("CARGO_MANIFEST_DIR"), chosen, read)
}

fn read(name: &str, bytes: &[u8]) -> Vec<Line> {
    let mut run = run_file::<MemU>(FORMAT, name, bytes);
    // Files of another generation are claimed, so that the run can refuse them.
    run.detections.retain(|found| found.format == FORMAT);
    let lines = run.checked_lines(Unclaimed::Refused);
    check(&lines);
    lines
}

/// Checks each record: ids are unique, parents come before their children, and items are not blank.
fn check(lines: &[Line]) {
    for line in lines {
        match line {
            Line::Conversation(record) => {
                let mut known = BTreeSet::new();
                for message in &record.messages {
                    assert!(message.parent.as_ref().is_none_or(|parent| known.contains(parent)));
                    assert!(known.insert(message.id.clone()), "message ids are unique");
                }
            }
            Line::Evidence(evidence) => {
                let items = match &evidence.claim {
                    Claim::Statement(item) => std::slice::from_ref(item),
                    Claim::Snapshot { items, .. } => items.as_slice(),
                    Claim::Edit { .. } => &[],
                };
                assert!(!items.is_empty() && items.iter().all(|item| !item.content.trim().is_empty()));
            }
            Line::Embedding(embedding) => {
                let length = embedding.vector.as_ref().map_or(0, Vec::len);
                assert_eq!(u32::try_from(length), Ok(embedding.dimensions));
            }
            Line::Relation(_) | Line::Account(_) | Line::Skip(_) | Line::Warning(_) => {}
        }
    }
}

#[test]
fn a_truncated_file_gives_the_whole_records_before_the_cut() {
    files().cut_everywhere(|cut| {
        cut.check_conversations();
        // A cut between two lines cannot be noticed.
        let between = names::has_extension(cut.name, "jsonl") && cut.left.trim_ascii_end().ends_with(b"}");
        let reported = !skips(&cut.lines).is_empty();
        assert!(cut.misses_nothing() || between || cut.lines.is_empty() || reported, "{cut:?}");
    });
}

broken_file_tests! { importer: MemU, format: FORMAT, files: files() }

#[test]
fn a_cancelled_run_stops_at_once() {
    let text = json_list(50, |id| {
        format!(r#"{{"memory_id":"m-{id}","agent_id":"a","user_id":"u","profile_content":["x"]}}"#)
    });
    assert!(cancelled_run::<MemU>(FORMAT, "memories.json", text, 5).len() < 8);
}

#[test]
fn unknown_formats_foreign_files_and_other_generations_are_refused() {
    let run = |format| run_file::<MemU>(format, "conversations.json", "[]").error.map(|error| error.kind);
    assert_eq!(run("memu-importer/1999.01"), Some(ErrorKind::UnsupportedVersion));
    assert_eq!(run("memu-importer/2026.07"), Some(ErrorKind::UnsupportedVersion));
    assert_eq!(run(FORMAT), Some(ErrorKind::NotThisFormat));
}

#[test]
fn deep_nesting_skips_only_its_conversation() {
    let text = r#"[{"conversation_id":"c-1","agent_id":"a","user_id":"u","messages":[],"pipeline_result":$deep},{"conversation_id":"c-2","agent_id":"a","user_id":"u","messages":[]}]"#;
    let lines = read("conversations.json", &nested_json(text));
    assert_eq!(skips(&lines).len(), 1);
    assert_eq!(conversation_ids(&lines), ["c-2"]);
}

#[test]
fn a_conversation_over_the_limit_of_messages_is_skipped() {
    let conversation = |messages: usize| {
        let list = vec![r#"{"role":"user","content":"x"}"#; messages].join(",");
        format!(r#"{{"conversation_id":"c","agent_id":"a","user_id":"u","messages":[{list}]}}"#)
    };
    let lines = read("a.json", conversation(100_000).as_bytes());
    assert_eq!(conversations(&lines)[0].messages.len(), 100_000);
    let lines = read("a.json", conversation(100_001).as_bytes());
    assert_eq!((conversations(&lines).len(), skips(&lines).len()), (0, 1));
}

#[test]
fn entries_over_the_limit_are_reported_once() {
    let entries = json_list(100_010, |number| format!("\"{number}\""));
    let text = format!(r#"{{"memory_id":"m","agent_id":"a","user_id":"u","profile_content":{entries}}}"#);
    let lines = read("a.json", text.as_bytes());
    let items = |claim: &Claim| if let Claim::Snapshot { items, .. } = claim { items.len() } else { 1 };
    let items: usize = evidence(&lines).into_iter().map(|evidence| items(&evidence.claim)).sum();
    assert_eq!((items, skips(&lines).len()), (100_000, 1));
    assert_eq!(skips_of(&lines, RecordKind::Memory), 1);
}
