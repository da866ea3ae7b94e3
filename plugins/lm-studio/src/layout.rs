//! What the path of a file says: where the chats and the files of the person are, and when a chat began.

use satchel_importer::names;

/// The folder with the chats, and the one with the files that the person added to them.
const CHATS: &str = "conversations/";
const FILES: &str = "user-files/";
/// The end of the name of a chat, and of a file that describes a file of the person.
const CHAT: &str = ".conversation.json";
const DESCRIPTION: &str = ".metadata.json";
/// The times in milliseconds that a name can begin with: from 2001 to 2096.
const MILLISECONDS: std::ops::Range<i64> = 1_000_000_000_000..4_000_000_000_000;

/// Where a chat is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ChatLocation<'p> {
    /// The folder above `conversations`, with its last `/`; none if the chat is elsewhere.
    pub(crate) root: Option<&'p str>,
    /// The folders that the person sorts chats into, without the last `/`. Somebody who imports `conversations` itself has only these.
    pub(crate) folder: &'p str,
}

/// Where the chat at `path` is.
pub(crate) fn location(path: &str) -> ChatLocation<'_> {
    let (folder, _) = names::split(path);
    let found = folder
        .rmatch_indices(CHATS)
        .map(|(at, _)| at)
        .find(|at| *at == 0 || folder.as_bytes().get(at - 1) == Some(&b'/'));
    let Some(at) = found else { return ChatLocation { root: None, folder: folder.trim_end_matches('/') } };
    let inside = folder.get(at + CHATS.len()..).unwrap_or_default();
    ChatLocation { root: path.get(..at), folder: inside.trim_end_matches('/') }
}

/// Whether a file may be a chat by its name.
pub(crate) fn may_be_chat(path: &str) -> bool {
    names::is_json(path) && !names::is_junk(path) && !path.ends_with(DESCRIPTION)
}

/// The time in milliseconds that the name of a chat consists of.
pub(crate) fn named_time(path: &str) -> Option<i64> {
    milliseconds(names::split(path).1.strip_suffix(CHAT)?)
}

/// The time in milliseconds before the first `-` of the id of a step.
pub(crate) fn step_time(id: &str) -> Option<i64> {
    milliseconds(id.split('-').next()?)
}

fn milliseconds(digits: &str) -> Option<i64> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|time| plain && MILLISECONDS.contains(time))
}

/// The file of the person with this identifier.
pub(crate) fn file(root: &str, identifier: &str) -> String {
    format!("{root}{FILES}{identifier}")
}

/// The file that describes the file at `path`.
pub(crate) fn description(path: &str) -> String {
    format!("{path}{DESCRIPTION}")
}

/// Whether the file at `path` describes another one.
pub(crate) fn is_description(path: &str) -> bool {
    path.ends_with(DESCRIPTION)
}

/// Whether the file at `path` is one of the person's, of the chats in `root`.
pub(crate) fn is_file_of(root: &str, path: &str) -> bool {
    path.strip_prefix(root).is_some_and(|inside| inside.starts_with(FILES)) && !names::is_junk(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_chats_are_found() {
        let found = |path| {
            let ChatLocation { root, folder } = location(path);
            (root, folder)
        };
        assert_eq!(found(".lmstudio/conversations/Garden/Beds/1.json"), (Some(".lmstudio/"), "Garden/Beds"));
        assert_eq!(found("conversations/1.conversation.json"), (Some(""), ""));
        assert_eq!(found("my-conversations/1.json"), (None, "my-conversations"));
        assert_eq!(found("Garden/Beds/1.conversation.json"), (None, "Garden/Beds"));
        assert_eq!(found("1.json"), (None, ""));
    }

    #[test]
    fn times_in_names_are_plain_milliseconds() {
        assert_eq!(named_time("a/1767700000000.conversation.json"), Some(1_767_700_000_000));
        for other in ["+1767700000000", "17677", "1767700000000 copy", "99999999999999999999", ""] {
            assert_eq!(named_time(&format!("{other}.conversation.json")), None, "{other}");
        }
        assert_eq!(step_time("1767700000000-0.42"), Some(1_767_700_000_000));
        assert_eq!(step_time("test-content"), None);
    }
}
