//! Tests what a new user of the program encounters: typos, empty lists, unknown times, a pager.

#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod home;

use std::{
    fs,
    path::Path,
    process::{Output, Stdio},
};

use home::{TestHome, code, stderr, stop};
use serde_json::Value;

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn ok(output: &Output) -> String {
    assert_eq!(code(output), Some(0), "{}{}", stdout(output), stderr(output));
    stdout(output)
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&ok(output)).unwrap()
}

fn sample() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/chatgpt-export").to_str().unwrap().to_owned()
}

/// Returns a ChatGPT export with one conversation without a time, and one with a time.
fn untimed(home: &TestHome) -> String {
    let conversation = |title: &str, time: &str| {
        format!(
            r#"{{"title": "{title}", "create_time": {time}, "conversation_id": "{title}", "current_node": "{title}-a",
            "mapping": {{
              "{title}-q": {{"id": "{title}-q", "parent": null, "children": ["{title}-a"], "message": {{"id": "{title}-q",
                "author": {{"role": "user"}}, "create_time": {time},
                "content": {{"content_type": "text", "parts": ["How many hives?"]}}, "metadata": {{}}, "recipient": "all"}}}},
              "{title}-a": {{"id": "{title}-a", "parent": "{title}-q", "children": [], "message": {{"id": "{title}-a",
                "author": {{"role": "assistant"}}, "create_time": {time},
                "content": {{"content_type": "text", "parts": ["Twelve."]}}, "metadata": {{}}, "recipient": "all"}}}}
            }}}}"#
        )
    };
    let both = [conversation("nowhen", "null"), conversation("dated", "1746180000")];
    home.file("untimed/conversations.json", format!("[{}]", both.join(",")));
    home.path().join("untimed").to_str().unwrap().to_owned()
}

/// A ChatGPT export that writes a memory and has no times.
const REMEMBERED: &str = r#"[{"title": "Hives", "conversation_id": "c", "current_node": "r", "mapping": {
  "q": {"id": "q", "parent": null, "children": ["b"], "message": {"id": "q", "author": {"role": "user"},
    "create_time": null, "content": {"content_type": "text", "parts": ["Remember that I keep bees."]},
    "metadata": {}, "recipient": "all"}},
  "b": {"id": "b", "parent": "q", "children": ["r"], "message": {"id": "b", "author": {"role": "assistant"},
    "create_time": null, "content": {"content_type": "text", "parts": ["Keeps bees."]},
    "metadata": {}, "recipient": "bio"}},
  "r": {"id": "r", "parent": "b", "children": [], "message": {"id": "r", "author": {"role": "tool", "name": "bio"},
    "create_time": null, "content": {"content_type": "text", "parts": ["Model set context updated."]},
    "metadata": {}, "recipient": "assistant"}}
}}]"#;

/// Runs the program on a terminal of its own, with these variables.
fn at_terminal(home: &TestHome, words: &[&str], variables: &[(&str, &str)]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let line = format!("'{}' {}", env!("CARGO_BIN_EXE_satchel"), quoted.join(" "));
    let mut script = std::process::Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).env_clear().env("HOME", home.path()).stdin(Stdio::null());
    script.env("PATH", "/usr/bin:/bin").envs(variables.iter().copied());
    String::from_utf8_lossy(&script.output().unwrap().stdout).into_owned()
}

