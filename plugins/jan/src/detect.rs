//! Finds threads by the fields of their files, and exports by their first fields and messages.

use std::collections::BTreeMap;

use satchel_importer::{Bundle, Detection, Element, ImportError, JsonArray, JsonError, Parser, json::Value};

use crate::layout::{self, ThreadFiles};

/// The folders of threads.
pub(crate) const THREADS: &str = "jan-importer/2023.12";
/// One thread, as the program exports it.
pub(crate) const EXPORT: &str = "jan-importer/2026.02";
/// The formats, oldest first.
pub(crate) const FORMATS: [&str; 2] = [THREADS, EXPORT];

/// Bytes of a head that are sampled: first few, and if those do not decide, more. The host allows 16 MiB.
const SAMPLE_SIZES: [usize; 2] = [16 * 1024, 8 * 1024 * 1024];
/// Messages of a file that are looked at.
const MAX_MESSAGES: u64 = 4;
/// The fields of an export, in the order of the program.
const MEMBERS: [&str; 3] = ["title", "exported_at", "messages"];
/// The types of parts that messages of the program have.
const TYPES: [&str; 5] = ["text", "reasoning", "image_url", "tool_call", "input_audio"];

/// One export for the threads of each folder, and one for each file that the program exported.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    let mut folders: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (folder, files) in threads(bundle)? {
        let own = folders.entry(layout::above(folder)).or_default();
        let paths = files.head.into_iter().chain(files.messages).chain(files.others);
        own.extend(paths.map(ToOwned::to_owned));
    }
    let mut found: Vec<Detection> =
        folders.into_values().map(|files| detection(THREADS, 95, files)).collect();
    for path in exports(bundle)? {
        found.push(detection(EXPORT, 90, vec![path.to_owned()]));
    }
    Ok(found)
}

fn detection(format: &str, confidence: u8, mut files: Vec<String>) -> Detection {
    files.sort_unstable();
    Detection { format: format.to_owned(), confidence, files, account: None }
}

/// The threads of the program, by folder.
pub(crate) fn threads(bundle: &Bundle) -> Result<BTreeMap<&str, ThreadFiles<'_>>, ImportError> {
    let mut own = BTreeMap::new();
    for (folder, files) in layout::threads(bundle) {
        let head = match files.head {
            Some(path) => JsonArray::new(path).sample_first(bundle, &SAMPLE_SIZES, is_head)?,
            None => false,
        };
        let messages = match files.messages {
            Some(path) => has_messages(bundle, path)?,
            None => false,
        };
        // Each of the two speaks for the other one, which may be broken; without the file of the thread there may be others with this name.
        if head {
            own.insert(folder, files);
        } else if messages {
            own.insert(folder, ThreadFiles { head: None, ..files });
        }
    }
    Ok(own)
}

/// The files that the program exported.
pub(crate) fn exports(bundle: &Bundle) -> Result<Vec<&str>, ImportError> {
    let mut found = Vec::new();
    for entry in bundle.entries().iter().filter(|entry| layout::may_be_export(&entry.path)) {
        if JsonArray::new(&entry.path).sample_first(bundle, &SAMPLE_SIZES, is_export)? {
            found.push(entry.path.as_str());
        }
    }
    Ok(found)
}

/// Whether this is the file of a thread: an object of the type `thread` with assistants and times.
fn is_head(element: &Element<'_>) -> Option<bool> {
    let (mut object, mut others) = (false, 0);
    let mut read = || -> Result<(), JsonError> {
        let mut json = element.parser();
        if json.enter_object()? {
            while let Some(key) = json.key()? {
                match key {
                    "object" => object = Value::read(&mut json)?.text() == Some("thread"),
                    "assistants" | "created" | "updated" | "title" => {
                        others += 1;
                        json.skip_value()?;
                    }
                    _ => json.skip_value()?,
                }
            }
        }
        Ok(())
    };
    let complete = read().is_ok();
    if object && others > 1 {
        return Some(true);
    }
    complete.then_some(false)
}

