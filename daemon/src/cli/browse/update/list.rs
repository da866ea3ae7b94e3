//! Keys that work on the list.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{areas, continue_list, reader, toggle_mark};
use crate::cli::browse::state::{Effect, Focus, State};

/// Handles a key while the list has the keys.
pub(super) fn pressed(state: &mut State, key: KeyEvent, effects: &mut Vec<Effect>) {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let screen = screen(state);
    match key.code {
        KeyCode::Esc | KeyCode::Char('q') => effects.push(Effect::Quit),
        KeyCode::Char('/' | 'i') => state.focus = Focus::Query,
        KeyCode::Char('j') if !control => select(state, 1, effects),
        KeyCode::Char('k') if !control => select(state, -1, effects),
        KeyCode::Char('g') | KeyCode::Home => select(state, isize::MIN, effects),
        KeyCode::Char('G') | KeyCode::End => select(state, isize::MAX, effects),
        KeyCode::Char(' ') => select(state, screen, effects),
        KeyCode::Char('b') => select(state, -screen, effects),
        KeyCode::Char('l') | KeyCode::Right => reader::open(state, effects),
        _ => moved(state, key, effects),
    }
}

/// Handles the keys that work on the list while the query is edited too.
pub(super) fn moved(state: &mut State, key: KeyEvent, effects: &mut Vec<Effect>) {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let screen = screen(state);
    match key.code {
        KeyCode::Down => select(state, 1, effects),
        KeyCode::Up => select(state, -1, effects),
        KeyCode::Char('n' | 'j') if control => select(state, 1, effects),
        KeyCode::Char('p' | 'k') if control => select(state, -1, effects),
        KeyCode::PageDown => select(state, screen, effects),
        KeyCode::PageUp => select(state, -screen, effects),
        KeyCode::Enter => reader::open(state, effects),
        KeyCode::Tab => {
            if let Some(target) = state.selected().map(|hit| hit.target.clone()) {
                toggle_mark(state, target);
                select(state, 1, effects);
            }
        }
        KeyCode::BackTab => {
            if let Some(target) = state.selected().map(|hit| hit.target.clone()) {
                toggle_mark(state, target);
                select(state, -1, effects);
            }
        }
        _ => {}
    }
}

fn select(state: &mut State, rows: isize, effects: &mut Vec<Effect>) {
    let last = state.list.hits.len().saturating_sub(1);
    state.list.selected = state.list.selected.saturating_add_signed(rows).min(last);
    continue_list(state, effects);
}

/// Returns the rows of the list that the screen shows.
fn screen(state: &State) -> isize {
    isize::try_from(areas(state).list_rows()).unwrap_or(1)
}
