//! The small files beside the conversations: whose export it is, which files it has, what attachments were called.

use std::collections::BTreeSet;

use satchel_importer::{Bundle, names};
use serde_json::Value;

use crate::layout;

/// Bytes of `user.json`, `user_settings.json` and `export_manifest.json`; those seen are under 1 MB.
const SMALL: u64 = 8 * 1024 * 1024;
/// Bytes of `conversation_asset_file_names.json` that detection reads.
const NAMES: u64 = 8 * 1024 * 1024;

/// The files that name the account; the first that does counts.
pub(crate) const ACCOUNT_FILES: [&str; 2] = ["user.json", "user_settings.json"];

/// The account: `user.json`'s id, else that of the settings.
pub(crate) fn account(bundle: &Bundle, folder: &str) -> Option<String> {
    ACCOUNT_FILES.into_iter().find_map(|name| account_in(bundle, folder, name))
}

/// The account that the file `name` names.
pub(crate) fn account_in(bundle: &Bundle, folder: &str, name: &str) -> Option<String> {
    let file = read(bundle, folder, name)?;
    let id = if name == "user.json" { file.get("id") } else { file.get(0)?.get("user_id") };
    id?.as_str().filter(|id| !id.is_empty()).map(ToOwned::to_owned)
}

/// Paths of the conversation files that the manifest names, in its order; all shapes of manifest.
pub(crate) fn manifest_files(bundle: &Bundle, folder: &str) -> Vec<String> {
    let Some(manifest) = read(bundle, folder, "export_manifest.json") else { return Vec::new() };
    let mut found: Vec<&str> = Vec::new();
    if let Some(Value::Array(files)) = manifest.pointer("/logical_files/conversations.json/files") {
        found.extend(files.iter().filter_map(name));
    }
    for file in manifest.get("files").and_then(Value::as_array).into_iter().flatten() {
        if file.get("name").and_then(Value::as_str) == Some("conversations.json") {
            let shards = file.get("shards").and_then(Value::as_array);
            found.extend(shards.into_iter().flatten().filter_map(name));
        }
    }
    for file in manifest.get("export_files").and_then(Value::as_array).into_iter().flatten() {
        let path = file.get("path").and_then(Value::as_str);
        found.extend(path.filter(|path| layout::shard(names::split(path).1).is_some()));
    }
    let mut seen = BTreeSet::new();
    found.retain(|name| seen.insert(*name));
    found.into_iter().map(|name| format!("{folder}{name}")).collect()
}

/// `"conversations-000.json"` or `{"name": "conversations-000.json"}`.
fn name(file: &Value) -> Option<&str> {
    file.as_str().or_else(|| file.get("name")?.as_str())
}

/// The names that attachments had, for files that lie in the export under such a name.
pub(crate) fn asset_names(bundle: &Bundle, folder: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    if let Some(Value::Object(map)) = read(bundle, folder, "conversation_asset_file_names.json") {
        for (key, value) in map {
            names.extend(value.as_str().map(ToOwned::to_owned));
            names.insert(key);
        }
    }
    let library = read(bundle, folder, "library_files.json");
    for row in library.as_ref().and_then(Value::as_array).into_iter().flatten() {
        names.extend(row.get("file_name").and_then(Value::as_str).map(ToOwned::to_owned));
    }
    names
}

fn read(bundle: &Bundle, folder: &str, name: &str) -> Option<Value> {
    let path = format!("{folder}{name}");
    bundle.entry(&path)?;
    let limit = if name == "conversation_asset_file_names.json" { NAMES } else { SMALL };
    let bytes = bundle.read(&path, limit).ok()?;
    serde_json::from_slice(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes)).ok()
}
