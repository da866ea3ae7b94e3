//! Broken input: however it is cut or changed, the importer neither panics nor emits inconsistent records.

use std::time::{Duration, Instant};

use satchel_importer::{
    Bundle, Importer as _, Line, Sink, broken_file_tests,
    pam::record::RecordKind,
    testkit::{
        BrokenFiles, FixtureFile, Unclaimed, check_lines, conversations, fixture_files, messages,
        nested_json, produce, run_file, skips, skips_of, warnings,
    },
};
use satchel_plugin_opencode::OpenCode;

const NAME: &str = "session.json";
const FORMAT: &str = "opencode-importer/2026.01";
const STORAGE: &str = "opencode-importer/2025.09";
const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");

/// The exports of all fixtures.
fn files() -> BrokenFiles {
    let chosen = |file: &FixtureFile| !conversations(&read_as(&file.name, &file.bytes)).is_empty();
    BrokenFiles::new(env!("CARGO_MANIFEST_DIR"), chosen, read_as)
}

fn read_as(name: &str, bytes: &[u8]) -> Vec<Line> {
    run_file::<OpenCode>(FORMAT, name, bytes).checked_lines(Unclaimed::ReadOrRefused)
}

/// Reads an export with these messages.
fn read(messages: &[String]) -> Vec<Line> {
    let export = format!(
        r#"{{"info":{{"id":"ses_1","title":"T","time":{{"created":1767700000000}}}},"messages":[{}]}}"#,
        messages.join(",")
    );
    read_as(NAME, export.as_bytes())
}

fn message(id: &str, role: &str, parts: &str) -> String {
    format!(
        r#"{{"info":{{"id":"{id}","role":"{role}","time":{{"created":1767700001000}}}},"parts":[{parts}]}}"#
    )
}

