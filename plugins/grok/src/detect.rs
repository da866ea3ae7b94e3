//! Finds Grok exports among files, by what their heads hold.

use std::collections::BTreeMap;

use satchel_importer::{
    Bundle, Detection, Element, ErrorKind, ImportError, JsonArray, JsonError, Parser, json::Kind as Json,
};

use crate::layout::{self, Kind, MAIN};

/// Responses directly in their list, without ids.
pub(crate) const FLAT: &str = "grok-importer/flat";
/// `conversation_id`, `response_id`, times as text.
pub(crate) const LEGACY: &str = "grok-importer/2025.06";
/// `id`, `_id`, times as `{"$date": …}`.
pub(crate) const MODERN: &str = "grok-importer/2026.02";
/// The formats, oldest first.
pub(crate) const FORMATS: [&str; 3] = [FLAT, LEGACY, MODERN];

/// What the keys of responses and conversations show; the newest one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Layout {
    Flat,
    Legacy,
    Modern,
}

/// Bytes of a head that are looked at first, and where those do not decide. The host allows 16 MiB.
const HEADS: [usize; 2] = [256 * 1024, 8 * 1024 * 1024];
/// Elements, and items of the list of conversations, after which a head has said what it can.
const MAX_ELEMENTS: u64 = 32;
/// Responses of one conversation that are looked at.
const MAX_RESPONSES: usize = 8;

/// One export: the file with its conversations, and those beside it.
#[derive(Debug)]
pub(crate) struct Export {
    pub(crate) main: String,
    /// The conversations are in a list of the root object.
    pub(crate) wrapped: bool,
    pub(crate) beside: Vec<(Kind, String)>,
    head: Head,
}

/// Every export among the files, for the host.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    Ok(survey(bundle)?.into_iter().map(Export::into_detection).collect())
}

/// Every export among the files, ordered by the path of its main file.
pub(crate) fn survey(bundle: &Bundle) -> Result<Vec<Export>, ImportError> {
    let mut exports: Vec<Export> = Vec::new();
    let mut beside: BTreeMap<&str, Vec<(Kind, String)>> = BTreeMap::new();
    for entry in bundle.entries() {
        match layout::place(&entry.path) {
            Some((_, Kind::Json)) => {
                let head = look(bundle, &entry.path)?;
                if head.ours() {
                    let wrapped = head.list.is_some();
                    exports.push(Export { main: entry.path.clone(), wrapped, beside: Vec::new(), head });
                }
            }
            Some((folder, kind)) => beside.entry(folder).or_default().push((kind, entry.path.clone())),
            None => {}
        }
    }
    for (folder, files) in beside {
        let named = |export: &Export| export.main == format!("{folder}{MAIN}");
        let near = |export: &Export| satchel_importer::names::split(&export.main).0 == folder;
        let at = exports.iter().position(named).or_else(|| exports.iter().position(near));
        if let Some(export) = at.and_then(|at| exports.get_mut(at)) {
            export.beside = files;
        }
    }
    Ok(exports)
}

