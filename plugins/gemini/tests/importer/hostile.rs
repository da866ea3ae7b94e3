//! Broken input: however a file is cut or changed, the importer neither panics nor emits inconsistent records.

use proptest::prelude::*;
use satchel_importer::{
    Bundle, ErrorKind, Importer, Line, Sink, broken_file_tests,
    pam::record::RecordKind,
    testkit::{
        BrokenFiles, Unclaimed, cancelled_run, conversations, json_list, messages, nested_json, run_file,
        skips,
    },
};
use satchel_plugin_gemini::Gemini;

const FORMAT: &str = "gemini-importer/2025.06";

/// All pages and JSON files of the fixtures.
fn files() -> BrokenFiles {
    BrokenFiles::new(env!("CARGO_MANIFEST_DIR"), |file| file.bytes.len() > 10, read)
}

fn read(name: &str, bytes: &[u8]) -> Vec<Line> {
    run_file::<Gemini>(FORMAT, name, bytes).checked_lines(Unclaimed::Refused)
}

#[test]
fn a_cut_file_gives_the_complete_records_before_the_cut() {
    files().cut_at_random(|cut| {
        let one_record = cut.name.contains("Google AI Studio") || cut.name.contains("Workspace");
        if !one_record && !cut.name.contains("fr/") && !cut.name.contains("xx/") {
            assert!(cut.new_messages().is_empty(), "{cut:?}");
        }
        let reported = !skips(&cut.lines).is_empty() || cut.lines.is_empty();
        let settings = cut.name.ends_with("_data.html") || cut.name == "Gemas.html";
        let more = messages(&cut.lines).len() >= messages(cut.whole).len();
        // Only the end of the list or page is missing.
        let only_end = !String::from_utf8_lossy(cut.missing).contains(char::is_alphanumeric);
        assert!(reported || more || settings || only_end, "{cut:?}");
    });
}

broken_file_tests! { importer: Gemini, format: FORMAT, files: files() }

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tags_may_come_in_any_order(pieces in prop::collection::vec(prop::sample::select(vec![
        "<div class=\"outer-cell\">", "<div class=\"header-cell\">", "<div class=\"content-cell\">", "<div>", "</div>", "<p>", "</p>", "<br>", "Gemini Apps",
        "Prompted x", "Jul 4, 2026, 9:15:07 AM UTC", "<b>", "</b>", "<a href=\"a.png\">", "</a>", "<table>", "<tr>", "<td>", "</table>", "<ul>", "<li>",
        "</ul>", "<pre>", "</pre>", "<blockquote>", "</blockquote>", "<", "&#0;", "<!--", "-->", "<script>", "</script>", "\u{0}", "<img src=x>",
    ]), 0..60)) {
        let page = format!("<div class=\"outer-cell\"><div class=\"header-cell\">Gemini Apps</div>{}", pieces.concat());
        read("p.html", page.as_bytes());
    }
}

#[test]
fn a_hundred_thousand_rows_make_one_conversation() {
    let text = json_list(100_000, |number| {
        format!(
            r#"{{"header":"Gemini Apps","title":"Prompted {number}","time":"2026-01-01T00:00:00Z","details":[{{"url":"https://gemini.google.com/app/00aa11bb22cc33dd"}}]}}"#
        )
    });
    let lines = read("Gemini Apps/MyActivity.json", text.as_bytes());
    let found = conversations(&lines);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].messages.len(), 100_000);
}

#[test]
fn a_hundred_thousand_chunks_may_branch_from_the_last() {
    let chunks = json_list(100_000, |number| {
        format!(r#"{{"id":"c{number}","role":"user","text":"x","branchParent":{{"id":"c99999"}}}}"#)
    });
    let text = format!(r#"{{"chunkedPrompt":{{"chunks":{chunks}}}}}"#);
    let lines = read("prompt", text.as_bytes());
    assert_eq!(conversations(&lines)[0].messages.len(), 100_000);
}

#[test]
fn lists_that_are_too_long_are_refused() {
    let nulls = vec!["null"; 200_001].join(",");
    for text in [
        format!(r#"{{"chunkedPrompt":{{"chunks":[{nulls}]}}}}"#),
        format!(r#"{{"conversation_turns":[{nulls}]}}"#),
    ] {
        let lines = read("prompt", text.as_bytes());
        assert!(conversations(&lines).is_empty());
        assert_eq!(skips(&lines).len(), 1);
    }
}

#[test]
fn deep_nesting_affects_one_row_only() {
    let text = nested_json(
        r#"[{"header":"Gemini Apps","title":"Prompted a","time":"2026-01-01T00:00:00Z","odd":$deep},
        {"header":"Gemini Apps","title":"Prompted b","time":"2026-01-01T00:00:00Z","odd":1}]"#,
    );
    let lines = read("Gemini Apps/MyActivity.json", &text);
    assert!(matches!(&lines[0], Line::Skip(skip) if skip.kind == RecordKind::Message), "{lines:?}");
    assert_eq!(conversations(&lines)[0].messages.len(), 1);
}

#[test]
fn a_cancelled_run_stops_at_once() {
    let files = files();
    let page =
        files.files().iter().find(|file| file.name.contains("MyActivity.html")).expect("there is a page");
    for calls in 0..5 {
        let bundle = Bundle::from_files([(page.name.as_str(), page.bytes.clone())]);
        let mut sink = Sink::stopping_after(calls);
        if let Err(error) = Gemini::run(FORMAT, &bundle, &mut sink) {
            assert_eq!(error.kind, ErrorKind::Cancelled);
        }
    }
    cancelled_run::<Gemini>(FORMAT, &page.name, page.bytes.as_slice(), 0);
}

#[test]
fn unknown_formats_and_foreign_files_are_refused() {
    let run = |format| run_file::<Gemini>(format, "conversations.json", "[]").error.map(|error| error.kind);
    assert_eq!(run("gemini-importer/1999.01"), Some(ErrorKind::UnsupportedVersion));
    assert_eq!(run(FORMAT), Some(ErrorKind::NotThisFormat));
}
