//! Reads a provider's raw files without code of the importers.

use std::collections::BTreeSet;

use serde_json::Value;

/// One file of an export.
pub struct SourceFile<'f> {
    /// Its path in the export.
    pub name: &'f str,
    /// Its text; invalid UTF-8 is replaced.
    pub text: String,
    /// The paths of all files of the export.
    pub names: &'f [String],
    skipped: &'f BTreeSet<String>,
}

impl<'f> SourceFile<'f> {
    /// The file `name`; `skipped` has the locators that were reported as skipped.
    pub fn new(name: &'f str, bytes: &[u8], names: &'f [String], skipped: &'f BTreeSet<String>) -> Self {
        let text = String::from_utf8_lossy(bytes);
        Self { name, text: text.trim_start_matches('\u{feff}').to_owned(), names, skipped }
    }

    /// Whether this locator was reported as skipped.
    pub fn skips(&self, place: &str) -> bool {
        self.skipped.contains(place)
    }

    /// The name without its folders.
    pub fn base(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or_default()
    }

    /// The JSON of the file; none if it is not JSON.
    pub fn json(&self) -> Option<Value> {
        parse(&self.text)
    }

    /// The locator and value of each element: of a root array, of its member `list`, of JSON Lines, or the root itself. A truncated
    /// file gives its whole elements. Skipped elements are left out.
    pub fn elements(&self, list: &str) -> Vec<(String, Value)> {
        let at = |number: usize| format!("{}[{number}]", self.name);
        let items = match self.json() {
            Some(Value::Array(items)) => items,
            Some(Value::Object(mut root)) => match root.remove(list) {
                Some(Value::Array(items)) => {
                    let inside = |number: usize| format!("{}.{list}[{number}]", self.name);
                    return self
                        .without_skipped(items.into_iter().enumerate().map(|(n, item)| (inside(n), item)));
                }
                Some(other) => {
                    root.insert(list.to_owned(), other);
                    vec![Value::Object(root)]
                }
                None => vec![Value::Object(root)],
            },
            Some(other) => vec![other],
            None => self.items_before_cut(list),
        };
        self.without_skipped(items.into_iter().enumerate().map(|(number, item)| (at(number), item)))
    }

    /// The JSON of a truncated file up to the end of its last whole object or array.
    pub fn json_before_cut(&self) -> Option<Value> {
        let (mut open, mut whole, mut quoted, mut escaped) = (Vec::new(), None, false, false);
        for (at, c) in self.text.char_indices() {
            quoted ^= c == '"' && !escaped;
            escaped = quoted && c == '\\' && !escaped;
            match c {
                '{' | '[' if !quoted => open.push(if c == '{' { '}' } else { ']' }),
                '}' | ']' if !quoted => {
                    open.pop();
                    whole = Some((at + 1, open.clone()));
                }
                _ => {}
            }
        }
        let (end, open) = whole?;
        parse(&(self.text.get(..end)?.to_owned() + &open.into_iter().rev().collect::<String>()))
    }

    fn without_skipped(&self, items: impl Iterator<Item = (String, Value)>) -> Vec<(String, Value)> {
        items.filter(|(place, _)| !self.skips(place)).collect()
    }

    /// The whole items of a truncated file.
    fn items_before_cut(&self, list: &str) -> Vec<Value> {
        let text = strict(&self.text);
        let begin = text.find(&format!("\"{list}\"")).and_then(|at| Some(at + text[at..].find('[')? + 1));
        let mut rest = match text.trim_start().strip_prefix('[') {
            Some(inside) => inside,
            None => begin.map_or(&*text, |begin| &text[begin..]),
        };
        let mut items = Vec::new();
        loop {
            rest = rest.trim_start().trim_start_matches(',');
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
            let Some(Ok(item)) = values.next() else { return items };
            rest = &rest[values.byte_offset()..];
            items.push(item);
        }
    }
}

/// Like the importers, accepts lone surrogates (U+FFFD) and raw control characters.
fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(&strict(text)).ok()
}

