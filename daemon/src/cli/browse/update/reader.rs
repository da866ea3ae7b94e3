//! Keys and changes of the record that is read.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;

use super::{areas, toggle_mark};
use crate::cli::{
    browse::{
        find::Terms,
        hits::Target,
        line_editor::{Edit, LineEditor},
        page::{Page, PageFork, PageOptions},
        record::Record,
        state::{Effect, Focus, Reader, ReaderContent, State},
    },
    time::Calendar,
};

/// Shows the selected record beside the list.
pub(super) fn preview(state: &mut State, effects: &mut Vec<Effect>) {
    let Some(hit) = state.selected() else {
        state.reader = None;
        return;
    };
    if state.reader.as_ref().is_some_and(|reader| reader.target == hit.target) {
        return;
    }
    load(state, true, effects);
}

/// Opens the selected record.
pub(super) fn open(state: &mut State, effects: &mut Vec<Effect>) {
    let Some(hit) = state.selected() else { return };
    let known = state.reader.as_ref().is_some_and(|reader| {
        reader.target == hit.target && !matches!(reader.content, ReaderContent::Failed(_))
    });
    if !known {
        load(state, false, effects);
    }
    state.focus_below = state.focus;
    state.focus = Focus::Reader;
}

fn load(state: &mut State, delayed: bool, effects: &mut Vec<Effect>) {
    let Some(hit) = state.selected() else { return };
    let (target, terms) = (hit.target.clone(), hit.terms());
    let serial = state.next_serial();
    effects.push(Effect::Load { serial, target: target.clone(), delayed });
    let content = ReaderContent::Loading;
    state.reader = Some(Reader { target, serial, content, terms, scroll: 0, at_match: None, find: None });
}

/// Lays the record out again if its width changed, and keeps the same part of it on the screen.
pub(super) fn fit(state: &mut State, area: Rect) {
    let (columns, height) = (usize::from(area.width), usize::from(area.height));
    let options = options(&state.calendar, state.color, state.filters.hidden, columns);
    let Some(reader) = &mut state.reader else { return };
    let Some((old, before)) = reader.page().map(|page| (page.columns, page.lines.len())) else { return };
    if old != columns && columns > 0 {
        reader.lay_out(&options);
        let after = reader.page().map_or(0, |page| page.lines.len());
        match (reader.scroll * after).checked_div(before) {
            None => show_hit(reader, height),
            Some(scroll) => {
                // The same share of the record stays above the screen.
                reader.scroll = scroll;
                show_match(reader, height);
            }
        }
    }
    clamp(reader, height);
}

/// Lays the record out again after the filter of hidden messages changed.
pub(super) fn fold_changed(state: &mut State) {
    if let Some(Reader { content: ReaderContent::Open(_, page), .. }) = &mut state.reader {
        page.columns = 0;
    }
}

fn options(calendar: &Calendar, color: bool, hidden: bool, columns: usize) -> PageOptions<'_> {
    PageOptions { columns, color, calendar, hidden, message: None }
}

/// Handles a key while the record has the keys.
pub(super) fn pressed(state: &mut State, key: KeyEvent, effects: &mut Vec<Effect>) {
    let height = usize::from(areas(state).reader.height);
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Esc | KeyCode::Char('q' | 'h') => {
            state.focus = state.focus_below;
            return;
        }
        KeyCode::Tab => {
            if let Some(target) = state.reader.as_ref().map(shown_target) {
                toggle_mark(state, target);
            }
            return;
        }
        KeyCode::Enter
            if matches!(state.reader.as_ref().map(|r| &r.content), Some(ReaderContent::Failed(_))) =>
        {
            return load(state, false, effects);
        }
        _ => {}
    }
    let Some(reader) = &mut state.reader else { return };
    match key.code {
        KeyCode::Down | KeyCode::Char('j') | KeyCode::Enter => scroll(reader, 1),
        KeyCode::Up | KeyCode::Char('k') => scroll(reader, -1),
        KeyCode::Char('n') if control => scroll(reader, 1),
        KeyCode::Char('p') if control => scroll(reader, -1),
        KeyCode::PageDown | KeyCode::Char(' ') => scroll(reader, screen(height)),
        KeyCode::PageUp | KeyCode::Char('b') => scroll(reader, -screen(height)),
        KeyCode::Char('d') => scroll(reader, screen(height / 2)),
        KeyCode::Char('u') => scroll(reader, -screen(height / 2)),
        KeyCode::Home | KeyCode::Char('g') => reader.scroll = 0,
        KeyCode::End | KeyCode::Char('G') => reader.scroll = usize::MAX,
        KeyCode::Char('n') => next_match(reader, height, false),
        KeyCode::Char('N') => next_match(reader, height, true),
        KeyCode::Char('/') => reader.find = Some(LineEditor::default()),
        KeyCode::Right | KeyCode::Char(']') => switch_branch(state, height, false),
        KeyCode::Left | KeyCode::Char('[') => switch_branch(state, height, true),
        _ => {}
    }
}

