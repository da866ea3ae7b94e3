//! Checks that a session gives the same records wherever it is read from, and that they stay when it goes on.

use satchel_importer::{
    Bundle, Line,
    testkit::{FixtureError, conversations, fixture_files, produce},
};
use satchel_plugin_opencode::OpenCode;
use serde_json::{Map, Value, json};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");

/// Files by path.
type Files = Vec<(String, Vec<u8>)>;

/// The records of one session as JSON, without what depends on the files.
fn records(files: &Files) -> Vec<Value> {
    let bundle = Bundle::from_files(files.clone());
    let produced = produce::<OpenCode>(&bundle).expect("detection answers");
    let lines: Vec<Line> = produced.exports.into_iter().flat_map(|export| export.lines).collect();
    let mut found = Vec::new();
    for record in conversations(&lines) {
        let mut record = serde_json::to_value(record).expect("records are JSON");
        let object = record.as_object_mut().expect("a record is an object");
        object.remove("locator");
        object.remove("export_format_version");
        let messages = object["messages"].as_array_mut().expect("a list");
        messages.sort_by_key(|message| message["id"].to_string());
        found.push(record);
    }
    found
}

/// The files of a storage with the session of an export.
fn storage(export: &Value, old: bool) -> Files {
    let info = &export["info"];
    let session = info["id"].as_str().expect("an id");
    let root = if old { "storage/session/" } else { "storage/" };
    let own = if old {
        format!("{root}info/{session}.json")
    } else {
        format!("{root}session/{}/{session}.json", info["projectID"].as_str().unwrap_or("global"))
    };
    let mut files = vec![(own, info.to_string().into_bytes())];
    if export["todos"].is_array() {
        files.push((format!("{root}todo/{session}.json"), export["todos"].to_string().into_bytes()));
    }
    for message in export["messages"].as_array().expect("a list") {
        let id = message["info"]["id"].as_str().expect("an id");
        files.push((format!("{root}message/{session}/{id}.json"), message["info"].to_string().into_bytes()));
        for part in message["parts"].as_array().expect("a list") {
            let name = part["id"].as_str().expect("an id");
            let folder = if old { format!("{session}/{id}") } else { id.to_owned() };
            files.push((format!("{root}part/{folder}/{name}.json"), part.to_string().into_bytes()));
        }
    }
    files
}

/// The exports among the fixtures whose shapes are those of the program.
fn exports() -> Result<Vec<Value>, FixtureError> {
    let files = fixture_files(FIXTURES)?.into_iter();
    let own = files.filter(|file| {
        file.name == "session.json"
            && !["odd-fields-and-repeated-ids", "others-are-left-alone"].contains(&&*file.fixture)
    });
    Ok(own.filter_map(|file| serde_json::from_slice(&file.bytes).ok()).collect())
}

#[test]
fn a_storage_and_an_export_of_a_session_give_the_same_records() -> Result<(), FixtureError> {
    let exports = exports()?;
    assert!(exports.len() > 5);
    for export in exports {
        let expected = records(&vec![("session.json".to_owned(), export.to_string().into_bytes())]);
        for old in [false, true] {
            assert_eq!(records(&storage(&export, old)), expected, "{}", export["info"]["id"]);
        }
    }
    Ok(())
}

/// The sessions of the databases among the fixtures.
fn sessions_of_databases() -> Result<Vec<Value>, FixtureError> {
    let names = ["sessions-in-a-database", "a-database-of-a-new-installation"];
    let files = fixture_files(FIXTURES)?.into_iter().filter(|file| names.contains(&&*file.fixture));
    Ok(files.flat_map(|file| records(&vec![(file.name, file.bytes)])).collect())
}

/// Takes away what only a database has, or only an export of an earlier version.
fn without_differences(mut record: Value) -> Value {
    let object = record.as_object_mut().expect("a record is an object");
    if let Some(kept) = object.get_mut("raw_metadata").and_then(Value::as_object_mut) {
        for key in ["project", "cost", "tokens"] {
            kept.remove(key);
        }
        let tasks = kept.get_mut("todos").and_then(Value::as_array_mut);
        for task in tasks.into_iter().flatten().filter_map(Value::as_object_mut) {
            task.remove("id");
        }
    }
    record
}

