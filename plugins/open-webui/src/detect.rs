//! Finds exports and databases of Open WebUI among files, by their heads.

use satchel_importer::{
    Bundle, Detection, ErrorKind, ImportError, JsonArray, JsonError, Parser,
    json::Kind,
    names::{has_extension, is_junk},
    sqlite,
};

use crate::database::{self, DatabaseHead};

/// Chats whose messages are a list.
pub(crate) const LIST: &str = "open-webui-importer/2023.11";
/// A database with chats.
pub(crate) const CHATS: &str = "open-webui-importer/2024.02";
/// Chats whose messages are a tree.
pub(crate) const TREE: &str = "open-webui-importer/2025.04";
/// A database that also has a table of messages.
pub(crate) const MESSAGES: &str = "open-webui-importer/2026.02";
/// Chats with answers made of output items.
pub(crate) const OUTPUT: &str = "open-webui-importer/2026.06";
/// The formats, oldest first.
pub(crate) const FORMATS: [&str; 5] = [LIST, CHATS, TREE, MESSAGES, OUTPUT];

/// Extensions of exports, and of databases.
const JSON: [&str; 3] = ["json", "jsonl", "ndjson"];
const SQLITE: [&str; 3] = ["db", "sqlite", "sqlite3"];
/// Bytes of a head that are sampled: first, and if those do not decide. The host allows 16 MiB.
const SAMPLE_SIZES: [usize; 2] = [256 * 1024, 8 * 1024 * 1024];
/// Elements of one head that are sampled.
const MAX_ELEMENTS: u64 = 32;
/// Messages of one chat that are sampled.
const MAX_MESSAGES: usize = 64;

/// Every export among the files, for the host.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    let detection = |export: Export| {
        let (format, confidence) = match &export.content {
            Content::Json(head) => (head.format(), head.confidence()),
            Content::Database(database) => (database.format(), database.confidence()),
        };
        let files = match &export.content {
            Content::Json(_) => vec![export.path],
            Content::Database(_) => sqlite::files(bundle, &export.path),
        };
        // An administrator's export has the chats of several accounts: each chat names its own.
        Detection { format: format.to_owned(), confidence, files, account: None }
    };
    Ok(exports(bundle)?.into_iter().map(detection).collect())
}

/// A file with chats.
#[derive(Debug)]
pub(crate) struct Export {
    pub(crate) path: String,
    pub(crate) content: Content,
}

/// What a file with chats is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content {
    Json(Head),
    Database(DatabaseHead),
}

/// The files with chats, ordered by path.
pub(crate) fn exports(bundle: &Bundle) -> Result<Vec<Export>, ImportError> {
    let mut found = Vec::new();
    for entry in bundle.entries() {
        let path = entry.path.as_str();
        let content = if is_junk(path) {
            None
        } else if JSON.iter().any(|known| has_extension(path, known)) {
            Some(sample_head(bundle, path)?).filter(|head| head.is_export()).map(Content::Json)
        } else if SQLITE.iter().any(|known| has_extension(path, known)) {
            database::sample(bundle, path)?.map(Content::Database)
        } else {
            None
        };
        found.extend(content.map(|content| Export { path: path.to_owned(), content }));
    }
    Ok(found)
}

/// The contents of the head of a file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Head {
    /// Elements with a chat that has a tree of messages, also an empty one.
    rows: u32,
    /// Messages of trees.
    nodes: u32,
    /// Messages of the list of a chat.
    items: u32,
    /// Messages with output items.
    outputs: u32,
    /// Messages of the export of statistics, which have no text.
    statistics: u32,
}

