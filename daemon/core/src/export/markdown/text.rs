//! Embeds arbitrary text in a Markdown file so that it can neither end its surroundings nor begin anything of its own.
//!
//! **Invariant:** text written by people and assistants is in block quotes, each line behind a `>`, and active
//! characters are escaped (`sanitize`). A fence or heading inside a quote ends with the quote at the latest (test
//! `quoted_text_never_leaves_its_quote`).

use std::io::{self, Write};

use satchel_pam::time::Timestamp;

use super::sanitize::{language, lines, longest_run, sanitize};

/// Longest text of a heading or link, in characters.
const LONGEST_LINE: usize = 160;
/// Characters that have a meaning in Markdown or for a renderer.
const MARKUP: &str = "\\`*_{}[]<>#|~$&!^=%";

/// Placeholder for an unknown time.
pub(super) const UNKNOWN_TIME: &str = "time unknown";

/// Returns a record's time as PAM writes it, or [`UNKNOWN_TIME`].
pub(super) fn time(time: Timestamp) -> String {
    if time.known() { time.to_string() } else { UNKNOWN_TIME.to_owned() }
}

/// Writes a text as a separate harmless quote, with the empty line that ends it.
pub fn quote(out: &mut dyn Write, text: &str) -> io::Result<()> {
    for line in sanitize(text) {
        let gap = if line.is_empty() { "" } else { " " };
        writeln!(out, ">{gap}{line}")?;
    }
    writeln!(out)
}

/// Writes a program or data as code inside a separate quote.
pub fn code(out: &mut dyn Write, language: &str, text: &str) -> io::Result<()> {
    let fence = "`".repeat(longest_run(text, '`').max(2) + 1);
    writeln!(out, "> {fence}{}", self::language(language))?;
    for line in lines(text) {
        let gap = if line.is_empty() { "" } else { " " };
        writeln!(out, ">{gap}{line}")?;
    }
    writeln!(out, "> {fence}\n")
}

/// Returns a text on one line, with all markup escaped, truncated if it is long.
pub fn inline(text: &str) -> String {
    let mut out = String::new();
    let mut count = 0;
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
            count += 1;
        }
        for c in word.chars().filter(|c| !is_direction_control(*c)) {
            if count == LONGEST_LINE {
                out.push('…');
                return out;
            }
            if MARKUP.contains(c) {
                out.push('\\');
            }
            out.push(c);
            count += 1;
        }
    }
    out
}

/// Returns whether a character is invisible and changes the direction of the text after it.
pub(super) fn is_direction_control(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}' | '\u{feff}')
}

/// Encodes a text as a value of the front matter. The encoding is a JSON string, which is valid YAML too. Characters
/// that YAML interprets differently are written as ASCII escapes.
pub(super) fn yaml_string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control()
                || is_direction_control(c)
                || matches!(c, '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}') =>
            {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Returns the target of a link to a web page, or `None` for any other URL.
pub fn web_link(url: &str) -> Option<String> {
    if !url.starts_with("https://") && !url.starts_with("http://") {
        return None;
    }
    let mut out = String::from("<");
    for c in url.chars() {
        if c.is_control() || c.is_whitespace() || "<>\\\"`{}|^".contains(c) || is_direction_control(c) {
            let mut bytes = [0; 4];
            c.encode_utf8(&mut bytes).bytes().for_each(|byte| out.push_str(&format!("%{byte:02X}")));
        } else {
            out.push(c);
        }
    }
    out.push('>');
    Some(out)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn quoted(text: &str) -> String {
        let mut out = Vec::new();
        quote(&mut out, text).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_line_terminator_ends_a_line() {
        let all = |text: &str| lines(text).collect::<Vec<_>>();
        assert_eq!(all("a\r\nb\rc\n\nd\u{2028}e\u{85}f\n"), ["a", "b", "c", "", "d", "e", "f"]);
        assert_eq!(all(""), [""]);
        assert_eq!(all("a\u{0}\u{1b}[2J\tb"), ["a\u{fffd}\u{fffd}[2J\tb"]);
        assert_eq!(all("a\r\n\r\nb"), ["a", "", "b"]);
    }

    #[test]
    fn a_fence_is_longer_than_any_in_the_code() {
        let mut out = Vec::new();
        code(&mut out, "py`\nthon", "````\nx\n````").unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "> `````python\n> ````\n> x\n> ````\n> `````\n\n");
    }

    #[test]
    fn headings_and_front_matter_hold_one_line() {
        assert_eq!(inline("a\n---\n# *b* \u{202e}c"), "a --- \\# \\*b\\* c");
        assert_eq!(inline(&"x".repeat(999)).chars().count(), LONGEST_LINE + 1);
        assert_eq!(
            yaml_string("a\"\\\n---\u{2028}\u{0}\u{7f}é"),
            "\"a\\\"\\\\\\n---\\u2028\\u0000\\u007fé\""
        );
    }

    #[test]
    fn only_the_web_is_linked() {
        assert_eq!(web_link("https://example.org/a b>c").unwrap(), "<https://example.org/a%20b%3Ec>");
        assert!(["javascript:alert(1)", "file:///etc/passwd", ""].iter().all(|url| web_link(url).is_none()));
    }

    proptest! {
        #[test]
        fn quoted_text_never_leaves_its_quote(text in "([a-z`~#>-]{0,4}|[\r\n\u{2028}]|---|```|<!--| ){0,20}") {
            let shown = quoted(&text);
            let body = shown.strip_suffix("\n\n").unwrap();
            let inner: Vec<&str> = body.split('\n').map(|line| {
                line.strip_prefix("> ").or_else(|| line.strip_prefix('>')).unwrap()
            }).collect();
            prop_assert_eq!(inner, sanitize(&text));
        }

        #[test]
        fn front_matter_reads_back_as_json(text in any::<String>()) {
            prop_assert_eq!(serde_json::from_str::<String>(&yaml_string(&text)).unwrap(), text);
        }
    }
}
