//! Broken input: whatever is cut or changed, the importer neither panics nor gives records that make no sense.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::Path,
    sync::OnceLock,
};

use proptest::prelude::*;
use satchel_importer::{
    Bundle, ErrorKind, Importer, Line, Sink,
    pam::record::{ConversationRecord, RecordKind},
};
use satchel_plugin_gemini::Gemini;

const FORMAT: &str = "gemini-importer/2025.06";

/// A file of a fixture: its name in the export, and its bytes.
type Sample = (String, Vec<u8>);

/// Every page and JSON file of all fixtures.
fn corpus() -> &'static [Sample] {
    static CORPUS: OnceLock<Vec<Sample>> = OnceLock::new();
    CORPUS.get_or_init(|| {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
        let bundle = Bundle::from_folder(&fixtures).expect("the fixtures can be listed");
        let sample = |path: &str| {
            let (_, inside) = path.split_once("/input/")?;
            let bytes = fs::read(fixtures.join(path)).expect("a fixture can be read");
            (bytes.len() > 10).then(|| (inside.to_owned(), bytes))
        };
        bundle.entries().iter().filter_map(|entry| sample(&entry.path)).collect()
    })
}

/// All that the importer says of one file, whatever it is.
fn read(name: &str, bytes: &[u8]) -> Vec<Line> {
    let bundle = Bundle::from_files([(name, bytes.to_vec())]);
    let found = Gemini::detect(&bundle).expect("detection answers");
    let mut sink = Sink::collecting();
    match Gemini::run(FORMAT, &bundle, &mut sink) {
        Ok(_) => assert_eq!(found.len(), 1, "what is read was claimed"),
        Err(error) => {
            assert_eq!(
                (error.kind, found.len()),
                (ErrorKind::NotThisFormat, 0),
                "what is not claimed is refused"
            );
        }
    }
    sink.into_lines()
}

fn conversation(line: &Line) -> Option<&ConversationRecord> {
    match line {
        Line::Conversation(record) => Some(record),
        _ => None,
    }
}

fn conversations(lines: &[Line]) -> Vec<&ConversationRecord> {
    lines.iter().filter_map(conversation).collect()
}

/// Ids are unique, and parents never lead in a circle.
fn check_tree(record: &ConversationRecord) {
    let parents: BTreeMap<&str, Option<&str>> =
        record.messages.iter().map(|message| (message.id.as_str(), message.parent.as_deref())).collect();
    assert_eq!(parents.len(), record.messages.len(), "message ids are unique");
    let mut sound: BTreeSet<&str> = BTreeSet::new();
    for start in parents.keys() {
        let (mut at, mut path) = (*start, Vec::new());
        while !sound.contains(at) {
            assert!(path.len() <= parents.len(), "the parents of {start:?} lead in a circle");
            path.push(at);
            match parents.get(at).copied().flatten() {
                Some(above) => at = above,
                None => break,
            }
        }
        sound.extend(path);
    }
}

/// Which rows came out, by the keys of their messages.
fn said(lines: &[Line]) -> Vec<(String, String)> {
    let messages = conversations(lines).into_iter().flat_map(|record| &record.messages);
    messages
        .map(|message| (message.id.clone(), serde_json::to_string(&message.content).expect("it is JSON")))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_cut_file_gives_what_stood_whole_before_the_cut(file in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>()) {
        let (name, bytes) = &corpus()[file.index(corpus().len())];
        let cut = cut.index(bytes.len());
        let (whole, lines) = (read(name, bytes), read(name, &bytes[..cut]));
        let (whole, given) = (said(&whole), said(&lines));
        let one = name.contains("Google AI Studio") || name.contains("Workspace");
        if !one && !name.contains("fr/") && !name.contains("xx/") {
            for row in &given {
                prop_assert!(whole.contains(row), "{name}: {row:?} stands in the whole file too");
            }
        }
        let told = lines.iter().any(|line| matches!(line, Line::Skip(_)));
        let settings = name.ends_with("_data.html") || name == "Gemas.html";
        prop_assert!(told || lines.is_empty() || given.len() >= whole.len() || settings || trailing_only(bytes, cut), "{name} cut at {cut}: a loss is told");
    }

    #[test]
    fn changed_bytes_never_panic(file in any::<prop::sample::Index>(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let (name, bytes) = &corpus()[file.index(corpus().len())];
        let mut bytes = bytes.clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        for record in conversations(&read(name, &bytes)) {
            check_tree(record);
        }
    }

    #[test]
    fn values_of_any_type_stand_where_others_are_expected(file in any::<prop::sample::Index>(), place in any::<prop::sample::Index>(), value in prop::sample::select(vec!["null", "0", "-1.5e3", "\"\"", "\"\\ud800\"", "[]", "[null]", "{}", "{\"a\":[1]}", "[[{}]]", "true"])) {
        let lists: Vec<&Sample> = corpus().iter().filter(|(_, bytes)| bytes.windows(3).any(|window| window == b"\": ")).collect();
        let (name, bytes) = lists[file.index(lists.len())];
        let text = String::from_utf8_lossy(bytes);
        let colons: Vec<usize> = text.match_indices("\": ").map(|(at, _)| at + 3).collect();
        let start = colons[place.index(colons.len())];
        let rest = &text[start..];
        // What is behind may be a whole object: only values that end on their line are replaced.
        let Some(end) = rest.find('\n') else { return Ok(()) };
        let comma = if rest[..end].ends_with(',') { "," } else { "" };
        let changed = format!("{}{value}{comma}{}", &text[..start], &rest[end..]);
        for record in conversations(&read(name, changed.as_bytes())) {
            check_tree(record);
        }
    }

    #[test]
    fn tags_may_come_in_any_order(pieces in prop::collection::vec(prop::sample::select(vec![
        "<div class=\"outer-cell\">", "<div class=\"header-cell\">", "<div class=\"content-cell\">", "<div>", "</div>", "<p>", "</p>", "<br>", "Gemini Apps",
        "Prompted x", "Jul 4, 2026, 9:15:07 AM UTC", "<b>", "</b>", "<a href=\"a.png\">", "</a>", "<table>", "<tr>", "<td>", "</table>", "<ul>", "<li>",
        "</ul>", "<pre>", "</pre>", "<blockquote>", "</blockquote>", "<", "&#0;", "<!--", "-->", "<script>", "</script>", "\u{0}", "<img src=x>",
    ]), 0..60)) {
        let page = format!("<div class=\"outer-cell\"><div class=\"header-cell\">Gemini Apps</div>{}", pieces.concat());
        for record in conversations(&read("p.html", page.as_bytes())) {
            check_tree(record);
        }
    }
}

/// Whether the cut takes nothing but the end of the list or of the page.
fn trailing_only(bytes: &[u8], cut: usize) -> bool {
    let rest = String::from_utf8_lossy(&bytes[cut..]);
    !rest.contains(|c: char| c.is_alphanumeric())
}

#[test]
fn a_hundred_thousand_rows_make_one_conversation() {
    let mut text = String::from("[");
    for number in 0..100_000 {
        let comma = if number == 0 { "" } else { "," };
        write!(
            text,
            r#"{comma}{{"header":"Gemini Apps","title":"Prompted {number}","time":"2026-01-01T00:00:00Z","details":[{{"url":"https://gemini.google.com/app/00aa11bb22cc33dd"}}]}}"#
        )
        .expect("strings take all");
    }
    text.push(']');
    let lines = read("Gemini Apps/MyActivity.json", text.as_bytes());
    let found = conversations(&lines);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].messages.len(), 100_000);
    check_tree(found[0]);
}

