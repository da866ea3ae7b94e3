//! Checks that what was imported keeps its id when a chat goes on or its file is renamed, and that files of others are left alone.

use std::{fs, path::Path};

use satchel_importer::{
    Bundle, Importer as _, Line,
    testkit::{conversations, produce, warnings},
};
use satchel_plugin_lm_studio::LmStudio;
use serde_json::{Value, json};

const TIME: u64 = 1_767_700_000_000;
const PATH: &str = "conversations/1767700000000.conversation.json";

fn lines(files: &[(&str, &Value)]) -> Vec<Line> {
    let files = files.iter().map(|(path, value)| ((*path).to_owned(), value.to_string()));
    let produced = produce::<LmStudio>(&Bundle::from_files(files)).expect("detection answers");
    produced.exports.into_iter().flat_map(|export| export.lines).collect()
}

/// The id of the only chat, and the id and parent of each message.
fn tree(path: &str, chat: &Value) -> (String, Vec<(String, Option<String>)>) {
    let lines = lines(&[(path, chat)]);
    let found = conversations(&lines);
    let messages = found[0].messages.iter().map(|message| (message.id.clone(), message.parent.clone()));
    (found[0].id.clone(), messages.collect())
}

fn ids(chat: &Value) -> Vec<String> {
    tree(PATH, chat).1.into_iter().map(|(id, _)| id).collect()
}

fn chat(messages: &[Value]) -> Value {
    json!({"name": "Tides", "createdAt": TIME, "messages": messages, "tokenCount": 1, "clientInput": "",
        "usePerChatPredictionConfig": true})
}

fn prompt(text: &str) -> Value {
    json!({"versions": [{"type": "singleStep", "role": "user", "content": [{"type": "text", "text": text}]}],
        "currentlySelected": 0})
}

fn step(number: u64, content: &Value) -> Value {
    json!({"type": "contentBlock", "stepIdentifier": format!("{}-0.{number}", TIME + number), "content": content})
}

