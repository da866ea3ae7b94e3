//! Hits as text for a person.

use std::collections::HashMap;

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
/// A longer query is not shown with an error: its mark would not be below what is wrong.
const MAX_MARKED_COLUMNS: usize = 76;

/// Returns the hits, the best first. Those of a search by meaning are not in order of how many words they have. `revision` is the
/// earlier one that was searched.
pub(super) fn hits(
    hits: &[SearchHit],
    by_meaning: bool,
    revision: Option<i64>,
    calendar: &Calendar,
    style: TerminalStyle,
) -> String {
    let mut out = String::new();
    for (number, hit) in hits.iter().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        if hit.relaxed && !by_meaning && (number == 0 || !hits[number - 1].relaxed) {
            let line = "some of the words, or similar ones:";
            text::append(&mut out, format_args!("{}\n\n", style.paint(Paint::Dim, line)));
        }
        out.push_str(&heading(hit, revision, calendar, style));
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

/// Returns the title of the conversation, or what kind of memory it is.
pub(in crate::cli) fn title(hit: &SearchHit) -> String {
    match hit.kind() {
        SearchHitKind::Memory => format!("Memory ({})", labels::memory_type(hit.memory_type)),
        _ if hit.title.trim().is_empty() => "(untitled)".to_owned(),
        _ => text::one_line(&hit.title),
    }
}

/// Returns origin, time and state.
pub(in crate::cli) fn facts(hit: &SearchHit, calendar: &Calendar) -> String {
    let mut facts = vec![text::one_line(&hit.platform), calendar.short_or_unknown(hit.time.as_ref())];
    if hit.kind() == SearchHitKind::Memory && labels::memory_status(hit.memory_status) != "active" {
        facts.push(labels::memory_status(hit.memory_status));
    }
    if let Some(cosine) = hit.cosine {
        facts.push(format!("similarity {cosine:.2}"));
    }
    let marks = [
        (hit.expired, "expired"),
        (hit.hidden, "hidden by the platform"),
        (hit.is_thought, "thought"),
        (hit.kind() == SearchHitKind::Message && !hit.on_active_branch, "on another branch"),
    ];
    facts.extend(marks.into_iter().filter(|(set, _)| *set).map(|(_, fact)| fact.to_owned()));
    facts.join(" · ")
}

/// Returns the line with title and origin, and the ids with which the hit is opened.
fn heading(hit: &SearchHit, revision: Option<i64>, calendar: &Calendar, style: TerminalStyle) -> String {
    let (title, facts) = (title(hit), facts(hit, calendar));
    let room = style.columns.map_or(usize::MAX, |columns| columns.saturating_sub(text::width(&facts) + 2));
    format!(
        "{}  {}\n{INDENT}{}\n",
        style.paint(Paint::Strong, &text::fit(&title, room.max(16))),
        style.paint(Paint::Dim, &facts),
        style.paint(Paint::Id, &open_command(hit, revision)),
    )
}

/// Returns the command that shows a hit.
fn open_command(hit: &SearchHit, revision: Option<i64>) -> String {
    // Ids of PAM documents may be any text.
    let short = |id| text::shell_quoted(&text::short_id(id));
    match hit.kind() {
        SearchHitKind::Memory => {
            let then = revision.map(|revision| format!(" --revision {revision}")).unwrap_or_default();
            format!("satchel memories show {}{then}", short(&hit.id))
        }
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
    let paint =
        |(part, matches): (String, bool)| if matches { style.paint(Paint::Warn, &part) } else { part };
    pieces(snippet).into_iter().map(paint).collect::<String>().trim().to_owned()
}

/// Returns the clean text on one line, in pieces, and whether each is a match.
pub(in crate::cli) fn pieces(snippet: &SearchSnippet) -> Vec<(String, bool)> {
    let (mut out, mut at) = (Vec::new(), 0);
    let part = |from: usize, to: usize| snippet.text.get(from..to).map(joined).unwrap_or_default();
    for mark in &snippet.marks {
        let (start, end) = (unsigned(mark.start) as usize, unsigned(mark.end) as usize);
        if start < at || snippet.text.get(start..end).is_none() {
            continue;
        }
        out.push((part(at, start), false));
        out.push((part(start, end), true));
        at = end;
    }
    out.push((part(at, snippet.text.len()), false));
    out
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

/// Returns the query with a line below it that marks what is wrong, from the metadata of an error.
pub(super) fn marked_query(query: &str, metadata: &HashMap<String, String>) -> Option<String> {
    let at = |name| metadata.get(name).and_then(|number| number.parse::<usize>().ok());
    let (before, wrong) = (query.get(..at("start")?)?, query.get(at("start")?..at("end")?)?);
    let line: String =
        query.chars().map(|c| if text::is_unsafe(c) || c.is_control() { ' ' } else { c }).collect();
    if text::width(&line) > MAX_MARKED_COLUMNS {
        return None;
    }
    let (skipped, length) = (text::width(before), text::width(wrong).max(1));
    Some(format!("{INDENT}{line}\n{INDENT}{}{}", " ".repeat(skipped), "^".repeat(length)))
}

/// Returns the query with the suggested words; `None` without any.
pub(in crate::cli) fn corrected(found: &SearchResponse, query: &str) -> Option<String> {
    let mut corrected = query.to_owned();
    for suggestion in found.suggestions.iter().rev() {
        let at = unsigned(suggestion.start) as usize..unsigned(suggestion.end) as usize;
        corrected.get(at.clone())?;
        corrected.replace_range(at, &suggestion.word);
    }
    (!found.suggestions.is_empty()).then(|| text::one_line(&corrected))
}

#[cfg(test)]
mod tests {
    use satchel_proto::v1::SearchMark;

    use super::*;

    #[test]
    fn hostile_text_reaches_the_terminal_clean() {
        let hit = SearchHit {
            kind: SearchHitKind::Message.into(),
            id: "m-\u{1b}[2J".to_owned(),
            conversation_id: "c\u{7}".to_owned(),
            title: "Bees\u{1b}]0;owned\u{7}\nsecond line".to_owned(),
            platform: "chat\u{202e}gpt".to_owned(),
            snippet: Some(SearchSnippet {
                text: "the \u{1b}[31mbees\u{1b}[0m\r\nsleep".to_owned(),
                marks: vec![SearchMark { start: 9, end: 13 }, SearchMark { start: 5, end: 900 }],
                cut_start: true,
                cut_end: false,
            }),
            explanation: "1.0 = (\u{1b}c bees 1.0)".to_owned(),
            more_in_conversation: 3,
            ..SearchHit::default()
        };
        let calendar = Calendar { now: jiff::Timestamp::UNIX_EPOCH, zone: jiff::tz::TimeZone::UTC };
        let shown = hits(&[hit], false, None, &calendar, TerminalStyle::plain(80));
        assert!(!shown.chars().any(|c| c != '\n' && text::is_unsafe(c)), "{shown:?}");
        assert!(shown.contains("bees sleep") || shown.contains("bees"), "{shown}");
        assert!(shown.contains("and 3 more hits in this conversation"), "{shown}");
    }

    #[test]
    fn the_printed_command_opens_what_was_found() {
        let hit = |id: &str| SearchHit {
            kind: SearchHitKind::Memory.into(),
            id: id.to_owned(),
            ..SearchHit::default()
        };
        let calendar = Calendar { now: jiff::Timestamp::UNIX_EPOCH, zone: jiff::tz::TimeZone::UTC };
        let shown =
            |id: &str, revision| hits(&[hit(id)], false, revision, &calendar, TerminalStyle::plain(80));
        assert!(shown("m1", None).contains("satchel memories show m1\n"));
        assert!(shown("m1", Some(12)).contains("satchel memories show m1 --revision 12\n"));
        assert!(shown("x; rm -r y", None).contains("satchel memories show 'x; rm -r y'\n"));
    }

    #[test]
    fn a_wrong_query_is_shown_with_a_mark() {
        let place = |start: &str, end: &str| {
            HashMap::from([("start".to_owned(), start.to_owned()), ("end".to_owned(), end.to_owned())])
        };
        let marked = marked_query("bees role:boss", &place("5", "14"));
        assert_eq!(marked.as_deref(), Some("  bees role:boss\n       ^^^^^^^^^"));
        let marked = marked_query("蜂 role:x", &place("4", "10"));
        assert_eq!(marked.as_deref(), Some("  蜂 role:x\n     ^^^^^^"));
        assert_eq!(marked_query("bees", &place("2", "99")), None);
    }

    #[test]
    fn suggestions_are_put_into_the_query() {
        let suggestion = |start, end, word: &str| satchel_proto::v1::SearchSuggestion {
            start,
            end,
            word: word.to_owned(),
        };
        let found = SearchResponse {
            suggestions: vec![suggestion(0, 4, "bees"), suggestion(5, 9, "honey")],
            ..SearchResponse::default()
        };
        assert_eq!(
            footer(&found, "beez huny", false),
            ["nothing was found", "did you mean: satchel search 'bees honey'"]
        );
    }
}