/// Handles a key while the text to find is typed.
pub(super) fn find_pressed(state: &mut State, key: KeyEvent) {
    let height = usize::from(areas(state).reader.height);
    let Some(reader) = &mut state.reader else { return };
    let Some(find) = &mut reader.find else { return };
    match key.code {
        KeyCode::Esc => reader.find = None,
        KeyCode::Enter => {
            let terms = Terms::literal(find.text());
            reader.find = None;
            // An empty text repeats the last search, as in less.
            if !terms.is_empty() {
                reader.terms = terms;
            }
            find_from_here(reader, height);
            if reader.page().is_some_and(|page| page.matches.is_empty()) {
                state.say("not found", true);
            }
        }
        KeyCode::Backspace if find.text().is_empty() => reader.find = None,
        _ => {
            let _: Edit = find.key(key);
        }
    }
}

/// Goes to the first match from the top of the screen on.
fn find_from_here(reader: &mut Reader, height: usize) {
    let (scroll, terms) = (reader.scroll, reader.terms.clone());
    let ReaderContent::Open(_, page) = &mut reader.content else { return };
    page.find(&terms);
    let at = page.matches.partition_point(|found| found.line < scroll);
    let at = if at < page.matches.len() { at } else { 0 };
    reader.at_match = (!page.matches.is_empty()).then_some(at);
    show_match(reader, height);
}

/// Returns the record that is read, with the branch that is shown.
pub(super) fn shown_target(reader: &Reader) -> Target {
    let leaf = match &reader.content {
        ReaderContent::Open(Record::Conversation(record), _) => {
            record.branch().last().map(|message| message.id.clone())
        }
        _ => None,
    };
    Target { message: leaf.or_else(|| reader.target.message.clone()), ..reader.target.clone() }
}

/// Scrolls to what was found.
fn show_hit(reader: &mut Reader, height: usize) {
    let Some(page) = reader.page() else { return };
    let heading = page.hit.as_ref().map_or(0, |hit| hit.start);
    let at_match = page.first_match();
    (reader.scroll, reader.at_match) = (heading, at_match);
    show_match(reader, height);
    clamp(reader, height);
}

/// Scrolls so that the current match is on the screen.
fn show_match(reader: &mut Reader, height: usize) {
    let line = reader.at_match.and_then(|at| reader.page()?.matches.get(at)).map(|found| found.line);
    if let Some(line) = line.filter(|line| !(reader.scroll..reader.scroll + height).contains(line)) {
        reader.scroll = line.saturating_sub(height / 3);
    }
}

fn next_match(reader: &mut Reader, height: usize, back: bool) {
    let Some(page) = reader.page() else { return };
    let count = page.matches.len();
    let next = match reader.at_match {
        _ if count == 0 => None,
        Some(at) => Some(if back { (at + count - 1) % count } else { (at + 1) % count }),
        None => {
            let below = page.matches.partition_point(|found| found.line < reader.scroll);
            Some(if back { (below + count - 1) % count } else { below % count })
        }
    };
    reader.at_match = next;
    show_match(reader, height);
}

/// Shows the next branch of the fork on the screen; if there is none, of the last one above.
fn switch_branch(state: &mut State, height: usize, back: bool) {
    let columns = usize::from(areas(state).reader.width);
    let options = options(&state.calendar, state.color, state.filters.hidden, columns);
    let Some(reader) = &mut state.reader else { return };
    let scroll = reader.scroll;
    let Some(fork) = reader.page().and_then(|page| current_fork(page, scroll, height)) else {
        return state.say("this conversation has no other branches here", false);
    };
    let (line, branch) = (fork.line, fork.branch.clone());
    let ReaderContent::Open(Record::Conversation(record), _) = &mut reader.content else { return };
    let Some(other) = record.branches.sibling(&branch, back).map(str::to_owned) else { return };
    record.show_branch(&other);
    reader.at_match = None;
    reader.lay_out(&options);
    // The line of the fork stays where it is on the screen.
    let now = reader.page().and_then(|page| page.forks.iter().find(|fork| fork.branch == other));
    if let Some(now) = now.map(|fork| fork.line) {
        reader.scroll = now.saturating_sub(line.saturating_sub(scroll).min(height.saturating_sub(1)));
    }
}

/// Returns the fork whose branches are switched.
pub(in crate::cli::browse) fn current_fork(page: &Page, scroll: usize, height: usize) -> Option<&PageFork> {
    let shown = page.forks.iter().find(|fork| (scroll..scroll + height).contains(&fork.line));
    shown.or_else(|| page.forks.iter().rfind(|fork| fork.line < scroll))
}

fn scroll(reader: &mut Reader, lines: isize) {
    reader.scroll = reader.scroll.saturating_add_signed(lines);
}

/// Returns the lines of a screen, with one that stays for orientation.
fn screen(height: usize) -> isize {
    isize::try_from(height.saturating_sub(1).max(1)).unwrap_or(1)
}

fn clamp(reader: &mut Reader, height: usize) {
    let last = reader.page().map_or(0, |page| page.lines.len().saturating_sub(height));
    reader.scroll = reader.scroll.min(last);
}
