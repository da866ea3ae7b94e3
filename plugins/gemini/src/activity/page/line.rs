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
    /// Its text, and where it leads if that is not its text.
    pub(super) fn with_address(&self) -> String {
        let text = plain(&self.text);
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

/// Whether a line holds links to files of the export and nothing else.
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

/// `Attached 2 files.` in any language.
pub(super) fn counts_files(text: &str) -> bool {
    text.chars().count() < 60 && text.chars().any(|c| c.is_ascii_digit())
}

/// Without white space around, and with plain spaces.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !plain.is_empty() {
            plain.push(' ');
        }
        plain.push_str(word);
    }
    plain
}
