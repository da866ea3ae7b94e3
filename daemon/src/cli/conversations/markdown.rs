//! Lays out Markdown, as people and assistants write it, for a terminal: code stays verbatim, all other text is
//! wrapped.
//!
//! Works line by line and without recursion, so the cost is linear in the length of the text, whatever it contains.

use textwrap::{Options, WordSeparator, WrapAlgorithm};

use crate::cli::{
    style::{Paint, TerminalStyle},
    text,
};

/// Indentation that marks a line as code.
const CODE_INDENT: &str = "    ";
/// Maximum indentation of a list, in columns; beyond it, text would have no room.
const MAX_LIST_INDENT: usize = 12;
/// Minimum number of columns for text, however deep it is indented.
const MIN_TEXT: usize = 20;

/// Lays out `source`, indented by `indent`. Every line ends with a line feed.
pub(crate) fn render(source: &str, indent: &str, style: TerminalStyle) -> String {
    let clean = text::clean(source);
    let writer = MarkdownWriter { indent, style };
    let mut out = String::new();
    let mut fence: Option<Fence> = None;
    let mut blank = false;
    for line in clean.trim_matches('\n').lines() {
        if let Some(open) = &fence {
            if open.closes(line) {
                fence = None;
            } else {
                writer.code(line.strip_prefix(&open.indent).unwrap_or(line), &mut out);
            }
            continue;
        }
        // Consecutive blank lines are collapsed into one.
        if line.trim().is_empty() {
            if !blank {
                out.push('\n');
            }
            blank = true;
            continue;
        }
        blank = false;
        match Fence::open(line) {
            Some(open) => {
                writer.language(&open.language, &mut out);
                fence = Some(open);
            }
            None => writer.prose(line, &mut out),
        }
    }
    out
}

/// The opening line of a fenced code block.
struct Fence {
    mark: char,
    length: usize,
    indent: String,
    language: String,
}

impl Fence {
    fn open(line: &str) -> Option<Self> {
        let body = line.trim_start_matches(' ');
        let mark = body.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let rest = body.trim_start_matches(mark);
        let length = body.len() - rest.len();
        // With backticks after the fence, it is inline code.
        if length < 3 || (mark == '`' && rest.contains('`')) {
            return None;
        }
        let language = rest.split_whitespace().next().unwrap_or_default().to_owned();
        Some(Self { mark, length, indent: line[..line.len() - body.len()].to_owned(), language })
    }

    fn closes(&self, line: &str) -> bool {
        let line = line.trim();
        line.len() >= self.length && line.chars().all(|c| c == self.mark)
    }
}

struct MarkdownWriter<'a> {
    indent: &'a str,
    style: TerminalStyle,
}

impl MarkdownWriter<'_> {
    fn language(&self, language: &str, out: &mut String) {
        if !language.is_empty() {
            self.line(&format!("{CODE_INDENT}{}", self.style.paint(Paint::Dim, language)), out);
        }
    }

    fn code(&self, line: &str, out: &mut String) {
        self.line(&format!("{CODE_INDENT}{}", self.style.paint(Paint::Id, line)), out);
    }

    fn line(&self, line: &str, out: &mut String) {
        out.push_str(format!("{}{line}", self.indent).trim_end());
        out.push('\n');
    }

    fn prose(&self, line: &str, out: &mut String) {
        let body = line.trim_start();
        let depth = (line.len() - body.len()).min(MAX_LIST_INDENT);
        let lead = " ".repeat(depth);
        if let Some(heading) = heading(body) {
            return self.wrapped(&self.style.paint(Paint::Strong, heading), "", "", out);
        }
        // The columns of a table must stay aligned.
        if body.starts_with('|') || is_rule(body) {
            return self.line(body, out);
        }
        if let Some(quoted) = body.strip_prefix('>') {
            let bar = format!("{} ", self.style.paint(Paint::Dim, "│"));
            return self.wrapped(&self.inline(quoted.trim_start()), &bar, &bar, out);
        }
        if let Some((marker, rest)) = item(body) {
            let hang = " ".repeat(depth + text::width(marker) + 1);
            let marker = if marker.len() == 1 { "•" } else { marker };
            return self.wrapped(&self.inline(rest), &format!("{lead}{marker} "), &hang, out);
        }
        self.wrapped(&self.inline(body), &lead, &lead, out);
    }

    fn wrapped(&self, text: &str, first: &str, rest: &str, out: &mut String) {
        let room = self.style.text_columns().max(text::width(self.indent) + MIN_TEXT);
        let (first, rest) = (format!("{}{first}", self.indent), format!("{}{rest}", self.indent));
        let options = Options::new(room)
            .initial_indent(&first)
            .subsequent_indent(&rest)
            .word_separator(separator(text))
            .break_words(false)
            .wrap_algorithm(WrapAlgorithm::FirstFit);
        let mut open_color = OpenColor::default();
        for line in textwrap::wrap(text, options) {
            out.push_str(open_color.apply(&line).trim_end());
            out.push('\n');
        }
    }

    /// Paints `**strong**` and `` `code` ``; without colours the marks are kept.
    fn inline(&self, text: &str) -> String {
        if !self.style.color {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len() + 16);
        let mut rest = text;
        while let Some(at) = rest.find(['`', '*']) {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let (mark, paint) = if rest.starts_with("**") { ("**", Paint::Strong) } else { ("`", Paint::Id) };
            match rest.strip_prefix(mark).and_then(|inner| inner.split_once(mark)) {
                Some((inner, after)) if inner.trim() == inner && !inner.is_empty() => {
                    out.push_str(&self.style.paint(paint, inner));
                    rest = after;
                }
                _ => {
                    let next = rest.chars().next().map_or(rest.len(), char::len_utf8);
                    out.push_str(&rest[..next]);
                    rest = &rest[next..];
                }
            }
        }
        out.push_str(rest);
        out
    }
}

