//! Converts text that the renderers of the command line have painted into lines of the screen.

use ratatui::{
    style::{Color, Modifier, Style},
    text::{Line, Span},
};
use unicode_width::UnicodeWidthChar as _;

use crate::cli::{style::Paint, text};

/// Returns how a paint looks on the screen.
pub(super) fn style(paint: Paint, color: bool) -> Style {
    let (modifier, foreground) = match paint {
        Paint::Plain => (Modifier::empty(), None),
        Paint::Strong => (Modifier::BOLD, None),
        Paint::Dim => (Modifier::DIM, None),
        Paint::Id => (Modifier::empty(), Some(Color::Cyan)),
        Paint::Good => (Modifier::empty(), Some(Color::Green)),
        Paint::Warn => (Modifier::empty(), Some(Color::Yellow)),
        Paint::Bad => (Modifier::empty(), Some(Color::Red)),
        Paint::Person => (Modifier::BOLD, Some(Color::Blue)),
        Paint::Assistant => (Modifier::BOLD, Some(Color::Magenta)),
    };
    let style = Style::new().add_modifier(modifier);
    foreground.filter(|_| color).map_or(style, |color| style.fg(color))
}

/// Appends the lines of `painted`, wrapped to `columns`. The renderers wrap text themselves; this cuts lines that they
/// leave whole, such as code and long addresses.
pub(super) fn append_lines(painted: &str, columns: usize, lines: &mut Vec<Line<'static>>) {
    let mut style = Style::new();
    for line in painted.lines() {
        let mut wrapped = Wrapped { columns: columns.max(1), used: 0, lines, line: Vec::new() };
        let mut rest = line;
        while let Some((before, after)) = rest.split_once("\x1b[") {
            wrapped.push(before, style);
            let Some((codes, after)) = after.split_once('m') else {
                rest = "";
                break;
            };
            style = codes.split(';').fold(style, apply);
            rest = after;
        }
        wrapped.push(rest, style);
        wrapped.end();
    }
}

/// Applies one code of [`crate::cli::style`].
fn apply(style: Style, code: &str) -> Style {
    match code {
        "0" => Style::new(),
        "1" => style.add_modifier(Modifier::BOLD),
        "2" => style.add_modifier(Modifier::DIM),
        "22" => Style { add_modifier: style.add_modifier - (Modifier::BOLD | Modifier::DIM), ..style },
        "31" => style.fg(Color::Red),
        "32" => style.fg(Color::Green),
        "33" => style.fg(Color::Yellow),
        "34" => style.fg(Color::Blue),
        "35" => style.fg(Color::Magenta),
        "36" => style.fg(Color::Cyan),
        "39" => Style { fg: None, ..style },
        _ => style,
    }
}

/// A line that is cut where it is full.
struct Wrapped<'a> {
    columns: usize,
    used: usize,
    lines: &'a mut Vec<Line<'static>>,
    line: Vec<Span<'static>>,
}

impl Wrapped<'_> {
    fn push(&mut self, text: &str, style: Style) {
        let mut start = 0;
        for (at, c) in text.char_indices() {
            let width = c.width().unwrap_or(0);
            if self.used + width > self.columns && self.used > 0 {
                self.span(&text[start..at], style);
                self.lines.push(Line::from(std::mem::take(&mut self.line)));
                (start, self.used) = (at, 0);
            }
            self.used += width;
        }
        self.span(&text[start..], style);
    }

    fn span(&mut self, text: &str, style: Style) {
        if !text.is_empty() {
            // The renderers clean stored text; nothing else gets past this line either.
            self.line.push(Span::styled(text::clean(text).into_owned(), style));
        }
    }

    fn end(self) {
        self.lines.push(Line::from(self.line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::style::TerminalStyle;

    fn lines(painted: &str, columns: usize) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        append_lines(painted, columns, &mut lines);
        lines
    }

    #[test]
    fn every_paint_looks_as_in_other_commands() {
        let terminal = TerminalStyle { columns: None, rows: None, color: true };
        for paint in [
            Paint::Plain,
            Paint::Strong,
            Paint::Dim,
            Paint::Id,
            Paint::Good,
            Paint::Warn,
            Paint::Bad,
            Paint::Person,
            Paint::Assistant,
        ] {
            let line = lines(&format!("{} plain", terminal.paint(paint, "text")), 80).remove(0);
            let spans = if paint == Paint::Plain { 1 } else { 2 };
            assert_eq!((line.spans.len(), line.spans[0].style), (spans, style(paint, true)), "{paint:?}");
            assert_eq!(line.spans.last().map(|span| span.style), Some(Style::new()), "{paint:?}");
        }
    }

    #[test]
    fn long_lines_are_cut_by_their_columns() {
        let text: Vec<String> = lines("ab日本語c\n\nx", 4).iter().map(ToString::to_string).collect();
        assert_eq!(text, ["ab日", "本語", "c", "", "x"]);
        assert_eq!(lines("日本", 1).len(), 2);
    }

    #[test]
    fn control_characters_are_escaped() {
        let shown: String = lines("a\x1b[2Jb\x1b]0;t\x07\x1b[", 80).iter().map(ToString::to_string).collect();
        assert!(!shown.contains(char::is_control), "{shown:?}");
    }
}
