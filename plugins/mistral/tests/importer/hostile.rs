//! Broken input: however it is cut or changed, the importer neither panics nor emits inconsistent records.

use satchel_importer::{
    Line, broken_file_tests, names,
    pam::record::RecordKind,
    testkit::{
        BrokenFiles, FixtureFile, Unclaimed, conversations, json_list, messages, nested_json, run_file,
        skips_of,
    },
};
use satchel_plugin_mistral::Mistral;

const NAME: &str = "chat-x.json";
const FORMAT: &str = "mistral-importer/2025.09";

/// The files of all fixtures that hold conversations.
fn files() -> BrokenFiles {
    let chosen = |file: &FixtureFile| {
        names::has_extension(&file.name, "json") && !conversations(&read(&file.bytes)).is_empty()
    };
    BrokenFiles::new(env!("CARGO_MANIFEST_DIR"), chosen, |_, bytes| read(bytes))
}

fn read(bytes: &[u8]) -> Vec<Line> {
    run_file::<Mistral>(FORMAT, NAME, bytes).checked_lines(Unclaimed::ReadOrRefused)
}

broken_file_tests! { importer: Mistral, format: FORMAT, files: files() }

#[test]
fn a_file_cut_anywhere_is_reported_and_gives_no_new_message() {
    files().cut_everywhere(|cut| {
        assert!(cut.new_messages().is_empty(), "{cut:?}");
        assert!(cut.lines.is_empty() || cut.has_all_messages() || cut.has_reports(), "{cut:?}");
    });
}

#[test]
fn a_hundred_thousand_unordered_messages_are_read() {
    let text = json_list(100_000, |at| {
        // A permutation: the step and the count have no common factor.
        let second = at * 7919 % 100_000;
        let time = 1_700_000_000 + second;
        format!(
            r#"{{"id":"m{second}","chatId":"c","role":"user","createdAt":{time},"content":"x","contentChunks":null}}"#
        )
    });
    let lines = read(text.as_bytes());
    let record = conversations(&lines)[0];
    assert_eq!(record.messages.len(), 100_000);
    for message in &record.messages {
        let number: u32 = message.id[1..].parse().expect("a number");
        let before = number.checked_sub(1).map(|before| format!("m{before}"));
        assert_eq!(message.parent, before);
    }
}

#[test]
fn nesting_beyond_the_limit_skips_the_message_alone() {
    let text = r#"[{"id":"a","chatId":"c","role":"user","content":"x","contentChunks":null,"odd":$deep},{"id":"b","chatId":"c","role":"user","content":"y","contentChunks":null}]"#;
    let lines = read(&nested_json(text));
    assert_eq!(messages(&lines).len(), 1);
    assert!(skips_of(&lines, RecordKind::Message) > 0);
}

#[test]
fn no_signature_of_an_address_is_emitted() {
    let all: Vec<_> = files().files().iter().map(|file| read(&file.bytes)).collect();
    let all = format!("{all:?}");
    assert!(
        all.contains("example.org/town") && !all.contains("secret"),
        "a fixture has secrets, and none is emitted"
    );
}
