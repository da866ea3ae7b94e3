//! Prepares text from data for a terminal: without control characters, on one line, cut to a width, with counts.

use std::{borrow::Cow, collections::BTreeSet, fmt, ops::Bound};

use unicode_width::UnicodeWidthChar;

/// Replacement of a tab; wide enough to show the indentation of code.
const TAB: &str = "    ";
/// Minimum length of an abbreviated id, in characters.
const SHORT_ID: usize = 8;
/// Length of a UUID, in characters.
const UUID: usize = 36;

/// Returns whether a character can control a terminal or reorder the text around it: control characters, line
/// separators, bidirectional overrides and isolates, invisible tags.
pub(crate) fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// Returns `text` with tabs as spaces, line ends as `\n`, and everything that could control the terminal as
/// `\u{…}`.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| c != '\n' && is_unsafe(c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' => out.push('\n'),
            '\t' => out.push_str(TAB),
            '\r' if chars.peek() == Some(&'\n') => {}
            c if is_unsafe(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Returns `text` cleaned, on one line, with single spaces.
pub(crate) fn one_line(text: &str) -> String {
    // A byte order mark at the start carries no information.
    let text = text.trim_start_matches('\u{feff}');
    let mut out = String::new();
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(&clean(word));
    }
    out
}

/// Appends formatted text.
pub(crate) fn append(out: &mut String, what: fmt::Arguments<'_>) {
    fmt::Write::write_fmt(out, what).expect("a string takes all text");
}

/// Returns the number of columns that `text` occupies.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// Returns as much of `text` as fits into `columns`, with `…` if something is cut.
pub(crate) fn fit(text: &str, columns: usize) -> Cow<'_, str> {
    let (mut used, mut cut) = (0, 0);
    for (at, c) in text.char_indices() {
        let next = used + c.width().unwrap_or(0);
        if next > columns {
            let mut out = text[..cut].trim_end().to_owned();
            if columns > 0 {
                out.push('…');
            }
            return Cow::Owned(out);
        }
        // The last position at which the ellipsis still fits.
        if next < columns {
            cut = at + c.len_utf8();
        }
        used = next;
    }
    Cow::Borrowed(text)
}

/// Returns a number with thousands separators: `1,312`.
pub(crate) fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Returns `1 memory`, `2 memories`.
pub(crate) fn count(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", number(n), if n == 1 { one } else { many })
}

/// Returns a size in decimal units with two to three digits: `812 B`, `1.2 MB`.
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if n < 1_000 {
        return format!("{n} B");
    }
    // Counts in tenths of the unit, so that no float is needed.
    let (mut tenths, mut unit) = (n / 100, 0);
    while tenths >= 9_995 && unit + 1 < UNITS.len() {
        tenths /= 1_000;
        unit += 1;
    }
    if tenths >= 100 {
        format!("{} {}", (tenths + 5) / 10, UNITS[unit])
    } else {
        format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
    }
}

/// Returns a duration in a suitable unit: `812 ms`, `3.4 s`, `2 min 5 s`, `1 h 3 min`.
pub(crate) fn duration(millis: u64) -> String {
    let seconds = millis / 1_000;
    match seconds {
        0 => format!("{millis} ms"),
        1..=59 => format!("{seconds}.{} s", millis % 1_000 / 100),
        60..=3_599 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// Abbreviates the ids of one output so that each remains unique.
#[derive(Debug, Default)]
pub(crate) struct ShortIds {
    sorted: BTreeSet<String>,
}

impl ShortIds {
    /// Takes every id in the output.
    pub(crate) fn new<'a>(ids: impl IntoIterator<Item = &'a str>) -> Self {
        Self { sorted: ids.into_iter().map(str::to_owned).collect() }
    }

    /// Returns the shortest prefix of `id`, 8 characters or more, that no other id has. An id that is not a UUID is
    /// not abbreviated, because its first characters are often the least distinctive.
    pub(crate) fn shorten(&self, id: &str) -> String {
        if id.len() != UUID || !id.is_ascii() {
            return one_line(id);
        }
        let before = self.sorted.range::<str, _>((Bound::Unbounded, Bound::Excluded(id))).next_back();
        let after = self.sorted.range::<str, _>((Bound::Excluded(id), Bound::Unbounded)).next();
        let shared = before.into_iter().chain(after).map(|other| common_prefix(id, other)).max().unwrap_or(0);
        let mut length = SHORT_ID.max(shared + 1).min(id.len());
        if id.as_bytes().get(length - 1) == Some(&b'-') {
            length += 1;
        }
        one_line(&id[..length])
    }
}

/// Returns the first characters of a single id.
pub(crate) fn short_id(id: &str) -> String {
    ShortIds::default().shorten(id)
}

fn common_prefix(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}

/// Escapes characters that could control a terminal as JSON escapes. They can only occur inside strings, so the
/// meaning of the document does not change.
pub(crate) fn escape_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut units = [0; 2];
    for c in json.chars() {
        match c {
            '\u{7f}'..='\u{9f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{e0000}'..='\u{e007f}' => {
                for unit in c.encode_utf16(&mut units) {
                    append(&mut out, format_args!("\\u{unit:04x}"));
                }
            }
            c => out.push(c),
        }
    }
    out
}