/// Whether one of the first lines is a message of the program. Those of the API that it is modelled after have runs.
fn has_messages(bundle: &Bundle, path: &str) -> Result<bool, ImportError> {
    let mut found = false;
    for bytes in SAMPLE_SIZES {
        let mut whole = true;
        JsonArray::new(path).lines().sample(bundle, bytes, |element| {
            found |= is_line(&element);
            whole = element.whole();
            !found && element.index() < MAX_MESSAGES
        })?;
        if found || whole {
            break;
        }
    }
    Ok(found)
}

fn is_line(element: &Element<'_>) -> bool {
    let (mut object, mut thread, mut role, mut content, mut runs) = (false, false, false, false, false);
    let mut read = || -> Result<(), JsonError> {
        let mut json = element.parser();
        if json.enter_object()? {
            while let Some(key) = json.key()? {
                match key {
                    "object" => object = Value::read(&mut json)?.text() == Some("thread.message"),
                    "thread_id" => thread = Value::read(&mut json)?.nonempty_text().is_some(),
                    "role" => role = Value::read(&mut json)?.nonempty_text().is_some(),
                    "content" if json.enter_array()? => {
                        content = true;
                        while json.item()? {
                            json.skip_value()?;
                        }
                    }
                    "run_id" | "file_ids" => {
                        runs = true;
                        json.skip_value()?;
                    }
                    _ => json.skip_value()?,
                }
            }
        }
        Ok(())
    };
    // A sample may end inside the element, or another message may follow on the line; what was read before counts.
    let (Ok(()) | Err(_)) = read();
    object && thread && role && content && !runs
}

/// Whether this is an export; none if only more of it can say so.
fn is_export(element: &Element<'_>) -> Option<bool> {
    let (mut exported, mut messages, mut foreign) = (false, None, false);
    let mut read = || -> Result<(), JsonError> {
        let mut json = element.parser();
        if !json.enter_object()? {
            return Ok(());
        }
        while let Some(key) = json.key()? {
            foreign |= !MEMBERS.contains(&key) && !exported;
            if foreign {
                return Ok(());
            }
            match key {
                "exported_at" => exported = Value::read(&mut json)?.nonempty_text().is_some(),
                "messages" if json.enter_array()? => {
                    while json.item()? {
                        let seen = messages.unwrap_or(false);
                        messages = Some(seen || is_message(&mut json, &mut messages)?);
                    }
                }
                _ => json.skip_value()?,
            }
        }
        Ok(())
    };
    let complete = read().is_ok();
    if exported && messages == Some(true) {
        return Some(true);
    }
    (complete || foreign).then_some(false)
}

/// Whether the value is a message of an export. What is known when the sample ends is noted in `found`.
fn is_message(json: &mut Parser<'_>, found: &mut Option<bool>) -> Result<bool, JsonError> {
    let (mut id, mut role, mut content) = (false, false, false);
    if json.enter_object()? {
        while let Some(key) = json.key()? {
            match key {
                "id" => id = Value::read(json)?.nonempty_text().is_some(),
                "role" => role = Value::read(json)?.nonempty_text().is_some(),
                "content" if json.enter_array()? => {
                    while json.item()? {
                        content |= is_part(json)?;
                        if id && role && content {
                            *found = Some(true);
                        }
                    }
                }
                _ => json.skip_value()?,
            }
        }
    }
    Ok(id && role && content)
}

/// Whether the value is a part: its type is known, and a text is an object with a value.
fn is_part(json: &mut Parser<'_>) -> Result<bool, JsonError> {
    let (mut kind, mut value) = (None, false);
    if json.enter_object()? {
        while let Some(key) = json.key()? {
            match key {
                "type" => kind = Value::read(json)?.text(),
                "text" if json.enter_object()? => {
                    while let Some(key) = json.key()? {
                        value |= key == "value";
                        json.skip_value()?;
                    }
                }
                _ => json.skip_value()?,
            }
        }
    }
    let known = kind.is_some_and(|kind| TYPES.contains(&kind));
    Ok(known && (value || !matches!(kind, Some("text" | "reasoning"))))
}
