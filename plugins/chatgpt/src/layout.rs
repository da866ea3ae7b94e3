//! What the files of an export are, by their paths below the export's folder.

use std::borrow::Cow;

use satchel_importer::names::{is_json, is_junk, split};

/// What a file of an export is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// `conversations.json`, `conversations-017.json`.
    Conversations,
    /// `export_manifest.json`.
    Manifest,
    /// `user.json`, which names the account.
    User,
    /// `user_settings.json`, which names the account too.
    Settings,
    /// `conversation_asset_file_names.json`.
    AssetNames,
    /// `library_files.json`.
    Library,
    /// Bytes of an attachment.
    Asset,
    /// `chat.html`, which repeats the conversations.
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
    /// `memories.json`. Other providers write such files too, so detection checks its structure.
    Memories,
    /// A file of the export that is not read.
    NotRead,
    /// Any other name.
    Unknown,
}

const NOT_READ: [&str; 4] = ["shopping.json", "sora.json", "ads.json", "tool_messages.json"];

/// The kind of the file at `path`, relative to the export's folder.
pub(crate) fn kind(path: &str) -> FileKind {
    let (folder, name) = split(path);
    if is_junk(path) {
        FileKind::Unknown
    } else if folder.is_empty() {
        kind_at_root(name)
    } else {
        kind_in_folder(folder, name)
    }
}

fn kind_at_root(name: &str) -> FileKind {
    match name {
        "export_manifest.json" => FileKind::Manifest,
        "chat.html" => FileKind::Page,
        "user.json" => FileKind::User,
        "user_settings.json" => FileKind::Settings,
        "conversation_asset_file_names.json" => FileKind::AssetNames,
        "library_files.json" => FileKind::Library,
        "message_feedback.json" => FileKind::Feedback,
        "model_comparisons.json" => FileKind::Comparisons,
        "shared_conversations.json" => FileKind::Shared,
        "group_chats.json" => FileKind::Groups,
        "codex.json" => FileKind::Codex,
        "memories.json" => FileKind::Memories,
        _ if shard_number(name).is_some() => FileKind::Conversations,
        _ if NOT_READ.contains(&name) => FileKind::NotRead,
        _ if name.starts_with("file-") || name.starts_with("file_") => FileKind::Asset,
        _ => FileKind::Unknown,
    }
}

fn kind_in_folder(folder: &str, name: &str) -> FileKind {
    let mut folders = folder.trim_end_matches('/').split('/');
    let (first, second) = (folders.next().unwrap_or_default(), folders.next());
    if first == "textdocs" {
        return if is_json(name) { FileKind::Textdoc } else { FileKind::Asset };
    }
    let media = first == "dalle-generations"
        || first == "tts"
        || first.starts_with("user-")
        || second == Some("audio");
    if media && !is_json(name) { FileKind::Asset } else { FileKind::Unknown }
}

/// The order of a file of conversations; 0 for `conversations.json`.
pub(crate) fn shard_number(name: &str) -> Option<u64> {
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
    // Plus 1, so that `conversations.json` comes before `conversations-000.json`.
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
        names.sort_by_key(|name| shard_number(name));
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
            assert_eq!(shard_number(name), None, "{name}");
        }
    }

    #[test]
    fn names_determine_the_kind() {
        assert_eq!(kind("file-AbC-notes.pdf"), FileKind::Asset);
        assert_eq!(kind("dalle-generations/file-x.webp"), FileKind::Asset);
        assert_eq!(kind("0a1b/audio/file_x.wav"), FileKind::Asset);
        assert_eq!(kind("holiday/IMG_1.jpg"), FileKind::Unknown);
        assert_eq!(kind("__MACOSX/._conversations.json"), FileKind::Unknown);
        assert_eq!(kind("sora.json"), FileKind::NotRead);
        assert_eq!(kind("textdocs/0a1b.json"), FileKind::Textdoc);
    }
}
