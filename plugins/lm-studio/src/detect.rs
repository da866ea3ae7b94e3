//! Finds chats by their first fields and messages.

use std::{collections::BTreeMap, io::Read as _};

use satchel_importer::{Bundle, Detection, Element, ImportError, JsonArray, JsonError, Parser, json::Value};

use crate::layout;

/// The format of the files since version 0.3 of the program.
pub(crate) const FORMAT: &str = "lm-studio-importer/2024.08";

/// Bytes of a head that are sampled: first few, and if those do not decide, more. The host allows 16 MiB.
const SAMPLE_SIZES: [usize; 2] = [16 * 1024, 8 * 1024 * 1024];
/// Bytes in which a file must begin with its object.
const MAX_WHITE_SPACE: u64 = 256;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Fields after which a file without any of the program's is left alone.
const MAX_OTHERS: usize = 3;
/// Messages that are looked at.
const MAX_MESSAGES: usize = 8;
/// Fields that chats of other programs have, too.
const COMMON: [&str; 6] = ["createdAt", "name", "notes", "pinned", "plugins", "systemPrompt"];
/// Fields that only chats of this program have.
const OWN: [&str; 14] = [
    "assistantLastMessagedAt",
    "clientInput",
    "clientInputFiles",
    "disabledPluginTools",
    "lastUsedModel",
    "looseFiles",
    "perChatPredictionConfig",
    "pluginConfigs",
    "preset",
    "tokenCount",
    "usePerChatPredictionConfig",
    "userFilesSizeBytes",
    "userLastMessagedAt",
    "workingDirectoryName",
];

/// One export for each folder of the program, with the files that the person added to chats, and one for all chats elsewhere.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    let mut found: BTreeMap<Option<&str>, Vec<String>> = BTreeMap::new();
    for path in chats(bundle)? {
        found.entry(layout::location(path).root).or_default().push(path.to_owned());
    }
    for (root, files) in &mut found {
        let Some(root) = root else { continue };
        let paths = bundle.entries().iter().map(|entry| &entry.path);
        files.extend(paths.filter(|path| layout::is_file_of(root, path)).cloned());
        files.sort_unstable();
        files.dedup();
    }
    let detection = |files| Detection { format: FORMAT.to_owned(), confidence: 95, files, account: None };
    Ok(found.into_values().map(detection).collect())
}

/// The paths of all chats.
pub(crate) fn chats(bundle: &Bundle) -> Result<Vec<&str>, ImportError> {
    let mut found = Vec::new();
    for entry in bundle.entries().iter().filter(|entry| layout::may_be_chat(&entry.path)) {
        if is_chat(bundle, &entry.path)? {
            found.push(entry.path.as_str());
        }
    }
    Ok(found)
}

/// Looks at growing heads of a file until one decides.
fn is_chat(bundle: &Bundle, path: &str) -> Result<bool, ImportError> {
    if !begins_with_object(bundle, path)? {
        return Ok(false);
    }
    JsonArray::new(path).sample_first(bundle, &SAMPLE_SIZES, decide)
}

/// Whether the file begins with an object. The program writes no lists of chats, and the walk over messages cannot read them.
fn begins_with_object(bundle: &Bundle, path: &str) -> Result<bool, ImportError> {
    let mut head = Vec::new();
    bundle.open(path)?.take(MAX_WHITE_SPACE).read_to_end(&mut head)?;
    let text = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&head);
    Ok(text.trim_ascii_start().starts_with(b"{"))
}

/// What the head of a file shows.
#[derive(Default)]
struct Head {
    fields: usize,
    own: usize,
    common: usize,
    /// Whether there is a list of messages, and whether it is empty.
    list: Option<bool>,
    /// Whether a message has a version, and whether one is selected.
    version: bool,
    selected: bool,
}

/// Whether this is a chat; none if only more of the file can say so.
fn decide(element: &Element<'_>) -> Option<bool> {
    let mut head = Head::default();
    // A sample may end inside the element; what was read before counts.
    let complete = head.read(element).is_ok();
    if head.version && (head.selected || head.own > 0) {
        return Some(true);
    }
    if head.list == Some(true) && head.own > 1 && head.own + head.common > 3 {
        return Some(true);
    }
    let foreign = head.fields >= MAX_OTHERS && head.own + head.common == 0;
    (foreign || complete).then_some(false)
}

impl Head {
    fn read(&mut self, element: &Element<'_>) -> Result<(), JsonError> {
        let mut json = element.parser();
        if !json.enter_object()? {
            return Ok(());
        }
        while let Some(key) = json.key()? {
            self.fields += 1;
            self.own += usize::from(OWN.contains(&key));
            self.common += usize::from(COMMON.contains(&key));
            if self.fields >= MAX_OTHERS && self.own + self.common == 0 {
                return Ok(());
            }
            match key {
                "messages" if json.enter_array()? => self.read_messages(&mut json)?,
                _ => json.skip_value()?,
            }
        }
        Ok(())
    }

    fn read_messages(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        let mut count = 0;
        while json.item()? {
            self.list = Some(false);
            count += 1;
            if count <= MAX_MESSAGES && json.enter_object()? {
                while let Some(key) = json.key()? {
                    match key {
                        "versions" if json.enter_array()? => self.read_versions(json)?,
                        "currentlySelected" => {
                            self.selected |= matches!(Value::read(json)?, Value::Raw(_));
                        }
                        _ => json.skip_value()?,
                    }
                }
            }
        }
        self.list = self.list.or(Some(true));
        Ok(())
    }

    fn read_versions(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        while json.item()? {
            let (mut role, mut content) = (false, false);
            if json.enter_object()? {
                while let Some(key) = json.key()? {
                    role |= key == "role";
                    content |= matches!(key, "content" | "steps");
                    self.version |= role && content;
                    json.skip_value()?;
                }
            }
        }
        Ok(())
    }
}
