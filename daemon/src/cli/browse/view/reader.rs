//! Draws the record that is read.

use ratatui::{
    Frame,
    layout::Rect,
    style::{Modifier, Style},
    text::{Line, Span},
};

use super::{list::match_style, put, put_lines};
use crate::cli::{
    browse::{
        find::LineMatch,
        painted,
        state::{Focus, ReaderContent, State},
        update,
    },
    style::Paint,
};

pub(super) fn draw(frame: &mut Frame<'_>, state: &State, area: Rect) {
    let Some(reader) = state.reader.as_ref().filter(|_| !area.is_empty()) else { return };
    let page = match &reader.content {
        ReaderContent::Loading => {
            return put(frame, &Line::styled("…", painted::style(Paint::Dim, state.color)), area);
        }
        ReaderContent::Failed(problem) => {
            let style = painted::style(Paint::Bad, state.color);
            let wrapped = textwrap::wrap(problem, usize::from(area.width));
            return put_lines(
                frame,
                wrapped.into_iter().map(|line| Line::styled(line.into_owned(), style)),
                area,
            );
        }
        ReaderContent::Open(_, page) => page,
    };
    let height = usize::from(area.height);
    let current = reader.at_match.and_then(|at| page.matches.get(at));
    let fork = update::current_fork(page, reader.scroll, height).map(|fork| fork.line);
    let mut lines = Vec::new();
    for (number, line) in page.lines.iter().enumerate().skip(reader.scroll).take(height) {
        let from = page.matches.partition_point(|found| found.line < number);
        let matches: Vec<&LineMatch> =
            page.matches[from..].iter().take_while(|found| found.line == number).collect();
        let mut line = highlighted(line, &matches, current, state.color);
        if Some(number) == fork && state.focus == Focus::Reader {
            line.push_span(Span::styled("   ← → switch", painted::style(Paint::Dim, state.color)));
        }
        lines.push(line);
    }
    put_lines(frame, lines, area);
}

/// Returns a line with its matches highlighted.
fn highlighted(
    line: &Line<'static>,
    matches: &[&LineMatch],
    current: Option<&LineMatch>,
    color: bool,
) -> Line<'static> {
    if matches.is_empty() {
        return line.clone();
    }
    let (mut spans, mut start) = (Vec::new(), 0);
    for span in &line.spans {
        let end = start + span.content.len();
        let mut at = start;
        for found in matches.iter().filter(|found| found.start < end && found.end > start) {
            let (from, to) = (found.start.max(start), found.end.min(end));
            push(&mut spans, span, (at, from), start, Style::new());
            let mut style = match_style(color);
            if current == Some(*found) {
                style = style.add_modifier(Modifier::REVERSED);
            }
            push(&mut spans, span, (from, to), start, style);
            at = to;
        }
        push(&mut spans, span, (at, end), start, Style::new());
        start = end;
    }
    Line::from(spans)
}

/// Appends a part of a span, which begins at `start` in its line.
fn push(
    spans: &mut Vec<Span<'static>>,
    span: &Span<'static>,
    (from, to): (usize, usize),
    start: usize,
    style: Style,
) {
    if let Some(part) = span.content.get(from - start..to - start).filter(|part| !part.is_empty()) {
        spans.push(Span::styled(part.to_owned(), span.style.patch(style)));
    }
}
