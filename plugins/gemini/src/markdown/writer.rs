//! Writes Markdown. Line breaks, indentation and quote markers are written only before the next text.

use crate::whitespace::collapsed_prefix;

/// The most columns of indentation, levels of quotes and backticks of a fence that are written.
const MAX_NESTING: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Writer {
    text: String,
    /// Line breaks before the next text.
    breaks: usize,
    indent: usize,
    quotes: usize,
    /// Nothing was written since the marker of a list item or quote.
    after_marker: bool,
    /// A space comes before the next text.
    space: bool,
}

impl Writer {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self { text: String::with_capacity(capacity), ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Ends the line, unless it is empty.
    pub(super) fn end_line(&mut self) {
        self.break_lines(1);
    }

    /// Adds a line break, up to one empty line.
    pub(super) fn line_break(&mut self) {
        self.break_lines((self.breaks + 1).min(2));
    }

    pub(super) fn end_paragraph(&mut self) {
        self.break_lines(2);
    }

    fn break_lines(&mut self, count: usize) {
        if !self.after_marker {
            self.breaks = self.breaks.max(count);
        }
        self.space = false;
    }

    /// Writes text between tags, with white space collapsed.
    pub(super) fn text(&mut self, text: &str) {
        let mut rest = text;
        loop {
            let spaces = rest.bytes().position(|byte| !is_space(byte)).unwrap_or(rest.len());
            let (_, words) = rest.split_at(spaces);
            self.space |= spaces > 0;
            if words.is_empty() {
                return;
            }
            let (collapsed, behind) = words.split_at(collapsed_prefix(words.as_bytes(), is_other_space));
            self.flush();
            self.text.push_str(collapsed);
            rest = behind;
        }
    }

    /// Writes a character that was a reference.
    pub(super) fn character(&mut self, character: char) {
        if u8::try_from(character).is_ok_and(is_space) {
            self.space = true;
        } else {
            self.flush();
            self.text.push(character);
        }
    }

    /// Writes Markdown as it is, behind pending spaces and breaks.
    pub(super) fn markup(&mut self, markup: &str) {
        self.flush();
        self.text.push_str(markup);
    }

    /// Writes the end of an emphasis, before pending spaces and breaks.
    pub(super) fn closing_markup(&mut self, markup: &str) {
        if self.breaks > 0 {
            self.text.push_str(markup);
            return;
        }
        let space = std::mem::take(&mut self.space);
        self.markup(markup);
        self.space = space;
    }

    /// Turns the text from offset `start` on into a link.
    pub(super) fn link(&mut self, start: usize, address: &str) {
        let (space, breaks) = (std::mem::take(&mut self.space), std::mem::take(&mut self.breaks));
        let shown = self.text.get(start..).unwrap_or_default();
        let lead = shown.len() - shown.trim_start_matches(|c: char| c.is_whitespace() || c == '>').len();
        let shown = shown.get(lead..).unwrap_or_default().to_owned();
        self.text.truncate(start + lead);
        if shown.is_empty() || shown == address {
            if shown.is_empty() {
                self.flush();
            }
            self.text.push_str(address);
        } else {
            self.text.push_str(&format!("[{shown}]({address})"));
        }
        (self.space, self.breaks) = (space, breaks);
    }

    /// Begins a list item. Returns the number of columns by which its lines are indented.
    pub(super) fn begin_item(&mut self, marker: &str) -> usize {
        self.markup(marker);
        self.after_marker = true;
        self.indent += marker.len();
        marker.len()
    }

    pub(super) fn dedent(&mut self, columns: usize) {
        self.after_marker = false;
        self.indent = self.indent.saturating_sub(columns);
    }

    pub(super) fn begin_quote(&mut self) {
        self.after_marker = false;
        self.end_paragraph();
        // The empty line before the quote does not belong to it.
        self.flush_breaks();
        self.quotes += 1;
        if self.quotes <= MAX_NESTING {
            self.text.push_str("> ");
        }
        self.after_marker = true;
    }

    pub(super) fn end_quote(&mut self) {
        self.after_marker = false;
        self.end_paragraph();
        self.quotes = self.quotes.saturating_sub(1);
    }

    /// Writes a fenced code block.
    pub(super) fn code(&mut self, code: &str, language: &str) {
        let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat((longest + 1).clamp(3, MAX_NESTING));
        self.markup(&format!("{fence}{language}"));
        let code = code.strip_prefix('\n').unwrap_or(code);
        for line in code.strip_suffix('\n').unwrap_or(code).split('\n') {
            self.breaks = 1;
            self.after_marker = false;
            self.flush();
            self.text.push_str(line);
        }
        self.breaks = 1;
        self.markup(&fence);
    }

    pub(super) fn finish(self) -> String {
        let mut text = self.text;
        text.truncate(text.trim_end().len());
        let lead = text.len() - text.trim_start_matches('\n').len();
        text.drain(..lead);
        text
    }

    fn flush(&mut self) {
        if self.breaks > 0 {
            self.flush_breaks();
        } else if self.space
            && self.text.bytes().next_back().is_some_and(|last| !matches!(last, b' ' | b'\n'))
        {
            self.text.push(' ');
        }
        self.space = false;
        self.after_marker = false;
    }

    fn flush_breaks(&mut self) {
        if self.text.is_empty() {
            self.breaks = 0;
            return;
        }
        for _ in 0..std::mem::take(&mut self.breaks) {
            let end = self.text.trim_end_matches(' ').len();
            self.text.truncate(end);
            self.text.push('\n');
            self.text.extend(std::iter::repeat_n("> ", self.quotes.min(MAX_NESTING)));
        }
        self.text.extend(std::iter::repeat_n(' ', self.indent.min(MAX_NESTING)));
    }
}

/// Whether HTML collapses the byte. A no-break space is not collapsed.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r' | b'\x0c')
}

/// Like [`is_space`] without the space itself, as 1 or 0.
fn is_other_space(byte: u8) -> u8 {
    let is = |other: u8| u8::from(byte == other);
    is(b'\n') | is(b'\t') | is(b'\r') | is(b'\x0c')
}