#[test]
fn a_mistyped_data_directory_is_reported_and_not_created() {
    let home = TestHome::new();
    let dir = home.path().join("mistyped");
    let at = dir.to_str().unwrap();
    let store = home.path().join("other").to_str().unwrap().to_owned();
    for words in [
        &["status"][..],
        &["memories", "list"],
        &["memories", "show", "9c41"],
        &["conversations", "list"],
        &["conversations", "purge", "51d0", "--dry-run"],
        &["imports", "list"],
        &["exports", "list"],
        &["relations", "list"],
        &["sources", "list"],
        &["sources", "add", "/tmp"],
        &["plugins", "list"],
        &["keys", "list"],
        &["keys", "status"],
        &["doctor"],
        &["rebuild"],
        &["export", "--output", &store],
        &["backup", &store],
    ] {
        let output = home.run(&[&["--data-dir", at], words].concat());
        let printed = stderr(&output);
        assert_eq!((code(&output), output.stdout.len()), (Some(4), 0), "{words:?}: {printed}");
        assert!(printed.contains(&format!("no data directory at {at:?}")), "{words:?}: {printed}");
        assert!(
            printed.contains("--data-dir") && printed.contains("satchel import PATH"),
            "{words:?}: {printed}"
        );
        assert!(!dir.exists(), "{words:?} made one");
    }
    // A folder with other content is not a data directory, and does not become one.
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("holiday.jpg"), "sun").unwrap();
    for words in [&["status"][..], &["memories", "add", "Keeps bees"]] {
        let output = home.run(&[&["--data-dir", at], words].concat());
        assert_eq!(code(&output), Some(4), "{words:?}");
        assert!(stderr(&output).contains("holds \"holiday.jpg\""), "{words:?}: {}", stderr(&output));
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
    }
    fs::remove_file(dir.join("holiday.jpg")).unwrap();
    ok(&home.run(&["--data-dir", at, "memories", "add", "Keeps bees"]));
    ok(&home.run(&["--data-dir", at, "status"]));
}

#[test]
fn an_error_is_json_with_its_reason_if_json_was_requested() {
    let home = TestHome::new();
    let reason = |output: &Output| {
        let document: Value = serde_json::from_str(&stderr(output)).unwrap();
        let field = |name: &str| document["error"][name].clone();
        assert_eq!(field("exit_code").as_i64(), code(output).map(i64::from), "{document}");
        assert!(output.stdout.is_empty() && !field("message").as_str().unwrap().is_empty());
        field("reason").as_str().unwrap().to_owned()
    };
    assert_eq!(reason(&home.run(&["status", "--json"])), "DATA_DIR_MISSING");
    ok(&home.run(&["memories", "add", "Keeps bees"]));
    assert_eq!(reason(&home.run(&["memories", "show", "ffff", "--json"])), "MEMORY_NOT_FOUND");
    assert_eq!(reason(&home.run(&["memories", "list", "--since", "soon", "--json"])), "USAGE");
    assert_eq!(reason(&home.run(&["memories", "list", "--nonsense", "--json"])), "USAGE");
    assert_eq!(reason(&home.run(&["imports", "show", "--last", "--json"])), "IMPORT_NOT_FOUND");
    let out = home.path().join("x.zip.age").to_str().unwrap().to_owned();
    let refused = home.run(&["export", "--output", &out, "--encrypt-to", "nobody", "--json"]);
    assert_eq!(reason(&refused), "FIELD_INVALID");
    assert!(!stderr(&refused).contains("age_recipients") && stderr(&refused).contains("--encrypt-to"));
}

