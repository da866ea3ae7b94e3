//! Draws the help and the list of platforms.

use ratatui::{
    Frame,
    layout::Rect,
    style::{Modifier, Style},
    text::Line,
    widgets::{Block, Widget as _},
};

use super::{clear, put_lines};
use crate::cli::{
    browse::{
        areas::Areas,
        painted,
        state::{Overlay, PlatformList, State},
    },
    style::Paint,
    text,
};

/// The keys, in groups.
const HELP: &[(&str, &str)] = &[
    ("Query", ""),
    ("type", "search; an empty query shows what is newest"),
    ("Up Down ^P ^N ^K ^J", "select"),
    ("PgUp PgDn", "select a screen further"),
    ("Enter", "open the record at what was found"),
    ("Tab", "mark for export"),
    ("^Y", "take the suggested query"),
    ("Esc", "leave the query: letters are keys of the list"),
    ("List", ""),
    ("j k g G Space b", "select"),
    ("/", "back to the query"),
    ("t  (^T)", "everything, memories, messages, titles"),
    ("o  (^O)", "also what the platform hides, and reasoning"),
    ("f  (^F)", "choose a platform"),
    ("e  (^E)", "export the marked records, or this one"),
    ("q Esc", "quit"),
    ("Record", ""),
    ("j k Space b d u g G", "scroll"),
    ("n N", "next and previous match"),
    ("/", "find text"),
    ("← →  [ ]", "other branches of the fork on the screen"),
    ("q Esc", "back"),
    ("Everywhere", ""),
    ("F1 ?", "this help"),
    ("^C", "quit"),
];
/// Columns of the keys in the help.
const KEY_COLUMNS: usize = 21;
/// Columns of the list of platforms.
const PLATFORM_COLUMNS: u16 = 40;

pub(super) fn draw(frame: &mut Frame<'_>, state: &State, areas: &Areas) {
    match &state.overlay {
        Some(Overlay::Help { scroll }) => draw_help(frame, state, *scroll),
        Some(Overlay::Platforms(list)) => draw_platforms(frame, list),
        // This one is drawn at the bottom, over the status.
        Some(Overlay::Export { .. }) | None => {}
    }
    if state.overlay.is_some() && areas.status.is_empty() {
        clear(frame, areas.query);
    }
}

fn draw_help(frame: &mut Frame<'_>, state: &State, scroll: usize) {
    let lines = HELP.iter().map(|(keys, what)| {
        if what.is_empty() {
            Line::styled(*keys, painted::style(Paint::Strong, state.color))
        } else {
            Line::raw(format!("  {keys:<KEY_COLUMNS$} {what}"))
        }
    });
    let height = u16::try_from(HELP.len()).unwrap_or(u16::MAX);
    let inner = window(frame, " Keys ", 72, height);
    let last = HELP.len().saturating_sub(inner.height.into());
    put_lines(frame, lines.skip(scroll.min(last)), inner);
}

fn draw_platforms(frame: &mut Frame<'_>, list: &PlatformList) {
    let counts = list.counts.as_deref();
    let rows = counts.map_or(1, |counts| counts.len() + 1);
    let inner = window(frame, " Platform ", PLATFORM_COLUMNS, u16::try_from(rows).unwrap_or(u16::MAX));
    let Some(counts) = counts else {
        return put_lines(frame, [Line::raw("…")], inner);
    };
    let columns = usize::from(inner.width);
    let all = std::iter::once(("all platforms".to_owned(), String::new()));
    let named = counts.iter().map(|(name, count)| (text::one_line(name), text::number(*count)));
    let lines = all.chain(named).enumerate().map(|(number, (name, count))| {
        let name = text::fit(&name, columns.saturating_sub(count.len() + 1)).into_owned();
        let gap = columns.saturating_sub(text::width(&name) + count.len());
        let selected = number == list.selected;
        let style = if selected { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
        Line::styled(format!("{name}{}{count}", " ".repeat(gap)), style)
    });
    let top = (list.selected + 1).saturating_sub(inner.height.into());
    put_lines(frame, lines.skip(top), inner);
}

/// Draws a frame in the middle of the screen, and returns the area in it. Where there is no room for a frame, the whole
/// screen is used.
fn window(frame: &mut Frame<'_>, title: &str, width: u16, height: u16) -> Rect {
    let screen = frame.area();
    if screen.width < 20 || screen.height < 5 {
        clear(frame, screen);
        return screen;
    }
    let (width, height) =
        ((width.saturating_add(2)).min(screen.width), (height.saturating_add(2)).min(screen.height));
    let area = Rect {
        x: screen.x + (screen.width - width) / 2,
        y: screen.y + (screen.height - height) / 2,
        width,
        height,
    };
    clear(frame, area);
    let block = Block::bordered().title(title);
    let inner = block.inner(area);
    block.render(area, frame.buffer_mut());
    inner
}
