//! The notes that Satchel itself adds to a provider's `raw_metadata`, all under one key, so that they are never
//! mistaken for the provider's own data.

use satchel_pam::raw::RawObject;
use serde_json::{Map, Value};

/// The key.
pub const NOTES_KEY: &str = "satchel";

/// The name of a note, and a check whether a value can be one of ours.
pub(crate) type NoteCheck = (&'static str, fn(&Value) -> bool);

/// Returns Satchel's own notes in an object.
#[must_use]
pub fn own(raw: &Map<String, Value>) -> Option<&Map<String, Value>> {
    raw.get(NOTES_KEY).and_then(Value::as_object)
}

/// Returns one of Satchel's own notes in an object.
#[must_use]
pub fn get(raw: Option<&RawObject>, key: &str) -> Option<Value> {
    // Searching for the text first avoids parsing most objects.
    let raw = raw.filter(|raw| raw.as_str().contains(NOTES_KEY) && raw.as_str().contains(key))?;
    own(&raw.to_map())?.get(key).cloned()
}

/// Returns `raw` with further notes of Satchel's own.
#[must_use]
pub fn with(raw: Option<RawObject>, notes: Map<String, Value>) -> Option<RawObject> {
    if notes.is_empty() {
        return raw;
    }
    let raw = raw.unwrap_or_default();
    let mut all = if raw.as_str().contains(NOTES_KEY) {
        own(&raw.to_map()).cloned().unwrap_or_default()
    } else {
        Map::new()
    };
    all.extend(notes);
    Some(raw.with(NOTES_KEY, &Value::Object(all)))
}

/// Like [`with`], for one note.
#[must_use]
pub(crate) fn with_one(raw: Option<RawObject>, key: &str, value: Value) -> Option<RawObject> {
    with(raw, [(key.to_owned(), value)].into_iter().collect())
}

/// Removes notes and returns them. Exports from before the notes had a key of their own have them among the provider's
/// fields.
#[must_use]
pub(crate) fn extract(raw: &mut Option<RawObject>, checks: &[NoteCheck]) -> Map<String, Value> {
    let mut taken = Map::new();
    let Some(object) = raw.as_ref() else { return taken };
    if !checks.iter().any(|(key, _)| object.as_str().contains(key)) {
        return taken;
    }
    let map = object.to_map();
    let matching = |notes: &Map<String, Value>| -> Map<String, Value> {
        let ours = |(key, ours): &NoteCheck| {
            let value = notes.get(*key).filter(|value| ours(value))?;
            Some(((*key).to_owned(), value.clone()))
        };
        checks.iter().filter_map(ours).collect()
    };
    if let Some(notes) = own(&map) {
        taken = matching(notes);
        if !taken.is_empty() {
            let mut rest = notes.clone();
            rest.retain(|key, _| !taken.contains_key(key));
            *raw = Some(if rest.is_empty() {
                object.without(NOTES_KEY)
            } else {
                object.with(NOTES_KEY, &Value::Object(rest))
            });
            return taken;
        }
    }
    taken = matching(&map);
    *raw = Some(taken.keys().fold(object.clone(), |object, key| object.without(key)));
    taken
}
