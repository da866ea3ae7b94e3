//! Which files make one export, judged by their names below the export's folder.

use std::borrow::Cow;

use satchel_importer::names::{is_json, is_junk, split};

/// What a file of an export is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `conversations.json`, `conversations-017.json`.
    Conversations,
    /// `export_manifest.json`.
    Manifest,
    /// `user.json`: whose export it is.
    User,
    /// `user_settings.json`: names the account too.
    Settings,
    /// `conversation_asset_file_names.json`.
    AssetNames,
    /// `library_files.json`.
    Library,
    /// Bytes of an attachment.
    Asset,
    /// `chat.html`: the same conversations once more.
    Page,
    /// `message_feedback.json`.
    Feedback,
    /// `model_comparisons.json`.
    Comparisons,
    /// `shared_conversations.json`.
    Shared,
    /// `group_chats.json`.
    Groups,
    /// `codex.json`.
    Codex,
    /// A canvas document: `textdocs/<id>.json`.
    Textdoc,
    /// `memories.json`, which other providers write too: its structure decides.
    Memories,
    /// Belongs to the export and is not read.
    NotRead,
    /// Not known to belong to it.
    Stranger,
}

const NOT_READ: [&str; 4] = ["shopping.json", "sora.json", "ads.json", "tool_messages.json"];

/// What the file `below` is, a path inside the export's folder.
pub(crate) fn kind(below: &str) -> Kind {
    let (folder, name) = split(below);
    if is_junk(below) {
        Kind::Stranger
    } else if folder.is_empty() {
        kind_at_top(name)
    } else {
        kind_in_folder(folder, name)
    }
}

fn kind_at_top(name: &str) -> Kind {
    match name {
        "export_manifest.json" => Kind::Manifest,
        "chat.html" => Kind::Page,
        "user.json" => Kind::User,
        "user_settings.json" => Kind::Settings,
        "conversation_asset_file_names.json" => Kind::AssetNames,
        "library_files.json" => Kind::Library,
        "message_feedback.json" => Kind::Feedback,
        "model_comparisons.json" => Kind::Comparisons,
        "shared_conversations.json" => Kind::Shared,
        "group_chats.json" => Kind::Groups,
        "codex.json" => Kind::Codex,
        "memories.json" => Kind::Memories,
        _ if shard(name).is_some() => Kind::Conversations,
        _ if NOT_READ.contains(&name) => Kind::NotRead,
        _ if name.starts_with("file-") || name.starts_with("file_") => Kind::Asset,
        _ => Kind::Stranger,
    }
}

fn kind_in_folder(folder: &str, name: &str) -> Kind {
    let mut folders = folder.trim_end_matches('/').split('/');
    let (first, second) = (folders.next().unwrap_or_default(), folders.next());
    if first == "textdocs" {
        return if is_json(name) { Kind::Textdoc } else { Kind::Asset };
    }
    let media = first == "dalle-generations"
        || first == "tts"
        || first.starts_with("user-")
        || second == Some("audio");
    if media && !is_json(name) { Kind::Asset } else { Kind::Stranger }
}

/// The number of a file of conversations; `conversations.json` comes first.
pub(crate) fn shard(name: &str) -> Option<u64> {
    let upper = name.bytes().any(|b| b.is_ascii_uppercase());
    let name: Cow<'_, str> = if upper { name.to_ascii_lowercase().into() } else { name.into() };
    let middle = name.strip_prefix("conversations")?.strip_suffix(".json")?;
    if middle.is_empty() {
        return Some(0);
    }
    let digits = middle.strip_prefix(['-', '_'])?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // 1 more, so that `conversations.json` stands before `conversations-000.json`.
    digits.parse::<u64>().ok()?.checked_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_ordered_by_number() {
        let mut names = [
            "conversations-010.json",
            "conversations-9.json",
            "conversations.json",
            "conversations-000.json",
        ];
        names.sort_by_key(|name| shard(name));
        assert_eq!(
            names,
            [
                "conversations.json",
                "conversations-000.json",
                "conversations-9.json",
                "conversations-010.json"
            ]
        );
        for name in [
            "shared_conversations.json",
            "conversations-.json",
            "conversations-1a.json",
            "conversations (1).json",
        ] {
            assert_eq!(shard(name), None, "{name}");
        }
    }

    #[test]
    fn names_say_what_a_file_is() {
        assert_eq!(kind("file-AbC-notes.pdf"), Kind::Asset);
        assert_eq!(kind("dalle-generations/file-x.webp"), Kind::Asset);
        assert_eq!(kind("0a1b/audio/file_x.wav"), Kind::Asset);
        assert_eq!(kind("holiday/IMG_1.jpg"), Kind::Stranger);
        assert_eq!(kind("__MACOSX/._conversations.json"), Kind::Stranger);
        assert_eq!(kind("sora.json"), Kind::NotRead);
        assert_eq!(kind("textdocs/0a1b.json"), Kind::Textdoc);
    }
}
