//! The sample exports beside the repository: every record is emitted or skipped, as counted with `serde_json`.

use std::{collections::BTreeMap, path::Path};

use satchel_importer::testkit::{Sample, conversations};
use satchel_plugin_chatgpt::ChatGpt;
use serde_json::Value;

fn sample(name: &str) -> Option<Sample> {
    Sample::read::<ChatGpt>(env!("CARGO_MANIFEST_DIR"), name)
}

/// The number of conversations, and of messages in mappings.
fn count(value: &Value) -> (usize, usize) {
    let conversations: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(object) if object.contains_key("conversations") => {
            object["conversations"].as_array().into_iter().flatten().collect()
        }
        one => vec![one],
    };
    let nodes = conversations.iter().filter_map(|conversation| conversation.get("mapping")?.as_object());
    let messages = nodes
        .flat_map(|mapping| mapping.values())
        .filter(|node| node.get("message").is_some_and(|m| !m.is_null()));
    (conversations.len(), messages.count())
}

fn is_source(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or_default();
    let others = ["user", "group", "shared", "message_f", "library", "export_m", "conversation_asset"];
    Path::new(name).extension().is_some_and(|end| end == "json")
        && !others.iter().any(|other| name.starts_with(other))
}

#[test]
fn every_sample_export_balances() {
    for sample in ["chatgpt", "authored/chatgpt"].into_iter().filter_map(sample) {
        sample.check_counts(
            |file| is_source(file).then(|| count(&sample.json(file))),
            // Group chats are in a file of their own.
            |record| (!record.id.starts_with("group_chat:")).then_some(record.messages.len()),
        );
    }
}

#[test]
fn every_sample_file_is_claimed() {
    let Some(sample) = sample("chatgpt") else { return };
    // Its name is not that of an export's file, and several exports are beside it.
    assert_eq!(sample.unclaimed(), ["sthayi-user.json"]);
}

#[test]
fn nodes_of_a_slim_export_are_those_of_the_full_one() {
    let Some(sample) = sample("authored/chatgpt") else { return };
    assert_eq!(sample.exports.len(), 2);
    let nodes: Vec<BTreeMap<&str, Option<&str>>> = sample
        .exports
        .iter()
        .map(|export| {
            conversations(&export.lines)[0]
                .messages
                .iter()
                .map(|node| (node.id.as_str(), node.created_at.map(|_| "dated")))
                .collect()
        })
        .collect();
    assert!(nodes[1].iter().all(|(id, dated)| nodes[0].get(id) == Some(dated)), "{nodes:?}");
}
