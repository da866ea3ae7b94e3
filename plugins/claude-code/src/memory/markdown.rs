//! The parts of a memory file.

use satchel_importer::{Leftover, names};

/// The fields between the first two lines `---`.
#[derive(Debug, Default)]
pub(super) struct FrontMatter<'a> {
    fields: Vec<(&'a str, &'a str)>,
}

impl<'a> FrontMatter<'a> {
    /// Splits a file into its fields and its text. A file without fields is text.
    pub(super) fn split(text: &'a str) -> (Self, &'a str) {
        let none = || (Self::default(), text);
        let Some(rest) = text.strip_prefix("---").filter(|rest| rest.starts_with(['\n', '\r'])) else {
            return none();
        };
        let Some((head, body)) = rest.split_once("\n---") else { return none() };
        let fields = head.lines().filter_map(|line| {
            // Fields of a group, such as `metadata`, are indented.
            let (key, value) = line.trim().split_once(':')?;
            let value = unquoted(value.trim());
            (!value.is_empty() && !key.starts_with('#')).then_some((key, value))
        });
        (Self { fields: fields.collect() }, body.split_once('\n').map_or("", |(_, body)| body))
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a str> {
        self.fields.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    /// All fields as a JSON object, with the name of the file.
    pub(super) fn to_json(&self, file: &str) -> String {
        let mut all = Leftover::default();
        for (key, value) in &self.fields {
            all.add_text(key, value);
        }
        all.add_text("file", file);
        all.into_json().unwrap_or_default().into_owned()
    }
}

fn unquoted(value: &str) -> &str {
    let inside = |quote| value.strip_prefix(quote).and_then(|rest: &str| rest.strip_suffix(quote));
    inside('"').or_else(|| inside('\'')).unwrap_or(value)
}

/// Whether a line only names another memory file: `- [Title](file.md) — …`.
pub(super) fn is_index_line(line: &str) -> bool {
    let entry = || {
        let rest = line.trim_start().strip_prefix(['-', '*'])?.trim_start().strip_prefix('[')?;
        let (_, rest) = rest.split_once("](")?;
        let (file, _) = rest.split_once(')')?;
        Some(names::has_extension(file, "md"))
    };
    entry().unwrap_or(false)
}

/// The sections of a file, each with its heading. Headings inside of code are none.
pub(super) fn sections(text: &str) -> Vec<String> {
    let (mut sections, mut section, mut in_code) = (Vec::new(), String::new(), false);
    for line in text.lines() {
        in_code ^= line.trim_start().starts_with("```");
        if !in_code && line.starts_with('#') {
            sections.push(std::mem::take(&mut section));
        }
        section.push_str(line);
        section.push('\n');
    }
    sections.push(section);
    let mut kept: Vec<String> = Vec::new();
    let trimmed: Vec<&str> =
        sections.iter().map(|section| section.trim()).filter(|one| !one.is_empty()).collect();
    for (at, section) in trimmed.iter().enumerate() {
        // A heading alone is only the title of the sections below it.
        let title = !section.contains('\n') && level(section) > 0;
        let below = trimmed.get(at + 1).is_some_and(|next| level(next) > level(section));
        if !(title && below) {
            kept.push((*section).to_owned());
        }
    }
    kept
}

/// How deep the heading of a section is; 0 if it has none.
fn level(section: &str) -> usize {
    section.chars().take_while(|letter| *letter == '#').count()
}

/// The text of a section's heading; empty if it has none.
pub(super) fn heading(section: &str) -> &str {
    let first = section.lines().next().unwrap_or_default();
    if first.starts_with('#') { first.trim_start_matches('#').trim() } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_before_the_text() {
        let text =
            "---\nname: tabs\ndescription: \"Uses: tabs\"\nmetadata: \n  type: feedback\n---\n\nUse tabs.\n";
        let (matter, body) = FrontMatter::split(text);
        assert_eq!(matter.get("description"), Some("Uses: tabs"));
        assert_eq!(matter.get("type"), Some("feedback"));
        assert_eq!(matter.get("metadata"), None);
        assert_eq!(body.trim(), "Use tabs.");
        for plain in ["Use tabs.", "---", "--- a\n---\n", "---\nname: cut off"] {
            let (matter, body) = FrontMatter::split(plain);
            assert_eq!((matter.fields.len(), body), (0, plain));
        }
    }

    #[test]
    fn sections_begin_at_headings_outside_of_code() {
        let text = "First.\n# Build\n\n```\n# no heading\n```\n## Empty\n## Style\nShort lines.";
        let expected = ["First.", "# Build\n\n```\n# no heading\n```", "## Empty", "## Style\nShort lines."];
        assert_eq!(sections(text), expected);
        assert_eq!(sections("# Rules\n## Use tabs\n## Never push"), ["## Use tabs", "## Never push"]);
        assert_eq!(sections("# Only\n\n"), ["# Only"]);
        assert_eq!((heading("## Use tabs\nx"), heading("x")), ("Use tabs", ""));
    }

    #[test]
    fn lines_about_other_files_are_recognised() {
        assert!(is_index_line("- [Tabs](tabs.md) — use them") && is_index_line("* [a](b.md)"));
        assert!(!is_index_line("- Use [gofmt](https://go.dev)") && !is_index_line("tabs.md"));
    }
}