#[test]
fn a_memory_of_unknown_time_is_never_shown_as_1970() {
    let home = TestHome::new();
    home.file("untimed/conversations.json", REMEMBERED);
    ok(&home.run(&["import", home.path().join("untimed").to_str().unwrap()]));
    let rows = json(&home.run(&["memories", "list", "--json"]));
    let row = &rows["memories"][0];
    assert_eq!(row["content"], "Keeps bees.", "{rows}");
    let id = row["id"].as_str().unwrap();
    let shown = ok(&home.run(&["memories", "show", id]));
    assert!(shown.contains("time unknown"), "{shown}");
    let listed = ok(&home.run(&["memories", "list"]));
    let mut all = [listed, shown, ok(&home.run(&["memories", "history", id]))].concat();
    let notes = home.path().join("notes");
    ok(&home.run(&["export", "--format", "markdown", "--output", notes.to_str().unwrap()]));
    for entry in fs::read_dir(notes.join("memories")).unwrap() {
        let path = entry.unwrap().path();
        all.push_str(path.to_str().unwrap());
        all.push_str(&fs::read_to_string(path).unwrap());
    }
    assert!(!all.contains("1970"), "{all}");
    // PAM requires a time, so `--json` and exports contain this one, and the metadata says that it is unknown.
    let bundle = home.path().join("bundle");
    ok(&home.run(&["export", "--output", bundle.to_str().unwrap()]));
    let store: Value = serde_json::from_slice(&fs::read(bundle.join("memory-store.json")).unwrap()).unwrap();
    let memory = &store["memories"][0];
    assert_eq!(memory["temporal"], row["temporal"], "{row}");
    assert_eq!(memory["temporal"]["created_at"], "1970-01-01T00:00:00Z");
    assert_eq!(memory["metadata"]["satchel"]["created_at_source"], "unknown");
    assert!(memory["provenance"]["extracted_at"].is_null(), "{memory}");
    assert_eq!(memory.to_string().matches("1970").count(), 1, "{memory}");
    ok(&home.run(&["verify", bundle.to_str().unwrap()]));
}

#[test]
fn an_unknown_time_is_never_shown_as_1970() {
    let home = TestHome::new();
    let receipt = ok(&home.run(&["import", &untimed(&home)]));
    let listed = ok(&home.run(&["conversations", "list"]));
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[1].contains("dated") && lines[2].contains("nowhen"), "it comes last: {listed}");
    assert!(lines[2].contains("time unknown"), "{listed}");
    let rows = json(&home.run(&["conversations", "list", "--json"]));
    let row = &rows["conversations"][1];
    assert!(row["created_at"].is_null() && row.get("created_at").is_some(), "{row}");
    let id = row["id"].as_str().unwrap();
    let shown = ok(&home.run(&["conversations", "show", id]));
    assert!(shown.contains("You  time unknown"), "{shown}");
    let whole = json(&home.run(&["conversations", "show", id, "--json"]));
    assert!(whole["messages"][0]["created_at"].is_null() && whole["conversation"]["created_at"].is_null());
    for filter in [["--since", "1960"], ["--until", "2026"], ["--created-since", "1969-12-31"]] {
        let found = json(&home.run(&["conversations", "list", "--json", filter[0], filter[1]]));
        let titles: Vec<_> =
            found["conversations"].as_array().unwrap().iter().map(|row| &row["title"]).collect();
        assert_eq!(titles, ["dated"], "{filter:?}");
    }
    let notes = home.path().join("notes");
    ok(&home.run(&["export", "--format", "markdown", "--output", notes.to_str().unwrap()]));
    let mut all = [receipt, listed, shown].concat();
    for entry in fs::read_dir(notes.join("conversations")).unwrap() {
        let path = entry.unwrap().path();
        all.push_str(path.to_str().unwrap());
        all.push_str(&fs::read_to_string(path).unwrap());
    }
    let index = fs::read_to_string(notes.join("index.md")).unwrap();
    assert!(index.find("## 2025-05").unwrap() < index.find("## Time unknown").unwrap(), "{index}");
    all.push_str(&index);
    assert!(!all.contains("1970") && all.contains("undated-nowhen"), "{all}");
    // PAM requires a time, so exports contain this one, and the metadata says where it comes from.
    let bundle = home.path().join("bundle");
    ok(&home.run(&["export", "--output", bundle.to_str().unwrap()]));
    let document = fs::read_to_string(bundle.join(format!("conversations/{id}.json"))).unwrap();
    assert!(
        document.contains("1970-01-01T00:00:00Z") && document.contains("created_at_source"),
        "{document}"
    );
    ok(&home.run(&["verify", bundle.to_str().unwrap()]));
}

