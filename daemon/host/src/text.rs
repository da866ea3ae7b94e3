//! Sanitizing of text that a plugin wrote for users: one line, short, without terminal control characters.

/// Longest locator, reason, warning or error, in bytes. Longer ones are cut, because they go to terminals, logs and
/// ledgers.
const MAX_TEXT_BYTES: usize = 4 * 1024;

/// Returns `text` without control and direction characters, at most 4 KiB long.
pub(crate) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(MAX_TEXT_BYTES));
    for c in text.chars() {
        let c = if matches!(c, '\n' | '\r' | '\t') { ' ' } else { c };
        if c.is_control() || reorders_or_breaks(c) {
            continue;
        }
        if out.len() + c.len_utf8() > MAX_TEXT_BYTES - '…'.len_utf8() {
            out.push('…');
            break;
        }
        out.push(c);
    }
    out
}

/// Returns whether `c` changes the display order of a line, or breaks it.
fn reorders_or_breaks(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Does the same as `clean`, but does not copy a text that is already clean.
pub(crate) fn clean_owned(text: String) -> String {
    let fit = text.len() < MAX_TEXT_BYTES && text.bytes().all(|byte| matches!(byte, 0x20..0x7f));
    if fit { text } else { clean(&text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_direction_characters_are_removed() {
        assert_eq!(clean("a\u{1b}[31mb\u{7f}\u{9b}c\u{202e}d\u{0}\u{61c}"), "a[31mbcd");
    }

    #[test]
    fn lines_become_one_line() {
        assert_eq!(clean("a\nb\tc"), "a b c");
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        let long = clean(&"é".repeat(5_000));
        assert!(long.len() <= MAX_TEXT_BYTES);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn clean_text_is_unchanged() {
        assert_eq!(clean_owned("conversations.json[17]".to_owned()), "conversations.json[17]");
        assert_eq!(clean_owned("a\u{7}".to_owned()), "a");
    }
}
