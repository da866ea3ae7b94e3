//! Writes Markdown line by line: breaks, indentation and quotes are put before the words that need them.

use crate::words::evenly_spaced;

/// Columns of indentation and levels of quotes that are written; what is nested more deeply stands there too.
const DEEPEST: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Writer {
    text: String,
    /// Line breaks that come before the next words.
    breaks: usize,
    indent: usize,
    quotes: usize,
    /// Nothing was written behind the mark of a list item.
    fresh: bool,
    /// A space stands between the last word and the next.
    space: bool,
}

impl Writer {
    /// A writer with room for `length` bytes.
    pub(super) fn of(length: usize) -> Self {
        Self { text: String::with_capacity(length), ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Ends the line, if something stands on it.
    pub(super) fn line_start(&mut self) {
        self.break_lines(1);
    }

    /// One more line break, at most an empty line.
    pub(super) fn line(&mut self) {
        self.break_lines((self.breaks + 1).min(2));
    }

    /// Ends the paragraph.
    pub(super) fn paragraph(&mut self) {
        self.break_lines(2);
    }

    fn break_lines(&mut self, count: usize) {
        if !self.fresh {
            self.breaks = self.breaks.max(count);
        }
        self.space = false;
    }

    /// Text between tags: white space is one space.
    pub(super) fn words(&mut self, text: &str) {
        let mut rest = text;
        loop {
            let spaces = rest.bytes().position(|byte| !is_space(byte)).unwrap_or(rest.len());
            let (_, words) = rest.split_at(spaces);
            self.space |= spaces > 0;
            if words.is_empty() {
                return;
            }
            let (run, behind) = words.split_at(evenly_spaced(words.as_bytes(), is_other_space));
            self.flush();
            self.text.push_str(run);
            rest = behind;
        }
    }

    /// A character between words.
    pub(super) fn character(&mut self, character: char) {
        if u8::try_from(character).is_ok_and(is_space) {
            self.space = true;
        } else {
            self.flush();
            self.text.push(character);
        }
    }

    /// What opens an emphasis, or stands for itself.
    pub(super) fn mark(&mut self, mark: &str) {
        self.flush();
        self.text.push_str(mark);
    }

    /// What closes an emphasis: it touches the word before.
    pub(super) fn end_mark(&mut self, mark: &str) {
        if self.breaks > 0 {
            // The emphasis began before the break; it ends there too.
            self.text.push_str(mark);
            return;
        }
        let space = std::mem::take(&mut self.space);
        self.flush();
        self.text.push_str(mark);
        self.space = space;
    }

    /// Makes a link of all that was written behind `start`.
    pub(super) fn link(&mut self, start: usize, address: &str) {
        let (space, breaks) = (std::mem::take(&mut self.space), std::mem::take(&mut self.breaks));
        let shown = self.text.get(start..).unwrap_or_default();
        let lead = shown.len() - shown.trim_start_matches(|c: char| c.is_whitespace() || c == '>').len();
        let shown = shown.get(lead..).unwrap_or_default().to_owned();
        if shown.is_empty() || shown == address {
            self.text.truncate(start + lead);
            if shown.is_empty() {
                self.flush();
            }
            self.text.push_str(address);
        } else {
            self.text.truncate(start + lead);
            self.text.push_str(&format!("[{shown}]({address})"));
        }
        (self.space, self.breaks) = (space, breaks);
    }

    /// Begins a list item and says by how much its lines are indented.
    pub(super) fn item(&mut self, mark: &str) -> usize {
        self.mark(mark);
        self.fresh = true;
        self.indent += mark.len();
        mark.len()
    }

    pub(super) fn dedent(&mut self, columns: usize) {
        self.fresh = false;
        self.indent = self.indent.saturating_sub(columns);
    }

    /// Begins or ends a quotation.
    pub(super) fn quote(&mut self, begins: bool) {
        self.fresh = false;
        self.paragraph();
        if begins {
            // The empty line before belongs to what is around.
            self.flush_breaks();
            self.quotes += 1;
            self.write_prefix_of_quote();
        } else {
            self.quotes = self.quotes.saturating_sub(1);
        }
    }

    /// A fenced block of code.
    pub(super) fn code(&mut self, code: &str, language: &str) {
        let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat((longest + 1).clamp(3, DEEPEST));
        self.mark(&format!("{fence}{language}"));
        let code = code.strip_prefix('\n').unwrap_or(code);
        for line in code.strip_suffix('\n').unwrap_or(code).split('\n') {
            self.breaks = 1;
            self.fresh = false;
            self.flush();
            self.text.push_str(line);
        }
        self.breaks = 1;
        self.mark(&fence);
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
        self.fresh = false;
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
            self.text.extend(std::iter::repeat_n("> ", self.quotes.min(DEEPEST)));
        }
        self.text.extend(std::iter::repeat_n(' ', self.indent.min(DEEPEST)));
    }

    fn write_prefix_of_quote(&mut self) {
        if self.quotes <= DEEPEST {
            self.text.push_str("> ");
        }
        self.fresh = true;
    }
}

/// The white space that HTML folds; a no-break space is none of it.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r' | b'\x0c')
}

/// The same of all but the space.
fn is_other_space(byte: u8) -> u8 {
    let is = |other: u8| u8::from(byte == other);
    is(b'\n') | is(b'\t') | is(b'\r') | is(b'\x0c')
}
