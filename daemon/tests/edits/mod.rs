//! Changes memories and relations from a shell: the output, its meaning, and how to undo a change.

use serde_json::Value;

use crate::home::{TestHome, code, stderr};

fn json(home: &TestHome, words: &[&str]) -> Value {
    let output = home.run(&[words, &["--json"]].concat());
    assert_eq!(code(&output), Some(0), "{words:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn assert_refused(home: &TestHome, words: &[&str], exit: i32, expected: &str) {
    let output = home.run(words);
    let printed = stderr(&output);
    assert_eq!((code(&output), output.stdout.len()), (Some(exit), 0), "{words:?}: {printed}");
    assert!(printed.contains(expected), "{words:?}: {printed}");
}

#[test]
fn a_memory_is_added_edited_and_undone() {
    let home = TestHome::new();
    let add = ["memories", "add", "Prefers metric units", "--type", "preference", "--tag", "units,home"];
    let added = json(&home, &add);
    let id = text(&added, "/memory/id").to_owned();
    assert_eq!(text(&added, "/memory/type"), "preference");
    assert_eq!(text(&added, "/memory/provenance/platform"), "satchel");
    assert_eq!((added["existed"].as_bool(), added["version"].as_u64()), (Some(false), Some(1)));
    let again = json(&home, &add);
    assert_eq!((again["existed"].as_bool(), again["undo_token"].is_null()), (Some(true), true));

    let edit =
        ["memories", "edit", &id, "--content", "Prefers feet", "--add-tag", "ship", "--reason", "a joke"];
    let edited = json(&home, &edit);
    assert_eq!(text(&edited, "/memory/content"), "Prefers feet");
    assert_eq!(edited["memory"]["tags"], serde_json::json!(["home", "units", "ship"]));
    let fields = [
        "memories",
        "edit",
        &id,
        "--valid-from",
        "2026-03-01T00:00:00Z",
        "--exportable",
        "false",
        "--meta",
        "k=1",
    ];
    let fields = json(&home, &fields);
    assert_eq!(text(&fields, "/memory/temporal/valid_from"), "2026-03-01T00:00:00Z");
    assert_eq!(fields["memory"]["access"]["exportable"].as_bool(), Some(false));
    assert_eq!(fields["memory"]["metadata"]["k"].as_i64(), Some(1));
    json(&home, &["memories", "edit", &id, "--clear", "valid-from"]);

    let history = json(&home, &["memories", "history", &id]);
    assert_eq!(history["versions"].as_array().map(Vec::len), Some(4));
    assert_eq!(
        (text(&history, "/versions/2/actor"), text(&history, "/versions/2/reason")),
        ("owner", "a joke")
    );

    let token = text(&edited, "/undo_token").to_owned();
    json(&home, &["memories", "undo", "--change", &token]);
    let shown = json(&home, &["memories", "show", &id]);
    assert_eq!(text(&shown, "/memory/content"), "Prefers metric units");
    assert_eq!(shown["memory"]["metadata"]["k"].as_i64(), Some(1), "later changes stay");
    assert_refused(&home, &["memories", "undo", "--change", &token], 4, "undone already");
    json(&home, &["memories", "undo", &id, "--to", "2"]);
    assert_eq!(text(&json(&home, &["memories", "show", &id]), "/memory/content"), "Prefers feet");
    let plain = home.run(&["memories", "undo", &id[..8]]);
    let printed = String::from_utf8_lossy(&plain.stdout).into_owned();
    assert!(
        printed.contains("active") && printed.contains("Prefers metric units"),
        "{printed}{}",
        stderr(&plain)
    );
    assert!(stderr(&plain).contains("satchel memories undo --change"), "{}", stderr(&plain));
}

#[test]
fn status_changes_follow_pam_and_name_the_replacement() {
    let home = TestHome::new();
    let id = |added: &Value| text(added, "/memory/id").to_owned();
    let old = id(&json(&home, &["memories", "add", "Lives in Bergen"]));
    let new = id(&json(&home, &["memories", "add", "Lives in Oslo"]));
    assert_refused(&home, &["memories", "status", &old, "superseded"], 2, "--by");
    assert_refused(&home, &["memories", "status", &old, "active"], 2, "memories undo");
    assert_refused(&home, &["memories", "status", &old, "gone"], 2, "not a status");
    let done = json(&home, &["memories", "status", &old, "superseded", "--by", &new]);
    assert_eq!(text(&done, "/memory/temporal/superseded_by"), new);
    assert_refused(&home, &["memories", "status", &old, "retracted"], 4, "superseded may become archived");
    let relations = json(&home, &["relations", "list", &old]);
    assert_eq!(text(&relations, "/relations/0/type"), "supersedes");
    let relation = text(&relations, "/relations/0/id").to_owned();
    assert_refused(&home, &["relations", "withdraw", &relation], 4, "so does that memory");
    json(&home, &["memories", "status", &old, "archived", "--reason", "old"]);
    assert_refused(&home, &["memories", "edit", &old], 2, "nothing to change");
    assert_refused(&home, &["memories", "edit", &old, "--tag", "No"], 2, "tags");
}

#[test]
fn a_bulk_change_requires_the_count_of_the_dry_run() {
    let home = TestHome::new();
    for number in 0..5 {
        json(&home, &["memories", "add", &format!("Fact {number}"), "--tag", "old"]);
    }
    json(&home, &["memories", "add", "Keeps bees"]);
    assert_refused(&home, &["memories", "status", "archived"], 2, "filters");
    assert_refused(&home, &["memories", "status", "archived", "--tag", "old"], 2, "--expect");
    let seen = json(&home, &["memories", "status", "archived", "--tag", "old", "--dry-run"]);
    assert_eq!((seen["matched"].as_u64(), seen["ids"].as_array().map(Vec::len)), (Some(5), Some(5)));
    assert!(seen["undo_token"].is_null());
    assert_refused(
        &home,
        &["memories", "status", "archived", "--tag", "old", "--expect", "4"],
        4,
        "5 memories fit now",
    );
    let done = json(&home, &["memories", "status", "archived", "--tag", "old", "--expect", "5"]);
    let shown = |home: &TestHome| json(home, &["memories", "list"])["memories"].as_array().map(Vec::len);
    assert_eq!(shown(&home), Some(1));
    let undone = json(&home, &["memories", "undo", "--change", text(&done, "/undo_token")]);
    assert_eq!((undone["matched"].as_u64(), shown(&home)), (Some(5), Some(6)));
}

#[test]
fn relations_are_added_listed_and_withdrawn() {
    let home = TestHome::new();
    let id = |added: &Value| text(added, "/memory/id").to_owned();
    let (one, other) = (
        id(&json(&home, &["memories", "add", "Keeps bees"])),
        id(&json(&home, &["memories", "add", "Sells honey"])),
    );
    let added = json(&home, &["relations", "add", &one, "supports", &other, "--confidence", "0.75"]);
    assert_eq!((text(&added, "/relation/from"), added["existed"].as_bool()), (one.as_str(), Some(false)));
    assert_refused(&home, &["relations", "add", &one, "supersedes", &other], 2, "supersede");
    assert_refused(&home, &["relations", "add", &one, "supports", &one], 2, "the second memory");
    let plain = home.run(&["relations", "list"]);
    assert!(String::from_utf8_lossy(&plain.stdout).contains("supports"), "{}", stderr(&plain));
    let relation = text(&added, "/relation/id").to_owned();
    let withdrawn = json(&home, &["relations", "withdraw", &relation[..8]]);
    assert_eq!(withdrawn["relation"]["withdrawn"].as_bool(), Some(true));
    assert_eq!(json(&home, &["relations", "list"])["relations"].as_array().map(Vec::len), Some(0));
    json(&home, &["memories", "undo", "--change", text(&withdrawn, "/undo_token")]);
    assert_eq!(json(&home, &["relations", "list", &one])["relations"].as_array().map(Vec::len), Some(1));
}

#[test]
fn confidence_decays_in_output_but_not_in_exports() {
    let home = TestHome::new();
    home.file(
        ".config/satchel/satchel.toml",
        "[confidence.half-life-days]\ngoal = 1\n[export]\ntype-registry = \"https://example.org/types\"\n",
    );
    let mut bundle: Value = serde_json::from_str(
        r#"{"schema": "portable-ai-memory", "schema_version": "1.0", "owner": {"id": "ana"}, "memories": [{
        "id": "5f0c1a52-0000-4000-8000-000000000001", "type": "goal", "content": "Learns to sail",
        "content_hash": "", "status": "active", "tags": [], "temporal": {"created_at": "2020-01-01T00:00:00Z"},
        "provenance": {"platform": "chatgpt"},
        "confidence": {"initial": 0.8, "current": 0.8, "decay_model": "time_exponential"}}]}"#,
    )
    .unwrap();
    bundle["memories"][0]["content_hash"] =
        satchel_pam::hash::ContentHash::of("Learns to sail").to_string().into();
    let store = home.file("in/memory-store.json", bundle.to_string());
    assert_eq!(code(&home.run(&["import", &store])), Some(0));
    let shown = home.run(&["memories", "show", "5f0c1a52"]);
    let printed = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(printed.contains("80 %, decayed to 0 % now"), "{printed}{}", stderr(&shown));
    let out = home.path().join("out");
    let output = home.run(&["export", "--output", out.to_str().unwrap()]);
    assert_eq!(code(&output), Some(0), "{}", stderr(&output));
    let written: Value =
        serde_json::from_slice(&std::fs::read(out.join("memory-store.json")).unwrap()).unwrap();
    assert_eq!(written["memories"][0]["confidence"]["current"].as_f64(), Some(0.8));
    assert_eq!(text(&written, "/type_registry"), "https://example.org/types");
}

