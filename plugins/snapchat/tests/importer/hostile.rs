//! Broken and hostile input: the importer neither panics nor emits inconsistent records.

use satchel_importer::{
    Bundle, Line, broken_file_tests,
    pam::{conversation::Role, record::RecordKind},
    testkit::{
        BrokenFiles, FixtureFile, Unclaimed, conversations, evidence, json_list, messages, nested_json,
        produce, run_file, skips, skips_of, text, warnings,
    },
};
use satchel_plugin_snapchat::Snapchat;

const NAME: &str = "json/snapchat_ai.json";
const FORMAT: &str = "snapchat-importer/2024.07";

/// The files of all fixtures that have a conversation.
fn files() -> BrokenFiles {
    let chosen = |file: &FixtureFile| !conversations(&read(&file.bytes)).is_empty();
    BrokenFiles::new(env!("CARGO_MANIFEST_DIR"), chosen, |_, bytes| read(bytes))
}

fn read(bytes: &[u8]) -> Vec<Line> {
    run_file::<Snapchat>(FORMAT, NAME, bytes).checked_lines(Unclaimed::Refused)
}

fn entry(second: usize, words: &str) -> String {
    let (hour, minute, second) = (second / 3600 % 24, second / 60 % 60, second % 60);
    format!(
        r#"{{"Timestamp":"2025-03-09 {hour:02}:{minute:02}:{second:02} UTC","Type":"CHAT","Content":"{words}"}}"#
    )
}