/// Returns a path as one types it in a shell.
pub(crate) fn shell_quoted(path: &str) -> String {
    let plain = path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+:,~".contains(&byte));
    if plain { path.to_owned() } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(clean("a\u{1b}[31mred\u{7}"), "a\\u{1b}[31mred\\u{7}");
        assert_eq!(clean("\u{202e}gnp.exe \u{9b}2J"), "\\u{202e}gnp.exe \\u{9b}2J");
        assert_eq!(clean("over\rwritten\r\nnext\tcell"), "over\\u{d}written\nnext    cell");
        assert!(matches!(clean("plain\ntext — grüße, 日本, 👩‍💻"), Cow::Borrowed(_)));
    }

    #[test]
    fn one_line_has_no_breaks() {
        assert_eq!(one_line("  a\n\n b\u{2028}c\t d "), "a b c d");
        assert_eq!(one_line("\u{feff}x\u{0}"), "x\\u{0}");
    }

    #[test]
    fn fit_cuts_text_to_its_columns() {
        assert_eq!(fit("garden", 6), "garden");
        assert_eq!(fit("gardens", 6), "garde…");
        assert_eq!(fit("日本語です", 6), "日本…");
        assert_eq!(fit("日本語です", 5), "日本…");
        assert_eq!(fit("a b", 2), "a…");
        assert_eq!(fit("abc", 1), "…");
        assert_eq!(fit("abc", 0), "");
        for columns in 0..12 {
            assert!(width(&fit("ab日本c語で👩x", columns)) <= columns);
        }
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(number), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([1, 2].map(|n| count(n, "memory", "memories")), ["1 memory", "2 memories"]);
    }

    #[test]
    fn sizes_have_two_or_three_digits() {
        assert_eq!(
            [0, 999, 1_000, 9_999, 10_000, 999_400, 999_600, 1_250_000, 523_000_000].map(bytes),
            ["0 B", "999 B", "1.0 kB", "9.9 kB", "10 kB", "999 kB", "0.9 MB", "1.2 MB", "523 MB"]
        );
        assert_eq!(bytes(u64::MAX), "18447 PB");
    }

    #[test]
    fn durations_have_a_suitable_unit() {
        assert_eq!(
            [812, 3_450, 125_000, 3_780_000].map(duration),
            ["812 ms", "3.4 s", "2 min 5 s", "1 h 3 min"]
        );
    }

    #[test]
    fn short_ids_are_unique() {
        let ids = [
            "0f3a2b1c-0000-5000-8000-000000000001",
            "0f3a2b1c-0000-5000-8000-000000000002",
            "0f3a2b1c-7000-5000-8000-000000000003",
            "9f3a2b1c-0000-5000-8000-000000000004",
        ];
        let short = ShortIds::new(ids);
        let given: Vec<String> = ids.iter().map(|id| short.shorten(id)).collect();
        assert_eq!(given, [ids[0], ids[1], "0f3a2b1c-7", "9f3a2b1c"]);
        for id in given {
            assert_eq!(ids.iter().filter(|full| full.starts_with(&id)).count(), 1);
        }
        assert_eq!(short.shorten("my-own-id"), "my-own-id");
    }
}
