//! Raw files of a provider, read without anything of the importers.

use std::collections::BTreeSet;

use serde_json::Value;

/// One file of an export.
pub struct SourceFile<'f> {
    /// Its path in the export.
    pub name: &'f str,
    /// Its text; what is no UTF-8 is replaced.
    pub text: String,
    /// The paths of all files of the export.
    pub names: &'f [String],
    skipped: &'f BTreeSet<String>,
}

impl<'f> SourceFile<'f> {
    /// The file `name`; `skipped` are the places that the receipt names as left out.
    pub fn new(name: &'f str, bytes: &[u8], names: &'f [String], skipped: &'f BTreeSet<String>) -> Self {
        let text = String::from_utf8_lossy(bytes);
        Self { name, text: text.trim_start_matches('\u{feff}').to_owned(), names, skipped }
    }

    /// Whether the receipt names this place as left out.
    pub fn skips(&self, place: &str) -> bool {
        self.skipped.contains(place)
    }

    /// The name without its folders.
    pub fn base(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or_default()
    }

    /// The JSON of the file; none if it is none.
    pub fn json(&self) -> Option<Value> {
        parse(&self.text)
    }

    /// The elements of the file's list and the place of each: of the root, of a member `list`, of lines, or the root itself. Where the
    /// file breaks off, those before.
    pub fn elements(&self, list: &str) -> Vec<(String, Value)> {
        let at = |number: usize| format!("{}[{number}]", self.name);
        let items = match self.json() {
            Some(Value::Array(items)) => items,
            Some(Value::Object(mut root)) => match root.remove(list) {
                Some(Value::Array(items)) => {
                    let inside = |number: usize| format!("{}.{list}[{number}]", self.name);
                    return self.kept(items.into_iter().enumerate().map(|(n, item)| (inside(n), item)));
                }
                Some(other) => {
                    root.insert(list.to_owned(), other);
                    vec![Value::Object(root)]
                }
                None => vec![Value::Object(root)],
            },
            Some(other) => vec![other],
            None => self.items_before_the_cut(list),
        };
        self.kept(items.into_iter().enumerate().map(|(number, item)| (at(number), item)))
    }

    /// The JSON of a file that breaks off, without what comes after its last whole object or list.
    pub fn before_the_cut(&self) -> Option<Value> {
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

    fn kept(&self, items: impl Iterator<Item = (String, Value)>) -> Vec<(String, Value)> {
        items.filter(|(place, _)| !self.skips(place)).collect()
    }

    /// Whole items, one behind the other, as far as they can be read.
    fn items_before_the_cut(&self, list: &str) -> Vec<Value> {
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

/// JSON whose lone surrogates are replaced, and whose bare control characters are taken for what they are: importers do the same.
fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(&strict(text)).ok()
}

/// The text as a strict parser takes it.
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

/// A time of a raw file as both sides write it: microseconds; what is no time, as it stands. Nothing is no time. Numbers, in texts too,
/// are seconds, from 1e11 on milliseconds, from 1e14 on microseconds.
pub fn time_told(raw: &Value) -> Option<String> {
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

/// Decimals of the double itself, half to even: PAM's times end at the microsecond. 0, and what is after the year 9999, are no time.
fn time_of_number(number: f64) -> Option<String> {
    /// Seconds of so long a time would be those of the year 5138.
    const MILLISECONDS: f64 = 1e11;
    /// As milliseconds they would be those of the same year.
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

/// Microseconds of a date and time as RFC 3339 writes it; without an offset, of UTC.
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
    // Days since 1970 by the months from March on.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = years * 365 + years / 4 - years / 100 + years / 400 + (153 * months + 2) / 5 + day - 719_469;
    Some((((days * 24 + hour) * 60 + minute - offset) * 60 + second) * 1_000_000 + micros)
}

/// Minutes east.
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

/// A text with something in it.
pub fn text_of(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(ToOwned::to_owned)
}
