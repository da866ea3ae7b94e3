//! Titles of conversations to which the provider gives none.

/// The first line of `text` that is not blank, without blanks around it. Of a longer line the first `max` characters, and an ellipsis.
pub fn first_line(text: &str, max: usize) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let mut title: String = line.chars().take(max).collect();
    if title.len() < line.len() {
        title.push('…');
    }
    Some(title)
}

#[cfg(test)]
mod tests {
    use super::first_line;

    #[test]
    fn long_lines_are_cut_between_characters_and_blank_ones_skipped() {
        assert_eq!(first_line("\n  Bread \nmore", 5).as_deref(), Some("Bread"));
        assert_eq!(first_line("éééé", 3).as_deref(), Some("ééé…"));
        assert_eq!(first_line(" \n ", 5), None);
    }
}