#[test]
fn a_custom_type_is_stored_and_exported() {
    let home = TestHome::new();
    let added = json(&home, &["memories", "add", "Twelve hives", "--custom-type", "hive"]);
    assert_eq!((text(&added, "/memory/type"), text(&added, "/memory/custom_type")), ("custom", "hive"));
    assert_refused(&home, &["memories", "add", "Ten hives", "--type", "custom"], 2, "--custom-type");
    assert_refused(
        &home,
        &["memories", "add", "Ten hives", "--type", "fact", "--custom-type", "hive"],
        2,
        "--custom-type",
    );
    let out = home.path().join("out.zip");
    assert_eq!(code(&home.run(&["export", "--output", out.to_str().unwrap()])), Some(0));
    let verified = home.run(&["verify", out.to_str().unwrap()]);
    assert_eq!(code(&verified), Some(0), "{}", stderr(&verified));
}

#[test]
fn expired_memories_are_marked_and_can_be_filtered() {
    let home = TestHome::new();
    let add = |content: &str, until: &str| {
        json(&home, &["memories", "add", content, "--type", "fact", "--valid-until", until]);
    };
    add("Rents a flat in Porto", "2020-01-01");
    add("Owns a bicycle", "9000-01-01");
    let contents = |filter: &str| -> Vec<String> {
        let filter = filter.split_whitespace();
        let listed = json(&home, &["memories", "list"].into_iter().chain(filter).collect::<Vec<_>>());
        let memories = listed["memories"].as_array().cloned().unwrap_or_default();
        memories.iter().map(|memory| text(memory, "/content").to_owned()).collect()
    };
    assert_eq!(contents("--expired"), ["Rents a flat in Porto"]);
    let valid = contents("--valid");
    assert!(valid.iter().any(|content| content == "Owns a bicycle"), "{valid:?}");
    assert!(!valid.iter().any(|content| content == "Rents a flat in Porto"), "{valid:?}");
    assert_eq!(contents(""), valid);
    let all = contents("--include-expired");
    assert!(all.len() == valid.len() + 1 && all.iter().any(|content| content == "Rents a flat in Porto"));
    assert!(contents("--valid-at 2019-06-01").iter().any(|content| content == "Rents a flat in Porto"));
    assert_eq!(contents("--revision 0"), Vec::<String>::new());
    assert_eq!(contents("--revision 1"), Vec::<String>::new(), "expired before anything was recorded");
    assert_eq!(contents("--revision 1 --include-expired"), ["Rents a flat in Porto"]);
    let table = home.run(&["memories", "list", "--expired"]).stdout;
    assert!(String::from_utf8_lossy(&table).contains("expired"));
}
