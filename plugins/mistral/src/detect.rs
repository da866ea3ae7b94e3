//! Finds chats among files, by the keys of their messages.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::{Bundle, Detection, Element, ImportError, JsonArray, JsonError, names};

use crate::layout;

/// A file for each chat.
pub(crate) const CHATS: &str = "mistral-importer/2025.09";
/// The formats.
pub(crate) const FORMATS: [&str; 1] = [CHATS];

/// Bytes of a head that are sampled: first, and if those do not decide. The host allows 16 MiB.
const SAMPLE_SIZES: [usize; 2] = [64 * 1024, 8 * 1024 * 1024];
/// Messages of one head that are sampled.
const MAX_ELEMENTS: u64 = 16;

/// Every export among the files: the chats of one folder with their files.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    let mut folders: BTreeMap<&str, Detection> = BTreeMap::new();
    let mut empty = Vec::new();
    for entry in bundle.entries() {
        let path = entry.path.as_str();
        if !names::is_json(path) || names::is_junk(path) || layout::is_attached(path) {
            continue;
        }
        match sample_head(bundle, path)? {
            Head::Chat => {
                let export = folders.entry(names::split(path).0).or_insert_with(|| Detection {
                    format: CHATS.to_owned(),
                    confidence: 95,
                    ..Detection::default()
                });
                export.files.push(path.to_owned());
            }
            Head::Empty if layout::is_chat(path) => empty.push(path),
            Head::Empty | Head::Foreign => {}
        }
    }
    for (folder, export) in &mut folders {
        // An empty or broken chat belongs to the export of its folder.
        export
            .files
            .extend(empty.iter().filter(|path| names::split(path).0 == *folder).map(ToString::to_string));
        add_attached(bundle, folder, &mut export.files);
        export.files.sort();
    }
    Ok(folders.into_values().collect())
}

/// The chats among the files of `run`.
pub(crate) fn chats(bundle: &Bundle) -> Vec<&str> {
    let paths = bundle.entries().iter().map(|entry| entry.path.as_str());
    paths.filter(|path| names::is_json(path) && !layout::is_attached(path)).collect()
}

/// Adds the attached files of an export's chats.
fn add_attached(bundle: &Bundle, folder: &str, files: &mut Vec<String>) {
    let own: BTreeSet<String> = files.iter().map(|path| layout::files_folder(path)).collect();
    let attached = |path: &&str| {
        let inside = path.strip_prefix(folder).is_some_and(|rest| {
            let at = rest.find('/').map_or(0, |at| at + 1);
            own.contains(&path[..folder.len() + at]) || (at > 0 && layout::is_attached(&rest[..at]))
        });
        inside && !names::is_junk(path)
    };
    let paths = bundle.entries().iter().map(|entry| entry.path.as_str());
    files.extend(paths.filter(attached).map(ToOwned::to_owned));
}

/// The contents of the head of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Head {
    /// Messages of a chat.
    Chat,
    /// Other elements.
    Foreign,
    /// Nothing.
    Empty,
}

/// Samples growing heads of a file until one decides.
fn sample_head(bundle: &Bundle, path: &str) -> Result<Head, ImportError> {
    let size = bundle.entry(path).map_or(0, |entry| entry.size);
    let mut head = Head::Empty;
    for bytes in SAMPLE_SIZES {
        JsonArray::new(path).sample(bundle, bytes, |element| {
            let found = classify(&element);
            head = if found == Head::Empty { head } else { found };
            head != Head::Chat && element.index() + 1 < MAX_ELEMENTS
        })?;
        if head == Head::Chat || size <= bytes as u64 {
            break;
        }
    }
    Ok(head)
}

fn classify(element: &Element<'_>) -> Head {
    let mut keys = BTreeSet::new();
    let mut read = || -> Result<(), JsonError> {
        let mut json = element.parser();
        if json.enter_object()? {
            while let Some(key) = json.key()? {
                keys.insert(key);
            }
        }
        Ok(())
    };
    // A sample may end inside the element; what was read before counts.
    let (Ok(()) | Err(_)) = read();
    let has = |key| keys.contains(key);
    if has("chatId") && (has("contentChunks") || (has("role") && has("createdAt") && has("content"))) {
        Head::Chat
    } else if keys.is_empty() {
        Head::Empty
    } else {
        Head::Foreign
    }
}
