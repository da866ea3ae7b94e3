//! The texts in which Claude writes memories down: sections under bold headings, and lists with a mark on each line.

use std::collections::BTreeMap;

/// A section of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section<'t> {
    /// None: what stands before the first heading.
    pub(super) heading: Option<&'t str>,
    pub(super) text: String,
}

/// Splits at lines that are a heading in double asterisks and nothing else. Sections of one heading are joined, and
/// empty ones left out.
pub(super) fn sections(text: &str) -> Vec<Section<'_>> {
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

/// Who a line of a memory file comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voice {
    /// `[stated]`: the person said it.
    Stated,
    /// `[inferred]`: the model concluded it.
    Inferred,
}

/// A memory file, taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Bullets {
    pub(super) marked: Vec<(Voice, String)>,
    /// The other lines, without blank ones and headings.
    pub(super) others: Vec<String>,
}

/// Reads lines such as `- [stated] Prefers tea`; indented lines belong to the one above.
pub(super) fn bullets(text: &str) -> Bullets {
    let mut found = Bullets::default();
    let mut inside = false;
    for line in text.lines() {
        if let Some((voice, words)) = marked(line) {
            found.marked.push((voice, words.to_owned()));
            inside = true;
        } else if line.trim().is_empty() {
            inside = false;
        } else if let (true, true, Some((_, words))) =
            (inside, line.starts_with([' ', '\t']), found.marked.last_mut())
        {
            words.push('\n');
            words.push_str(line.trim());
        } else if !line.starts_with('#') {
            inside = false;
            found.others.push(line.trim().to_owned());
        }
    }
    found.marked.retain(|(_, words)| !words.is_empty());
    found
}

fn marked(line: &str) -> Option<(Voice, &str)> {
    let item = line.trim_start().strip_prefix(['-', '*'])?.trim_start();
    let (mark, words) = item.strip_prefix('[')?.split_once(']')?;
    let voice = match mark.trim().to_ascii_lowercase().as_str() {
        "stated" => Voice::Stated,
        "inferred" => Voice::Inferred,
        _ => return None,
    };
    Some((voice, words.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_split_at_its_headings() {
        let text = "Before.\n**Work context**\n\nBakes bread.\n\n**Empty**\n\n**Brief history**\n*Recent months*\nBold **word** here.\n**Work context:**\nSells it.";
        let found = sections(text);
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
    fn marked_lines_are_told_from_others() {
        let found = bullets(
            "# Head\n- [stated] Tea\n  green only\n* [Inferred]Wakes early\n- plain\n\n  apart\n- [stated] ",
        );
        assert_eq!(
            found.marked,
            [(Voice::Stated, "Tea\ngreen only".to_owned()), (Voice::Inferred, "Wakes early".to_owned())]
        );
        assert_eq!(found.others, ["- plain", "apart"]);
    }
}
