//! Turns text written by people and assistants into Markdown that shows the text and does nothing else: no HTML, no
//! remote images, no links except to the web, and nothing that affects other messages.
//!
//! Works line by line and without recursion. Code is kept as it is. Its start and end are written so that every
//! renderer sees the same block; otherwise text that counts as code here could be something else there.
//!
//! **Invariant:** for any text, the rendered output contains only elements without scripts, styles, or addresses
//! outside of the web (`any_text_is_inert_in_a_browser` below).

/// Deepest indentation at which a fence is recognised; nested lists are not deeper.
const DEEPEST: usize = 24;
/// Prefixes of allowed link targets.
const WEB: [&str; 4] = ["https://", "http://", "mailto:", "#"];
/// Characters that may precede a heading: markers of lists, quotes and definitions.
const CONTAINERS: &str = " \t>-*+.:)0123456789";

/// Splits a text into lines the way every renderer does. Control characters, which no text needs, become U+FFFD.
pub(super) fn lines(text: &str) -> impl Iterator<Item = String> + '_ {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let mut ended_by_return = false;
    let mut rest = text.chars();
    let mut done = false;
    std::iter::from_fn(move || {
        if done {
            return None;
        }
        let mut line = String::new();
        loop {
            match rest.next() {
                None => {
                    done = true;
                    return Some(line);
                }
                Some('\n') if std::mem::take(&mut ended_by_return) && line.is_empty() => {}
                Some(c @ ('\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')) => {
                    ended_by_return = c == '\r';
                    return Some(line);
                }
                Some(c) => {
                    ended_by_return = false;
                    line.push(if c.is_control() && c != '\t' { '\u{fffd}' } else { c });
                }
            }
        }
    })
}

/// Returns the lines of a text, made harmless.
pub(super) fn sanitize(text: &str) -> Vec<String> {
    let all: Vec<String> = lines(text).collect();
    let mut out = Vec::with_capacity(all.len());
    let last_math = all.iter().rposition(|line| line.contains("$$")).unwrap_or(0);
    let (mut at, mut math, mut formula) = (0, false, false);
    // Start of the paragraph that the next line may belong to.
    let mut begin = 0;
    while let Some(line) = all.get(at) {
        if let Some(fence) = Fence::open(line) {
            let rest = &all[at + 1..];
            let end = rest.iter().position(|line| fence.closed_by(line));
            let (body, close) = (&rest[..end.unwrap_or(rest.len())], end.map(|end| rest[end].as_str()));
            // `$$`, which ends a formula, would also end the code in it.
            if !(math && at < last_math && body.iter().any(|line| line.contains("$$"))) {
                let certain = fence.interrupts(&all[begin..at]);
                fence.write(line, body, close, certain, &mut out);
                at += 1 + body.len() + usize::from(close.is_some());
                continue;
            }
        }
        let below = all.get(at + 1).map_or("", String::as_str);
        // A formula may begin in an earlier line of the paragraph.
        formula = line.contains('$') || formula && !line.trim_matches([' ', '\t']).is_empty();
        out.push(escape_prose(line, is_heading(line, below), formula));
        math ^= line.trim_start().starts_with("$$") && line.matches("$$").count() % 2 == 1
            || math && line.matches("$$").count() % 2 == 1;
        at += 1;
        if is_blank(line) {
            begin = at;
        }
    }
    out
}

fn is_blank(line: &str) -> bool {
    line.trim_matches([' ', '\t']).is_empty()
}

/// The line that opens a block of code.
struct Fence {
    indent: usize,
    mark: char,
    length: usize,
    /// The text after the marks.
    info: String,
}

impl Fence {
    fn open(line: &str) -> Option<Self> {
        let body = line.trim_start_matches(' ');
        let mark = body.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = body.trim_start_matches(mark);
        let (indent, length) = (line.len() - body.len(), body.len() - info.len());
        // Backticks after the marks make it inline code.
        let fence = length >= 3 && indent <= DEEPEST && !info.contains('`');
        fence.then(|| Self { indent, mark, length, info: info.to_owned() })
    }

