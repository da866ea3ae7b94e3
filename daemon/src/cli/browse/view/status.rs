//! Draws the line below the query, and the line at the bottom.

use ratatui::{Frame, layout::Rect, text::Line};

use super::{Cursor, PROMPT, clear, draw_editor, put};
use crate::cli::{
    args::SearchKindArg,
    browse::{
        areas::Areas,
        line_editor::LineEditor,
        painted,
        state::{Filters, Focus, Overlay, ReaderContent, State, WrongQuery},
    },
    style::Paint,
    text,
};

/// Draws how many hits there are and the filters, or what is wrong with the query.
pub(super) fn draw_info(frame: &mut Frame<'_>, state: &State, area: Rect) {
    if area.is_empty() {
        return;
    }
    let columns = usize::from(area.width);
    if let Some(wrong) = &state.list.wrong {
        let style = painted::style(Paint::Bad, state.color);
        return put(frame, &Line::styled(mark(state, wrong, columns), style), area);
    }
    let (left, paint) = match &state.list.suggestion {
        Some(suggestion) => (format!("did you mean: {suggestion}  (Ctrl-Y)"), Paint::Warn),
        None => (count(state), Paint::Dim),
    };
    let left = text::fit(&left, columns.saturating_sub(2)).into_owned();
    let right = filters(&state.filters);
    let room = columns.saturating_sub(text::width(&left) + 4);
    put(frame, &Line::styled(format!("  {left}"), painted::style(paint, state.color)), area);
    if text::width(&right) <= room {
        let width = u16::try_from(text::width(&right)).unwrap_or(area.width);
        let area = Rect { x: area.right().saturating_sub(width), width, ..area };
        put(frame, &Line::styled(right, painted::style(Paint::Dim, state.color)), area);
    }
}

/// Returns the signs below the part of the query that is wrong, and why it is.
fn mark(state: &State, wrong: &WrongQuery, columns: usize) -> String {
    let query = state.query.text();
    let prompt = text::width(PROMPT);
    let (start, _) = state.query.window(columns.saturating_sub(prompt));
    let width = |from: usize, to: usize| query.get(from..to.max(from)).map_or(0, text::width);
    let before = prompt + width(start, wrong.start.max(start));
    let length = width(wrong.start.max(start), wrong.end.min(query.len())).max(1);
    let signs = format!("{}{}", " ".repeat(before), "^".repeat(length));
    let room = columns.saturating_sub(text::width(&signs) + 1);
    // The bottom line has the whole message.
    text::fit(&format!("{signs} {}", text::fit(&wrong.message, room)), columns).into_owned()
}

fn count(state: &State) -> String {
    match state.list.total {
        Some(0) | None if state.list.hits.is_empty() => String::new(),
        Some(total) => text::count(total, "match", "matches"),
        None if state.filters.kind == SearchKindArg::Memories => "newest memories".to_owned(),
        None => "newest conversations".to_owned(),
    }
}

fn filters(filters: &Filters) -> String {
    let kind = match filters.kind {
        SearchKindArg::All => "everything",
        SearchKindArg::Memories => "memories",
        SearchKindArg::Messages => "messages",
        SearchKindArg::Titles => "titles",
    };
    let hidden = if filters.hidden { "with hidden" } else { "without hidden" };
    let platform = filters.platform.as_deref().map_or_else(|| "all platforms".to_owned(), text::one_line);
    format!("^T {kind} · ^O {hidden} · ^F {platform}")
}

/// Draws what was said, or the keys.
pub(super) fn draw(frame: &mut Frame<'_>, state: &State, areas: &Areas) {
    let area = areas.status;
    if area.is_empty() {
        return;
    }
    if let Some(find) = state.reader.as_ref().and_then(|reader| reader.find.as_ref()) {
        return draw_editor(frame, ("/", find), None, Cursor::Shown, area);
    }
    if let Some(Overlay::Export { file, targets, problem }) = &state.overlay {
        return draw_export(frame, state, (file, targets.len(), problem.as_deref()), areas);
    }
    let (line, paint) = if let Some(notice) = &state.notice {
        (notice.text.clone(), if notice.error { Paint::Bad } else { Paint::Good })
    } else if let Some(wrong) = state.list.wrong.as_ref().filter(|_| state.focus != Focus::Reader) {
        (wrong.message.clone(), Paint::Bad)
    } else {
        (keys(state, areas), Paint::Dim)
    };
    let line = text::fit(&line, area.width.into()).into_owned();
    put(frame, &Line::styled(line, painted::style(paint, state.color)), area);
}

fn draw_export(
    frame: &mut Frame<'_>,
    state: &State,
    (file, records, problem): (&LineEditor, usize, Option<&str>),
    areas: &Areas,
) {
    let records = text::count(records as u64, "record", "records");
    let prompt = format!("write {records} as Markdown to: ");
    // On a narrow screen the name counts more.
    let prompt = if text::width(&prompt) * 2 > usize::from(areas.status.width) { "to: " } else { &prompt };
    draw_editor(frame, (prompt, file), None, Cursor::Shown, areas.status);
    let above = areas.status.y.checked_sub(1);
    if let (Some(problem), Some(y)) = (problem, above) {
        let area = Rect { y, height: 1, ..areas.status };
        clear(frame, area);
        let line = text::fit(problem, area.width.into()).into_owned();
        put(frame, &Line::styled(line, painted::style(Paint::Bad, state.color)), area);
    }
}

/// Returns the most important keys, and where the reader is.
fn keys(state: &State, areas: &Areas) -> String {
    let marked = match state.marked.len() as u64 {
        0 => String::new(),
        count => format!("{} marked · ", text::number(count)),
    };
    let keys = match state.focus {
        Focus::Query => "Enter open · Tab mark · ^E export · Esc list · F1 help · ^C quit",
        Focus::List => "/ query · Enter open · Tab mark · e export · ? help · q quit",
        Focus::Reader => return format!("{marked}{}", place(state, areas.reader.height.into())),
    };
    format!("{marked}{keys}")
}

/// Returns where in the record the screen is.
fn place(state: &State, height: usize) -> String {
    let keys = "q back · / find · n N matches · e export · ? help";
    let Some(reader) = &state.reader else { return keys.to_owned() };
    let ReaderContent::Open(_, page) = &reader.content else { return keys.to_owned() };
    let shown = (reader.scroll + height).min(page.lines.len());
    let percent = shown * 100 / page.lines.len().max(1);
    let found = match (reader.at_match, page.matches.len()) {
        (_, 0) => String::new(),
        (Some(at), count) => format!("match {} of {} · ", at + 1, count),
        (None, count) => format!("{} · ", text::count(count as u64, "match", "matches")),
    };
    format!("{percent} % · {found}{keys}")
}
