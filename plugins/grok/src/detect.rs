//! Finds Grok exports among files, by their heads.

use std::collections::BTreeMap;

use satchel_importer::{Bundle, Detection, ErrorKind, ImportError, JsonArray, JsonError, Parser, json::Kind};

use crate::layout::{self, FileKind, MAIN};

/// Responses directly in their list, without ids.
pub(crate) const FLAT: &str = "grok-importer/flat";
/// `conversation_id`, `response_id`, times as text.
pub(crate) const LEGACY: &str = "grok-importer/2025.06";
/// `id`, `_id`, times as `{"$date": …}`.
pub(crate) const MODERN: &str = "grok-importer/2026.02";
/// The formats, oldest first.
pub(crate) const FORMATS: [&str; 3] = [FLAT, LEGACY, MODERN];

/// The schema that the keys of responses and conversations show; the newest one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Schema {
    Flat,
    Legacy,
    Modern,
}

/// Bytes of a head that are sampled: first, and if those do not decide. The host allows 16 MiB.
const SAMPLE_SIZES: [usize; 2] = [256 * 1024, 8 * 1024 * 1024];
/// Elements, and items of the list of conversations, of one head that are sampled.
const MAX_ELEMENTS: u64 = 32;
/// Responses of one conversation that are sampled.
const MAX_RESPONSES: usize = 8;

/// One export: the file with its conversations, and the other files.
#[derive(Debug)]
pub(crate) struct Export {
    pub(crate) main: String,
    /// The conversations are a list in the root object.
    pub(crate) wrapped: bool,
    pub(crate) others: Vec<(FileKind, String)>,
    head: Head,
}

/// Every export among the files, for the host.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    Ok(find_exports(bundle)?.into_iter().map(Export::into_detection).collect())
}

/// Every export among the files, ordered by the path of its main file.
pub(crate) fn find_exports(bundle: &Bundle) -> Result<Vec<Export>, ImportError> {
    let mut exports: Vec<Export> = Vec::new();
    let mut others: BTreeMap<&str, Vec<(FileKind, String)>> = BTreeMap::new();
    for entry in bundle.entries() {
        match layout::classify(&entry.path) {
            Some((_, FileKind::Json)) => {
                let head = sample_head(bundle, &entry.path)?;
                if head.is_export() {
                    let wrapped = head.list.is_some();
                    exports.push(Export { main: entry.path.clone(), wrapped, others: Vec::new(), head });
                }
            }
            Some((folder, kind)) => others.entry(folder).or_default().push((kind, entry.path.clone())),
            None => {}
        }
    }
    for (folder, files) in others {
        let named = |export: &Export| export.main == format!("{folder}{MAIN}");
        let same_folder = |export: &Export| satchel_importer::names::split(&export.main).0 == folder;
        let at = exports.iter().position(named).or_else(|| exports.iter().position(same_folder));
        if let Some(export) = at.and_then(|at| exports.get_mut(at)) {
            export.others = files;
        }
    }
    Ok(exports)
}

impl Export {
    fn into_detection(self) -> Detection {
        let mut files: Vec<String> = self.others.into_iter().map(|(_, path)| path).collect();
        files.push(self.main);
        files.sort();
        Detection {
            format: self.head.format().to_owned(),
            confidence: if self.head.conversations > 0 { 95 } else { 60 },
            files,
            account: self.head.account,
        }
    }
}

/// The contents of the head of a file.
#[derive(Clone, Debug, Default)]
struct Head {
    conversations: u32,
    /// Items with keys of another provider.
    foreign: u32,
    /// The number of items of the list in the root object, if there is one.
    list: Option<u64>,
    /// Other lists of a backend file.
    other_lists: u32,
    schema: Option<Schema>,
    account: Option<String>,
}

/// Samples growing heads of a file until one decides.
fn sample_head(bundle: &Bundle, path: &str) -> Result<Head, ImportError> {
    let size = bundle.entry(path).map_or(0, |entry| entry.size);
    let mut head = Head::default();
    for bytes in SAMPLE_SIZES {
        head = Head::default();
        let mut misplaced = false;
        let sampled = JsonArray::new(path).sample(bundle, bytes, |element| {
            // A sample may end inside the element; what was read before counts.
            let (Ok(()) | Err(_)) = head.read_root(&mut element.parser());
            // The lists are read from the first object of the file only.
            misplaced |= head.list.is_some() && element.index() > 0;
            head.list.is_none() && head.conversations == 0 && element.index() < MAX_ELEMENTS
        });
        match sampled {
            // Other errors only say that the file is not of this format.
            Err(error) if matches!(error.kind, ErrorKind::Io | ErrorKind::Cancelled) => return Err(error),
            Ok(()) | Err(_) => {}
        }
        if misplaced {
            return Ok(Head::default());
        }
        if head.conversations + head.foreign > 0 || size <= bytes as u64 {
            break;
        }
    }
    Ok(head)
}

