//! Names of files and anchors. The same record gets the same name in every export, whatever else the export contains.

use satchel_pam::{conversation::ConversationHeader, hash::Sha256Digest, time::Timestamp};

/// Prefix for conversations without a known date. It does not begin with a digit, so that they are grouped together,
/// and is not the name of a device.
pub(super) const UNDATED: &str = "undated";
/// Longest part of a name that is taken from a title, in characters.
const LONGEST_TITLE: usize = 60;
/// The same limit in bytes: file systems limit a whole name to 255 bytes.
const LONGEST_TITLE_BYTES: usize = 150;
/// Number of hex digits that tell two records apart.
const HASH_DIGITS: usize = 12;
/// Longest extension that is kept.
const LONGEST_EXTENSION: usize = 8;

/// Returns the name of a conversation's file without `.md`: its date, the part of its title that every file system
/// accepts, and a hash of its id. The name begins with a digit or [`UNDATED`], so it is never the name of a device. It
/// ends with the hash, so names are unique even on a file system that ignores letter case.
pub(super) fn conversation(header: &ConversationHeader) -> String {
    let day = day(header.temporal.created_at).unwrap_or_else(|| UNDATED.to_owned());
    let title = header.title.as_deref().map(slug).filter(|slug| !slug.is_empty());
    let parts = [Some(day), title, Some(short_hash(&header.id))];
    parts.into_iter().flatten().collect::<Vec<_>>().join("-")
}

/// Returns the UTC date of a time, or `None` if the time is unknown.
pub(super) fn day(time: Timestamp) -> Option<String> {
    time.known().then(|| {
        let mut text = time.to_string();
        text.truncate("2026-01-01".len());
        text
    })
}

/// Returns the short hash that tells records apart in names and anchors.
pub(super) fn short_hash(id: &str) -> String {
    let mut hex = Sha256Digest::of(id.as_bytes()).to_hex();
    hex.truncate(HASH_DIGITS);
    hex
}

/// Returns the extension of a file's own name, if it is valid on every system.
pub(super) fn extension(name: Option<&str>) -> String {
    let extension =
        name.and_then(|name| name.rsplit_once('.')).map(|(_, extension)| extension.to_ascii_lowercase());
    let fits = |text: &String| {
        (1..=LONGEST_EXTENSION).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    extension.filter(fits).map(|extension| format!(".{extension}")).unwrap_or_default()
}

/// Returns the letters and digits of a title, of any script, in lower case with single dashes between words.
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
