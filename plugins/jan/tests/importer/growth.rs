//! Checks that what was imported keeps its id when a thread goes on or its folder is moved, and that files of others are left alone.

use std::{fs, path::Path};

use satchel_importer::{
    Bundle, Importer as _, Line,
    testkit::{conversations, produce, warnings},
};
use satchel_plugin_jan::Jan;
use serde_json::{Value, json};

const TIME: u64 = 1_767_700_000_000;

fn lines(files: &[(String, String)]) -> Vec<Line> {
    let produced = produce::<Jan>(&Bundle::from_files(files.to_vec())).expect("detection answers");
    produced.exports.into_iter().flat_map(|export| export.lines).collect()
}

fn thread(folder: &str, id: &str, messages: &[Value]) -> Vec<(String, String)> {
    let head = json!({"id": id, "object": "thread", "title": "Tides", "assistants": [], "created": TIME, "updated": TIME});
    let text = messages.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    vec![(format!("{folder}thread.json"), head.to_string()), (format!("{folder}messages.jsonl"), text)]
}

fn message(id: &str, role: &str, content: &Value, metadata: &Value) -> Value {
    json!({"id": id, "object": "thread.message", "thread_id": "t-1", "role": role, "content": content,
        "status": "ready", "created_at": TIME, "completed_at": TIME, "metadata": metadata})
}

fn said(text: &str) -> Value {
    json!([{"type": "text", "text": {"value": text, "annotations": []}}])
}

/// The id of the only thread, and the id and parent of each message.
fn tree(files: &[(String, String)]) -> (String, Vec<(String, Option<String>)>) {
    let lines = lines(files);
    let found = conversations(&lines);
    assert_eq!(found.len(), 1);
    let messages = found[0].messages.iter().map(|message| (message.id.clone(), message.parent.clone()));
    (found[0].id.clone(), messages.collect())
}

fn line_of_messages() -> Vec<Value> {
    let long = json!([{"type": "reasoning", "text": {"value": "Hm."}},
        {"type": "tool_call", "tool_call_id": "c", "tool_name": "ls", "input": {}, "output": "a.md"},
        {"type": "text", "text": {"value": "There is one."}}]);
    vec![
        message("m1", "user", &said("Which files?"), &json!(null)),
        message("m2", "assistant", &long, &json!({})),
        json!({"object": "thread.message", "thread_id": "t-1", "role": "user", "content": said("go on")}),
        json!({"object": "thread.message", "thread_id": "t-1", "role": "user", "content": said("go on")}),
        message("m5", "assistant", &said("Done."), &json!({})),
    ]
}

#[test]
fn ids_and_parents_stay_when_a_thread_goes_on() {
    let messages = line_of_messages();
    let whole = tree(&thread("t-1/", "t-1", &messages)).1;
    assert_eq!(whole.len(), 8);
    for count in 1..messages.len() {
        for pair in tree(&thread("t-1/", "t-1", &messages[..count])).1 {
            assert!(whole.contains(&pair), "{pair:?} of {count} messages");
        }
    }
}

#[test]
fn versions_change_no_id_and_no_parent() {
    let link = |id: Value| json!({"parentId": id});
    let plain = [
        message("a", "user", &said("One?"), &json!({})),
        message("b", "assistant", &said("Yes."), &json!({})),
        message("c", "user", &said("Sure?"), &json!({})),
    ];
    // The program writes the links when the first version is made.
    let linked = [
        message("a", "user", &said("One?"), &json!({"parentId": null, "activeChildId": "b2"})),
        message("b", "assistant", &said("Yes."), &link(json!("a"))),
        message("c", "user", &said("Sure?"), &link(json!("b"))),
        message("b2", "assistant", &said("No."), &link(json!("a"))),
    ];
    let after = tree(&thread("t-1/", "t-1", &linked)).1;
    for pair in tree(&thread("t-1/", "t-1", &plain)).1 {
        assert!(after.contains(&pair), "{pair:?}");
    }
}

#[test]
fn a_thread_is_the_same_wherever_it_is_and_with_one_of_its_files() {
    let files = thread("jan/threads/t-1/", "t-1", &line_of_messages());
    let expected = tree(&files);
    assert_eq!(expected.0, "t-1");
    assert_eq!(tree(&thread("backup/old/", "t-1", &line_of_messages())), expected);
    assert_eq!(tree(&files[1..]), expected);
    assert_eq!(tree(&[("messages.jsonl".to_owned(), files[1].1.clone())]), expected);
}

#[test]
fn an_export_has_the_messages_of_its_thread() {
    let messages = line_of_messages();
    let named: Vec<&Value> = messages.iter().filter(|message| message["id"].is_string()).collect();
    let export = json!({"title": "Tides", "exported_at": "2026-03-01T10:00:00Z", "messages": named});
    let (_, found) = tree(&[("Tides.json".to_owned(), export.to_string())]);
    let whole = tree(&thread("t-1/", "t-1", &messages)).1;
    assert!(found.iter().all(|(id, _)| whole.iter().any(|(own, _)| own == id)));
    let shorter = json!({"title": "Tides!", "exported_at": "2026-02-01T10:00:00Z", "messages": named[..1]});
    let files = |export: &Value| [("T.json".to_owned(), export.to_string())];
    assert_eq!(tree(&files(&shorter)).0, tree(&files(&export)).0);
}

#[test]
fn times_are_read_in_milliseconds_and_in_seconds() {
    for time in [json!(TIME), json!(TIME / 1000), json!(1_767_700_000.0)] {
        let mut one = message("a", "user", &said("One?"), &json!({}));
        one["created_at"] = time;
        let lines = lines(&thread("t-1/", "t-1", &[one]));
        assert_eq!(conversations(&lines)[0].messages[0].created_at, Some(1_767_700_000_000_000));
        assert!(warnings(&lines).is_empty());
    }
}

#[test]
fn what_other_importers_read_is_not_claimed() {
    let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in a folder");
    let mut looked_at = 0;
    for plugin in fs::read_dir(plugins).expect("the folder can be listed").flatten() {
        if plugin.file_name() == "jan" {
            continue;
        }
        for fixture in fs::read_dir(plugin.path().join("fixtures")).into_iter().flatten().flatten() {
            let Ok(bundle) = Bundle::from_folder(&fixture.path().join("input")) else { continue };
            let found = Jan::detect(&bundle).expect("detection answers");
            let claimed: Vec<&String> = found.iter().flat_map(|export| &export.files).collect();
            assert_eq!(claimed, [""; 0], "{}", fixture.path().display());
            looked_at += 1;
        }
    }
    assert!(looked_at > 100, "only {looked_at} fixtures");
}
