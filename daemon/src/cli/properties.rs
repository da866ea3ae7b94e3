//! Aligned names and values, used to show a single record.

use super::{
    style::{Paint, TerminalStyle},
    text,
};

/// Blank columns between name and value.
const GAP: usize = 2;

/// The properties of one record; empty values are left out.
#[derive(Debug, Default)]
pub(crate) struct Properties(Vec<(&'static str, String, Paint)>);

impl Properties {
    /// Returns an empty list.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a property, unless its value is empty.
    pub(crate) fn add(&mut self, name: &'static str, value: &str) {
        self.add_painted(name, value, Paint::Plain);
    }

    /// Adds a property that may be absent.
    pub(crate) fn add_optional(&mut self, name: &'static str, value: Option<&str>) {
        self.add(name, value.unwrap_or_default());
    }

    /// Adds a painted property, unless its value is empty.
    pub(crate) fn add_painted(&mut self, name: &'static str, value: &str, paint: Paint) {
        let value = text::one_line(value);
        if !value.is_empty() {
            self.0.push((name, value, paint));
        }
    }

    /// Returns the lines; a long value is wrapped and aligned with its first line.
    pub(crate) fn render(&self, style: TerminalStyle) -> String {
        let column = self.0.iter().map(|(name, ..)| text::width(name)).max().unwrap_or(0) + GAP;
        let blank = " ".repeat(column);
        let room = style.text_columns().saturating_sub(column).max(GAP);
        let mut out = String::new();
        for (name, value, paint) in &self.0 {
            let name = format!("{name:<column$}");
            let options = textwrap::Options::new(room)
                .break_words(false)
                .word_separator(textwrap::WordSeparator::AsciiSpace);
            for (at, line) in textwrap::wrap(value, options).iter().enumerate() {
                let lead = if at == 0 { style.paint(Paint::Dim, &name) } else { blank.clone() };
                text::append(&mut out, format_args!("{lead}{}\n", style.paint(*paint, line)));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_aligned() {
        let mut properties = Properties::new();
        properties.add("id", "a\u{1b}b");
        properties.add_optional("nothing", None);
        properties.add("what it says", "one two three four five six");
        let expected = "\
id            a\\u{1b}b
what it says  one two three four
              five six
";
        assert_eq!(properties.render(TerminalStyle::plain(34)), expected);
    }
}