#[test]
fn a_hundred_thousand_chunks_branch_off_the_last() {
    let chunks: Vec<String> = (0..100_000)
        .map(|number| {
            format!(r#"{{"id":"c{number}","role":"user","text":"x","branchParent":{{"id":"c99999"}}}}"#)
        })
        .collect();
    let text = format!(r#"{{"chunkedPrompt":{{"chunks":[{}]}}}}"#, chunks.join(","));
    let lines = read("prompt", text.as_bytes());
    assert_eq!(conversations(&lines)[0].messages.len(), 100_000);
    check_tree(conversations(&lines)[0]);
}

#[test]
fn lists_too_long_to_be_real_are_refused() {
    let nulls = vec!["null"; 200_001].join(",");
    for text in [
        format!(r#"{{"chunkedPrompt":{{"chunks":[{nulls}]}}}}"#),
        format!(r#"{{"conversation_turns":[{nulls}]}}"#),
    ] {
        let lines = read("prompt", text.as_bytes());
        assert!(conversations(&lines).is_empty());
        assert_eq!(lines.iter().filter(|line| matches!(line, Line::Skip(_))).count(), 1);
    }
}

#[test]
fn deep_nesting_spoils_one_row_only() {
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let row = |title: &str, odd: &str| {
        format!(
            r#"{{"header":"Gemini Apps","title":"Prompted {title}","time":"2026-01-01T00:00:00Z","odd":{odd}}}"#
        )
    };
    let lines =
        read("Gemini Apps/MyActivity.json", format!("[{},{}]", row("a", &deep), row("b", "1")).as_bytes());
    assert!(matches!(&lines[0], Line::Skip(skip) if skip.kind == RecordKind::Message), "{lines:?}");
    assert_eq!(conversations(&lines)[0].messages.len(), 1);
}

#[test]
fn an_order_to_stop_is_obeyed_at_once() {
    let (name, bytes) =
        corpus().iter().find(|(name, _)| name.contains("MyActivity.html")).expect("there is a page");
    for calls in 0..5 {
        let bundle = Bundle::from_files([(name.as_str(), bytes.clone())]);
        let mut sink = Sink::stopping_after(calls);
        if let Err(error) = Gemini::run(FORMAT, &bundle, &mut sink) {
            assert_eq!(error.kind, ErrorKind::Cancelled);
        }
    }
    let bundle = Bundle::from_files([(name.as_str(), bytes.clone())]);
    let error = Gemini::run(FORMAT, &bundle, &mut Sink::stopping_after(0)).expect_err("it is stopped");
    assert_eq!(error.kind, ErrorKind::Cancelled);
}

#[test]
fn unknown_formats_and_foreign_files_are_refused() {
    let bundle = Bundle::from_files([("conversations.json", b"[]".to_vec())]);
    let run = |format| Gemini::run(format, &bundle, &mut Sink::collecting()).map_err(|error| error.kind);
    assert_eq!(run("gemini-importer/1999.01"), Err(ErrorKind::UnsupportedVersion));
    assert_eq!(run(FORMAT), Err(ErrorKind::NotThisFormat));
}
