//! Which files make one export, judged by their names: a hint, which their heads confirm.

use satchel_importer::{
    AttachmentKind,
    names::{ends_in, is_junk, split},
};

/// What a file's name lets hope for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// A page.
    Html,
    /// JSON; Google's files of it may end in anything or nothing.
    Json,
    /// Pictures, sound, archives: at most an attachment.
    Other,
}

/// Endings of files that hold neither pages nor JSON, beyond those that attachments are known by.
const OTHER: [&str; 30] = [
    "zip", "gz", "tgz", "tar", "7z", "rar", "exe", "dmg", "iso", "bin", "dat", "db", "sqlite", "wasm", "py",
    "rs", "js", "ts", "tsx", "css", "c", "h", "go", "java", "xml", "yaml", "yml", "toml", "log", "vcf",
];
/// Endings of documents that hold neither.
const DOCUMENTS: [&str; 13] =
    ["pdf", "md", "csv", "doc", "docx", "odt", "rtf", "xls", "xlsx", "ppt", "pptx", "epub", "jsonl"];

/// What the file `path` may hold; none for what operating systems leave behind.
pub(crate) fn promise(path: &str) -> Option<Promise> {
    if is_junk(path) {
        return None;
    }
    let ends = |endings: &[&str]| endings.iter().any(|ending| ends_in(path, ending));
    if ends(&["html", "htm"]) {
        return Some(Promise::Html);
    }
    let media = matches!(
        AttachmentKind::of(None, Some(split(path).1)),
        AttachmentKind::Image | AttachmentKind::Audio | AttachmentKind::Video
    );
    Some(if media || ends(&OTHER) || ends(&DOCUMENTS) { Promise::Other } else { Promise::Json })
}

/// The export to which a file belongs: what stands before the folder `Takeout`, so that the parts of one Takeout are
/// one; else the file's folder.
pub(crate) fn root(path: &str) -> String {
    let (folder, _) = split(path);
    let parts: Vec<&str> = folder.trim_end_matches('/').split('/').collect();
    match parts.iter().position(|part| *part == "Takeout") {
        Some(at) => {
            let mut parts = parts.get(..at).unwrap_or_default().to_vec();
            if let Some(last) = parts.last_mut() {
                *last = without_number(last);
            }
            format!("{}/Takeout", parts.join("/"))
        }
        None => folder.trim_end_matches('/').to_owned(),
    }
}

/// `takeout-20260102T030405Z-1-002.zip` without the number of the part.
fn without_number(name: &str) -> &str {
    let stem = name.strip_suffix(".zip").unwrap_or(name);
    match stem.rsplit_once('-') {
        Some((before, number))
            if before.starts_with("takeout-")
                && number.len() == 3
                && number.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            before
        }
        _ => name,
    }
}

/// Whether the folder (with its final `/`) is the one in which Takeout puts the files of Gemini's activity.
pub(crate) fn is_own_folder(folder: &str) -> bool {
    let (_, name) = split(folder.trim_end_matches('/'));
    is_ours(name)
}

/// Whether a product's name is ours, in whatever language: `Gemini Apps`, `Gemini-appar`, `Gemini 앱`, `Bard`.
pub(crate) fn is_ours(label: &str) -> bool {
    if label == "Gemini Apps" {
        return true;
    }
    let label = label.to_lowercase();
    label.contains("gemini") || label.split(|c: char| !c.is_alphanumeric()).any(|word| word == "bard")
}

/// Whether the file is one of those in which Takeout puts settings of Gemini: Gems, scheduled actions.
pub(crate) fn is_settings(path: &str) -> bool {
    let (_, name) = split(path);
    name.starts_with("gemini_") && name.ends_with("_data.html")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_one_takeout_have_one_root() {
        for path in [
            "t/takeout-20260102T030405Z-1-001.zip/Takeout/Meine Aktivitäten/Gemini-Apps/MeineAktivitäten.html",
            "t/takeout-20260102T030405Z-1-002.zip/Takeout/Gemini/gemini_gems_data.html",
        ] {
            assert_eq!(root(path), "t/takeout-20260102T030405Z-1/Takeout", "{path}");
        }
        assert_eq!(root("Takeout/My Activity/Gemini Apps/MyActivity.json"), "/Takeout");
        assert_eq!(root("Downloads/chat"), "Downloads");
        assert_eq!(root("chat"), "");
    }

    #[test]
    fn names_promise_what_a_file_is() {
        assert_eq!(promise("a/MyActivity.html"), Some(Promise::Html));
        for json in [
            "a/MyActivity.json",
            "a/conversation_1.txt",
            "Google AI Studio/Plan for v1.2",
            "Google AI Studio/Tea",
        ] {
            assert_eq!(promise(json), Some(Promise::Json), "{json}");
        }
        assert_eq!(promise("a/cat.png"), Some(Promise::Other));
        assert_eq!(promise("a/.DS_Store"), None);
    }

    #[test]
    fn products_are_ours_in_every_language() {
        for label in ["Gemini Apps", "Gemini-Apps", "Gemini 앱", "Aplicaciones de Gemini", "Bard"] {
            assert!(is_ours(label), "{label}");
        }
        for label in ["Search", "Lombardia", "YouTube"] {
            assert!(!is_ours(label), "{label}");
        }
        assert!(is_own_folder("Takeout/My Activity/Gemini Apps/"));
        assert!(!is_own_folder("Takeout/My Activity/Search/"));
    }
}
