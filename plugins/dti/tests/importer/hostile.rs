//! Broken and hostile input: the importer neither panics nor emits inconsistent records.

use satchel_importer::{
    Line, broken_file_tests,
    pam::record::RecordKind,
    testkit::{
        BrokenFiles, FixtureFile, Unclaimed, conversations, json_list, messages, nested_json, run_file,
        skips, skips_of, warnings,
    },
};
use satchel_plugin_dti::Dti;

const NAME: &str = "history.json";
const FORMAT: &str = "dti-importer/2025.11";
const DETAILS: &str = r#"{"createdBy":"x","createdAt":"2026-06-02T10:00:00Z","startTime":"2026-06-01T10:00:00Z","endTime":"2026-06-01T10:00:00Z"}"#;
const PEOPLE: &str = r#"[{"name":"Mo","type":"email","identifier":"mo@example.org"}]"#;

/// The files of all fixtures that have a conversation.
fn files() -> BrokenFiles {
    let chosen = |file: &FixtureFile| !conversations(&read(&file.bytes)).is_empty();
    BrokenFiles::new(env!("CARGO_MANIFEST_DIR"), chosen, |_, bytes| read(bytes))
}

fn read(bytes: &[u8]) -> Vec<Line> {
    run_file::<Dti>(FORMAT, NAME, bytes).checked_lines(Unclaimed::Refused)
}

fn history(people: &str, messages: &str) -> Vec<u8> {
    format!(r#"{{"details":{DETAILS},"identifiers":{people},"messages":{messages}}}"#).into_bytes()
}

fn message(second: usize, sender: &str, text: &str) -> String {
    let (minute, second) = (second / 60 % 60, second % 60);
    format!(r#"{{"sentAt":"2026-06-01T10:{minute:02}:{second:02}Z","sender":"{sender}","text":"{text}"}}"#)
}

broken_file_tests! { importer: Dti, format: FORMAT, files: files() }

#[test]
fn a_file_cut_anywhere_is_reported_and_gives_no_new_message() {
    files().cut_everywhere(|cut| {
        assert!(cut.new_messages().is_empty(), "{cut:?}");
        assert!(cut.lines.is_empty() || cut.has_all_messages() || cut.has_reports(), "{cut:?}");
    });
}

#[test]
fn a_hundred_thousand_unordered_equal_messages_are_read_in_time() {
    let begun = std::time::Instant::now();
    let list = json_list(100_000, |at| message(at * 7919 % 3600, "AI", "x"));
    let lines = read(&history(PEOPLE, &list));
    assert_eq!(messages(&lines).len(), 100_000);
    let roots = messages(&lines).iter().filter(|message| message.parent.is_none()).count();
    assert_eq!(roots, 1);
    assert!(begun.elapsed().as_secs() < 60);
}

#[test]
fn messages_and_senders_beyond_the_limits_are_reported() {
    let list = json_list(200_003, |at| message(at, "s999", "x"));
    let people = json_list(1_005, |at| format!(r#"{{"name":"n{at}","identifier":"s{at}"}}"#));
    let lines = read(&history(&people, &list));
    assert_eq!((messages(&lines).len(), skips_of(&lines, RecordKind::Message)), (200_000, 3));
    assert!(skips(&lines)[0].reason.contains("more than 200000"));
    assert!(warnings(&lines).iter().any(|warning| warning.message.starts_with("5 identifiers")));
}

#[test]
fn a_message_that_cannot_be_read_costs_only_itself() {
    let good = message(1, "AI", "x");
    let deep = r#"{"sentAt":"2026-06-01T10:00:00Z","sender":"AI","text":"y","odd":$deep}"#;
    let list = format!("[{good},{deep},{{\"text\":tru}},{}]", message(2, "mo@example.org", "z"));
    let lines = read(&nested_json(&String::from_utf8(history(PEOPLE, &list)).expect("it is text")));
    let texts: Vec<String> =
        messages(&lines).iter().map(|one| satchel_importer::testkit::text(one)).collect();
    assert_eq!(texts, ["x", "z"]);
    assert_eq!(skips_of(&lines, RecordKind::Message), 2);
    assert_eq!(messages(&lines)[1].parent.as_ref(), Some(&messages(&lines)[0].id), "links lead over them");
}

#[test]
fn lists_and_details_of_other_types_are_reported() {
    let list = format!("[{}]", message(1, "AI", "x"));
    for (people, reported) in [("7", true), ("null", false), ("[[]]", true), (r#""mo""#, true), ("{}", true)]
    {
        let lines = read(&history(people, &list));
        assert_eq!(messages(&lines).len(), 1, "{people}");
        assert_eq!(skips_of(&lines, RecordKind::File) > 0, reported, "{people}");
    }
    let lines = read(&history(PEOPLE, r#""none""#));
    assert!(conversations(&lines).is_empty() && skips_of(&lines, RecordKind::Message) > 0, "{lines:?}");
}

#[test]
fn a_second_list_of_messages_is_reported() {
    let one = message(1, "AI", "x");
    let file = format!(
        r#"{{"details":{DETAILS},"identifiers":{PEOPLE},"messages":[{one}],"messages":[{one},{one}]}}"#
    );
    let lines = read(file.as_bytes());
    assert_eq!(messages(&lines).len(), 1);
    assert!(warnings(&lines).iter().any(|warning| warning.message.contains("several members")), "{lines:?}");
}

#[test]
fn many_messages_of_many_senders_are_read_in_time() {
    let begun = std::time::Instant::now();
    let list = json_list(50_000, |at| message(at, &format!("s{}", at % 1000), &"@".repeat(1 + at % 200)));
    let people = json_list(1_000, |at| format!(r#"{{"name":"n{at}@","identifier":"s{at}"}}"#));
    let lines = read(&history(&people, &list));
    assert_eq!(messages(&lines).len(), 50_000);
    assert!(begun.elapsed().as_secs() < 30);
}

#[test]
fn a_sender_that_is_an_object_with_an_address_is_not_kept() {
    let odd = |sender: &str| format!(r#"[{{"sentAt":"2026-06-01T10:00:00Z","sender":{sender},"text":"x"}}]"#);
    for (sender, stored) in [(r#"{"email":"mo@example.org"}"#, false), (r#"{"n":7}"#, true)] {
        let lines = read(&history(PEOPLE, &odd(sender)));
        assert_eq!(messages(&lines)[0].raw_metadata.is_some(), stored, "{sender}");
        assert!(warnings(&lines).iter().any(|warning| warning.message.contains("no sender")), "{lines:?}");
    }
}