impl Export {
    fn into_detection(self) -> Detection {
        let mut files: Vec<String> = self.beside.into_iter().map(|(_, path)| path).collect();
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

/// What a file's head shows.
#[derive(Clone, Debug, Default)]
struct Head {
    conversations: u32,
    /// Items of the list that are something else.
    foreign: u32,
    /// Items of the list in the root object, if there is one.
    list: Option<u64>,
    /// The other lists that a backend file has.
    lists: u32,
    layout: Option<Layout>,
    account: Option<String>,
}

/// Looks at growing heads of a file until they say something.
fn look(bundle: &Bundle, path: &str) -> Result<Head, ImportError> {
    let size = bundle.entry(path).map_or(0, |entry| entry.size);
    let mut head = Head::default();
    for bytes in HEADS {
        head = Head::default();
        let sampled = JsonArray::new(path).sample(bundle, bytes, |element| {
            head.see(&element);
            head.list.is_none() && head.conversations == 0 && element.index() < MAX_ELEMENTS
        });
        match sampled {
            // Whatever it holds, it is nothing that we know.
            Err(error) if matches!(error.kind, ErrorKind::Io | ErrorKind::Cancelled) => return Err(error),
            Ok(()) | Err(_) => {}
        }
        if head.conversations + head.foreign > 0 || size <= bytes as u64 {
            break;
        }
    }
    Ok(head)
}

impl Head {
    fn ours(&self) -> bool {
        self.conversations > 0 || (self.list == Some(0) && self.foreign == 0 && self.lists > 0)
    }

    fn format(&self) -> &'static str {
        match self.layout {
            Some(Layout::Flat) => FLAT,
            Some(Layout::Legacy) => LEGACY,
            Some(Layout::Modern) | None => MODERN,
        }
    }

    fn show(&mut self, layout: Layout) {
        self.layout = self.layout.max(Some(layout));
    }

    fn see(&mut self, element: &Element<'_>) {
        // A sample may break off inside the element; what was seen before counts.
        let (Ok(()) | Err(_)) = self.read_root(&mut element.parser());
    }

    fn read_root(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        if !json.enter_object()? {
            return Ok(());
        }
        let mut item = Item::default();
        while let Some(key) = json.key()? {
            match key {
                "conversations" if json.enter_array()? => {
                    self.list = Some(0);
                    self.read_list(json)?;
                }
                "projects" | "tasks" | "media_posts" if self.list.is_some() => self.lists += 1,
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
                let mut item = Item::default();
                while let Some(key) = json.key()? {
                    self.read_member(key, &mut item, json)?;
                }
            }
        }
        Ok(())
    }

    /// One member of what may be a conversation with its responses.
    fn read_member(&mut self, key: &str, item: &mut Item, json: &mut Parser<'_>) -> Result<(), JsonError> {
        match key {
            "conversation" if json.kind()? == Json::Object => {
                // Counted at once: the rest may break off.
                self.note(item, |item| item.conversation = true);
                self.read_conversation(json)
            }
            "responses" if json.kind()? == Json::Array => {
                self.note(item, |item| item.responses = true);
                self.read_responses(item, json)
            }
            "mapping" | "chat_messages" | "fragments" | "chunkedPrompt" | "conversation_turns" => {
                self.foreign += 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Counts an item once enough of it was seen.
    fn note(&mut self, item: &mut Item, seen: impl FnOnce(&mut Item)) {
        let before = item.complete();
        seen(item);
        self.conversations += u32::from(item.complete() && !before);
    }

    fn read_conversation(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        if !json.enter_object()? {
            return Ok(());
        }
        while let Some(key) = json.key()? {
            match key {
                "id" if json.kind()? == Json::String => self.show(Layout::Modern),
                "conversation_id" if json.kind()? == Json::String => self.show(Layout::Legacy),
                "user_id" if self.account.is_none() && json.kind()? == Json::String => {
                    self.account = Some(json.string()?.to_owned()).filter(|account| !account.is_empty());
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn read_responses(&mut self, item: &mut Item, json: &mut Parser<'_>) -> Result<(), JsonError> {
        if !json.enter_array()? {
            return Ok(());
        }
        let mut seen = 0;
        while json.item()? {
            seen += 1;
            if seen > MAX_RESPONSES || !json.enter_object()? {
                continue;
            }
            let mut said = 0;
            while let Some(key) = json.key()? {
                match key {
                    "response" if json.enter_object()? => {
                        while let Some(key) = json.key()? {
                            match key {
                                "_id" => self.show(Layout::Modern),
                                "response_id" => self.show(Layout::Legacy),
                                _ => {}
                            }
                        }
                    }
                    "sender" | "message" => said += 1,
                    _ => {}
                }
                if said == 2 {
                    self.show(Layout::Flat);
                    self.note(item, |item| item.spoken = true);
                }
            }
        }
        Ok(())
    }
}

/// What was seen of one item.
#[derive(Default)]
struct Item {
    conversation: bool,
    responses: bool,
    /// A response says who speaks and what, without a wrapper.
    spoken: bool,
}

impl Item {
    fn complete(&self) -> bool {
        self.responses && (self.conversation || self.spoken)
    }
}
