//! Tests of the database: against exports of the same chats, with damaged pages, and with the sample.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::Path,
    time::{Duration, Instant},
};

use satchel_importer::{
    Bundle, Line,
    testkit::{
        FixtureError, ProducedExport, Sample, check_secrets, conversations, produce, skips, text, warnings,
    },
};
use satchel_plugin_open_webui::OpenWebUi;
use serde_json::Value;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");
/// Fixtures with exports of chats that the database has too.
const EXPORTS: [&str; 6] = [
    "everybodys-chats",
    "archived-folders-and-tags",
    "branches-and-the-current-answer",
    "lists-of-old-versions",
    "tool-calls-in-the-text",
    "output-items",
];
const PAGE: usize = 1024;

/// The exports of a fixture.
fn read(fixture: &str) -> Vec<ProducedExport> {
    let folder = format!("{FOLDER}/{fixture}/input");
    let bundle = Bundle::from_folder(folder.as_ref()).expect("the folder can be listed");
    produce::<OpenWebUi>(&bundle).expect("detection answers").exports
}

/// The lines of an export, with the JSON as the program writes it.
fn exported(fixture: &str) -> Vec<Line> {
    let folder = Path::new(FOLDER).join(fixture).join("input");
    let files = std::fs::read_dir(folder).expect("the folder can be listed");
    let file = |entry: std::io::Result<std::fs::DirEntry>| {
        let bytes = std::fs::read(entry.expect("it can be listed").path()).expect("it can be read");
        ("export.json", without_blanks(&String::from_utf8(bytes).expect("it is text")))
    };
    let bundle = Bundle::from_files(files.map(file));
    let exports = produce::<OpenWebUi>(&bundle).expect("detection answers").exports;
    exports.into_iter().flat_map(|export| export.lines).collect()
}

fn without_blanks(json: &str) -> String {
    let (mut in_string, mut escaped) = (false, false);
    let kept = |c: &char| {
        in_string ^= *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        in_string || !c.is_ascii_whitespace()
    };
    json.chars().filter(kept).collect()
}

/// The lines of one file of a database, and whether it is recognised.
fn read_file(bytes: &[u8]) -> (Vec<Line>, bool) {
    let bundle = Bundle::from_files([("webui.db", bytes)]);
    let exports = produce::<OpenWebUi>(&bundle).expect("detection answers").exports;
    let broken = exports.is_empty() || exports.iter().any(|export| export.error.is_some());
    (exports.into_iter().flat_map(|export| export.lines).collect(), !broken)
}

fn database() -> Vec<u8> {
    std::fs::read(format!("{FOLDER}/database/input/webui.db")).expect("the fixture can be read")
}

/// The records of all conversations, without what only the database or only an export has.
fn comparable(lines: &[Line]) -> Vec<Value> {
    let record = |record| {
        let mut value = serde_json::to_value(record).expect("it can be written");
        let object = value.as_object_mut().expect("it is an object");
        object.remove("locator");
        object.remove("export_format_version");
        object.get_mut("raw_metadata").and_then(Value::as_object_mut).map(|raw| raw.remove("folder_path"));
        value
    };
    conversations(lines).into_iter().map(record).collect()
}

