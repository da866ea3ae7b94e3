//! The small files beside the conversations: account, manifest, names of attachments, lists that are read alone.

use std::collections::BTreeSet;

use satchel_importer::{AccountRecord, Bundle, Element, JsonError, Parser, json::Kind, names};
use serde_json::Value;

use crate::{
    layout::{self, FileKind},
    record_list::RecordList,
};

/// Bytes of one of these files; those seen are under 1 MB. A longer `conversation_asset_file_names.json` is read for the
/// conversations, but not for detection.
const MAX_BYTES: u64 = 8 * 1024 * 1024;
/// Bytes of a head that show the type of the first record of a list.
const HEAD: usize = 256 * 1024;
/// Prefix of account ids.
const ACCOUNT: &str = "user-";

/// The account: the id in `user.json`, else that in `user_settings.json`.
pub(crate) fn account(bundle: &Bundle, folder: &str) -> Option<AccountRecord> {
    let record = |name| {
        let locator = format!("{folder}{name}");
        Some(AccountRecord { id: account_in(bundle, &locator)?, name: None, locator })
    };
    ["user.json", "user_settings.json"].into_iter().find_map(record)
}

/// The account that the file `path` names.
fn account_in(bundle: &Bundle, path: &str) -> Option<String> {
    let file = read(bundle, path)?;
    let id = if names::split(path).1 == "user.json" { file.get("id") } else { file.get(0)?.get("user_id") };
    id?.as_str().filter(|id| !id.is_empty()).map(ToOwned::to_owned)
}

/// Whether a file is read even without conversations.
///
/// Other programs write files of these names too, so the content decides. What such a file says does not depend on the
/// conversations, except for the account.
pub(crate) fn stands_alone(bundle: &Bundle, path: &str) -> bool {
    match layout::kind(names::split(path).1) {
        FileKind::User | FileKind::Settings => {
            account_in(bundle, path).is_some_and(|id| id.starts_with(ACCOUNT))
        }
        FileKind::Groups => has_lists(bundle, path, "/chats", &["members", "messages"]),
        FileKind::Codex => has_lists(bundle, path, "/tasks", &["turns"]),
        _ => false,
    }
}

/// Whether the first record of a list has lists under all these keys.
fn has_lists(bundle: &Bundle, path: &str, pointer: &'static str, keys: &[&str]) -> bool {
    let mut found = 0;
    let count = |element: Element<'_>| {
        // The head may end inside the record; the lists before its end count.
        count_lists(&mut element.parser(), keys, &mut found).unwrap_or_default();
        false
    };
    let Ok(list) = RecordList::below(bundle, path, pointer) else { return false };
    list.array().sample(bundle, HEAD, count).is_ok() && found == keys.len()
}

fn count_lists(json: &mut Parser<'_>, keys: &[&str], found: &mut usize) -> Result<(), JsonError> {
    if json.enter_object()? {
        while let Some(key) = json.key()? {
            *found += usize::from(keys.contains(&key) && json.kind()? == Kind::Array);
        }
    }
    Ok(())
}

/// Paths of the conversation files that the manifest lists, in its order; reads every known layout of the manifest.
pub(crate) fn manifest_files(bundle: &Bundle, folder: &str) -> Vec<String> {
    let Some(manifest) = read(bundle, &format!("{folder}export_manifest.json")) else { return Vec::new() };
    let files = items(manifest.pointer("/logical_files/conversations.json/files"));
    let mut found: Vec<&str> = files.filter_map(file_name).collect();
    for file in items(manifest.get("files")) {
        if text(file, "name") == Some("conversations.json") {
            found.extend(items(file.get("shards")).filter_map(file_name));
        }
    }
    let paths = items(manifest.get("export_files")).filter_map(|file| text(file, "path"));
    found.extend(paths.filter(|path| layout::shard_number(names::split(path).1).is_some()));
    let mut seen = BTreeSet::new();
    found.retain(|name| seen.insert(*name));
    found.into_iter().map(|name| format!("{folder}{name}")).collect()
}

/// `"conversations-000.json"` or `{"name": "conversations-000.json"}`.
fn file_name(file: &Value) -> Option<&str> {
    file.as_str().or_else(|| text(file, "name"))
}

fn items(list: Option<&Value>) -> impl Iterator<Item = &Value> {
    list.and_then(Value::as_array).into_iter().flatten()
}

fn text<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    object.get(key)?.as_str()
}

/// The names of attachments, under which the export may contain them.
pub(crate) fn asset_names(bundle: &Bundle, folder: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let table = read(bundle, &format!("{folder}conversation_asset_file_names.json"));
    if let Some(Value::Object(table)) = table {
        for (key, value) in table {
            names.extend(value.as_str().map(ToOwned::to_owned));
            names.insert(key);
        }
    }
    let library = read(bundle, &format!("{folder}library_files.json"));
    names.extend(items(library.as_ref()).filter_map(|row| text(row, "file_name")).map(ToOwned::to_owned));
    names
}

fn read(bundle: &Bundle, path: &str) -> Option<Value> {
    bundle.entry(path)?;
    let bytes = bundle.read(path, MAX_BYTES).ok()?;
    serde_json::from_slice(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes)).ok()
}
