//! Lines of a card, and the links in them.

use satchel_importer::address::unsigned;

/// A line of the body before the answer.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) heading: bool,
    pub(super) links: Vec<Link>,
}

impl Line {
    /// Its text, followed by the first address that differs from the text.
    pub(super) fn with_address(&self) -> String {
        let text = collapse_spaces(&self.text);
        let other = self.links.iter().map(|link| unsigned(&link.address)).find(|address| **address != *text);
        match other {
            Some(address) => format!("{text} <{address}>"),
            None => text,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Link {
    pub(super) address: String,
    pub(super) text: String,
}

/// Whether a line consists of links to files of the export.
pub(super) fn is_list_of_files(line: &Line) -> bool {
    if line.links.is_empty() || !line.links.iter().all(|link| is_file(&link.address)) {
        return false;
    }
    let linked: usize = line.links.iter().map(|link| letters(&link.text)).sum();
    letters(&line.text) == linked
}

fn letters(text: &str) -> usize {
    text.chars().filter(|c| c.is_alphanumeric()).count()
}

pub(super) fn is_file(address: &str) -> bool {
    !address.contains("://") && !address.starts_with(['#', '/']) && !address.starts_with("mailto:")
}

/// Whether the text may be `Attached 2 files.` in any language.
pub(super) fn counts_files(text: &str) -> bool {
    text.chars().count() < 60 && text.chars().any(|c| c.is_ascii_digit())
}

pub(super) fn collapse_spaces(text: &str) -> String {
    let mut collapsed = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !collapsed.is_empty() {
            collapsed.push(' ');
        }
        collapsed.push_str(word);
    }
    collapsed
}
