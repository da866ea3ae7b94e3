//! Aligned names and values, used to show a single record.

use super::{
    look::{Look, Paint},
    text,
};

/// Blank columns between name and value.
const GAP: usize = 2;

/// The facts of one record; empty values are left out.
#[derive(Debug, Default)]
pub(crate) struct Facts(Vec<(&'static str, String, Paint)>);

impl Facts {
    /// Returns an empty list of facts.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a fact, unless its value is empty.
    pub(crate) fn add(&mut self, name: &'static str, value: &str) {
        self.painted(name, value, Paint::Plain);
    }

    /// Adds a fact that may be absent.
    pub(crate) fn maybe(&mut self, name: &'static str, value: Option<&str>) {
        self.add(name, value.unwrap_or_default());
    }

    /// Adds a painted fact, unless its value is empty.
    pub(crate) fn painted(&mut self, name: &'static str, value: &str, paint: Paint) {
        let value = text::one_line(value);
        if !value.is_empty() {
            self.0.push((name, value, paint));
        }
    }

    /// Returns the lines; a long value is wrapped and aligned with its first line.
    pub(crate) fn render(&self, look: Look) -> String {
        let column = self.0.iter().map(|(name, ..)| text::width(name)).max().unwrap_or(0) + GAP;
        let blank = " ".repeat(column);
        let room = look.text_columns().saturating_sub(column).max(GAP);
        let mut out = String::new();
        for (name, value, paint) in &self.0 {
            let name = format!("{name:<column$}");
            let options = textwrap::Options::new(room)
                .break_words(false)
                .word_separator(textwrap::WordSeparator::AsciiSpace);
            for (at, line) in textwrap::wrap(value, options).iter().enumerate() {
                let lead = if at == 0 { look.paint(Paint::Dim, &name) } else { blank.clone() };
                text::append(&mut out, format_args!("{lead}{}\n", look.paint(*paint, line)));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_under_each_other() {
        let mut facts = Facts::new();
        facts.add("id", "a\u{1b}b");
        facts.maybe("nothing", None);
        facts.add("what it says", "one two three four five six");
        let expected = "\
id            a\\u{1b}b
what it says  one two three four
              five six
";
        assert_eq!(facts.render(Look::plain(34)), expected);
    }
}