fn text(id: &str, text: &str) -> String {
    format!(r#"{{"id":"{id}","type":"text","text":"{text}"}}"#)
}

/// Reads a storage with these files.
fn read_storage(files: Vec<(String, String)>) -> Vec<Line> {
    let produced = produce::<OpenCode>(&Bundle::from_files(files)).expect("detection answers");
    let mut lines = Vec::new();
    for export in produced.exports {
        assert_eq!(export.error, None);
        check_lines(&export.lines).expect("every record makes sense");
        lines.extend(export.lines);
    }
    lines
}

fn session_file() -> (String, String) {
    let text = r#"{"id":"ses_1","projectID":"p","title":"T","time":{"created":1767700000000}}"#;
    ("session/p/ses_1.json".to_owned(), text.to_owned())
}

fn message_file(id: &str, more: &str) -> (String, String) {
    let text = format!(r#"{{"id":"{id}","sessionID":"ses_1","role":"user"{more}}}"#);
    (format!("message/ses_1/{id}.json"), text)
}

broken_file_tests! { importer: OpenCode, format: FORMAT, files: files() }

#[test]
fn a_file_cut_at_random_is_reported() {
    files().cut_at_random(|cut| {
        assert!(cut.lines.is_empty() || cut.has_reports() || cut.misses_nothing(), "{cut:?}");
    });
}

/// Every file of a storage is cut, emptied, replaced and taken away in turn.
#[test]
fn a_storage_with_any_broken_file_is_read() {
    let all = fixture_files(FIXTURES).expect("the fixtures are there");
    let own = |file: &&FixtureFile| file.fixture == "a-session-with-tools-and-thoughts";
    let whole: Vec<(String, Vec<u8>)> =
        all.iter().filter(own).map(|file| (file.name.clone(), file.bytes.clone())).collect();
    assert!(whole.len() > 20);
    for at in 0..whole.len() {
        let half = whole[at].1.len() / 2;
        let cut = whole[at].1[..half].to_vec();
        for bytes in
            [cut, Vec::new(), b"null".to_vec(), b"[7]".to_vec(), b"\xff\xfe".to_vec(), b"{}".to_vec()]
        {
            let mut files = whole.clone();
            files[at].1 = bytes;
            check_all(&files);
        }
        let mut files = whole.clone();
        files.remove(at);
        check_all(&files);
    }
}

fn check_all(files: &[(String, Vec<u8>)]) {
    let produced = produce::<OpenCode>(&Bundle::from_files(files.to_vec())).expect("detection answers");
    for export in produced.exports {
        assert_eq!(export.error, None);
        check_lines(&export.lines).expect("every record makes sense");
    }
}

#[test]
fn a_message_that_is_not_there_costs_only_its_parts() {
    let part = |message: &str, id: &str| (format!("part/{message}/{id}.json"), text(id, "It is read."));
    let files =
        vec![session_file(), message_file("msg_1", ""), part("msg_1", "prt_1"), part("msg_2", "prt_2")];
    let lines = read_storage(files);
    assert_eq!((messages(&lines).len(), skips_of(&lines, RecordKind::File)), (1, 1));
    assert_eq!(skips(&lines)[0].locator, "part/msg_2/prt_2.json");
}

#[test]
fn parts_that_do_not_fit_into_memory_together_are_skipped_alone() {
    let part = |id: &str| (format!("part/msg_1/{id}.json"), text(id, &"x".repeat(9 * 1024 * 1024)));
    let lines = read_storage(vec![
        session_file(),
        message_file("msg_1", ""),
        part("prt_1"),
        part("prt_2"),
        part("prt_3"),
    ]);
    assert_eq!((messages(&lines).len(), skips_of(&lines, RecordKind::File)), (1, 2));
}

#[test]
fn ids_in_files_that_contradict_their_names_are_ids() {
    let odd = message_file("msg_1", "").1;
    let files = vec![session_file(), message_file("msg_1", ""), ("message/ses_1/msg_2.json".to_owned(), odd)];
    let lines = read_storage(files);
    assert_eq!((messages(&lines).len(), skips_of(&lines, RecordKind::Message)), (1, 1));
}

#[test]
fn a_storage_is_not_claimed_by_its_names_alone() {
    let bundle = |text: &str| {
        let files = [("session/p/ses_1.json", text), ("message/ses_1/msg_1.json", text)];
        OpenCode::detect(&Bundle::from_files(files)).expect("detection answers").len()
    };
    assert_eq!(bundle(r#"{"id":"ses_1","cart":[],"user":"rosa"}"#), 0);
    assert_eq!(bundle(r#"{"id":"ses_1","version":"1","time":{}}"#), 1);
}

#[test]
fn a_large_storage_is_detected_in_time() {
    let mut files = Vec::new();
    for session in 0..200 {
        let own = format!(r#"{{"id":"ses_{session}","version":"1","time":{{}}}}"#);
        files.push((format!("session/p/ses_{session}.json"), own));
        for message in 0..20 {
            let id = format!("msg_{session}_{message}");
            files.push((format!("message/ses_{session}/{id}.json"), "{}".to_owned()));
            files.extend((0..10).map(|part| (format!("part/{id}/prt_{part}.json"), "{}".to_owned())));
        }
    }
    let bundle = Bundle::from_files(files);
    let begun = Instant::now();
    let found = OpenCode::detect(&bundle).expect("detection answers");
    assert_eq!(found[0].files.len(), 200 * (1 + 20 * 11));
    assert!(bundle.bytes_read() < 4096, "{} bytes of a few files are enough", bundle.bytes_read());
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
}

#[test]
fn long_and_deep_messages_are_skipped_alone() {
    let long = message("msg_1", "user", &text("prt_1", &"x".repeat(16 * 1024 * 1024)));
    let short = message("msg_2", "user", &text("prt_2", "It is read."));
    let lines = read(&[long, short.clone()]);
    assert_eq!((messages(&lines).len(), skips_of(&lines, RecordKind::Message)), (1, 1));
    let deep = message("msg_1", "user", r#"{"id":"prt_1","type":"text","text":"x","odd":$deep}"#);
    let export = format!(r#"{{"info":{{"id":"ses_1","title":"T"}},"messages":[{deep},{short}]}}"#);
    let lines = read_as(NAME, &nested_json(&export));
    assert_eq!((messages(&lines).len(), skips_of(&lines, RecordKind::Message)), (1, 1));
}

#[test]
fn ids_that_are_taken_or_no_ids_are_reported_or_replaced() {
    let parts =
        [text("msg_2", "one"), text(&"i".repeat(300), "two"), text("prt_1", "three"), text("prt_1", "four")];
    let lines = read(&[
        message("msg_1", "assistant", &parts.join(",")),
        message("msg_2", "assistant", &text("prt_2", "five")),
    ]);
    let ids: Vec<&str> = messages(&lines).into_iter().map(|message| message.id.as_str()).collect();
    assert_eq!(ids, ["msg_1", "msg_1:1", "prt_1", "msg_2"]);
    assert_eq!(skips_of(&lines, RecordKind::Message), 1);
    let lines = read(&[
        message("msg_1", "assistant", &[text("prt_0", "one"), text("msg_2", "two")].join(",")),
        message("msg_2", "assistant", &text("prt_2", "three")),
    ]);
    assert_eq!((messages(&lines).len(), skips_of(&lines, RecordKind::Message)), (2, 1));
}

#[test]
fn members_of_an_export_may_come_in_any_order() {
    let one = message("msg_1", "user", &text("prt_1", "Hello."));
    let export = format!(r#"{{"messages":[{one}],"info":{{"id":"ses_1","title":"T","version":"1"}}}}"#);
    assert_eq!(messages(&read_as(NAME, export.as_bytes())).len(), 1);
}

#[test]
fn thousands_of_messages_and_parts_are_read_in_time() {
    let parts: Vec<String> = (0..20_000).map(|part| text(&format!("prt_{part}"), "x")).collect();
    let mut all = vec![message("msg_00", "assistant", &parts.join(","))];
    all.extend(
        (0..20_000)
            .map(|number| message(&format!("msg_{number:06}"), "user", &text(&format!("p_{number}"), "x"))),
    );
    let begun = Instant::now();
    let lines = read(&all);
    assert_eq!(messages(&lines).len(), 40_000);
    assert!(warnings(&lines).is_empty());
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
}

#[test]
fn files_that_are_not_of_the_program_are_refused() {
    for other in ["", "[]", "{}", r#"{"info":{},"messages":[]}"#, r#"{"info":{"id":"ses_1"},"messages":[]}"#]
    {
        for format in [FORMAT, STORAGE] {
            let run = OpenCode::run(format, &Bundle::from_files([(NAME, other)]), &mut Sink::collecting());
            assert!(run.is_err(), "{other}");
        }
    }
}

#[test]
fn large_exports_of_others_are_left_after_a_few_bytes() {
    let long = "x".repeat(4 * 1024 * 1024);
    for other in [format!(r#"{{"mapping":{{"a":"{long}"}}}}"#), format!(r#"[{{"title":"{long}"}}]"#)] {
        let bundle = Bundle::from_files([("conversations.json", other)]);
        assert!(OpenCode::detect(&bundle).expect("detection answers").is_empty());
        assert!(bundle.bytes_read() < 64 * 1024, "{}", bundle.bytes_read());
    }
    let info = format!(r#""id":"ses_1","title":"T","revert":{{"messageID":"m","diff":"{long}"}}"#);
    let own = format!(r#"{{"info":{{{info}}},"messages":[]}}"#);
    assert_eq!(OpenCode::detect(&Bundle::from_files([(NAME, own)])).expect("detection answers").len(), 1);
}

#[test]
fn a_task_that_is_too_long_is_not_lost_without_a_word() {
    let task = |length: usize| format!(r#"{{"id":"t","content":"{}"}}"#, "x".repeat(length));
    let export = format!(
        r#"{{"info":{{"id":"ses_1","title":"T","time":{{"created":1767700000000}}}},"messages":[{}],"todos":[{},{}]}}"#,
        message("msg_1", "user", &text("prt_1", "Hello.")),
        task(1),
        task(17 * 1024 * 1024)
    );
    let lines = read_as(NAME, export.as_bytes());
    assert_eq!(messages(&lines).len(), 1);
    assert!(
        warnings(&lines).iter().any(|warning| warning.message.contains("todos")),
        "{:?}",
        warnings(&lines)
    );
}

#[test]
fn that_there_are_more_kinds_of_warnings_is_said() {
    let parts: Vec<String> =
        (0..100).map(|at| format!(r#"{{"id":"prt_{at:03}","type":"novelty{at}","text":"x"}}"#)).collect();
    let lines = read(&[message("msg_1", "assistant", &parts.join(","))]);
    let given = warnings(&lines);
    let last = given.last().map(|warning| warning.message.clone()).unwrap_or_default();
    assert!(given.len() == 65 && last.starts_with("there are more kinds"), "{last}");
}

#[test]
fn repetitions_of_a_message_are_each_skipped() {
    let own = message("msg_1", "user", &text("prt_1", "Hello."));
    let lines = read(&vec![own; 1000]);
    assert_eq!((messages(&lines).len(), skips(&lines).len()), (1, 999));
}
