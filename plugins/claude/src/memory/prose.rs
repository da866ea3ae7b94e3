//! The texts in which Claude stores memories: sections under bold headings, and lists with a mark on each line.

use std::collections::BTreeMap;

use satchel_importer::pam::memory::ExtractionMethod;

/// A section of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section<'t> {
    /// None before the first heading.
    pub(super) heading: Option<&'t str>,
    pub(super) text: String,
}

/// Splits at lines that hold nothing but a heading in double asterisks. Joins sections of the same heading and drops
/// empty ones.
pub(super) fn split_sections(text: &str) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    let mut places: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    let mut current: Option<&str> = None;
    for line in text.lines() {
        if let Some(found) = heading(line) {
            current = Some(found);
            continue;
        }
        let next = sections.len();
        match sections.get_mut(*places.entry(current).or_insert(next)) {
            Some(section) => {
                section.text.push('\n');
                section.text.push_str(line);
            }
            None => sections.push(Section { heading: current, text: line.to_owned() }),
        }
    }
    for section in &mut sections {
        section.text = section.text.trim().to_owned();
    }
    sections.retain(|section| !section.text.is_empty());
    sections
}

fn heading(line: &str) -> Option<&str> {
    let inner = line.trim().strip_prefix("**")?.strip_suffix("**")?;
    let inner = inner.trim().trim_end_matches(':');
    (!inner.is_empty() && !inner.contains('*')).then_some(inner)
}

/// The lines of a memory file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Lines {
    /// Lines marked `[stated]` or `[inferred]`: by the person, or concluded by the model.
    pub(super) marked: Vec<(ExtractionMethod, String)>,
    /// The other lines, without blank ones and headings.
    pub(super) others: Vec<String>,
}

/// Reads lines such as `- [stated] Prefers tea`; indented lines belong to the one above.
pub(super) fn split_lines(text: &str) -> Lines {
    let mut lines = Lines::default();
    let mut inside = false;
    for line in text.lines() {
        if let Some((method, text)) = marked(line) {
            lines.marked.push((method, text.to_owned()));
            inside = true;
        } else if line.trim().is_empty() {
            inside = false;
        } else if inside
            && line.starts_with([' ', '\t'])
            && let Some((_, text)) = lines.marked.last_mut()
        {
            text.push('\n');
            text.push_str(line.trim());
        } else if !line.starts_with('#') {
            inside = false;
            lines.others.push(line.trim().to_owned());
        }
    }
    lines.marked.retain(|(_, text)| !text.is_empty());
    lines
}

fn marked(line: &str) -> Option<(ExtractionMethod, &str)> {
    let item = line.trim_start().strip_prefix(['-', '*'])?.trim_start();
    let (mark, text) = item.strip_prefix('[')?.split_once(']')?;
    let method = match mark.trim().to_ascii_lowercase().as_str() {
        "stated" => ExtractionMethod::ExplicitUserInput,
        "inferred" => ExtractionMethod::LlmInference,
        _ => return None,
    };
    Some((method, text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_split_at_its_headings() {
        let text = "Before.\n**Work context**\n\nBakes bread.\n\n**Empty**\n\n**Brief history**\n*Recent months*\nBold **word** here.\n**Work context:**\nSells it.";
        let found = split_sections(text);
        let pairs: Vec<_> = found.iter().map(|section| (section.heading, section.text.as_str())).collect();
        assert_eq!(
            pairs,
            [
                (None, "Before."),
                (Some("Work context"), "Bakes bread.\n\nSells it."),
                (Some("Brief history"), "*Recent months*\nBold **word** here."),
            ]
        );
    }

    #[test]
    fn marked_lines_are_separated_from_others() {
        let lines = split_lines(
            "# Head\n- [stated] Tea\n  green only\n* [Inferred]Wakes early\n- plain\n\n  apart\n- [stated] ",
        );
        assert_eq!(
            lines.marked,
            [
                (ExtractionMethod::ExplicitUserInput, "Tea\ngreen only".to_owned()),
                (ExtractionMethod::LlmInference, "Wakes early".to_owned())
            ]
        );
        assert_eq!(lines.others, ["- plain", "apart"]);
    }
}
