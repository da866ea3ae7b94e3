//! Lines that quote a text so that nothing in it can be taken for anything else.
//!
//! A line is a JSON object. Its strings are escaped more than JSON asks for, so that a line has no character that is not seen, and none
//! of the marks with which models and their formats separate roles. A JSON parser returns the text unchanged.

use std::fmt::Write as _;

use super::{Passage, PassageOrigin};

/// Longest title that is quoted, in characters.
const MAX_TITLE_CHARS: usize = 80;
/// Characters that are not seen, or change how others are shown: controls, formats, tags, fillers, variation selectors, line
/// separators and non-characters (Unicode's `Cc`, `Cf`, `Zl`, `Zp` and `Default_Ignorable_Code_Point`, and the empty Braille cell).
const INVISIBLE: [(char, char); 39] = [
    ('\u{0}', '\u{1f}'),
    ('\u{7f}', '\u{9f}'),
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{2800}', '\u{2800}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fdd0}', '\u{fdef}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{fffe}', '\u{ffff}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{1fffe}', '\u{1ffff}'),
    ('\u{2fffe}', '\u{2ffff}'),
    ('\u{3fffe}', '\u{3ffff}'),
    ('\u{4fffe}', '\u{4ffff}'),
    ('\u{5fffe}', '\u{5ffff}'),
    ('\u{6fffe}', '\u{6ffff}'),
    ('\u{7fffe}', '\u{7ffff}'),
    ('\u{8fffe}', '\u{dffff}'),
    ('\u{e0000}', '\u{effff}'),
    ('\u{ffffe}', '\u{10ffff}'),
];

/// Returns the line for a passage of which `text` is quoted, with its end.
pub(super) fn line(instruction: bool, passage: &Passage, text: &str, cut: bool) -> String {
    let mut line = Line(String::with_capacity(text.len() + 256));
    match &passage.origin {
        PassageOrigin::Memory { .. } if instruction => line.text("kind", "instruction"),
        PassageOrigin::Memory { memory_type, .. } => {
            line.text("kind", "memory");
            line.text("type", memory_type);
        }
        PassageOrigin::Message { role, .. } => {
            line.text("kind", "message");
            line.text("role", role);
        }
    }
    if let Some(day) = &passage.day {
        line.text("date", day);
    }
    line.text("platform", &passage.platform);
    match &passage.origin {
        PassageOrigin::Memory { confidence: Some(confidence), .. } if !instruction => {
            line.value("confidence", format_args!("{:.2}", confidence.clamp(0.0, 1.0)));
        }
        PassageOrigin::Message { title, .. } if !title.is_empty() => {
            let title: String = title.chars().take(MAX_TITLE_CHARS).collect();
            line.text("conversation", &title);
        }
        PassageOrigin::Memory { .. } | PassageOrigin::Message { .. } => {}
    }
    line.text("text", text);
    if cut {
        line.value("cut", format_args!("true"));
    }
    line.text("id", &passage.id);
    if let PassageOrigin::Message { conversation_id, .. } = &passage.origin {
        line.text("conversation_id", conversation_id);
    }
    line.end()
}

/// A line in the making.
struct Line(String);

impl Line {
    fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        push_string(&mut self.0, value);
    }

    /// Adds a number or a word of JSON.
    fn value(&mut self, name: &str, value: std::fmt::Arguments<'_>) {
        self.name(name);
        // A `String` takes everything.
        let _ = self.0.write_fmt(value);
    }

    fn name(&mut self, name: &str) {
        self.0.push_str(if self.0.is_empty() { "{\"" } else { ",\"" });
        self.0.push_str(name);
        self.0.push_str("\":");
    }

    fn end(mut self) -> String {
        self.0.push_str("}\n");
        self.0
    }
}

/// Appends a text as a JSON string.
fn push_string(out: &mut String, text: &str) {
    out.push('"');
    for (at, c) in text.char_indices() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // `<|im_start|>`, `<s>`, `</quote>`
            '<' => push_escaped(out, c),
            // `[INST]`, `[/INST]`
            '[' if begins_marker(&text[at + 1..]) => push_escaped(out, c),
            c if is_invisible(c) => push_escaped(out, c),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Returns whether a text after a `[` makes of it a marker of a role, such as `[INST]`.
fn begins_marker(rest: &str) -> bool {
    rest.strip_prefix('/').unwrap_or(rest).starts_with(|c: char| c.is_ascii_uppercase())
}

fn push_escaped(out: &mut String, c: char) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        let _ = write!(out, "\\u{unit:04x}");
    }
}

/// Returns whether a character is not seen, or changes how others are shown.
pub(super) fn is_invisible(c: char) -> bool {
    let after = INVISIBLE.partition_point(|(first, _)| *first <= c);
    after.checked_sub(1).is_some_and(|index| c <= INVISIBLE[index].1)
}