    /// Returns whether every renderer sees code here. `above` holds the preceding lines of the paragraph; a deeply
    /// indented fence may be a continuation of them, unless it is part of a list item.
    fn interrupts(&self, above: &[String]) -> bool {
        let Some((first, others)) = above.split_first().filter(|_| self.indent >= 4) else { return true };
        let depth = |line: &str| line.len() - line.trim_start_matches(' ').len();
        item_offset(first).is_some_and(|offset| {
            (offset..offset + 4).contains(&self.indent) && others.iter().all(|line| depth(line) >= offset)
        })
    }

    fn closed_by(&self, line: &str) -> bool {
        let body = line.trim_start_matches(' ');
        let marks = body.trim_end();
        marks.len() >= self.length
            && marks.chars().all(|c| c == self.mark)
            && (line.len() - body.len()).abs_diff(self.indent) <= 3
    }

    /// Writes the block so that nothing in it can end it: its marks are longer than any run in it, every line is
    /// indented at least as deep as the first, and it is always closed. If it is not `certain` to be code, its lines
    /// are escaped so that they are harmless as text, too.
    fn write(&self, first: &str, body: &[String], close: Option<&str>, certain: bool, out: &mut Vec<String>) {
        let longest = body.iter().map(|line| longest_run(line, self.mark)).max().unwrap_or(0);
        let length = self.length.max(longest + 1);
        let info = self.info.trim();
        let plain = info.chars().all(|c| c.is_alphanumeric() || " +-#._:=,/\"'".contains(c));
        let indent = " ".repeat(self.indent);
        let marks = self.mark.to_string().repeat(length);
        let whole = length == self.length && plain;
        out.push(if whole { first.to_owned() } else { format!("{indent}{marks}{}", language(info)) });
        for line in body {
            let line = if certain { line } else { &escape_prose(line, true, true) };
            let depth = line.len() - line.trim_start_matches(' ').len();
            if depth < self.indent && !line.trim().is_empty() {
                out.push(format!("{indent}{}", line.trim_start_matches(' ')));
            } else {
                out.push(line.clone());
            }
        }
        let same = close.filter(|close| length == self.length && close.starts_with(&indent));
        // Some renderers do not accept a closing fence whose indentation differs from that of the opening fence.
        let same = same.filter(|close| !close[self.indent..].starts_with(' '));
        out.push(same.map_or_else(|| format!("{indent}{marks}"), str::to_owned));
    }
}

/// Returns the column where the text of a list item begins, for a line that starts an item at the top level.
fn item_offset(line: &str) -> Option<usize> {
    let body = line.trim_start_matches(' ');
    let indent = line.len() - body.len();
    let marker = match body.as_bytes().first()? {
        b'-' | b'*' | b'+' => 1,
        _ => {
            let digits = body.len() - body.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let ends = matches!(body.as_bytes().get(digits), Some(b'.' | b')'));
            ((1..=9).contains(&digits) && ends).then_some(digits + 1)?
        }
    };
    let text = &body[marker..];
    let spaces = text.len() - text.trim_start_matches(' ').len();
    let begins = spaces > 0 && !text[spaces..].starts_with('\t');
    (indent < 4 && begins).then_some(indent + marker + if spaces > 4 { 1 } else { spaces })
}

/// Returns the language of a block of code. Only safe characters are kept, because some renderers interpret braces and
/// other characters.
pub(super) fn language(info: &str) -> String {
    info.chars().filter(|c| c.is_ascii_alphanumeric() || "+-#.".contains(*c)).collect()
}

/// Returns the length of the longest run of a mark.
pub(super) fn longest_run(text: &str, mark: char) -> usize {
    text.split(|c| c != mark).map(str::len).max().unwrap_or(0)
}

