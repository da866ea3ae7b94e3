//! One line of text that is edited: the query, the text to find, the name of a file.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_width::UnicodeWidthChar as _;

use crate::cli::text;

/// Longest text, in bytes; a query may not be longer.
const MAX_BYTES: usize = 4_096;

/// The text and the place of the cursor in it.
#[derive(Clone, Debug, Default)]
pub(super) struct LineEditor {
    text: String,
    /// In bytes, between two characters.
    cursor: usize,
}

/// What a key did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edit {
    /// The text is different.
    Changed,
    /// Only the cursor moved, or nothing happened because it is at an end.
    Moved,
    /// The key does not edit.
    Ignored,
}

impl LineEditor {
    /// Returns an editor with the cursor at the end of `text`.
    pub(super) fn new(text: &str) -> Self {
        let mut editor = Self::default();
        editor.insert(text);
        editor
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Inserts typed or pasted text at the cursor. White space becomes spaces; characters that could control the
    /// terminal are left out, and so is what would be too long.
    pub(super) fn insert(&mut self, text: &str) {
        for c in text.chars() {
            let c = if c.is_whitespace() { ' ' } else { c };
            if !text::is_unsafe(c) && self.text.len() + c.len_utf8() <= MAX_BYTES {
                self.text.insert(self.cursor, c);
                self.cursor += c.len_utf8();
            }
        }
    }

    /// Handles a key.
    pub(super) fn key(&mut self, key: KeyEvent) -> Edit {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let other = key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SUPER);
        match key.code {
            KeyCode::Char('u') if control => self.remove(0, self.cursor),
            KeyCode::Char('w') if control => self.remove(self.word_start(), self.cursor),
            KeyCode::Char('a') if control => self.move_to(0),
            KeyCode::Char('h') if control => self.remove(self.before(), self.cursor),
            KeyCode::Char('d') if control => self.remove(self.cursor, self.after()),
            KeyCode::Char(c) if !control && !other => {
                self.insert(c.encode_utf8(&mut [0; 4]));
                Edit::Changed
            }
            KeyCode::Backspace => self.remove(self.before(), self.cursor),
            KeyCode::Delete => self.remove(self.cursor, self.after()),
            KeyCode::Left => self.move_to(self.before()),
            KeyCode::Right => self.move_to(self.after()),
            KeyCode::Home => self.move_to(0),
            KeyCode::End => self.move_to(self.text.len()),
            _ => Edit::Ignored,
        }
    }

    /// Returns the part of the text that fits into `columns` with the cursor in it: where it begins in the text, and
    /// the column of the cursor.
    pub(super) fn window(&self, columns: usize) -> (usize, usize) {
        let (mut start, mut used) = (self.cursor, 0);
        for (at, c) in self.text[..self.cursor].char_indices().rev() {
            let width = c.width().unwrap_or(0);
            // The cursor needs a column of its own.
            if used + width >= columns {
                break;
            }
            (start, used) = (at, used + width);
        }
        (start, used)
    }

    fn remove(&mut self, from: usize, to: usize) -> Edit {
        if from == to {
            return Edit::Moved;
        }
        self.text.replace_range(from..to, "");
        self.cursor = from;
        Edit::Changed
    }

    fn move_to(&mut self, to: usize) -> Edit {
        self.cursor = to;
        Edit::Moved
    }

    fn before(&self) -> usize {
        self.text[..self.cursor].char_indices().next_back().map_or(0, |(at, _)| at)
    }

    fn after(&self) -> usize {
        self.cursor + self.text[self.cursor..].chars().next().map_or(0, char::len_utf8)
    }

    fn word_start(&self) -> usize {
        let before = self.text[..self.cursor].trim_end_matches(' ');
        before.rfind(' ').map_or(0, |at| at + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(c: char) -> KeyEvent {
        KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL)
    }

    #[test]
    fn text_is_edited_at_the_cursor() {
        let mut editor = LineEditor::new("bees 蜂");
        assert_eq!(editor.key(KeyCode::Left.into()), Edit::Moved);
        assert_eq!(editor.key(KeyCode::Backspace.into()), Edit::Changed);
        assert_eq!(editor.text(), "bees蜂");
        assert_eq!(editor.key(KeyCode::Delete.into()), Edit::Changed);
        assert_eq!(editor.key(KeyCode::Delete.into()), Edit::Moved);
        assert_eq!(editor.key(KeyCode::Char('!').into()), Edit::Changed);
        assert_eq!(editor.text(), "bees!");
        assert_eq!(editor.key(control('a')), Edit::Moved);
        assert_eq!(editor.key(control('d')), Edit::Changed);
        assert_eq!(editor.key(KeyCode::Enter.into()), Edit::Ignored);
        assert_eq!(editor.text(), "ees!");
    }

    #[test]
    fn words_and_the_beginning_are_deleted() {
        let mut editor = LineEditor::new("bees in  winter ");
        editor.key(control('w'));
        assert_eq!(editor.text(), "bees in  ");
        editor.key(control('w'));
        assert_eq!(editor.text(), "bees ");
        editor.key(control('u'));
        assert_eq!(editor.text(), "");
    }

    #[test]
    fn pasted_text_cannot_control_the_terminal() {
        let editor = LineEditor::new("a\nb\tc\u{1b}[2J\u{202e}d");
        assert_eq!(editor.text(), "a b c[2Jd");
        assert_eq!(LineEditor::new(&"x".repeat(9_999)).text().len(), MAX_BYTES);
    }

    #[test]
    fn the_cursor_stays_visible() {
        let editor = LineEditor::new("abc日本");
        assert_eq!(editor.window(20), (0, 7));
        assert_eq!(editor.window(5), (3, 4));
        assert_eq!(editor.window(4), (6, 2));
        assert_eq!((editor.window(1), editor.window(0)), ((9, 0), (9, 0)));
    }
}
