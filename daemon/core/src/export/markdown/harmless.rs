//! What people and assistants wrote, as Markdown that shows it and does nothing else: no HTML, no picture from elsewhere, no link but to
//! the web, nothing that means anything in another message.
//!
//! Line by line and without recursion. Code stays as it is; where it begins and ends is written so that every reader sees the same, so
//! that nothing that counts as code here is anything else there.
//!
//! **Invariant:** whatever the text, a renderer makes of it only elements without a script, a style or an address outside of the web
//! (`whatever_somebody_wrote_does_nothing_in_a_browser` below).

/// Deepest indentation of a fence that is taken for one; lists of lists are not deeper.
const DEEPEST: usize = 24;
/// Where links may lead.
const WEB: [&str; 4] = ["https://", "http://", "mailto:", "#"];
/// What may stand before a heading: marks of lists, quotes and definitions.
const CONTAINERS: &str = " \t>-*+.:)0123456789";

/// Lines as every reader counts them; a control character, which no text needs, becomes U+FFFD.
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

/// The lines of a text, harmless.
pub(super) fn harmless(text: &str) -> Vec<String> {
    let all: Vec<String> = lines(text).collect();
    let mut out = Vec::with_capacity(all.len());
    let last_math = all.iter().rposition(|line| line.contains("$$")).unwrap_or(0);
    let (mut at, mut math, mut formula) = (0, false, false);
    // Where the paragraph begins in which the next line would stand.
    let mut begin = 0;
    while let Some(line) = all.get(at) {
        if let Some(fence) = Fence::open(line) {
            let rest = &all[at + 1..];
            let end = rest.iter().position(|line| fence.closed_by(line));
            let (body, close) = (&rest[..end.unwrap_or(rest.len())], end.map(|end| rest[end].as_str()));
            // What ends a formula would end the code in it.
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
        out.push(prose(line, is_heading(line, below), formula));
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

/// The line that begins a block of code.
struct Fence {
    indent: usize,
    mark: char,
    length: usize,
    /// What stands behind the marks.
    info: String,
}

impl Fence {
    fn open(line: &str) -> Option<Self> {
        let body = line.trim_start_matches(' ');
        let mark = body.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = body.trim_start_matches(mark);
        let (indent, length) = (line.len() - body.len(), body.len() - info.len());
        // Backticks behind the marks make it code within a line.
        let fence = length >= 3 && indent <= DEEPEST && !info.contains('`');
        fence.then(|| Self { indent, mark, length, info: info.to_owned() })
    }

    /// Whether every reader sees code here, after the lines `above` of a paragraph, of which a deep fence may be the next line, unless
    /// it stands in an item of a list.
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

    /// Writes the block so that nothing in it can end it: with marks longer than any in it, every line as deep as the first, and an end.
    /// Where it is not `certain` to be code, it does nothing as text either.
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
            let line = if certain { line } else { &prose(line, true, true) };
            let depth = line.len() - line.trim_start_matches(' ').len();
            if depth < self.indent && !line.trim().is_empty() {
                out.push(format!("{indent}{}", line.trim_start_matches(' ')));
            } else {
                out.push(line.clone());
            }
        }
        let same = close.filter(|close| length == self.length && close.starts_with(&indent));
        // An end that is less deep than the beginning ends it for some readers only.
        let same = same.filter(|close| !close[self.indent..].starts_with(' '));
        out.push(same.map_or_else(|| format!("{indent}{marks}"), str::to_owned));
    }
}

/// Where the text of a list item begins, for a line that begins one at the top level.
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

/// What a block of code is called; some readers give braces and the like a meaning.
pub(super) fn language(info: &str) -> String {
    info.chars().filter(|c| c.is_ascii_alphanumeric() || "+-#.".contains(*c)).collect()
}

/// The longest row of a mark.
pub(super) fn longest_run(text: &str, mark: char) -> usize {
    text.split(|c| c != mark).map(str::len).max().unwrap_or(0)
}

/// Whether a line is a heading, by its own marks or by those below it: what stands in braces at its end may be attributes.
fn is_heading(line: &str, below: &str) -> bool {
    let inside = |line: &str| line.trim_start_matches(|c: char| CONTAINERS.contains(c)).trim_end().to_owned();
    let marks = below.trim_matches(|c: char| " >\t".contains(c));
    let underlined =
        !marks.is_empty() && (marks.chars().all(|c| c == '=') || marks.chars().all(|c| c == '-'));
    inside(line).starts_with('#') || underlined
}

/// A line that is no code, with what would do something escaped.
fn prose(line: &str, heading: bool, formula: bool) -> String {
    // Columns and formulas end inside what looks like code.
    let divided = formula || line.contains('|');
    let mut out = String::with_capacity(line.len() + 8);
    let mut rest = line;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        let next = after.chars().next().unwrap_or('\n');
        // Readers that know attributes of headings take them by their braces, escaped or not.
        let named = if c == '{' { "&#123;" } else { "&#125;" };
        if heading && matches!(c, '{' | '}') {
            out.push_str(named);
            (rest, before) = (after, c);
            continue;
        }
        let taken = match c {
            '\\' if next.is_ascii_punctuation() => 2,
            '`' => {
                let (code, whole) = span(rest);
                if !whole {
                    out.extend(code.chars().flat_map(|c| ['\\', c]));
                } else if divided {
                    let marks = code.len() - code.trim_start_matches('`').len();
                    let (open, inner) = code.split_at(marks);
                    let (inner, close) = inner.split_at(inner.len() - marks);
                    // A backtick left of it, escaped or not, would end the code for readers that see no column.
                    let inner = prose(&inner.replace('`', "&#96;"), heading, formula);
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
        if taken == 1 && does_something(c, before, after) {
            out.push('\\');
        }
        let end = rest.char_indices().nth(taken).map_or(rest.len(), |(at, _)| at);
        out.push_str(&rest[..end]);
        before = rest[..end].chars().next_back().unwrap_or(' ');
        rest = &rest[end..];
    }
    out
}

/// Whether a character begins or ends something that is more than text.
fn does_something(c: char, before: char, after: &str) -> bool {
    let next = after.chars().next().unwrap_or('\n');
    match c {
        // A tag, a comment, an address in angle brackets.
        '<' => next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?'),
        // A picture, and what a note shows of another; and a link between notes, which may lead anywhere.
        '!' => next == '[',
        // And a footnote, whose name would end behind code that begins in it.
        '[' => matches!(next, '[' | '^'),
        // What a name stands for, in all of the file; and links.
        ']' => next == ':' || next == '(' && !to_the_web(&after[1..]),
        // A block of code in a quote or item, where the end of the text would not end it.
        '~' => after.starts_with("~~"),
        // A footnote within the line.
        '^' => next == '[',
        // A comment of Obsidian's, which hides what follows.
        '%' => next == '%' || before == '%',
        // Attributes, and raw HTML of Pandoc's.
        '{' => matches!(before, '`' | ')' | ']'),
        _ => false,
    }
}

/// Whether a link leads to the web; `target` is what stands behind its opening bracket.
fn to_the_web(target: &str) -> bool {
    let target = target.trim_start();
    WEB.iter().any(|web| target.get(..web.len()).is_some_and(|start| start.eq_ignore_ascii_case(web)))
}

/// The code that begins with the backticks at the start, and whether it ends in this line; else those backticks.
fn span(text: &str) -> (&str, bool) {
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
