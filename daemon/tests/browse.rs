//! `satchel browse` in a pseudo-terminal, as a person uses it.

#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod home;
mod screen;

use std::{fs, os::unix::fs::PermissionsExt as _, process::Child};

use home::{TestHome, code, stderr, stop};
use rustix::process::{Signal, kill_process};
use screen::{
    CONTROL_C, CONTROL_E, CONTROL_F, CONTROL_T, CONTROL_U, CONTROL_Y, DOWN, ENTER, ESCAPE, RIGHT, Screen, TAB,
};
use serde_json::{Value, json};

/// A screen for the list or a record.
const NARROW: (u16, u16) = (80, 24);
/// A screen for both.
const WIDE: (u16, u16) = (140, 30);

/// What a hostile message tries: to clear the screen, set the title, and write to the clipboard.
const HOSTILE: &str = "hostile \u{1b}[2J\u{1b}]0;owned\u{7}\u{1b}]52;c;b3duZWQ=\u{7}\u{9b}31m\u{202e}text";

fn node(id: &str, parent: Option<&str>, children: &[&str], role: &str, text: &str) -> Value {
    json!({"id": id, "parent": parent, "children": children, "message": {
        "id": id, "author": {"role": role}, "create_time": 1_746_180_000, "recipient": "all", "metadata": {},
        "content": {"content_type": "text", "parts": [text]}}})
}

/// Conversations: one that forks, one whose hit is far down, and a hostile one; and a memory.
fn home() -> (TestHome, Child) {
    let home = TestHome::new();
    let mut long = serde_json::Map::new();
    for number in 0..60 {
        let (id, next) = (format!("n{number}"), format!("n{}", number + 1));
        let parent = (number > 0).then(|| format!("n{}", number - 1));
        let children: Vec<&str> = if number < 59 { vec![&next] } else { Vec::new() };
        let text =
            if number == 40 { "The hornets ate the flies.".to_owned() } else { format!("Line {number}") };
        long.insert(id.clone(), node(&id, parent.as_deref(), &children, "user", &text));
    }
    let chats = json!([
        {"title": "Winter bees", "create_time": 1_746_180_000, "conversation_id": "winter", "current_node": "c",
            "mapping": {
                "a": node("a", None, &["b", "c"], "user", "Do bees sleep in the winter?"),
                "b": node("b", Some("a"), &[], "assistant", "No: they form a cluster."),
                "c": node("c", Some("a"), &[], "assistant", "They keep each other warm."),
            }},
        {"title": "A long talk", "create_time": 1_746_180_100, "conversation_id": "long", "current_node": "n59",
            "mapping": long},
        {"title": HOSTILE, "create_time": 1_746_180_200, "conversation_id": "hostile", "current_node": "h",
            "mapping": {"h": node("h", None, &[], "user", HOSTILE)}},
    ]);
    home.file("chat/conversations.json", chats.to_string());
    let daemon = home.serve();
    for words in [
        &["import", home.path().join("chat").to_str().unwrap()][..],
        &["memories", "add", "Keeps twelve hives of bees", "--type", "fact"],
    ] {
        let output = home.run(words);
        assert_eq!(code(&output), Some(0), "{words:?}: {}", stderr(&output));
    }
    (home, daemon)
}

#[test]
fn a_query_is_typed_and_a_hit_is_read_where_it_was_found() {
    let (home, daemon) = home();
    let mut screen = Screen::start(&home, &["browse"], NARROW, &[]);
    screen.wait_for(&["newest conversations", "Winter bees", "A long talk"]);
    screen.send("hornets");
    let shown = screen.wait_for_without("The hornets ate the flies.", "Winter bees");
    assert!(shown.contains("> hornets") && shown.contains("1 match"), "{shown}");
    screen.send(ENTER);
    // The record is scrolled to the hit, far below its beginning.
    let shown = screen.wait_for(&["▼", "The hornets ate the flies.", "match 1 of 1"]);
    assert!(!shown.contains("Line 1\n"), "{shown}");
    screen.send("g");
    screen.wait_for(&["A long talk", "60 messages"]);
    screen.send("n");
    screen.wait_for(&["The hornets ate the flies."]);
    screen.send("/line 59");
    screen.send(ENTER);
    screen.wait_for(&["Line 59", "100 %"]);
    screen.send("q");
    screen.wait_for(&["> hornets", "1 match"]);
    screen.quit();
    stop(daemon);
}

