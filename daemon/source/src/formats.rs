//! Names the formats of known programs that no importer reads, so that the user learns what a file is.
//!
//! Each format is recognised by its structure in the first bytes of a file. To add a format, add a row to [`BY_KEYS`],
//! or a test of its own if it is not JSON.

/// A format that is recognised by the keys of its first object.
struct KeyedFormat {
    /// The name of the format, as the end of "seems to be …".
    name: &'static str,
    /// Keys of the first object, as far as the head contains it.
    keys: &'static [&'static str],
    /// A text that must occur somewhere in the head; empty if there is none.
    text: &'static str,
}

const fn keyed(what: &'static str, keys: &'static [&'static str], text: &'static str) -> KeyedFormat {
    KeyedFormat { name: what, keys, text }
}

/// The first match counts.
const BY_KEYS: &[KeyedFormat] = &[
    keyed("a channel of Discord, as DiscordChatExporter writes it", &["guild", "channel", "dateRange"], ""),
    keyed("messages of Slack", &["type", "ts", "client_msg_id"], ""),
    keyed("messages of Slack", &["type", "ts", "user", "text"], ""),
    keyed("a chat of Telegram", &["name", "type", "id", "messages"], "\"date_unixtime\""),
    keyed("chats of Telegram", &["about", "personal_information"], ""),
    keyed("bookmarks of a browser", &["checksum", "roots", "version"], ""),
];

/// The start of bookmarks that a browser exported, in lower case.
const BOOKMARKS: &str = "<!doctype netscape-bookmark-file-1";

/// Returns the format of a text; `keys` are those of its first object, if it is JSON.
pub(super) fn of(text: &str, keys: &[String]) -> Option<&'static str> {
    let has = |wanted: &&str| keys.iter().any(|key| key == *wanted);
    let fits = |format: &&KeyedFormat| format.keys.iter().all(&has) && text.contains(format.text);
    if !keys.is_empty() {
        return BY_KEYS.iter().find(fits).map(|format| format.name);
    }
    let start: String = text.chars().take(BOOKMARKS.len()).collect::<String>().to_ascii_lowercase();
    if start == BOOKMARKS {
        return Some("bookmarks of a browser");
    }
    text.lines().next().is_some_and(is_chat_line).then_some("a chat of WhatsApp")
}

/// Returns whether a line is from a chat: `[14/08/2023, 09:15:32] Ana: …`, or `14/08/2023, 09:15 - Ana: …`.
fn is_chat_line(line: &str) -> bool {
    let line = line.trim_start_matches(['\u{feff}', '\u{200e}']);
    let parts = match line.strip_prefix('[') {
        Some(rest) => rest.split_once("] "),
        None => line.split_once(" - "),
    };
    let Some((stamp, rest)) = parts else { return false };
    // Date formats differ by country, but all have a day, a month and a year, followed by hours and minutes.
    let numbers = stamp.split(|c: char| !c.is_ascii_digit()).filter(|number| !number.is_empty());
    let dated = numbers.clone().count() >= 5 && numbers.clone().all(|number| number.len() <= 4);
    let words = stamp.chars().filter(|c| c.is_alphabetic()).count();
    // Lines of a log also have a date and a time, but no separator between them.
    let separated = stamp.contains(", ") || stamp.contains(" klo ");
    dated
        && separated
        && words <= "klo AM".len()
        && stamp.starts_with(|c: char| c.is_ascii_digit())
        && !rest.is_empty()
}

#[cfg(test)]
mod tests {
    use crate::SniffedContent;

    #[test]
    fn formats_of_known_programs_are_named() {
        for (head, named) in [
            (r#"{"guild":{"id":"1"},"channel":{},"dateRange":{},"messages":[]}"#, "Discord"),
            (r#"[{"client_msg_id":"a","type":"message","text":"hi","user":"U1","ts":"1.2"}]"#, "Slack"),
            (
                r#"{"name":"Ana","type":"personal_chat","id":1,"messages":[{"date_unixtime":"1"}]}"#,
                "Telegram",
            ),
            (r#"{"checksum":"a","roots":{"bookmark_bar":{}},"version":1}"#, "bookmarks"),
            ("<!DOCTYPE NETSCAPE-Bookmark-file-1>\n<TITLE>Bookmarks</TITLE>", "bookmarks"),
            ("\u{200e}[14/08/2023, 09:15:32] Ana: Hey", "WhatsApp"),
            ("12.3.2022, 14.08 - Messages and calls are end-to-end encrypted.", "WhatsApp"),
            ("8/14/23, 9:15 AM - Ana: Hey", "WhatsApp"),
        ] {
            let shown = SniffedContent::of(head.as_bytes()).to_string();
            assert!(shown.contains(named) && shown.contains("does not read"), "{head}: {shown}");
        }
    }

    #[test]
    fn other_files_are_not_mistaken_for_them() {
        for head in [
            r#"{"type":"x","name":"y"}"#,
            r#"[{"title":"Bees","mapping":{}}]"#,
            r#"{"name":"a","type":"b","id":1,"messages":[]}"#,
            "[1] A footnote: this one",
            "2023 - a year in the garden",
            "2023-01-01 10:00:05 - INFO the garden opens",
            "2023-01-01 10:00:05,123 - INFO the garden opens",
            "Dear Ana, thank you.",
            "",
        ] {
            let shown = SniffedContent::of(head.as_bytes()).to_string();
            assert!(!shown.contains("does not read"), "{head}: {shown}");
        }
    }
}
