//! Hits as text for a person.

use satchel_proto::{
    integers::unsigned,
    v1::{SearchHit, SearchHitKind, SearchResponse, SearchSnippet},
};

use crate::cli::{
    labels,
    style::{Paint, TerminalStyle},
    text,
    time::Calendar,
};

/// Indentation of what belongs to a hit.
const INDENT: &str = "  ";

/// Returns the hits, the best first.
pub(super) fn hits(hits: &[SearchHit], calendar: &Calendar, style: TerminalStyle) -> String {
    let mut out = String::new();
    for (number, hit) in hits.iter().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        out.push_str(&heading(hit, calendar, style));
        if let Some(snippet) = hit.snippet.as_ref().filter(|_| hit.kind() != SearchHitKind::Title) {
            out.push_str(&passage(hit, snippet, style));
        }
        if !hit.explanation.is_empty() {
            let line = format!("{INDENT}{}", text::one_line(&hit.explanation));
            text::append(&mut out, format_args!("{}\n", style.paint(Paint::Dim, &line)));
        }
        let more = unsigned(hit.more_in_conversation);
        if more > 0 {
            let line =
                format!("{INDENT}and {} in this conversation", text::count(more, "more hit", "more hits"));
            text::append(&mut out, format_args!("{}\n", style.paint(Paint::Dim, &line)));
        }
    }
    out
}

/// Returns the line with title and origin, and the ids with which the hit is opened.
fn heading(hit: &SearchHit, calendar: &Calendar, style: TerminalStyle) -> String {
    let title = match hit.kind() {
        SearchHitKind::Memory => format!("Memory ({})", labels::memory_type(hit.memory_type)),
        _ if hit.title.trim().is_empty() => "(untitled)".to_owned(),
        _ => text::one_line(&hit.title),
    };
    let mut facts = vec![text::one_line(&hit.platform), calendar.short_or_unknown(hit.time.as_ref())];
    if hit.kind() == SearchHitKind::Memory && labels::memory_status(hit.memory_status) != "active" {
        facts.push(labels::memory_status(hit.memory_status));
    }
    let marks = [
        (hit.hidden, "hidden by the platform"),
        (hit.is_thought, "thought"),
        (hit.kind() == SearchHitKind::Message && !hit.on_active_branch, "on another branch"),
    ];
    facts.extend(marks.into_iter().filter(|(set, _)| *set).map(|(_, fact)| fact.to_owned()));
    let facts = facts.join(" · ");
    let room = style.columns.map_or(usize::MAX, |columns| columns.saturating_sub(text::width(&facts) + 2));
    format!(
        "{}  {}\n{INDENT}{}\n",
        style.paint(Paint::Strong, &text::fit(&title, room.max(16))),
        style.paint(Paint::Dim, &facts),
        style.paint(Paint::Id, &open_command(hit)),
    )
}

/// Returns the command that shows a hit.
fn open_command(hit: &SearchHit) -> String {
    let short = text::short_id;
    match hit.kind() {
        SearchHitKind::Memory => format!("satchel memories show {}", short(&hit.id)),
        SearchHitKind::Message => {
            format!("satchel conversations show {} --at {}", short(&hit.conversation_id), short(&hit.id))
        }
        SearchHitKind::Title | SearchHitKind::Unspecified => {
            format!("satchel conversations show {}", short(&hit.conversation_id))
        }
    }
}

/// Returns the passage on a few lines, with what matches painted.
fn passage(hit: &SearchHit, snippet: &SearchSnippet, style: TerminalStyle) -> String {
    let marked = marked(snippet, style);
    let who = if hit.kind() == SearchHitKind::Message {
        format!("{}: ", labels::role(hit.role))
    } else {
        String::new()
    };
    let (before, after) =
        (if snippet.cut_start { "… " } else { "" }, if snippet.cut_end { " …" } else { "" });
    let options =
        textwrap::Options::new(style.text_columns()).initial_indent(INDENT).subsequent_indent(INDENT);
    textwrap::fill(&format!("{who}{before}{marked}{after}"), options) + "\n"
}

/// Returns the text on one line, with the marks painted.
fn marked(snippet: &SearchSnippet, style: TerminalStyle) -> String {
    let (mut out, mut at) = (String::new(), 0);
    let part = |from: usize, to: usize| snippet.text.get(from..to).map(joined).unwrap_or_default();
    for mark in &snippet.marks {
        let (start, end) = (unsigned(mark.start) as usize, unsigned(mark.end) as usize);
        if start < at || snippet.text.get(start..end).is_none() {
            continue;
        }
        out.push_str(&part(at, start));
        out.push_str(&style.paint(Paint::Warn, &part(start, end)));
        at = end;
    }
    out.push_str(&part(at, snippet.text.len()));
    out.trim().to_owned()
}

/// Returns a clean text with each run of white space replaced by one space. Unlike [`text::one_line`], keeps spaces at both ends.
fn joined(part: &str) -> String {
    let middle = text::one_line(part);
    let edge = |at: Option<char>| if at.is_some_and(char::is_whitespace) { " " } else { "" };
    if middle.is_empty() {
        return edge(part.chars().next()).to_owned();
    }
    format!("{}{middle}{}", edge(part.chars().next()), edge(part.chars().next_back()))
}

/// Returns the lines below the hits.
pub(super) fn footer(found: &SearchResponse, query: &str, more: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let total = unsigned(found.total);
    if found.hits.is_empty() {
        lines.push("nothing was found".to_owned());
    } else {
        let shown = text::number(found.hits.len() as u64);
        let all =
            text::count(total, "memory, message or title matches", "memories, messages and titles match");
        let rest = if more { format!("; {shown} shown, --limit shows more") } else { String::new() };
        lines.push(format!("{all}{rest}"));
    }
    let corrected = corrected(found, query);
    lines.extend(
        corrected.map(|query| format!("did you mean: satchel search {}", text::shell_quoted(&query))),
    );
    lines
}

/// Returns the query with the suggested words; `None` without any.
fn corrected(found: &SearchResponse, query: &str) -> Option<String> {
    let mut corrected = query.to_owned();
    for suggestion in found.suggestions.iter().rev() {
        let at = unsigned(suggestion.start) as usize..unsigned(suggestion.end) as usize;
        corrected.get(at.clone())?;
        corrected.replace_range(at, &suggestion.word);
    }
    (!found.suggestions.is_empty()).then(|| text::one_line(&corrected))
}
