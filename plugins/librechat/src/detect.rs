//! Finds exports of LibreChat among files, by their heads.

use std::collections::BTreeMap;

use satchel_importer::{
    Bundle, Detection, ErrorKind, ImportError, JsonArray, JsonError, Parser,
    json::Kind,
    names::{has_extension, is_junk},
};

/// Recursive exports of old versions, whose messages are a tree.
pub(crate) const TREE: &str = "librechat-importer/2023.06";
/// Messages with a text each, in a list or nested.
pub(crate) const LIST: &str = "librechat-importer/2024.05";
/// Messages made of content parts.
pub(crate) const PARTS: &str = "librechat-importer/2025.01";
/// The formats, oldest first.
pub(crate) const FORMATS: [&str; 3] = [TREE, LIST, PARTS];

/// Bytes of a head that are sampled: first, and if those do not decide. The host allows 16 MiB.
const SAMPLE_SIZES: [usize; 2] = [64 * 1024, 8 * 1024 * 1024];
/// Conversations of one head that are sampled. LibreChat writes one into each file; scripts collect them.
const MAX_ELEMENTS: u64 = 16;
/// Items of one list that are sampled.
const MAX_MESSAGES: usize = 64;

/// Every export among the files: the conversations of one folder, as LibreChat writes each into a file of its own.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    let mut folders: BTreeMap<String, Detection> = BTreeMap::new();
    for (path, head) in exports(bundle)? {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        let found = folders.entry(folder).or_insert_with(|| Detection {
            format: head.format().to_owned(),
            confidence: head.confidence(),
            files: Vec::new(),
            account: None,
        });
        if head.format() > found.format.as_str() {
            head.format().clone_into(&mut found.format);
        }
        found.confidence = found.confidence.max(head.confidence());
        found.files.push(path);
    }
    Ok(folders.into_values().collect())
}

/// The files with a conversation, ordered by path.
pub(crate) fn exports(bundle: &Bundle) -> Result<Vec<(String, Head)>, ImportError> {
    let mut found = Vec::new();
    for entry in bundle.entries() {
        let head = sample_head(bundle, &entry.path, entry.size)?;
        if head.is_export() {
            found.push((entry.path.clone(), head));
        }
    }
    Ok(found)
}

/// Samples growing heads of a file until one decides.
fn sample_head(bundle: &Bundle, path: &str, size: u64) -> Result<Head, ImportError> {
    let mut head = Head::default();
    if is_junk(path) || !["json", "jsonl", "ndjson"].iter().any(|known| has_extension(path, known)) {
        return Ok(head);
    }
    for bytes in SAMPLE_SIZES {
        head = Head::default();
        let sampled = JsonArray::new(path).sample(bundle, bytes, |element| {
            let mut root = Root::default();
            // A sample may end inside the element, and nesting may be deeper than the parser reads. What was read before counts.
            let (Ok(()) | Err(_)) = root.read(&mut element.parser());
            head.add(root);
            element.index() < MAX_ELEMENTS
        });
        match sampled {
            Err(error) if matches!(error.kind, ErrorKind::Io | ErrorKind::Cancelled) => return Err(error),
            // Other errors only say that the file is not of this format.
            Ok(()) | Err(_) => {}
        }
        if head.is_export() || size <= bytes as u64 {
            break;
        }
    }
    Ok(head)
}

/// What is known of a file by its head.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Head {
    /// Conversations with a message of LibreChat.
    full: u32,
    /// Conversations that only have the fields of an export.
    bare: u32,
    /// Conversations with a tree.
    trees: u32,
    /// Messages with content parts.
    parts: u32,
}

impl Head {
    fn add(&mut self, root: Root) {
        let full = root.messages > 0 && (root.named || root.inside);
        let bare = root.named && root.stamped && root.list != ListName::Absent;
        self.full += u32::from(full);
        self.bare += u32::from(bare && !full);
        self.trees += u32::from(root.list == ListName::MessagesTree && (full || bare));
        self.parts += root.parts;
    }

    fn is_export(self) -> bool {
        self.full + self.bare > 0
    }

    fn format(self) -> &'static str {
        match (self.parts, self.trees) {
            (0, 0) => LIST,
            (0, _) => TREE,
            _ => PARTS,
        }
    }

    fn confidence(self) -> u8 {
        if self.full > 0 { 95 } else { 80 }
    }
}

/// The name of the list of messages of one conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum ListName {
    #[default]
    Absent,
    Messages,
    MessagesTree,
}

/// What is known of one conversation.
#[derive(Clone, Copy, Debug, Default)]
struct Root {
    /// It has a `conversationId`.
    named: bool,
    /// It has the time of an export.
    stamped: bool,
    list: ListName,
    /// Its messages are of LibreChat.
    messages: u32,
    /// Its messages name their conversation.
    inside: bool,
    parts: u32,
}

impl Root {
    fn read(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        if !json.enter_object()? {
            return Ok(());
        }
        while let Some(key) = json.key()? {
            match key {
                "conversationId" => self.named = json.kind()? == Kind::String,
                "exportAt" => self.stamped = json.kind()? == Kind::String,
                "messages" | "messagesTree" if json.kind()? == Kind::Array => {
                    let list = if key == "messages" { ListName::Messages } else { ListName::MessagesTree };
                    self.list = self.list.max(list);
                    self.read_list(json)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn read_list(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        json.enter_array()?;
        let mut seen = 0;
        while json.item()? {
            seen += 1;
            if seen <= MAX_MESSAGES {
                self.read_message(json, false)?;
            }
        }
        Ok(())
    }

    /// Reads a message and, if it has children, the first of them, which may be the first with parts.
    fn read_message(&mut self, json: &mut Parser<'_>, nested: bool) -> Result<(), JsonError> {
        let mut message = (false, false);
        if !json.enter_object()? {
            return Ok(());
        }
        while let Some(key) = json.key()? {
            match key {
                "messageId" => message.0 = json.kind()? == Kind::String,
                "isCreatedByUser" => message.1 = json.kind()? == Kind::Bool,
                "conversationId" => self.inside |= json.kind()? == Kind::String,
                "content" if json.kind()? == Kind::Array => self.parts += 1,
                "children" if !nested && json.enter_array()? => {
                    while json.item()? {
                        self.read_message(json, true)?;
                    }
                }
                _ => {}
            }
            if message == (true, true) {
                self.messages += 1;
                message = (false, false);
            }
        }
        Ok(())
    }
}
