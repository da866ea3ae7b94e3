//! The style of output on this terminal: its width, and whether it has colours.

use super::args::ColorWhen;

/// Maximum columns of running text; longer lines are hard to read.
const TEXT_COLUMNS: usize = 100;
/// Minimum width; on a narrower terminal nothing fits, and the terminal wraps the lines.
const MIN_COLUMNS: usize = 20;

/// Size of the terminal, and whether to use colours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TerminalStyle {
    /// Columns of the terminal; `None` for a file or a pipe, where nothing is cut.
    pub columns: Option<usize>,
    /// Rows of the terminal; `None` if unknown.
    pub rows: Option<usize>,
    pub color: bool,
}

/// The kind of a piece of text, which decides how it is painted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    Plain,
    Strong,
    Dim,
    Id,
    Good,
    Warn,
    Bad,
    Person,
    Assistant,
}

impl TerminalStyle {
    /// Detects the style of the terminal on stdout.
    pub(crate) fn detect(when: ColorWhen, terminal: bool, no_color: bool) -> Self {
        let color = match when {
            ColorWhen::Always => true,
            ColorWhen::Never => false,
            ColorWhen::Auto => terminal && !no_color,
        };
        let rows = terminal.then(rows).flatten();
        Self { columns: terminal.then(|| textwrap::termwidth().max(MIN_COLUMNS)), rows, color }
    }

    /// Returns the columns for running text.
    pub(crate) fn text_columns(self) -> usize {
        self.columns.unwrap_or(TEXT_COLUMNS).min(TEXT_COLUMNS)
    }

    /// Returns `text` painted; `text` must be clean.
    pub(crate) fn paint(self, paint: Paint, text: &str) -> String {
        let Some((on, off)) = codes(paint).filter(|_| self.color && !text.is_empty()) else {
            return text.to_owned();
        };
        format!("\x1b[{on}m{text}\x1b[{off}m")
    }
}

/// Returns the number of rows of the terminal on stdout.
fn rows() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_row > 0).then_some(size.ws_row.into())
}

/// Returns the codes that turn a paint on and off, from the 16 colours that every theme defines.
fn codes(paint: Paint) -> Option<(&'static str, &'static str)> {
    match paint {
        Paint::Plain => None,
        Paint::Strong => Some(("1", "22")),
        Paint::Dim => Some(("2", "22")),
        Paint::Id => Some(("36", "39")),
        Paint::Good => Some(("32", "39")),
        Paint::Warn => Some(("33", "39")),
        Paint::Bad => Some(("31", "39")),
        Paint::Person => Some(("1;34", "22;39")),
        Paint::Assistant => Some(("1;35", "22;39")),
    }
}

impl TerminalStyle {
    /// Returns the style of a terminal of `columns` without colours.
    pub(crate) fn plain(columns: usize) -> Self {
        Self { columns: Some(columns), rows: None, color: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_follow_the_flag_then_no_color_then_the_terminal() {
        let color = |when, terminal, no_color| TerminalStyle::detect(when, terminal, no_color).color;
        assert!(color(ColorWhen::Auto, true, false));
        assert!(!color(ColorWhen::Auto, true, true));
        assert!(!color(ColorWhen::Auto, false, false));
        assert!(color(ColorWhen::Always, false, true));
        assert!(!color(ColorWhen::Never, true, false));
    }

    #[test]
    fn painted_text_resets_its_colour() {
        let style = TerminalStyle { columns: None, rows: None, color: true };
        assert_eq!(style.paint(Paint::Bad, "no"), "\x1b[31mno\x1b[39m");
        assert_eq!(style.paint(Paint::Plain, "no"), "no");
        assert_eq!(style.paint(Paint::Bad, ""), "");
        assert_eq!(TerminalStyle::plain(80).paint(Paint::Bad, "no"), "no");
    }
}