fn list(entries: &str) -> Vec<u8> {
    format!(r#"{{"My AI Content":{entries},"My AI Memory":[]}}"#).into_bytes()
}

broken_file_tests! { importer: Snapchat, format: FORMAT, files: files() }

#[test]
fn a_file_cut_anywhere_is_reported_and_gives_no_new_message() {
    files().cut_everywhere(|cut| {
        assert!(cut.new_messages().is_empty(), "{cut:?}");
        assert!(cut.lines.is_empty() || cut.has_all_messages() || cut.has_reports(), "{cut:?}");
    });
}

#[test]
fn a_hundred_thousand_unordered_equal_entries_are_read_in_time() {
    let begun = std::time::Instant::now();
    let entries = json_list(100_000, |at| entry(at * 7919 % 7200, "x"));
    let lines = read(&list(&entries));
    assert_eq!(messages(&lines).len(), 100_000);
    assert_eq!(messages(&lines).iter().filter(|message| message.parent.is_none()).count(), 1);
    assert!(begun.elapsed().as_secs() < 60);
}

#[test]
fn entries_and_memories_beyond_the_limits_are_reported() {
    let lines = read(&list(&json_list(200_002, |at| entry(at, "x"))));
    assert_eq!((messages(&lines).len(), skips_of(&lines, RecordKind::Message)), (200_000, 2));
    let memory = format!(r#"{{"My AI Memory":[{{"Memory":"{}"}}]}}"#, r"User knows a word.\n".repeat(10_004));
    let lines = read(memory.as_bytes());
    assert_eq!((evidence(&lines).len(), skips_of(&lines, RecordKind::Memory)), (1, 1));
    assert!(skips(&lines)[0].reason.starts_with("4 memories"), "{:?}", skips(&lines));
}

#[test]
fn an_entry_that_cannot_be_read_costs_only_itself() {
    let deep = r#"{"Timestamp":"2025-03-09 10:00:00 UTC","Type":"CHAT","Content":"y","odd":$deep}"#;
    let entries = format!("[{},{deep},{{\"Content\":tru}},{}]", entry(9, "z"), entry(1, "x"));
    let lines = read(&nested_json(&String::from_utf8(list(&entries)).expect("it is text")));
    let texts: Vec<String> = messages(&lines).iter().map(|message| text(message)).collect();
    assert_eq!((texts.concat().len(), skips_of(&lines, RecordKind::Message)), (2, 2));
    assert!(skips(&lines)[0].locator.starts_with("json/snapchat_ai.json.My AI Content["));
}

#[test]
fn content_that_is_no_list_is_reported_beside_a_memory() {
    let memory = r#""My AI Memory":[{"Timestamp":"2025-03-09 10:00:00 UTC","Memory":"User has a dog."}]"#;
    for odd in [r#"{"1":{"Content":"x"}}"#, r#""x""#, "7"] {
        let lines = read(format!(r#"{{"My AI Content":{odd},{memory}}}"#).as_bytes());
        assert_eq!((evidence(&lines).len(), skips(&lines).len()), (1, 1), "{odd}");
        assert!(skips(&lines)[0].locator.starts_with("json/snapchat_ai.json.My AI Content"));
    }
    for absent in ["null", "[]"] {
        let lines = read(format!(r#"{{"My AI Content":{absent},{memory}}}"#).as_bytes());
        assert_eq!((evidence(&lines).len(), skips(&lines).len()), (1, 0), "{absent}");
    }
}

#[test]
fn entries_of_types_that_are_not_known_are_not_the_persons() {
    for other in [r#""Type":"MESSAGE","#, ""] {
        let entries = format!("[{},{}]", entry(3, "b"), entry(1, "a")).replace(r#""Type":"CHAT","#, other);
        let lines = read(&list(&entries));
        let found = messages(&lines);
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|message| message.role == Role::Assistant), "{other}");
    }
}

#[test]
fn photos_that_are_missing_are_reported() {
    let photo =
        r#"{"Timestamp":"2025-03-09 10:00:00 UTC","Type":"SNAP","Content":"snap_1741521601044.jpeg"}"#;
    let lines = read(&list(&format!("[{photo}]")));
    let expected = r#"files that entries name are not in the export: 1, such as "snap_1741521601044.jpeg""#;
    assert!(warnings(&lines).iter().any(|warning| warning.message == expected), "{lines:?}");
}

#[test]
fn names_of_people_are_in_no_report() {
    let chats = r#"{"ola.strand":[{"From":"ola.strand","Media Type":"TEXT","Created":"2025-03-09 10:00:00 UTC","Content":"Hi"}],"mari":7,"zoe":[{"Fr"#;
    let mine = String::from_utf8(list(&format!("[{}]", entry(1, "x")))).expect("it is text");
    let bundle = Bundle::from_files([(NAME, mine), ("json/chat_history.json", chats.to_owned())]);
    let produced = produce::<Snapchat>(&bundle).expect("detection answers");
    let lines: Vec<Line> = produced.exports.into_iter().flat_map(|export| export.lines).collect();
    let all = format!("{lines:?}");
    assert!(["ola", "mari", "zoe"].iter().all(|name| !all.contains(name)), "{all}");
    assert!(
        warnings(&lines).iter().any(|warning| warning.message.starts_with("2 conversations left out")),
        "{all}"
    );
}

#[test]
fn a_page_cut_anywhere_is_reported() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/a-page/input/mydata~2/html/snapchat_ai.html");
    let page = std::fs::read(folder).expect("the fixture can be read");
    let read = |bytes: &[u8]| {
        run_file::<Snapchat>(FORMAT, "html/snapchat_ai.html", bytes).checked_lines(Unclaimed::Refused)
    };
    let whole = messages(&read(&page)).len();
    for cut in 0..page.len() {
        let lines = read(&page[..cut]);
        let lost = !lines.is_empty() && messages(&lines).len() < whole;
        assert!(!lost || !skips(&lines).is_empty(), "cut at {cut}: {lines:?}");
    }
}

#[test]
fn pages_of_any_shape_are_read_in_time() {
    let begun = std::time::Instant::now();
    let page = |body: &str| {
        format!("<h1>My AI</h1><h3>My AI Content</h3><table><tr><th>Content</th></tr>{body}</table>")
    };
    for piece in
        ["<tr><td>&", "<tr", "<td", "</td>", "&", "<h3>", "</h3>", "<table", "<tr><td>a</td></tr>", "<"]
    {
        let lines = run_file::<Snapchat>(FORMAT, "a.html", page(&piece.repeat(200_000)));
        let _checked = lines.checked_lines(Unclaimed::Refused);
    }
    assert!(begun.elapsed().as_secs() < 120);
}
