//! Draws the list.

use ratatui::{
    Frame,
    layout::Rect,
    style::{Modifier, Style},
    text::{Line, Span},
};

use super::{put, put_lines};
use crate::cli::{
    browse::{
        areas::Areas,
        hits::Hit,
        painted,
        state::{Focus, State},
    },
    style::Paint,
    text,
};

/// Columns before the text of a row: whether it is selected, and whether it is marked.
const GUTTER: usize = 2;
/// Least columns that the title of a row keeps beside origin and time.
const MIN_TITLE: usize = 16;

pub(super) fn draw(frame: &mut Frame<'_>, state: &State, areas: &Areas) {
    let area = areas.list;
    if area.is_empty() {
        return;
    }
    let list = &state.list;
    if list.hits.is_empty() {
        let line = match (list.answered, state.query.text().trim().is_empty()) {
            (false, _) => "…",
            (true, true) => "nothing is stored here yet, or nothing of this kind",
            (true, false) => "nothing was found",
        };
        let style = painted::style(Paint::Dim, state.color);
        return put(frame, &Line::styled(format!("  {line}"), style), area);
    }
    let height = areas.lines_per_hit();
    let mut lines = Vec::new();
    for (number, hit) in list.hits.iter().enumerate().skip(list.top).take(areas.list_rows()) {
        lines.push(heading(state, number, hit, area));
        if height > 1 {
            lines.push(passage(state, hit, area));
        }
    }
    put_lines(frame, lines, area);
}

/// Returns the first line of a row: title, origin and time.
fn heading(state: &State, number: usize, hit: &Hit, area: Rect) -> Line<'static> {
    let selected = number == state.list.selected;
    let marked = state.marked.contains_key(&hit.target.key);
    let room = usize::from(area.width).saturating_sub(GUTTER);
    let similar = if hit.relaxed { "≈ " } else { "" };
    let title = format!("{similar}{}", hit.target.title);
    let facts_width = text::width(&hit.facts) + 2;
    let facts = if room >= facts_width + MIN_TITLE { hit.facts.as_str() } else { "" };
    let title_room = if facts.is_empty() { room } else { room - facts_width };
    let title = text::fit(&title, title_room).into_owned();
    let gap = room.saturating_sub(text::width(&title) + text::width(facts));
    let mut style = painted::style(Paint::Strong, state.color);
    if selected {
        style = style.add_modifier(Modifier::REVERSED);
        if state.focus == Focus::Reader {
            style = style.add_modifier(Modifier::DIM);
        }
    }
    let facts_style = painted::style(Paint::Dim, state.color);
    Line::from(vec![
        Span::raw(if selected { "▌" } else { " " }),
        Span::styled(if marked { "●" } else { " " }, painted::style(Paint::Good, state.color)),
        Span::styled(title, style),
        Span::raw(" ".repeat(gap)),
        Span::styled(facts.to_owned(), facts_style),
    ])
}

/// Returns the second line of a row, from shortly before the first match if the beginning does not fit.
fn passage(state: &State, hit: &Hit, area: Rect) -> Line<'static> {
    let room = usize::from(area.width).saturating_sub(GUTTER + 1);
    let mut line = vec![Span::raw(" ".repeat(GUTTER))];
    let before: usize =
        hit.passage.iter().take_while(|(_, matches)| !matches).map(|(part, _)| text::width(part)).sum();
    let first = hit.passage.iter().find(|(_, matches)| *matches).map_or(0, |(part, _)| text::width(part));
    let mut skip = (before + first).saturating_sub(room * 2 / 3);
    if before + first <= room {
        skip = 0;
    } else if skip > 0 {
        line.push(Span::raw("…"));
    }
    let matching = match_style(state.color);
    for (part, matches) in &hit.passage {
        let (shown, skipped) = without_columns(part, skip);
        skip -= skipped;
        let style = if *matches { matching } else { Style::new() };
        line.push(Span::styled(shown.to_owned(), style));
    }
    Line::from(line)
}

/// Returns the text without its first columns, and how many these are.
fn without_columns(part: &str, columns: usize) -> (&str, usize) {
    let mut skipped = 0;
    for (at, c) in part.char_indices() {
        if skipped >= columns {
            return (&part[at..], skipped.min(columns));
        }
        skipped += text::width(c.encode_utf8(&mut [0; 4]));
    }
    ("", skipped.min(columns))
}

/// Returns how matches look.
pub(super) fn match_style(color: bool) -> Style {
    let style = painted::style(Paint::Warn, color).add_modifier(Modifier::BOLD);
    if color { style } else { style.add_modifier(Modifier::UNDERLINED) }
}