/// Rewrites the text for a strict parser.
fn strict(text: &str) -> String {
    let unit = |at: usize| u16::from_str_radix(text.get(at..at + 6)?.strip_prefix("\\u")?, 16).ok();
    let (mut out, mut at, mut quoted) = (String::with_capacity(text.len()), 0, false);
    while let Some(next) = text[at..].chars().next() {
        let length = match (next, unit(at)) {
            ('\\', Some(0xd800..=0xdbff)) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => 12,
            ('\\', Some(0xd800..=0xdfff)) => {
                out.push('\u{fffd}');
                at += 6;
                continue;
            }
            ('\\', _) => 2,
            _ => next.len_utf8(),
        };
        quoted ^= next == '"';
        if quoted && next.is_ascii_control() {
            out.push_str(&format!("\\u{:04x}", u32::from(next)));
        } else {
            out.push_str(text.get(at..at + length).unwrap_or(&text[at..]));
        }
        at = (at + length).min(text.len());
        while !text.is_char_boundary(at) {
            at += 1;
        }
    }
    out
}

/// A time of a raw file as text, for comparison: microseconds, or the value verbatim if it is not a time. Null and `{}` are none. Numbers,
/// also in texts, are seconds, from 1e11 on milliseconds, from 1e14 on microseconds.
pub fn time_text(raw: &Value) -> Option<String> {
    match raw {
        Value::Null => None,
        Value::Number(number) => {
            Some(number.as_f64().and_then(time_of_number).unwrap_or_else(|| number.to_string()))
        }
        Value::Object(members) if members.is_empty() => None,
        Value::String(text) => {
            let number = || text.parse().ok().and_then(time_of_number);
            let time = time_of(text).map(|micros| micros.to_string());
            Some(time.or_else(number).unwrap_or_else(|| text.clone()))
        }
        other => Some(other.to_string()),
    }
}

/// Rounds the exact value of the double half to even, to the microsecond. None for 0 and for years after 9999.
fn time_of_number(number: f64) -> Option<String> {
    /// As seconds this is the year 5138.
    const MILLISECONDS: f64 = 1e11;
    /// As milliseconds this is the same year.
    const MICROSECONDS: f64 = 1e14;
    let text = match number.abs() {
        size if size < MILLISECONDS => format!("{number:.6}"),
        size if size < MICROSECONDS => format!("{number:.3}"),
        _ => format!("{number:.0}"),
    };
    let text = text.replace('.', "");
    let (sign, digits) = text.strip_prefix('-').map_or(("", &*text), |digits| ("-", digits));
    let digits = digits.trim_start_matches('0');
    (1..19).contains(&digits.len()).then(|| format!("{sign}{digits}"))
}

/// An RFC 3339 date-time in microseconds; UTC if it has no offset.
pub fn time_of(text: &str) -> Option<i64> {
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = text.get(from..to)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let mark = |at: usize, marks: &str| text.get(at..=at).is_some_and(|found| marks.contains(found));
    (mark(4, "-") && mark(7, "-") && mark(10, "Tt ") && mark(13, ":") && mark(16, ":")).then_some(())?;
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let rest = text.get(19..)?;
    let (fraction, zone) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())),
        None => ("", rest),
    };
    let micros: i64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    let offset = offset(zone)?;
    // Days since 1970; the year begins in March.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = years * 365 + years / 4 - years / 100 + years / 400 + (153 * months + 2) / 5 + day - 719_469;
    Some((((days * 24 + hour) * 60 + minute - offset) * 60 + second) * 1_000_000 + micros)
}

/// An offset in minutes east of UTC.
fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "" | "Z" | "z" | " UTC") {
        return Some(0);
    }
    let sign = match zone.get(..1)? {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let digits: String = zone.get(1..)?.chars().filter(|c| *c != ':').collect();
    let (hours, minutes) = digits.split_at_checked(2)?;
    Some(sign * (hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().unwrap_or_default()))
}

/// A text that is not empty.
pub fn text_of(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(ToOwned::to_owned)
}
