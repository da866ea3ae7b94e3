//! Names of files and anchors: the same for the same record in every export, whatever else is in it.

use satchel_pam::{conversation::ConversationHeader, hash::Sha256Digest, time::Timestamp};

/// Begins the names of conversations of which nobody knows the day: neither a digit, so that they stand together, nor the name of a
/// device.
pub(super) const UNDATED: &str = "undated";
/// Longest part of a name that comes of a title, in characters.
const LONGEST_TITLE: usize = 60;
/// And in bytes: file systems end at 255 for a whole name.
const LONGEST_TITLE_BYTES: usize = 150;
/// Hex digits that tell two records apart.
const MARK: usize = 12;
/// Longest extension that is kept.
const LONGEST_EXTENSION: usize = 8;

/// The name of a conversation's file without `.md`: its day, its title as far as every file system takes it, and a mark of its id.
/// It begins with a digit, or as [`UNDATED`], so it is never the name of a device, and ends with the mark, so no two are one where letter case
/// does not count.
pub(super) fn conversation(header: &ConversationHeader) -> String {
    let day = day(header.temporal.created_at).unwrap_or_else(|| UNDATED.to_owned());
    let title = header.title.as_deref().map(slug).filter(|slug| !slug.is_empty());
    let parts = [Some(day), title, Some(mark(&header.id))];
    parts.into_iter().flatten().collect::<Vec<_>>().join("-")
}

/// The day of a time, UTC; none of one that nobody knows.
pub(super) fn day(time: Timestamp) -> Option<String> {
    time.known().then(|| {
        let mut text = time.to_string();
        text.truncate("2026-01-01".len());
        text
    })
}

/// Tells records apart in names and anchors.
pub(super) fn mark(id: &str) -> String {
    let mut hex = Sha256Digest::of(id.as_bytes()).to_hex();
    hex.truncate(MARK);
    hex
}

/// The extension of a file's own name, if it is one that means the same everywhere.
pub(super) fn extension(name: Option<&str>) -> String {
    let extension =
        name.and_then(|name| name.rsplit_once('.')).map(|(_, extension)| extension.to_ascii_lowercase());
    let fits = |text: &String| {
        (1..=LONGEST_EXTENSION).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    extension.filter(fits).map(|extension| format!(".{extension}")).unwrap_or_default()
}

/// Letters and digits of any script in lower case, single dashes between them.
fn slug(title: &str) -> String {
    let mut out = String::new();
    for c in title.chars().flat_map(char::to_lowercase) {
        if out.chars().count() >= LONGEST_TITLE || out.len() + c.len_utf8() > LONGEST_TITLE_BYTES {
            break;
        }
        if c.is_alphanumeric() {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
    }
    out.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_become_names_that_every_file_system_takes() {
        for (title, name) in [
            ("Balcony tomatoes", "balcony-tomatoes"),
            ("../../etc/passwd", "etc-passwd"),
            ("CON", "con"),
            ("a\u{0}b\nc", "a-b-c"),
            ("  --x.. ", "x"),
            ("\u{202e}gpj.exe", "gpj-exe"),
            ("Grüße aus Øster", "grüße-aus-øster"),
            ("שלום עולם", "שלום-עולם"),
            ("???", ""),
        ] {
            assert_eq!(slug(title), name, "{title:?}");
        }
        let long = slug(&"ж".repeat(300));
        assert!(long.chars().count() == LONGEST_TITLE && long.len() <= LONGEST_TITLE_BYTES, "{long}");
    }

    #[test]
    fn only_plain_extensions_are_kept() {
        for (name, kept) in
            [("a.PNG", ".png"), ("a.tar.gz", ".gz"), ("a.b/c", ""), ("a.", ""), ("a.exe \u{202e}", "")]
        {
            assert_eq!(extension(Some(name)), kept, "{name:?}");
        }
    }
}