/// Samples growing heads of a file until one decides.
fn sample_head(bundle: &Bundle, path: &str) -> Result<Head, ImportError> {
    let mut head = Head::default();
    let size = bundle.entry(path).map_or(0, |entry| entry.size);
    for bytes in SAMPLE_SIZES {
        head = Head::default();
        let sampled = JsonArray::new(path).sample(bundle, bytes, |element| {
            // A sample may end inside the element; what was read before counts.
            let (Ok(()) | Err(_)) = head.read_element(&mut element.parser());
            element.index() < MAX_ELEMENTS
        });
        match sampled {
            Err(error) if matches!(error.kind, ErrorKind::Io | ErrorKind::Cancelled) => return Err(error),
            // Other errors only say that the file is not of this format.
            Ok(()) | Err(_) => {}
        }
        if head.is_export() || head.statistics > 0 || size <= bytes as u64 {
            break;
        }
    }
    Ok(head)
}

impl Head {
    fn is_export(self) -> bool {
        self.statistics == 0 && self.rows + self.nodes + self.items > 0
    }

    fn format(self) -> &'static str {
        match (self.outputs, self.rows + self.nodes) {
            (0, 0) => LIST,
            (0, _) => TREE,
            _ => OUTPUT,
        }
    }

    fn confidence(self) -> u8 {
        match (self.rows, self.nodes) {
            (0, 0) => 60,
            (0, _) | (_, 0) => 80,
            _ => 95,
        }
    }

    fn read_element(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        if !json.enter_object()? {
            return Ok(());
        }
        while let Some(key) = json.key()? {
            match key {
                "chat" => self.read_chat(json)?,
                // Old exports and files of the browser have the chat itself.
                "history" => {
                    self.read_history(json)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads the text of one chat, as a database has it.
    pub(crate) fn read_stored_chat(&mut self, json: &mut Parser<'_>) {
        // A sample may have a text that breaks off; what was read before counts.
        let (Ok(()) | Err(_)) = self.read_chat(json);
    }

    /// Whether a chat with a tree of messages was found, also an empty one.
    pub(crate) fn has_chats(self) -> bool {
        self.rows > 0
    }

    /// Whether a message was found.
    pub(crate) fn has_messages(self) -> bool {
        self.nodes + self.items > 0
    }

    fn read_chat(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        if !json.enter_object()? {
            return Ok(());
        }
        while let Some(key) = json.key()? {
            match key {
                "history" => self.rows += u32::from(self.read_history(json)?),
                "messages" => self.items += self.read_messages(json)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether it is an object with a tree or a list of messages.
    fn read_history(&mut self, json: &mut Parser<'_>) -> Result<bool, JsonError> {
        let mut known = false;
        if json.enter_object()? {
            while let Some(key) = json.key()? {
                if key == "messages" {
                    known = matches!(json.kind()?, Kind::Object | Kind::Array);
                    self.nodes += self.read_messages(json)?;
                }
            }
        }
        Ok(known)
    }

    /// How many of the messages are of Open WebUI.
    fn read_messages(&mut self, json: &mut Parser<'_>) -> Result<u32, JsonError> {
        let (mut seen, mut known) = (0, 0);
        if json.enter_array()? {
            while json.item()? {
                seen += 1;
                known += if seen <= MAX_MESSAGES { u32::from(self.read_message(json)?) } else { 0 };
            }
        } else if json.enter_object()? {
            while json.key()?.is_some() {
                seen += 1;
                known += if seen <= MAX_MESSAGES { u32::from(self.read_message(json)?) } else { 0 };
            }
        }
        Ok(known)
    }

    /// Whether it has a role and a text or output items.
    fn read_message(&mut self, json: &mut Parser<'_>) -> Result<bool, JsonError> {
        let (mut role, mut content) = (false, false);
        if json.enter_object()? {
            while let Some(key) = json.key()? {
                match key {
                    "role" => role = json.kind()? == Kind::String,
                    "content" => content |= matches!(json.kind()?, Kind::String | Kind::Array),
                    "output" if json.kind()? == Kind::Array => {
                        self.outputs += 1;
                        content = true;
                    }
                    "content_length" => self.statistics += 1,
                    _ => {}
                }
            }
        }
        Ok(role && content)
    }
}