impl Head {
    fn is_export(&self) -> bool {
        self.conversations > 0 || (self.list == Some(0) && self.foreign == 0 && self.other_lists > 0)
    }

    fn format(&self) -> &'static str {
        match self.schema {
            Some(Schema::Flat) => FLAT,
            Some(Schema::Legacy) => LEGACY,
            Some(Schema::Modern) | None => MODERN,
        }
    }

    fn add_schema(&mut self, schema: Schema) {
        self.schema = self.schema.max(Some(schema));
    }

    fn read_root(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        if !json.enter_object()? {
            return Ok(());
        }
        let mut item = ItemKeys::default();
        while let Some(key) = json.key()? {
            match key {
                "conversations" if json.enter_array()? => {
                    self.list = Some(0);
                    self.read_list(json)?;
                }
                "projects" | "tasks" | "media_posts" if self.list.is_some() => self.other_lists += 1,
                _ => self.read_member(key, &mut item, json)?,
            }
        }
        Ok(())
    }

    fn read_list(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        let mut seen = 0;
        while json.item()? {
            seen += 1;
            self.list = Some(seen);
            if seen <= MAX_ELEMENTS && json.enter_object()? {
                let mut item = ItemKeys::default();
                while let Some(key) = json.key()? {
                    self.read_member(key, &mut item, json)?;
                }
            }
        }
        Ok(())
    }

    /// Reads a member of what may be a conversation with its responses.
    fn read_member(
        &mut self,
        key: &str,
        item: &mut ItemKeys,
        json: &mut Parser<'_>,
    ) -> Result<(), JsonError> {
        match key {
            "conversation" if json.kind()? == Kind::Object => {
                // Counted at once: the sample may end in the rest.
                self.update(item, |item| item.conversation = true);
                self.read_conversation(json)
            }
            "responses" if json.kind()? == Kind::Array => {
                self.update(item, |item| item.responses = true);
                self.read_responses(item, json)
            }
            "mapping" | "chat_messages" | "fragments" | "chunkedPrompt" | "conversation_turns" => {
                self.foreign += 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Applies `change` to `item`, and counts the item if that completes it.
    fn update(&mut self, item: &mut ItemKeys, change: impl FnOnce(&mut ItemKeys)) {
        let before = item.complete();
        change(item);
        self.conversations += u32::from(item.complete() && !before);
    }

    fn read_conversation(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        if !json.enter_object()? {
            return Ok(());
        }
        while let Some(key) = json.key()? {
            match key {
                "id" if json.kind()? == Kind::String => self.add_schema(Schema::Modern),
                "conversation_id" if json.kind()? == Kind::String => self.add_schema(Schema::Legacy),
                "user_id" if self.account.is_none() && json.kind()? == Kind::String => {
                    self.account = Some(json.string()?.to_owned()).filter(|account| !account.is_empty());
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn read_responses(&mut self, item: &mut ItemKeys, json: &mut Parser<'_>) -> Result<(), JsonError> {
        if !json.enter_array()? {
            return Ok(());
        }
        let mut seen = 0;
        while json.item()? {
            seen += 1;
            if seen > MAX_RESPONSES || !json.enter_object()? {
                continue;
            }
            let mut flat_keys = 0;
            while let Some(key) = json.key()? {
                match key {
                    "response" if json.enter_object()? => {
                        while let Some(key) = json.key()? {
                            match key {
                                "_id" => self.add_schema(Schema::Modern),
                                "response_id" => self.add_schema(Schema::Legacy),
                                _ => {}
                            }
                        }
                    }
                    "sender" | "message" => flat_keys += 1,
                    _ => {}
                }
                if flat_keys == 2 {
                    self.add_schema(Schema::Flat);
                    self.update(item, |item| item.flat = true);
                }
            }
        }
        Ok(())
    }
}

/// The keys that were read of one item.
#[derive(Default)]
struct ItemKeys {
    conversation: bool,
    responses: bool,
    /// A response has `sender` and `message` without a wrapper.
    flat: bool,
}

impl ItemKeys {
    fn complete(&self) -> bool {
        self.responses && (self.conversation || self.flat)
    }
}
