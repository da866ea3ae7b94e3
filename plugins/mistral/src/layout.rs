//! Names in an export: `chat-<id>.json`, and the attached files in `chat-<id>-files/`.

use satchel_importer::{Bundle, Entry, names};

const CHAT: &str = "chat-";
const JSON: &str = ".json";
const FILES: &str = "-files/";

/// Whether the file is named like a chat.
pub(crate) fn is_chat(path: &str) -> bool {
    let name = names::split(path).1;
    name.starts_with(CHAT) && name.ends_with(JSON) && name.len() > CHAT.len() + JSON.len()
}

/// Whether the file is in a folder of attached files.
pub(crate) fn is_attached(path: &str) -> bool {
    let folder = names::split(path).0;
    folder.split_inclusive('/').any(|name| name.starts_with(CHAT) && name.ends_with(FILES))
}

/// The name of a file without its extension, a key for a chat without an id.
pub(crate) fn stem(path: &str) -> &str {
    let name = names::split(path).1;
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// The folder of the files of the chat `path`.
pub(crate) fn files_folder(path: &str) -> String {
    format!("{}{}{FILES}", names::split(path).0, stem(path))
}

/// The folders that may have the files of one chat.
pub(crate) struct Folders<'b> {
    bundle: &'b Bundle,
    folders: [String; 2],
}

impl<'b> Folders<'b> {
    pub(crate) fn new(bundle: &'b Bundle, path: &str, chat: Option<&str>) -> Self {
        let by_chat = chat.map(|chat| format!("{}{CHAT}{chat}{FILES}", names::split(path).0));
        let by_name = files_folder(path);
        Self { bundle, folders: [by_chat.unwrap_or_else(|| by_name.clone()), by_name] }
    }

    /// Finds a file by its name.
    pub(crate) fn find(&self, name: &str) -> Option<&'b Entry> {
        self.folders.iter().find_map(|folder| self.bundle.entry(&format!("{folder}{name}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chats_and_attached_files_are_recognised_by_name() {
        assert!(is_chat("a/chat-1.json") && !is_chat("chat-.json") && !is_chat("chats.json"));
        assert!(is_attached("a/chat-1-files/p.png") && is_attached("chat-1-files/b/p.png"));
        assert!(!is_attached("chat-1.json") && !is_attached("files/p.png") && !is_attached("chat-1-files"));
        assert_eq!(files_folder("a/chat-1.json"), "a/chat-1-files/");
    }

    #[test]
    fn files_are_found_by_the_chat_and_by_the_name_of_its_file() {
        let bundle = Bundle::from_files([("chat-1-files/a.png", "a"), ("renamed-files/b.png", "b")]);
        let folders = Folders::new(&bundle, "renamed.json", Some("1"));
        let found = |name| folders.find(name).map(|entry| entry.path.as_str());
        assert_eq!(found("a.png"), Some("chat-1-files/a.png"));
        assert_eq!(found("b.png"), Some("renamed-files/b.png"));
        assert_eq!(found("c.png"), None);
    }
}