#[test]
fn chats_of_an_export_and_of_the_database_are_the_same() {
    let stored = comparable(&read("database")[0].lines);
    let mut compared = 0;
    for fixture in EXPORTS {
        for chat in comparable(&exported(fixture)) {
            // The copy of a chat that the database has is not doubled.
            if chat["id"] != "s-77" {
                assert!(stored.contains(&chat), "{fixture}: {}", chat["id"]);
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 8);
}

#[test]
fn passwords_keys_and_settings_are_not_emitted() -> Result<(), FixtureError> {
    let secrets =
        ["HASHOFAPASSWORD", "SECRETKEY", "SETTINGSTEXT", "CONFIGKEY", "OAUTHTOKEN", "@example.invalid"];
    check_secrets::<OpenWebUi>(FOLDER, &["database", "a-database-of-2024"], "7d0c5b1e-1111", &secrets)
}

#[test]
fn a_damaged_page_costs_only_its_own_rows() {
    let whole = database();
    let (before, _) = read_file(&whole);
    let ids = |lines: &[Line]| -> BTreeSet<String> {
        conversations(lines).into_iter().map(|chat| chat.id.clone()).collect()
    };
    let reports = |lines: &[Line]| -> BTreeSet<String> {
        let skips = skips(lines).into_iter().map(|skip| format!("{}: {}", skip.locator, skip.reason));
        let warnings = warnings(lines).into_iter();
        skips.chain(warnings.map(|warning| format!("{}: {}", warning.locator, warning.message))).collect()
    };
    let known_reports = reports(&before);
    let mut partial = 0;
    for page in 1..whole.len() / PAGE {
        let mut damaged = whole.clone();
        damaged[page * PAGE..][..PAGE].fill(0xff);
        let (lines, recognised) = read_file(&damaged);
        let left = ids(&lines);
        // A copy takes the place of its original.
        let known = |id: &String| ids(&before).contains(id) || id == "s-77";
        assert!(left.iter().all(known), "page {page}: {left:?}");
        let lost = left.len() < ids(&before).len();
        assert!(!lost || !recognised || !reports(&lines).is_subset(&known_reports), "page {page}: {lines:?}");
        partial += usize::from(lost && !left.is_empty());
    }
    assert!(partial > 10, "{partial} pages cost some chats, but not all");
}

#[test]
fn a_database_that_is_cut_off_never_panics() {
    let whole = database();
    for length in (0..whole.len()).step_by(500) {
        read_file(&whole[..length]);
    }
}

#[test]
fn the_log_beside_the_database_has_the_newest_rows() {
    let exports = read("database");
    assert_eq!(exports[0].detection.files, ["webui.db", "webui.db-wal"]);
    assert!(conversations(&exports[0].lines).iter().any(|chat| chat.id == "c-late"));
    let (without, _) = read_file(&database());
    assert!(!conversations(&without).iter().any(|chat| chat.id == "c-late"));
}

#[test]
fn the_sample_is_read() {
    let Some(sample) = Sample::read::<OpenWebUi>(env!("CARGO_MANIFEST_DIR"), "agents/open-webui") else {
        return;
    };
    assert!(sample.unclaimed().is_empty(), "{:?}", sample.unclaimed());
    let lines = sample.lines();
    let chats = conversations(&lines);
    assert_eq!(chats.len(), 1);
    let texts: Vec<_> = chats[0].messages.iter().map(text).collect();
    assert_eq!(texts, ["Hello WebUI!", "Hello from WebUI."]);
}

/// The lines of a database with a chat whose only message answers `parent`, and with these messages and their parents beside it.
fn with_messages(parent: &str, messages: impl Iterator<Item = (String, Option<String>)>) -> Vec<Line> {
    let folder = tempfile::tempdir().expect("a folder is made");
    let mut connection = rusqlite::Connection::open(folder.path().join("webui.db")).expect("it is made");
    let chat = format!(
        r#"{{"history": {{"currentId": "last", "messages": {{"last": {{"id": "last", "parentId": "{parent}", "role": "user", "content": "Why?"}}}}}}}}"#
    );
    let made = connection.execute_batch(
        "CREATE TABLE chat (id TEXT PRIMARY KEY, user_id TEXT, title TEXT, chat JSON, created_at INTEGER, updated_at INTEGER);
         CREATE TABLE chat_message (id TEXT PRIMARY KEY, chat_id TEXT, user_id TEXT, role TEXT, parent_id TEXT, content JSON);",
    );
    made.expect("the tables are made");
    let transaction = connection.transaction().expect("it begins");
    let inserted = transaction.execute("INSERT INTO chat VALUES ('c', 'u', 'Bread', ?, 1, 1)", [chat]);
    inserted.expect("the chat is added");
    for (id, parent) in messages {
        let row = (format!("c-{id}"), parent, format!("\"Text of {id}\""));
        let sql = "INSERT INTO chat_message VALUES (?, 'c', 'u', 'user', ?, ?)";
        transaction.execute(sql, row).expect("the message is added");
    }
    transaction.commit().expect("it ends");
    read_file(&std::fs::read(folder.path().join("webui.db")).expect("it is read")).0
}

#[test]
fn a_chain_of_absent_parents_is_followed_in_time() {
    let begun = Instant::now();
    let parent = |number: u32| number.checked_sub(1).map(|number| format!("m{number}"));
    let lines = with_messages("m19999", (0..20_000).map(|number| (format!("m{number}"), parent(number))));
    let messages: usize = conversations(&lines).iter().map(|chat| chat.messages.len()).sum();
    assert_eq!(messages, 20_001);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn a_message_whose_id_has_the_hash_of_an_absent_parent_is_not_taken_for_it() {
    let hash = |id: &str| {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        hasher.finish() & u64::from(u32::MAX)
    };
    let (mut known, mut ids) = (BTreeMap::new(), (0..).map(|number: u32| format!("m{number}")));
    let same = ids.find_map(|id| Some((known.insert(hash(&id), id.clone())?, id)));
    let (absent, other) = same.expect("two ids have the same hash");
    let lines = with_messages(&absent, [(other.clone(), None)].into_iter());
    assert_eq!(conversations(&lines)[0].messages.len(), 1);
    let warnings: Vec<&str> = warnings(&lines).into_iter().map(|warning| warning.message.as_str()).collect();
    assert!(
        warnings.iter().any(|warning| warning.contains("that the program does not show: 1")),
        "{warnings:?}"
    );
}