#[test]
fn short_ids_of_hidden_and_erased_records_are_resolved() {
    let home = TestHome::new();
    ok(&home.run(&["import", &sample()]));
    let conversations = json(&home.run(&["conversations", "list", "--json"]));
    let hidden = conversations["conversations"][0]["id"].as_str().unwrap().to_owned();
    let memories = json(&home.run(&["memories", "list", "--json"]));
    let memory = memories["memories"][0]["id"].as_str().unwrap().to_owned();
    ok(&home.run(&["imports", "undo", "--last", "--yes"]));
    assert!(ok(&home.run(&["conversations", "show", &hidden[..8]])).contains("not shown: the import"));
    assert!(
        ok(&home.run(&["memories", "show", &memory[..8]])).contains("the import that added it was undone")
    );
    ok(&home.run(&["memories", "history", &memory[..8]]));
    let added = json(&home.run(&["memories", "add", "Opens with 1234", "--json"]));
    let erased = added["memory"]["id"].as_str().unwrap().to_owned();
    ok(&home.run(&["memories", "purge", &erased[..8], "--confirm", &erased]));
    assert!(ok(&home.run(&["memories", "show", &erased[..8]])).contains("you erased it permanently"));
    // A complete id may be as short as the program that wrote it likes.
    let text = "Keeps bees";
    let document = r#"{"schema": "portable-ai-memory", "schema_version": "1.0", "owner": {"id": "ana"}, "memories": [
        {"id": "m1", "type": "fact", "status": "active", "content": "Keeps bees", "content_hash": "sha256:0",
         "temporal": {"created_at": "2026-01-01T00:00:00Z"}, "provenance": {"platform": "other"}}]}"#;
    ok(&home.run(&["import", &home.file("foreign/memory-store.json", document)]));
    assert!(ok(&home.run(&["memories", "show", "m1"])).contains(text));
    let short = home.run(&["memories", "show", "m"]);
    assert_eq!(code(&short), Some(2), "{}", stderr(&short));
}

#[test]
fn while_a_daemon_runs_a_purge_can_be_previewed_but_not_executed() {
    let home = TestHome::new();
    let added = json(&home.run(&["memories", "add", "Opens with 1234", "--json"]));
    let id = added["memory"]["id"].as_str().unwrap().to_owned();
    let alone = ok(&home.run(&["memories", "purge", &id[..8], "--dry-run"]));
    let daemon = home.serve();
    let beside = home.run(&["memories", "purge", &id[..8], "--dry-run"]);
    let refused = home.run(&["memories", "purge", &id[..8], "--confirm", &id]);
    stop(daemon);
    assert_eq!(ok(&beside), alone);
    assert_eq!(code(&refused), Some(4), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("stop the daemon first"), "{}", stderr(&refused));
}

#[test]
fn an_invalid_configuration_is_an_error_for_every_command() {
    let home = TestHome::new();
    ok(&home.run(&["memories", "add", "Keeps bees"]));
    for (text, expected) in [
        ("[[watch]]\npath = \"/tmp\"\nproviders = [\"chatpgt\"]\n", "did you mean \"chatgpt\"?"),
        ("[[watch]]\npath = \"/tmp\"\nproviders = [\"zzzzzzzz\"]\n", "valid names:"),
        ("[export]\nschedule = \"hourly\"\nfolder = \"/tmp/x\"\n", "schedule"),
        ("[log]\nlevel = \"loud\"\n", "loud"),
    ] {
        home.file(".config/satchel/satchel.toml", text);
        let check = home.run(&["config", "check"]);
        assert_eq!(code(&check), Some(1), "{text}: {}", stderr(&check));
        assert!(stdout(&check).contains(expected), "{}", stdout(&check));
        for words in [&["serve"][..], &["status"]] {
            let output = home.run(words);
            assert_eq!(code(&output), Some(4), "{words:?} with {text}: {}", stderr(&output));
            assert!(stderr(&output).contains(expected), "{}", stderr(&output));
        }
    }
    home.file(".config/satchel/satchel.toml", "");
    let output = home.command(&["status"]).env("SATCHEL_LOG", "loud").output().unwrap();
    assert_eq!(code(&output), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("\"loud\" is not a log level"), "{}", stderr(&output));
}

