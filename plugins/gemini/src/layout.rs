//! What the path of a file says about its content and its export.

use satchel_importer::{
    AttachmentKind,
    names::{has_extension, is_junk, split},
};

/// The format that a file may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileType {
    Html,
    /// Google's JSON files may have any extension or none.
    Json,
    /// Pictures, sound, archives: at most an attachment.
    Other,
}

/// Extensions of files that are neither HTML nor JSON. [`AttachmentKind`] knows those of media.
const OTHER: [&str; 30] = [
    "zip", "gz", "tgz", "tar", "7z", "rar", "exe", "dmg", "iso", "bin", "dat", "db", "sqlite", "wasm", "py",
    "rs", "js", "ts", "tsx", "css", "c", "h", "go", "java", "xml", "yaml", "yml", "toml", "log", "vcf",
];
/// Extensions of documents that are neither HTML nor JSON.
const DOCUMENTS: [&str; 13] =
    ["pdf", "md", "csv", "doc", "docx", "odt", "rtf", "xls", "xlsx", "ppt", "pptx", "epub", "jsonl"];

/// Guesses the format of the file `path` from its name. Returns `None` for files that operating systems create.
pub(crate) fn guess_type(path: &str) -> Option<FileType> {
    if is_junk(path) {
        return None;
    }
    let has_one_of = |extensions: &[&str]| extensions.iter().any(|extension| has_extension(path, extension));
    if has_one_of(&["html", "htm"]) {
        return Some(FileType::Html);
    }
    let media = matches!(
        AttachmentKind::of(None, Some(split(path).1)),
        AttachmentKind::Image | AttachmentKind::Audio | AttachmentKind::Video
    );
    Some(if media || has_one_of(&OTHER) || has_one_of(&DOCUMENTS) { FileType::Other } else { FileType::Json })
}

/// The root of the export to which a file belongs. All parts of one Takeout have the same root; outside a folder
/// `Takeout`, the root is the file's folder.
pub(crate) fn export_root(path: &str) -> String {
    let (folder, _) = split(path);
    let parts: Vec<&str> = folder.trim_end_matches('/').split('/').collect();
    match parts.iter().position(|part| *part == "Takeout") {
        Some(at) => {
            let mut parts = parts.get(..at).unwrap_or_default().to_vec();
            if let Some(last) = parts.last_mut() {
                *last = without_part_number(last);
            }
            format!("{}/Takeout", parts.join("/"))
        }
        None => folder.trim_end_matches('/').to_owned(),
    }
}

/// `takeout-20260102T030405Z-1-002.zip` without the number of the part.
fn without_part_number(name: &str) -> &str {
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

/// Whether Takeout puts Gemini's activity into the folder (with its final `/`).
pub(crate) fn is_activity_folder(folder: &str) -> bool {
    is_gemini(split(folder.trim_end_matches('/')).1)
}

/// Whether a product is Gemini, in any language: `Gemini Apps`, `Gemini-appar`, `Gemini 앱`, `Bard`.
pub(crate) fn is_gemini(product: &str) -> bool {
    if product == "Gemini Apps" {
        return true;
    }
    let product = product.to_lowercase();
    product.contains("gemini") || product.split(|c: char| !c.is_alphanumeric()).any(|word| word == "bard")
}

/// Whether the file is a page of Gemini's settings: Gems, scheduled actions.
pub(crate) fn is_settings_page(path: &str) -> bool {
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
            assert_eq!(export_root(path), "t/takeout-20260102T030405Z-1/Takeout", "{path}");
        }
        assert_eq!(export_root("Takeout/My Activity/Gemini Apps/MyActivity.json"), "/Takeout");
        assert_eq!(export_root("Downloads/chat"), "Downloads");
        assert_eq!(export_root("chat"), "");
    }

    #[test]
    fn types_are_guessed_from_names() {
        assert_eq!(guess_type("a/MyActivity.html"), Some(FileType::Html));
        for json in [
            "a/MyActivity.json",
            "a/conversation_1.txt",
            "Google AI Studio/Plan for v1.2",
            "Google AI Studio/Tea",
        ] {
            assert_eq!(guess_type(json), Some(FileType::Json), "{json}");
        }
        assert_eq!(guess_type("a/cat.png"), Some(FileType::Other));
        assert_eq!(guess_type("a/.DS_Store"), None);
    }

    #[test]
    fn products_are_known_in_every_language() {
        for product in ["Gemini Apps", "Gemini-Apps", "Gemini 앱", "Aplicaciones de Gemini", "Bard"] {
            assert!(is_gemini(product), "{product}");
        }
        for product in ["Search", "Lombardia", "YouTube"] {
            assert!(!is_gemini(product), "{product}");
        }
        assert!(is_activity_folder("Takeout/My Activity/Gemini Apps/"));
        assert!(!is_activity_folder("Takeout/My Activity/Search/"));
    }
}