#[test]
fn a_database_gives_the_same_records_as_an_export() -> Result<(), FixtureError> {
    let stored = sessions_of_databases()?;
    let mut compared = 0;
    for export in exports()? {
        for expected in records(&vec![("session.json".to_owned(), export.to_string().into_bytes())]) {
            let same = stored.iter().find(|record| record["id"] == expected["id"]);
            let same = same.expect("the session is in a database, too");
            let (same, expected) = (without_differences(same.clone()), without_differences(expected));
            for key in expected.as_object().expect("a record is an object").keys() {
                assert_eq!(same[key], expected[key], "{key} of {}", expected["id"]);
            }
            assert_eq!(same.as_object().map(Map::len), expected.as_object().map(Map::len));
            compared += 1;
        }
    }
    assert_eq!(compared, 5);
    Ok(())
}

/// What the program has written after `count` parts.
fn after(export: &Value, count: usize) -> Value {
    let (mut left, mut messages) = (count, Vec::new());
    for message in export["messages"].as_array().expect("a list") {
        let parts = message["parts"].as_array().expect("a list");
        let here = parts.len().min(left);
        left -= here;
        messages.push(json!({ "info": message["info"], "parts": parts[..here] }));
        if left == 0 {
            break;
        }
    }
    json!({ "info": export["info"], "messages": messages })
}

/// The ids of the messages of an answer without an error, each with its parent.
fn tree(export: &Value) -> Vec<(String, String)> {
    let found = records(&vec![("session.json".to_owned(), export.to_string().into_bytes())]);
    let messages = found.first().map(|record| record["messages"].clone()).unwrap_or_default();
    let pair = |message: &Value| (message["id"].to_string(), message["parent"].to_string());
    messages.as_array().into_iter().flatten().map(pair).collect()
}

#[test]
fn what_was_imported_keeps_its_id_and_parent_when_the_session_goes_on() -> Result<(), FixtureError> {
    // In one of them the messages are not in their order.
    for mut export in exports()?
        .into_iter()
        .filter(|export| export["info"]["title"] != "New session - 2026-01-06T11:46:40.000Z")
    {
        for message in export["messages"].as_array_mut().expect("a list") {
            // An error ends an answer.
            message["info"].as_object_mut().expect("an object").remove("error");
        }
        let whole = tree(&export);
        let parts = |message: &Value| message["parts"].as_array().map_or(0, Vec::len);
        let count = export["messages"].as_array().map_or(0, |all| all.iter().map(parts).sum());
        for count in 1..count {
            for pair in tree(&after(&export, count)) {
                assert!(whole.contains(&pair), "{pair:?} of {count} parts of {}", export["info"]["id"]);
            }
        }
    }
    Ok(())
}

#[test]
fn the_result_of_a_call_comes_between_it_and_what_follows() {
    let part =
        |state: Value| json!({"id": "prt_1", "type": "tool", "callID": "c", "tool": "ls", "state": state});
    let export = |state: Value| {
        let said = json!({"id": "prt_2", "type": "text", "text": "Here they are."});
        json!({"info": {"id": "ses_1", "title": "Files", "time": {"created": 1_767_700_000_000_u64}},
            "messages": [{"info": {"id": "msg_1", "role": "assistant", "time": {"created": 1_767_700_001_000_u64}},
                "parts": [part(state), said]}]})
    };
    let pair = |id: &str, parent: &str| (json!(id).to_string(), json!(parent).to_string());
    let running = tree(&export(json!({"status": "running", "input": {}})));
    assert_eq!(running[1], pair("prt_2", "msg_1"));
    let completed = tree(&export(json!({"status": "completed", "input": {}, "output": "a.md"})));
    assert_eq!(completed[1..], [pair("prt_1:result", "msg_1"), pair("prt_2", "prt_1:result")]);
}
