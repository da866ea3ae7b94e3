//! Finds storages by the names of their files and the fields of some of them, exports by their first fields, and databases by their
//! tables.

use std::collections::BTreeMap;

use satchel_importer::{Bundle, Detection, Element, ImportError, JsonArray, JsonError, Parser, json::Value};

use crate::{
    database, layout,
    storage_index::{Key, SessionFiles, StorageIndex},
};

/// A storage for each project.
pub(crate) const OLD_STORAGE: &str = "opencode-importer/2025.06";
/// One storage for all projects.
pub(crate) const STORAGE: &str = "opencode-importer/2025.09";
/// The output of `opencode export`.
pub(crate) const EXPORT: &str = "opencode-importer/2026.01";
/// The database of version 1.2 and later ones.
pub(crate) const DATABASE: &str = "opencode-importer/2026.02";
/// The formats, oldest first.
pub(crate) const FORMATS: [&str; 4] = [OLD_STORAGE, STORAGE, EXPORT, DATABASE];

/// The sessions of one project: the root of the storage and the project.
type Project<'b> = (&'b str, &'b str);

/// Bytes of a head that are sampled: first few, and if those do not decide, more. The host allows 16 MiB.
const SAMPLE_SIZES: [usize; 2] = [16 * 1024, 8 * 1024 * 1024];
/// Files of a project that are looked at. A storage has hundreds of thousands of files, so most are known by their names alone.
const MAX_SAMPLES: usize = 8;
/// Members of an export, of which one comes first.
const MEMBERS: [&str; 3] = ["info", "messages", "todos"];
/// Fields that sessions have beside their id and time.
const OF_SESSIONS: [&str; 4] = ["projectID", "directory", "version", "title"];
/// Fields that messages have beside their id and role.
const OF_MESSAGES: [&str; 2] = ["sessionID", "metadata"];

/// Every export among the files: the sessions of one project, the database, or one file.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    let index = StorageIndex::read(bundle);
    let mut found: Vec<Detection> = Vec::new();
    let mut lost: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (root, path) in index.lost_parts() {
        lost.entry(root).or_default().push(path);
    }
    for ((root, project), sessions) in projects(bundle, &index)? {
        let mut files: Vec<&str> = sessions.iter().flat_map(|key| index.paths(*key)).collect();
        files.extend(index.project(root, project));
        // What belongs to no message is reported with the first project.
        files.extend(lost.remove(root).unwrap_or_default());
        files.sort_unstable();
        let format = format_of(root);
        found.push(detection(format, files.into_iter().map(ToOwned::to_owned).collect()));
    }
    for path in exports(bundle)? {
        found.push(detection(EXPORT, vec![path.to_owned()]));
    }
    for path in database::databases(bundle)? {
        found.push(detection(DATABASE, database::files(bundle, path, &index)));
    }
    Ok(found)
}

fn detection(format: &str, files: Vec<String>) -> Detection {
    Detection { format: format.to_owned(), confidence: 95, files, account: None }
}

/// The format of the storage with this root.
pub(crate) fn format_of(root: &str) -> &'static str {
    if root.ends_with("session/") { OLD_STORAGE } else { STORAGE }
}

/// The sessions of each project, without what is no storage of the program.
pub(crate) fn projects<'b>(
    bundle: &Bundle,
    index: &StorageIndex<'b>,
) -> Result<BTreeMap<Project<'b>, Vec<Key<'b>>>, ImportError> {
    let mut projects: BTreeMap<Project<'b>, Vec<Key<'b>>> = BTreeMap::new();
    for (key, files) in &index.sessions {
        let project = files.file.map_or("", |(project, _)| project);
        projects.entry((key.0, project)).or_default().push(*key);
    }
    let mut own = BTreeMap::new();
    for (project, sessions) in projects {
        if is_own(bundle, index, &sessions)? {
            own.insert(project, sessions);
        }
    }
    Ok(own)
}