#[test]
fn hints_go_to_stderr_and_are_suppressed_by_quiet() {
    let home = TestHome::new();
    let backup = home.path().join("new/folder/backup.zip");
    ok(&home.run(&["import", &sample()]));
    ok(&home.run(&["backup", backup.to_str().unwrap()]));
    let out = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    for (words, hint) in [
        (vec!["conversations", "list", "--limit", "1"], "--limit N"),
        (vec!["conversations", "show", "--last", "--tree"], "--branch ID"),
        (vec!["export", "--output"], "satchel verify"),
        (vec!["memories", "list", "--tag", "nothing"], "no memories tagged nothing"),
        (vec!["sources", "list"], "satchel sources add"),
    ] {
        let with = |quiet: &[&str], name: &str| {
            let place = out(name);
            let output: &[&str] = if words[0] == "export" { &[&place] } else { &[] };
            home.run(&[quiet, &words, output].concat())
        };
        let (verbose, quiet) = (with(&[], "loud.zip"), with(&["-q"], "quiet.zip"));
        assert!(stderr(&verbose).contains(hint), "{words:?}: {}", stderr(&verbose));
        assert!(!ok(&verbose).contains(hint), "{words:?}: {}", stdout(&verbose));
        assert_eq!((ok(&quiet).contains(hint), stderr(&quiet)), (false, String::new()), "{words:?}");
    }
}

#[test]
fn an_empty_list_is_explained() {
    let home = TestHome::new();
    ok(&home.run(&["import", &sample()]));
    for (words, expected) in [
        (&["conversations", "list", "--since", "2090-03-01"][..], "no conversations since 2090-03-01; "),
        (
            &["conversations", "list", "--platform", "chatpgt"],
            "unknown platform \"chatpgt\"; did you mean chatgpt?",
        ),
        (&["conversations", "list", "--platform", "grok"], "there are conversations from chatgpt"),
        (
            &["memories", "list", "--type", "goal", "--until", "1990"],
            "no memories of type goal, until 1990; ",
        ),
    ] {
        let output = home.run(words);
        assert_eq!(ok(&output), "", "{words:?}");
        assert!(stderr(&output).contains(expected), "{words:?}: {}", stderr(&output));
        let quiet = home.run(&[words, &["--json"]].concat());
        assert_eq!(stderr(&quiet), "", "{words:?}");
        json(&quiet);
    }
}

#[test]
fn the_newest_record_can_be_selected_without_an_id() {
    let home = TestHome::new();
    ok(&home.run(&["import", &sample()]));
    let bundle = home.path().join("bundle.zip");
    let exported = json(&home.run(&["export", "--json", "--output", bundle.to_str().unwrap()]));
    let shown = json(&home.run(&["exports", "show", "--last", "--json"]));
    assert_eq!(shown["export_id"], exported["export_id"]);
    let listed = json(&home.run(&["conversations", "list", "--json", "--limit", "1"]));
    let shown = json(&home.run(&["conversations", "show", "--last", "--json"]));
    assert_eq!(shown["conversation"]["id"], listed["conversations"][0]["id"]);
    let imported = json(&home.run(&["imports", "list", "--json"]));
    let shown = json(&home.run(&["imports", "show", "--last", "--json"]));
    assert_eq!(shown["import"]["id"], imported["imports"][0]["id"]);
    ok(&home.run(&["imports", "issues", "--last"]));
    ok(&home.run(&["memories", "list", "--conversation", "last"]));
    let next = home.path().join("next.zip");
    ok(&home.run(&["export", "--incremental", "--base", "last", "--output", next.to_str().unwrap()]));
    assert_eq!(code(&home.run(&["imports", "show"])), Some(2));
    assert_eq!(code(&home.run(&["imports", "show", "3f2a", "--last"])), Some(2));
}