#[test]
fn another_branch_is_shown_and_exported() {
    let (home, daemon) = home();
    let mut screen = Screen::start(&home, &["browse", "warm"], NARROW, &[]);
    screen.wait_for(&["Winter bees", "1 match"]);
    screen.send(ENTER);
    screen.wait_for(&["⑂ branch ", " of 2", "← → switch", "They keep each other warm."]);
    screen.send(RIGHT);
    screen.wait_for_without("No: they form a cluster.", "▼");
    screen.send("e");
    screen.wait_for(&["to: winter-bees.md"]);
    screen.send(ENTER);
    screen.wait_for(&["1 record written to"]);
    let file = home.path().join("winter-bees.md");
    let written = fs::read_to_string(&file).unwrap();
    assert!(
        written.starts_with("# Winter bees\n") && written.contains("> No: they form a cluster.\n"),
        "{written}"
    );
    assert!(!written.contains("warm"), "{written}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    screen.quit();
    stop(daemon);
}

#[test]
fn marked_hits_are_exported_to_a_new_file_only() {
    let (home, daemon) = home();
    let taken = home.file("taken.md", "mine");
    let mut screen = Screen::start(&home, &["browse", "bees"], NARROW, &[]);
    screen.wait_for(&["Winter bees", "Memory (fact)"]);
    screen.send(TAB);
    screen.send(TAB);
    screen.wait_for(&["2 marked"]);
    screen.send(CONTROL_E);
    screen.wait_for(&["write 2 records as Markdown to: satchel.md"]);
    screen.send(CONTROL_U);
    screen.send("taken.md\r");
    screen.wait_for(&["exists already; choose another name", "to: taken.md"]);
    assert_eq!(fs::read_to_string(&taken).unwrap(), "mine");
    screen.send(CONTROL_U);
    screen.send("new.md\r");
    screen.wait_for_without("2 records written to", "2 marked");
    let written = fs::read_to_string(home.path().join("new.md")).unwrap();
    assert!(
        written.contains("# Winter bees\n") && written.contains("# Memory: fact · active\n"),
        "{written}"
    );
    assert!(written.contains("> Keeps twelve hives of bees\n"), "{written}");
    screen.send(CONTROL_E);
    screen.wait_for(&["to: "]);
    screen.send(CONTROL_U);
    screen.send(".local/share/satchel/inside.md\r");
    screen.wait_for(&["data directory"]);
    screen.send(ESCAPE);
    screen.wait_for(&["Enter open"]);
    screen.quit();
    stop(daemon);
}

#[test]
fn filters_narrow_what_is_found() {
    let (home, daemon) = home();
    let mut screen = Screen::start(&home, &["browse", "bees"], NARROW, &[]);
    screen.wait_for(&["Winter bees", "Memory (fact)", "^T everything"]);
    screen.send(CONTROL_T);
    screen.wait_for_without("^T memories", "Winter bees");
    screen.send(CONTROL_T);
    screen.wait_for_without("^T messages", "Memory (fact)");
    screen.send(CONTROL_F);
    // In the status line, and in the list of platforms once it has been counted.
    screen.wait_until("the platforms", |shown| shown.matches("all platforms").count() == 2);
    screen.send(DOWN);
    screen.send(ENTER);
    screen.wait_for(&["^F chatgpt", "Winter bees"]);
    // The newest memories, of all platforms.
    screen.send(CONTROL_F);
    screen.wait_for(&["Platform", "all platforms"]);
    screen.send("k\r");
    screen.wait_for(&["^F all platforms"]);
    screen.send(CONTROL_U);
    for filter in ["^T titles", "^T everything", "^T memories"] {
        screen.send(CONTROL_T);
        screen.wait_for(&[filter]);
    }
    screen.wait_for(&["newest memories", "Keeps twelve hives"]);
    screen.send(ENTER);
    screen.wait_for(&["status", "active", "hash", "sha256:"]);
    screen.quit();
    stop(daemon);
}

#[test]
fn a_wrong_query_keeps_the_hits_and_a_typo_is_corrected() {
    let (home, daemon) = home();
    let mut screen = Screen::start(&home, &["browse", "hornets"], NARROW, &[]);
    screen.wait_for(&["A long talk"]);
    screen.send(" role:boss");
    let shown = screen.wait_for(&["^^^^", "A long talk"]);
    let rows: Vec<&str> = shown.lines().collect();
    assert_eq!(rows[0].find("boss"), rows[1].find("^^^^"), "{shown}");
    screen.send(CONTROL_U);
    screen.send("hornats");
    screen.wait_for(&["did you mean: hornets"]);
    screen.send(CONTROL_Y);
    screen.wait_for(&["> hornets", "The hornets ate the flies."]);
    screen.quit();
    stop(daemon);
}

#[test]
fn the_screen_follows_the_size_of_the_terminal() {
    let (home, daemon) = home();
    let mut screen = Screen::start(&home, &["browse", "hornets"], WIDE, &[]);
    // The record is beside the list.
    screen.wait_for(&["A long talk", "│", "▼", "Line 41"]);
    screen.resize(NARROW);
    screen.wait_for_without("A long talk", "Line 41");
    screen.resize((10, 3));
    // The terminal reads no key that arrives together with its new size, so what it draws is waited for.
    screen.wait_for(&["> hornets", "A long", "Enter ope"]);
    screen.send(ENTER);
    screen.wait_for(&[" % · q"]);
    for key in ["j", "G", "?", "q"] {
        screen.send(key);
    }
    screen.send("q");
    screen.wait_until("a tiny list", |shown| shown.starts_with("> hornets"));
    screen.resize(WIDE);
    // The end of the record, where the reader was.
    screen.wait_for(&["A long talk", "│", "Line 59"]);
    screen.quit();
    stop(daemon);
}

#[test]
fn hostile_text_cannot_control_the_terminal() {
    let (home, daemon) = home();
    let mut screen = Screen::start(&home, &["browse", "hostile"], WIDE, &[]);
    screen.wait_for(&["u{1b}[2J", "▼"]);
    screen.send(ENTER);
    screen.wait_for(&["q back", "u{1b}[2J"]);
    let ended = screen.quit();
    let text = ended.text();
    for harm in ["\u{1b}]", "\u{9b}", "\u{202e}", "\u{7}"] {
        assert!(!text.contains(harm), "{harm:?} in {text:?}");
    }
    stop(daemon);
}

#[test]
fn the_terminal_is_restored_when_the_program_is_told_to_end() {
    let (home, daemon) = home();
    let screen = Screen::start(&home, &["browse"], NARROW, &[]);
    screen.wait_for(&["Winter bees"]);
    kill_process(screen.pid(), Signal::TERM).unwrap();
    let ended = screen.end();
    assert_eq!(ended.status.exit_code(), 130, "{ended:?}");
    assert!(ended.restored(), "{ended:?}");
    // Escape and q leave the program too.
    let mut screen = Screen::start(&home, &["browse"], NARROW, &[]);
    screen.wait_for(&["Winter bees"]);
    screen.send(ESCAPE);
    screen.wait_for(&["q quit"]);
    screen.send("q");
    let ended = screen.end();
    assert!(ended.status.success() && ended.restored(), "{ended:?}");
    stop(daemon);
}

#[test]
fn colours_are_used_unless_they_are_not_wanted() {
    let (home, daemon) = home();
    let colors = |environment: &[(&str, &str)]| {
        let mut screen = Screen::start(&home, &["browse", "hornets"], NARROW, environment);
        screen.wait_for(&["The hornets ate"]);
        screen.send(CONTROL_C);
        let text = screen.end().text();
        // As the library writes the colours of text and background.
        ["38;5;", "48;5;"].iter().any(|code| text.contains(code))
    };
    assert!(colors(&[]));
    assert!(!colors(&[("NO_COLOR", "1")]));
    stop(daemon);
}

#[test]
fn without_a_terminal_there_is_a_usage_error() {
    let home = TestHome::new();
    let output = home.run(&["browse", "bees"]);
    assert_eq!(code(&output), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("needs a terminal") && stderr(&output).contains("satchel search"));
    let ended = Screen::start(&home, &["browse", "--json"], NARROW, &[]).end();
    assert_eq!(ended.status.exit_code(), 2, "{ended:?}");
    assert!(ended.text().contains("satchel search --json"), "{ended:?}");
}