fn text_part(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

fn answers(versions: &[Value], selected: usize) -> Value {
    let version = |steps: &Value| json!({"type": "multiStep", "role": "assistant", "steps": steps});
    let versions: Vec<Value> = versions.iter().map(version).collect();
    json!({"versions": versions, "currentlySelected": selected})
}

/// An answer with a status, a thought, a call, its result, and words.
fn long_answer() -> Vec<Value> {
    vec![
        json!({"type": "status", "stepIdentifier": format!("{TIME}-0.9"), "statusState": {"text": "Loading"}}),
        json!({"type": "contentBlock", "stepIdentifier": format!("{}-0.1", TIME + 1), "content": text_part("Hm."),
            "style": {"type": "thinking"}}),
        step(
            2,
            &json!([{"type": "text", "text": "I look."}, {"type": "toolCallRequest", "name": "ls", "parameters": {}}]),
        ),
        step(3, &json!([{"type": "toolCallResult", "content": "a.md"}])),
        step(4, &text_part("There is one.")),
    ]
}

#[test]
fn ids_and_parents_stay_when_a_chat_goes_on() {
    let steps = long_answer();
    let messages = [prompt("go on"), answers(&[json!(steps)], 0), prompt("go on"), prompt("go on")];
    let whole = tree(PATH, &chat(&messages)).1;
    for count in 1..=steps.len() {
        for pair in tree(PATH, &chat(&[prompt("go on"), answers(&[json!(steps[..count])], 0)])).1 {
            assert!(whole.contains(&pair), "{pair:?} of {count} steps");
        }
    }
    for count in 1..messages.len() {
        for pair in tree(PATH, &chat(&messages[..count])).1 {
            assert!(whole.contains(&pair), "{pair:?} of {count} messages");
        }
    }
}

#[test]
fn another_version_or_another_choice_changes_no_id() {
    let (one, two) = (json!([step(1, &text_part("One."))]), json!([step(2, &text_part("Two."))]));
    let before = ids(&chat(&[prompt("Say."), answers(std::slice::from_ref(&one), 0), prompt("Say.")]));
    let mut edited = prompt("Say.");
    edited["versions"].as_array_mut().expect("a list").push(prompt("Say.")["versions"][0].clone());
    for selected in 0..2 {
        let messages = [edited.clone(), answers(&[one.clone(), two.clone()], selected), prompt("Say.")];
        let after = ids(&chat(&messages));
        assert!(before.iter().all(|id| after.contains(id)), "{before:?} {after:?}");
        assert_eq!(after.len(), 5);
    }
}

#[test]
fn messages_that_are_deleted_change_no_other_id() {
    let messages = [prompt("One?"), answers(&[json!(long_answer())], 0), prompt("Two?"), prompt("Three?")];
    let whole = ids(&chat(&messages));
    for at in 0..messages.len() {
        let mut left = messages.to_vec();
        left.remove(at);
        let left = ids(&chat(&left));
        assert!(left.iter().all(|id| whole.contains(id)));
    }
}

#[test]
fn a_chat_that_is_renamed_or_moved_stays_the_same() {
    let chat = chat(&[prompt("One?")]);
    let expected = tree(PATH, &chat);
    for path in ["tides.json", "conversations/Sea/1767700000000.conversation.json", "1767700000000 copy.json"]
    {
        assert_eq!(tree(path, &chat), expected, "{path}");
    }
    let mut renamed = chat;
    renamed["name"] = json!("High tide");
    assert_eq!(tree(PATH, &renamed), expected);
}

#[test]
fn a_copy_with_any_name_leaves_the_original_its_id() {
    let original = chat(&[prompt("One?")]);
    let copy = chat(&[prompt("One?"), prompt("Two?")]);
    for name in ["1767700000000 copy.conversation.json", "0.json", "tides.json", "Sea/1.json"] {
        let lines = lines(&[(&format!("conversations/{name}"), &copy), (PATH, &original)]);
        let found = conversations(&lines);
        let ids = found.iter().map(|chat| (chat.messages.len(), chat.id.as_str()));
        assert_eq!(ids.collect::<Vec<_>>(), [(1, "1767700000000"), (2, "1767700000000#2")], "{name}");
    }
}

#[test]
fn the_folder_is_kept_whether_conversations_or_the_folder_above_is_imported() {
    let one = chat(&[prompt("One?")]);
    for path in
        ["conversations/Sea/Ice/1767700000000.conversation.json", "Sea/Ice/1767700000000.conversation.json"]
    {
        let lines = lines(&[(path, &one)]);
        let metadata = conversations(&lines)[0].raw_metadata.as_ref();
        assert_eq!(metadata.expect("there is some").to_map()["folder"], "Sea/Ice", "{path}");
    }
}

#[test]
fn the_order_of_chats_and_fields_changes_nothing() {
    let other = json!({"createdAt": TIME + 5_000_000, "usePerChatPredictionConfig": true, "clientInput": "",
        "messages": [prompt("Another?")], "name": "Other"});
    let one = chat(&[prompt("One?")]);
    let all = |files: &[(&str, &Value)]| {
        let lines = lines(files);
        assert!(warnings(&lines).is_empty());
        let mut found: Vec<String> = conversations(&lines).iter().map(|chat| chat.id.clone()).collect();
        found.sort();
        found
    };
    assert_eq!(all(&[("a.json", &one), ("b.json", &other)]), all(&[("a.json", &other), ("b.json", &one)]));
}

#[test]
fn times_are_read_in_milliseconds_and_in_seconds() {
    for (time, id) in [(json!(TIME), "1767700000000"), (json!(1_767_700_000), "1767700000000")] {
        let mut chat = chat(&[prompt("One?")]);
        chat["createdAt"] = time;
        let lines = lines(&[("a.json", &chat)]);
        assert_eq!(conversations(&lines)[0].created_at, Some(1_767_700_000_000_000));
        assert_eq!(conversations(&lines)[0].id, id);
    }
}

#[test]
fn what_other_importers_read_is_not_claimed() {
    let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in a folder");
    let mut looked_at = 0;
    for plugin in fs::read_dir(plugins).expect("the folder can be listed").flatten() {
        if plugin.file_name() == "lm-studio" {
            continue;
        }
        for fixture in fs::read_dir(plugin.path().join("fixtures")).into_iter().flatten().flatten() {
            let Ok(bundle) = Bundle::from_folder(&fixture.path().join("input")) else { continue };
            let found = LmStudio::detect(&bundle).expect("detection answers");
            // An importer may have a chat of this program among the files that it leaves alone.
            let claimed =
                found.iter().flat_map(|export| &export.files).filter(|file| !file.contains("lm-studio"));
            assert_eq!(claimed.collect::<Vec<_>>(), [""; 0], "{}", fixture.path().display());
            looked_at += 1;
        }
    }
    assert!(looked_at > 100, "only {looked_at} fixtures");
}