/// Resets an open colour at the end of a line and restores it on the next, so that a pager can cut the text
/// anywhere.
#[derive(Default)]
struct OpenColor {
    code: String,
}

impl OpenColor {
    fn apply(&mut self, line: &str) -> String {
        let mut out = format!("{}{line}", self.code);
        let last = line.rfind("\x1b[").map(|at| &line[at..]);
        if let Some(code) = last.and_then(|tail| tail.split_once('m')).map(|(code, _)| code) {
            let ends = matches!(code, "\x1b[22" | "\x1b[39" | "\x1b[22;39");
            self.code = if ends { String::new() } else { format!("{code}m") };
        }
        if !self.code.is_empty() {
            out.push_str("\x1b[0m");
        }
        out
    }
}

/// Returns where a line may be broken: only at spaces, so that a long URL stays whole and can be followed. Text in
/// scripts without spaces needs Unicode's rules.
fn separator(text: &str) -> WordSeparator {
    let wide = text.chars().any(|c| c >= '\u{e00}' && text::width(c.encode_utf8(&mut [0; 4])) == 2);
    if wide { WordSeparator::new() } else { WordSeparator::AsciiSpace }
}

fn heading(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    ((1..=6).contains(&level) && rest.starts_with(' ')).then(|| rest.trim().trim_end_matches(" #").trim_end())
}

fn is_rule(line: &str) -> bool {
    line.len() >= 3 && ["-", "*", "_"].iter().any(|mark| line.trim().split(*mark).all(str::is_empty))
}

/// Returns the marker and the text of a list item.
fn item(line: &str) -> Option<(&str, &str)> {
    let (marker, rest) = line.split_once(' ')?;
    let bullet = matches!(marker, "-" | "*" | "+");
    let digits = marker.strip_suffix(['.', ')']).unwrap_or_default();
    let ordered = (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    (bullet || ordered).then(|| (marker, rest.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(source: &str, columns: usize) -> String {
        render(source, "  ", TerminalStyle::plain(columns))
    }

    #[test]
    fn paragraphs_lists_and_quotes_are_wrapped() {
        let source = "# Balcony tomatoes\n\nSmall bush tomatoes stand wind better than tall ones.\n\n\n\
                      - Use heavy pots, at least 15 litres each\n  - and a saucer\n10. Water in the morning only, never at noon\n\
                      > the wind takes what it wants\n";
        let expected = "  \
  Balcony tomatoes

  Small bush tomatoes stand wind
  better than tall ones.

  • Use heavy pots, at least 15
    litres each
    • and a saucer
  10. Water in the morning only,
      never at noon
  │ the wind takes what it wants
";
        assert_eq!(plain(source, 33), expected);
    }

    #[test]
    fn code_stays_verbatim() {
        let source = "Try:\n```python\nfor pot in pots:\n\tpot.water()   # a very long line that is wider than the page\n\n# not a heading\n```\ndone";
        let expected = "  \
  Try:
      python
      for pot in pots:
          pot.water()   # a very long line that is wider than the page

      # not a heading
  done
";
        assert_eq!(plain(source, 30), expected);
    }

    #[test]
    fn an_unclosed_fence_loses_no_text() {
        assert_eq!(plain("```\na\n~~~\nb", 40), "      a\n      ~~~\n      b\n");
        assert_eq!(plain("````\n```\n````\nx", 40), "      ```\n  x\n");
        assert_eq!(plain("```inline``` text", 40), "  ```inline``` text\n");
    }

    #[test]
    fn tables_rules_and_urls_are_not_changed() {
        let source = "| plant | litres |\n|---|---|\n---\nsee https://garden.example/a/very/long/address/that/does/not/fit";
        let expected = "  \
  | plant | litres |
  |---|---|
  ---
  see
  https://garden.example/a/very/long/address/that/does/not/fit
";
        assert_eq!(plain(source, 30), expected);
    }

    #[test]
    fn strong_and_code_are_painted_line_by_line() {
        let style = TerminalStyle { columns: Some(24), rows: None, color: true };
        assert_eq!(
            render("a **b** `c` 2**3 `x", "", style),
            "a \x1b[1mb\x1b[22m \x1b[36mc\x1b[39m 2**3 `x\n"
        );
        assert_eq!(
            render("**one two three four five six** end", "", style),
            "\x1b[1mone two three four five\x1b[0m\n\x1b[1msix\x1b[22m end\n"
        );
    }

    #[test]
    fn hostile_text_cannot_control_the_terminal() {
        let shown = plain("\u{1b}[2J **\u{202e}x** \u{9b}\n```\u{1b}]0;t\u{7}\n\u{1b}c\n```", 60);
        assert!(!shown.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\u{7}']), "{shown}");
    }

    #[test]
    fn pathological_text_is_laid_out_in_linear_time() {
        for piece in ["`a", "*", "**a", ">", "- ", "#", "\u{300}", "1. "] {
            let shown = plain(&piece.repeat(20_000), 40);
            assert!(!shown.is_empty());
        }
    }
}
