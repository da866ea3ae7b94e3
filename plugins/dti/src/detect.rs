//! Finds conversation histories among files, by the members of their root objects.

use std::collections::BTreeMap;

use satchel_importer::{
    Bundle, Detection, Element, ErrorKind, ImportError, JsonArray, JsonError, Parser,
    json::Kind,
    names::{is_json, is_junk, split},
};

/// The format of the schema that was published in November 2025.
pub(crate) const FORMAT: &str = "dti-importer/2025.11";

/// Bytes of a head that are sampled: first, and if those do not decide. The host allows 16 MiB.
const SAMPLE_SIZES: [usize; 2] = [256 * 1024, 8 * 1024 * 1024];
/// Items of a list that are sampled.
const MAX_ITEMS: usize = 64;
/// The fields of `details` that the schema requires, and that other formats do not have together.
const REQUIRED: [&str; 4] = ["createdBy", "createdAt", "startTime", "endTime"];

/// Every export among the files, for the host: the histories of one folder.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    let mut found: BTreeMap<&str, Detection> = BTreeMap::new();
    for entry in bundle.entries() {
        let head = sample_head(bundle, &entry.path)?;
        if !head.is_history() {
            continue;
        }
        let export = found.entry(split(&entry.path).0).or_insert_with(|| Detection {
            format: FORMAT.to_owned(),
            confidence: head.confidence(),
            // Senders are named by mail addresses, which are not kept as an account.
            ..Detection::default()
        });
        export.confidence = export.confidence.min(head.confidence());
        export.files.push(entry.path.clone());
    }
    Ok(found.into_values().collect())
}

/// Whether the file is a history.
pub(crate) fn is_history(bundle: &Bundle, path: &str) -> Result<bool, ImportError> {
    Ok(sample_head(bundle, path)?.is_history())
}

/// The contents of the head of a file.
#[derive(Clone, Copy, Debug, Default)]
struct Head {
    /// It has details with enough of the required fields.
    details: bool,
    /// Items with a name or a type, and an identifier.
    identifiers: usize,
    /// Messages with a time, a sender and a text.
    messages: usize,
    /// There are messages of another form only.
    other_messages: bool,
}

/// Samples growing heads of a file until one decides.
fn sample_head(bundle: &Bundle, path: &str) -> Result<Head, ImportError> {
    let mut head = Head::default();
    if is_junk(path) || !is_json(path) {
        return Ok(head);
    }
    let size = bundle.entry(path).map_or(0, |entry| entry.size);
    for bytes in SAMPLE_SIZES {
        head = Head::default();
        let sampled = JsonArray::new(path).members().sample(bundle, bytes, |element| {
            // A sample may end inside the element; the part before the end counts.
            let (Ok(()) | Err(_)) = head.read_member(&element);
            true
        });
        match sampled {
            Err(error) if matches!(error.kind, ErrorKind::Io | ErrorKind::Cancelled) => return Err(error),
            // Other errors only say that the file is not of this format.
            Ok(()) | Err(_) => {}
        }
        if head.is_history() || size <= bytes as u64 {
            break;
        }
    }
    Ok(head)
}

impl Head {
    fn is_history(self) -> bool {
        self.details && (self.messages > 0 || (self.identifiers > 0 && !self.other_messages))
    }

    fn confidence(self) -> u8 {
        if self.messages > 0 && self.identifiers > 0 { 95 } else { 80 }
    }

    fn read_member(&mut self, element: &Element<'_>) -> Result<(), JsonError> {
        let json = &mut element.parser();
        match element.key() {
            Some("details") => self.details = has_details(json)?,
            Some("identifiers") => {
                self.identifiers =
                    count_items(json, |keys| keys.contains(&"identifier") && keys.contains(&"name"))?.0;
            }
            Some("messages") => {
                let fits = |keys: &[&str]| ["sentAt", "sender", "text"].iter().all(|key| keys.contains(key));
                let (fitting, all) = count_items(json, fits)?;
                (self.messages, self.other_messages) = (fitting, fitting == 0 && all > 0);
            }
            _ => {}
        }
        Ok(())
    }
}

/// Whether all but one of the required fields are texts.
fn has_details(json: &mut Parser<'_>) -> Result<bool, JsonError> {
    let mut texts = 0;
    if json.enter_object()? {
        while let Some(key) = json.key()? {
            texts += usize::from(REQUIRED.contains(&key) && json.kind()? == Kind::String);
        }
    }
    Ok(texts + 1 >= REQUIRED.len())
}

/// How many of the first items of a list are objects whose keys fit, and how many items were looked at. A list that ends inside an item
/// counts up to there.
fn count_items(json: &mut Parser<'_>, fits: impl Fn(&[&str]) -> bool) -> Result<(usize, usize), JsonError> {
    let (mut fitting, mut all) = (0, 0);
    if !json.enter_array()? {
        return Ok((0, 0));
    }
    while all < MAX_ITEMS && json.item().unwrap_or_default() {
        let Ok(keys) = keys_of(json) else { break };
        all += 1;
        fitting += usize::from(fits(&keys));
    }
    Ok((fitting, all))
}

fn keys_of<'a>(json: &mut Parser<'a>) -> Result<Vec<&'a str>, JsonError> {
    let mut keys = Vec::new();
    if json.enter_object()? {
        while let Some(key) = json.key()? {
            keys.push(key);
        }
    } else {
        json.skip_value()?;
    }
    Ok(keys)
}
