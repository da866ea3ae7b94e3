//! Broken input: after any cut or change the importer does not panic, and its records are valid.

use std::sync::LazyLock;

use proptest::prelude::*;
use satchel_importer::{
    Bundle, Importer, Line, Sink, broken_file_tests,
    pam::record::RecordKind,
    testkit::{
        BrokenFiles, FixtureFile, Unclaimed, check_lines, conversations, fixture_files, large_tree,
        nested_json, parents_are_messages, produce, run_file, skips, skips_of,
    },
};
use satchel_plugin_chatgpt::ChatGpt;

const FILE: &str = "conversations.json";
const FORMAT: &str = "chatgpt-importer/2026.07";

/// The conversations of all fixtures.
fn files() -> BrokenFiles {
    BrokenFiles::new(
        env!("CARGO_MANIFEST_DIR"),
        |file| file.name.starts_with("conversations"),
        |_, bytes| read(bytes),
    )
}

fn read(bytes: &[u8]) -> Vec<Line> {
    run_file::<ChatGpt>(FORMAT, FILE, bytes).checked_lines(Unclaimed::Read)
}

#[test]
fn conversations_before_a_cut_are_emitted() {
    files().cut_at_random(|cut| {
        cut.check_conversations();
        let reported = skips_of(&cut.lines, RecordKind::Conversation) > 0;
        let opened = cut.left.contains(&b'[');
        assert!(reported || cut.ends_between_lines() || cut.has_all_conversations() || !opened, "{cut:?}");
    });
}

broken_file_tests! { importer: ChatGpt, format: FORMAT, files: files() }

/// The files of each fixture with more than one file.
static EXPORTS: LazyLock<Vec<Vec<FixtureFile>>> = LazyLock::new(|| {
    let files =
        fixture_files(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures")).expect("the fixtures can be read");
    let fixtures = files.chunk_by(|one, other| one.fixture == other.fixture);
    fixtures.filter(|files| files.len() > 1).map(<[FixtureFile]>::to_vec).collect()
});

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn broken_side_files_do_not_affect_conversations(
        export in any::<prop::sample::Index>(),
        file in any::<prop::sample::Index>(),
        place in any::<prop::sample::Index>(),
        cut in any::<bool>(),
        byte in any::<u8>(),
    ) {
        let whole = export.get(&EXPORTS);
        let mut files = whole.clone();
        let FixtureFile { name, bytes, .. } = file.get_mut(&mut files);
        let source = name.starts_with("conversations") || name == "chat.html";
        let at = place.index(bytes.len().max(1));
        if cut {
            bytes.truncate(at);
        } else if let Some(old) = bytes.get_mut(at) {
            *old = byte;
        }
        let read = |files: &[FixtureFile]| {
            let bundle = Bundle::from_files(files.iter().map(|file| (file.name.as_str(), file.bytes.clone())));
            let mut count = 0;
            for export in produce::<ChatGpt>(&bundle).expect("detection succeeds").exports {
                assert_eq!(export.error, None, "the run succeeds");
                check_lines(&export.lines).expect("every record is valid");
                let main = conversations(&export.lines).into_iter().filter(|record| record.locator.starts_with("conversations"));
                count += main.count();
            }
            count
        };
        let (before, after) = (read(whole), read(&files));
        prop_assert!(source || before == after, "{before} conversations became {after}");
    }
}

#[test]
fn a_hundred_thousand_children_are_read() {
    let nodes = large_tree(100_000, "root", |node, parent| {
        // Every second node has no message, so that links skip many dropped nodes.
        let message = if node % 2 == 0 { "null" } else { r#"{"author":{"role":"user"},"content":"x"}"# };
        format!(r#""n{node}":{{"parent":"{parent}","message":{message}}}"#)
    });
    let text = format!(r#"[{{"id":"wide","mapping":{{"root":{{"message":null,"parent":null}},{nodes}}}}}]"#);
    let lines = read(text.as_bytes());
    let read = conversations(&lines);
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].messages.len(), 50_000);
    assert!(parents_are_messages(read[0]), "every parent is a message");
}

#[test]
fn nesting_beyond_the_limit_skips_only_that_conversation() {
    let text = r#"[{"id":"deep","odd":$deep,"mapping":{}},{"id":"b","mapping":{"u":{"message":{"author":{"role":"user"},"content":"x"}}}}]"#;
    let lines = read(&nested_json(text));
    assert!(matches!(&lines[0], Line::Skip(skip) if skip.locator == "conversations.json[0]"), "{lines:?}");
    assert_eq!(conversations(&lines).len(), 1);
}

#[test]
fn repeated_ids_in_a_group_chat_are_skipped() {
    let text =
        r#"{"chats":[{"id":"g","messages":[{"id":"m","text":"a"},{"id":"m","text":"b"},{"text":"c"},7]}]}"#;
    let main =
        files().files().iter().find(|file| file.name == FILE).expect("the fixture exists").bytes.clone();
    let bundle = Bundle::from_files([(FILE, main), ("group_chats.json", text.as_bytes().to_vec())]);
    let mut sink = Sink::collecting();
    ChatGpt::run(FORMAT, &bundle, &mut sink).expect("the run succeeds");
    let lines = sink.into_lines();
    let group = conversations(&lines)
        .into_iter()
        .find(|record| record.id == "group_chat:g")
        .expect("the chat is emitted");
    assert_eq!(
        group.messages.iter().map(|message| message.id.as_str()).collect::<Vec<_>>(),
        ["m", "message-2"]
    );
    check_lines(&lines).expect("every record is valid");
    let skips = skips(&lines);
    let skipped = skips.iter().filter(|skip| skip.locator.starts_with("group_chats"));
    assert_eq!(skipped.count(), 2);
}