/// Returns whether a line is a heading, by its own marks or by an underline below it. Braces at the end of a heading
/// may be attributes.
fn is_heading(line: &str, below: &str) -> bool {
    let inside = |line: &str| line.trim_start_matches(|c: char| CONTAINERS.contains(c)).trim_end().to_owned();
    let marks = below.trim_matches(|c: char| " >\t".contains(c));
    let underlined =
        !marks.is_empty() && (marks.chars().all(|c| c == '=') || marks.chars().all(|c| c == '-'));
    inside(line).starts_with('#') || underlined
}

/// Returns a line that is not code, with active characters escaped.
fn escape_prose(line: &str, heading: bool, formula: bool) -> String {
    // Table columns and formulas can end inside text that looks like inline code.
    let divided = formula || line.contains('|');
    let mut out = String::with_capacity(line.len() + 8);
    let mut rest = line;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        let next = after.chars().next().unwrap_or('\n');
        // Renderers that support heading attributes interpret braces even if they are escaped.
        let named = if c == '{' { "&#123;" } else { "&#125;" };
        if heading && matches!(c, '{' | '}') {
            out.push_str(named);
            (rest, before) = (after, c);
            continue;
        }
        let taken = match c {
            '\\' if next.is_ascii_punctuation() => 2,
            '`' => {
                let (code, whole) = code_span(rest);
                if !whole {
                    out.extend(code.chars().flat_map(|c| ['\\', c]));
                } else if divided {
                    let marks = code.len() - code.trim_start_matches('`').len();
                    let (open, inner) = code.split_at(marks);
                    let (inner, close) = inner.split_at(inner.len() - marks);
                    // A backtick that is left inside, escaped or not, would end the code in renderers that do not
                    // support tables.
                    let inner = escape_prose(&inner.replace('`', "&#96;"), heading, formula);
                    out.push_str(&format!("{open}{inner}{close}"));
                } else {
                    out.push_str(code);
                }
                before = '`';
                rest = &rest[code.len()..];
                continue;
            }
            _ => 1,
        };
        if taken == 1 && is_active(c, before, after) {
            out.push('\\');
        }
        let end = rest.char_indices().nth(taken).map_or(rest.len(), |(at, _)| at);
        out.push_str(&rest[..end]);
        before = rest[..end].chars().next_back().unwrap_or(' ');
        rest = &rest[end..];
    }
    out
}

/// Returns whether a character begins or ends something that is more than text.
fn is_active(c: char, before: char, after: &str) -> bool {
    let next = after.chars().next().unwrap_or('\n');
    match c {
        // HTML tags, comments and autolinks.
        '<' => next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?'),
        // Images, embedded notes and links between notes, which may lead anywhere.
        '!' => next == '[',
        // Footnotes, whose names could end after code that begins inside them.
        '[' => matches!(next, '[' | '^'),
        // Link reference definitions, which apply to the whole file, and links.
        ']' => next == ':' || next == '(' && !is_web_link(&after[1..]),
        // A block of code in a quote or list item, which the end of the text would not close.
        '~' => after.starts_with("~~"),
        // Inline footnotes.
        '^' => next == '[',
        // Obsidian comments, which hide the text after them.
        '%' => next == '%' || before == '%',
        // Attributes, and Pandoc's raw HTML.
        '{' => matches!(before, '`' | ')' | ']'),
        _ => false,
    }
}

/// Returns whether a link leads to the web. `target` is the text after its opening bracket.
fn is_web_link(target: &str) -> bool {
    let target = target.trim_start();
    WEB.iter().any(|web| target.get(..web.len()).is_some_and(|start| start.eq_ignore_ascii_case(web)))
}

/// Returns the inline code that starts with the backticks at the beginning, and whether it ends in this line. If it
/// does not, returns only those backticks.
fn code_span(text: &str) -> (&str, bool) {
    let marks = text.len() - text.trim_start_matches('`').len();
    let mut at = marks;
    while let Some(found) = text[at..].find('`') {
        let begin = at + found;
        let run = text[begin..].len() - text[begin..].trim_start_matches('`').len();
        if run == marks {
            return (&text[..begin + run], true);
        }
        at = begin + run;
    }
    (&text[..marks], false)
}

#[cfg(test)]
mod tests;