/// Whether one of the first files is what its name says.
fn is_own(bundle: &Bundle, index: &StorageIndex<'_>, sessions: &[Key<'_>]) -> Result<bool, ImportError> {
    let files = || sessions.iter().filter_map(|key| index.sessions.get(key));
    for path in files().filter_map(|files| files.file).map(|(_, path)| path).take(MAX_SAMPLES) {
        if has_fields(bundle, path, "time", &OF_SESSIONS, layout::is_session)? {
            return Ok(true);
        }
    }
    for path in files().filter_map(first_message).take(MAX_SAMPLES) {
        if has_fields(bundle, path, "role", &OF_MESSAGES, layout::is_message)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn first_message<'b>(files: &SessionFiles<'b>) -> Option<&'b str> {
    files.messages.first().map(|(_, path)| *path)
}

/// Whether the file has one object with a fitting id, the field `needed`, and one of `others`.
fn has_fields(
    bundle: &Bundle,
    path: &str,
    needed: &str,
    others: &[&str],
    fits: fn(&str) -> bool,
) -> Result<bool, ImportError> {
    JsonArray::new(path).sample_first(bundle, &SAMPLE_SIZES, |element| {
        let (mut id, mut has_needed, mut has_other) = (false, false, false);
        let mut read = || -> Result<(), JsonError> {
            let mut json = element.parser();
            if json.enter_object()? {
                while let Some(key) = json.key()? {
                    has_needed |= key == needed;
                    has_other |= others.contains(&key);
                    match key {
                        "id" => id = Value::read(&mut json)?.text().is_some_and(fits),
                        _ => json.skip_value()?,
                    }
                }
            }
            Ok(())
        };
        // A sample may end inside the element; what was read before counts.
        let (Ok(()) | Err(_)) = read();
        (id && has_needed && has_other).then_some(true)
    })
}

/// The files with the output of `opencode export`.
pub(crate) fn exports(bundle: &Bundle) -> Result<Vec<&str>, ImportError> {
    let mut found = Vec::new();
    for entry in bundle.entries().iter().filter(|entry| layout::may_be_export(&entry.path)) {
        if JsonArray::new(&entry.path).sample_first(bundle, &SAMPLE_SIZES, is_export)? {
            found.push(entry.path.as_str());
        }
    }
    Ok(found)
}

/// Whether this is an object with a session in `info` and a list of messages; none if only more of it can say so.
fn is_export(element: &Element<'_>) -> Option<bool> {
    let (mut session, mut messages, mut first) = (false, false, None);
    let mut read = || -> Result<(), JsonError> {
        let mut json = element.parser();
        if !json.enter_object()? {
            return Ok(());
        }
        while let Some(key) = json.key()? {
            if !MEMBERS.contains(first.get_or_insert(key)) {
                return Ok(());
            }
            match key {
                "info" if json.enter_object()? => {
                    let (mut id, mut other) = (false, false);
                    while let Some(key) = json.key()? {
                        other |= OF_SESSIONS.contains(&key);
                        match key {
                            "id" => id = Value::read(&mut json)?.text().is_some_and(layout::is_session),
                            _ => json.skip_value()?,
                        }
                    }
                    session = id && other;
                }
                "messages" if json.enter_array()? => {
                    messages = true;
                    let mut looks = Some(&mut messages);
                    while json.item()? {
                        match looks.take() {
                            Some(messages) => look_at_message(&mut json, messages)?,
                            None => json.skip_value()?,
                        }
                    }
                }
                _ => json.skip_value()?,
            }
        }
        Ok(())
    };
    let (Ok(()) | Err(_)) = read();
    if session && messages {
        return Some(true);
    }
    // Exports of others may be large, so no more of them is read.
    let may_be = first.is_some_and(|first| MEMBERS.contains(&first));
    if may_be { None } else { Some(false) }
}

/// Says whether the value begins as a message of an export does, and skips the rest of it.
fn look_at_message(json: &mut Parser<'_>, fits: &mut bool) -> Result<(), JsonError> {
    *fits = false;
    if json.enter_object()? {
        while let Some(key) = json.key()? {
            *fits |= matches!(key, "info" | "parts");
            json.skip_value()?;
        }
    }
    Ok(())
}