#[test]
fn receipts_of_a_folder_name_its_exports_and_unrecognised_files_are_listed() {
    let home = TestHome::new();
    let downloads = home.path().join("Downloads");
    for name in ["chatgpt-export", "claude-export"] {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo").join(name);
        fs::create_dir_all(downloads.join(name)).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), downloads.join(name).join(entry.file_name())).unwrap();
        }
    }
    home.file("Downloads/bees.json", r#"{"guild":{"id":"1"},"channel":{},"dateRange":{}}"#);
    let receipts = ok(&home.run(&["import", downloads.to_str().unwrap()]));
    for name in ["Downloads/chatgpt-export", "Downloads/claude-export"] {
        assert!(receipts.contains(name), "{receipts}");
        assert!(ok(&home.run(&["imports", "list"])).contains(name));
    }
    let unknown = ok(&home.run(&["imports", "issues", "--last"]));
    assert!(receipts.contains("bees.json") || unknown.contains("bees.json"), "{receipts}{unknown}");
    let watched = home.path().join("watched");
    fs::create_dir(&watched).unwrap();
    fs::copy(downloads.join("bees.json"), watched.join("bees.json")).unwrap();
    ok(&home.run(&["sources", "add", watched.to_str().unwrap()]));
    let daemon = home.serve();
    let begun = std::time::Instant::now();
    let items = loop {
        let listed = json(&home.run(&["sources", "list", "--unrecognised", "--json"]));
        let items = listed["sources"][0]["unrecognized_items"].clone();
        if items.as_array().is_some_and(|items| !items.is_empty()) || begun.elapsed() > home::LONG {
            break items;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(50));
    };
    let text = ok(&home.run(&["sources", "list", "--unrecognised"]));
    stop(daemon);
    assert_eq!(items[0]["name"], "bees.json");
    assert!(items[0]["reason"].as_str().unwrap().contains("a channel of Discord"), "{items}");
    assert!(text.contains("not recognised bees.json: a channel of Discord"), "{text}");
}

#[test]
fn a_dumb_terminal_has_no_colours() {
    let home = TestHome::new();
    ok(&home.run(&["import", &sample()]));
    let list = |variables: &[(&str, &str)]| at_terminal(&home, &["conversations", "list"], variables);
    assert!(list(&[("TERM", "xterm")]).contains("\u{1b}[36m"));
    for variables in [&[("TERM", "dumb")][..], &[("TERM", "xterm"), ("NO_COLOR", "1")]] {
        let shown = list(variables);
        assert!(!shown.contains('\u{1b}') && shown.contains("chatgpt"), "{shown:?}");
    }
}

#[test]
fn long_output_goes_through_a_pager_on_a_terminal_only() {
    let home = TestHome::new();
    ok(&home.run(&["import", &sample()]));
    let pager = ("PAGER", "sed 's/^/paged: /'");
    let show = ["conversations", "show", "--last", "--full"];
    let term = ("TERM", "dumb");
    let paged = |words: &[&str], pager| at_terminal(&home, words, &[term, pager]).contains("paged: ");
    assert!(paged(&show, pager));
    assert!(!paged(&[&show[..], &["--no-pager"]].concat(), pager));
    assert!(!paged(&[&show[..], &["--json"]].concat(), pager));
    assert!(!paged(&show, ("PAGER", "cat")));
    let unpaged = at_terminal(&home, &show, &[term, ("PAGER", "no-such-pager 2> /dev/null")]);
    assert!(unpaged.contains("You"), "what cannot be paged is printed: {unpaged}");
    let enough = at_terminal(&home, &show, &[term, ("PAGER", "head -c 1 > /dev/null")]);
    assert!(!enough.contains("error"), "{enough}");
    let piped = home.command(&show).env("PAGER", "sed 's/^/paged: /'").output().unwrap();
    assert!(!ok(&piped).contains("paged: "));
}
