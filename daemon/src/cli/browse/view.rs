//! Draws the state. All text is clean: rows and records are cleaned where they are made, typed text in the editor.

mod list;
mod overlay;
mod reader;
mod status;

use std::ops::Range;

use ratatui::{
    Frame,
    layout::{Position, Rect},
    style::{Modifier, Style},
    text::{Line, Span},
    widgets::Clear,
};

use super::{
    areas::Areas,
    line_editor::LineEditor,
    painted,
    state::{Focus, State},
};
use crate::cli::{style::Paint, text};

/// What stands before the query.
const PROMPT: &str = "> ";

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, state: &State) {
    let areas = Areas::of(state, frame.area());
    draw_query(frame, state, areas.query);
    status::draw_info(frame, state, areas.info);
    list::draw(frame, state, &areas);
    if areas.has_preview() {
        let x = areas.reader.x - 2;
        let line =
            vec![Line::styled("│", painted::style(Paint::Dim, state.color)); areas.list.height.into()];
        put_lines(frame, line, Rect { x, width: 1, ..areas.list });
    }
    reader::draw(frame, state, areas.reader);
    status::draw(frame, state, &areas);
    overlay::draw(frame, state, &areas);
}

fn draw_query(frame: &mut Frame<'_>, state: &State, area: Rect) {
    if area.is_empty() {
        return;
    }
    let wrong = state.list.wrong.as_ref().map(|wrong| wrong.start..wrong.end.max(wrong.start + 1));
    let style = painted::style(Paint::Bad, state.color).add_modifier(Modifier::UNDERLINED);
    let focused = state.focus == Focus::Query && state.overlay.is_none();
    let marked = wrong.map(|wrong| (wrong, style));
    let cursor = if focused { Cursor::Shown } else { Cursor::Hidden };
    draw_editor(frame, (PROMPT, &state.query), marked, cursor, area);
}

/// Whether an editor has the cursor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cursor {
    Shown,
    Hidden,
}

/// Draws an editor with a prompt before it, and the cursor in it.
fn draw_editor(
    frame: &mut Frame<'_>,
    (prompt, editor): (&str, &LineEditor),
    marked: Option<(Range<usize>, Style)>,
    cursor: Cursor,
    area: Rect,
) {
    let prompt_width = text::width(prompt);
    let (start, column) = editor.window(usize::from(area.width).saturating_sub(prompt_width));
    let mut line = vec![Span::raw(prompt.to_owned())];
    for (at, c) in editor.text()[start..].char_indices() {
        let style = marked.as_ref().filter(|(range, _)| range.contains(&(start + at)));
        line.push(Span::styled(c.to_string(), style.map_or(Style::new(), |(_, style)| *style)));
    }
    put(frame, &Line::from(line), area);
    if cursor == Cursor::Shown {
        let x = u16::try_from(prompt_width + column).unwrap_or(u16::MAX);
        let x = area.x.saturating_add(x).min(area.right().saturating_sub(1));
        frame.set_cursor_position(Position::new(x, area.y));
    }
}

/// Puts one line at the top of an area.
fn put(frame: &mut Frame<'_>, line: &Line<'_>, area: Rect) {
    let area = area.intersection(frame.area());
    if !area.is_empty() {
        frame.buffer_mut().set_line(area.x, area.y, line, area.width);
    }
}

/// Puts lines below each other, as many as the area has.
fn put_lines<'a>(frame: &mut Frame<'_>, lines: impl IntoIterator<Item = Line<'a>>, area: Rect) {
    for (line, y) in lines.into_iter().zip(area.y..area.bottom()) {
        put(frame, &line, Rect { y, height: 1, ..area });
    }
}

/// Empties an area.
fn clear(frame: &mut Frame<'_>, area: Rect) {
    frame.render_widget(Clear, area.intersection(frame.area()));
}

#[cfg(test)]
mod tests;
