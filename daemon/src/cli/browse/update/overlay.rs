//! Keys of what is in front of the rest: the help, the list of platforms, and the question for a file.

use std::path::PathBuf;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::reader;
use crate::cli::browse::{
    hits::Target,
    line_editor::LineEditor,
    state::{Effect, Focus, Overlay, SearchStage, State},
};

/// Longest part of a file name that is taken from a title, in characters.
const MAX_NAME: usize = 40;

/// Handles a key.
pub(super) fn pressed(state: &mut State, key: KeyEvent, effects: &mut Vec<Effect>) {
    match &state.overlay {
        Some(Overlay::Help { .. }) => help_pressed(state, key),
        Some(Overlay::Platforms(_)) => platforms_pressed(state, key, effects),
        Some(Overlay::Export { .. }) => export_pressed(state, key, effects),
        None => {}
    }
}

fn help_pressed(state: &mut State, key: KeyEvent) {
    let Some(Overlay::Help { scroll }) = &mut state.overlay else { return };
    match key.code {
        KeyCode::Down | KeyCode::Char('j' | ' ') | KeyCode::PageDown => *scroll = scroll.saturating_add(1),
        KeyCode::Up | KeyCode::Char('k' | 'b') | KeyCode::PageUp => *scroll = scroll.saturating_sub(1),
        _ => state.overlay = None,
    }
}

fn platforms_pressed(state: &mut State, key: KeyEvent, effects: &mut Vec<Effect>) {
    let Some(Overlay::Platforms(list)) = &mut state.overlay else { return };
    let count = list.counts.as_ref().map_or(0, Vec::len);
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Esc | KeyCode::Char('q') => state.overlay = None,
        KeyCode::Down | KeyCode::Char('j') | KeyCode::Tab => list.selected = (list.selected + 1).min(count),
        KeyCode::Up | KeyCode::Char('k') | KeyCode::BackTab => {
            list.selected = list.selected.saturating_sub(1);
        }
        KeyCode::Char('n') if control => list.selected = (list.selected + 1).min(count),
        KeyCode::Char('p') if control => list.selected = list.selected.saturating_sub(1),
        KeyCode::Enter => {
            let counts = list.counts.as_ref();
            let chosen =
                list.selected.checked_sub(1).and_then(|at| counts?.get(at)).map(|(name, _)| name.clone());
            state.overlay = None;
            state.filters.platform = chosen;
            effects.push(state.search(SearchStage::Immediate));
        }
        _ => {}
    }
}

/// Shows the platforms, unless the list was closed meanwhile.
pub(super) fn platforms_counted(state: &mut State, counts: Result<Vec<(String, u64)>, String>) {
    let Some(Overlay::Platforms(list)) = &mut state.overlay else { return };
    match counts {
        Ok(counts) => {
            let chosen = state.filters.platform.as_ref();
            let at = counts.iter().position(|(name, _)| Some(name) == chosen);
            list.selected = at.map_or(0, |at| at + 1);
            list.counts = Some(counts);
        }
        Err(problem) => {
            state.overlay = None;
            state.say(problem, true);
        }
    }
}

/// Asks where the marked records, or the current one, are written.
pub(super) fn ask_for_file(state: &mut State) {
    let current = match &state.reader {
        Some(reader) if state.focus == Focus::Reader => Some(reader::shown_target(reader)),
        _ => state.selected().map(|hit| hit.target.clone()),
    };
    let targets: Vec<Target> = if state.marked.is_empty() {
        current.into_iter().collect()
    } else {
        state.marked.values().cloned().collect()
    };
    if targets.is_empty() {
        return state.say("there is nothing to export", true);
    }
    let file = LineEditor::new(&proposed_name(&targets));
    state.overlay = Some(Overlay::Export { file, targets, problem: None });
}

/// Returns a name that every file system accepts.
fn proposed_name(targets: &[Target]) -> String {
    let title = match targets {
        [one] => one.title.to_lowercase(),
        _ => String::new(),
    };
    let words = title.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let name: String = words.collect::<Vec<_>>().join("-").chars().take(MAX_NAME).collect();
    format!("{}.md", if name.is_empty() { "satchel" } else { name.trim_end_matches('-') })
}

fn export_pressed(state: &mut State, key: KeyEvent, effects: &mut Vec<Effect>) {
    let Some(Overlay::Export { file, targets, problem }) = &mut state.overlay else { return };
    match key.code {
        KeyCode::Esc => state.overlay = None,
        KeyCode::Enter if file.text().trim().is_empty() => {
            *problem = Some("type the name of a file".to_owned());
        }
        KeyCode::Enter => effects.push(Effect::Export {
            file: PathBuf::from(file.text().trim()),
            targets: targets.clone(),
            hidden: state.filters.hidden,
        }),
        _ => {
            file.key(key);
            *problem = None;
        }
    }
}

/// Says what was written. After an error, another name can be typed.
pub(super) fn exported(state: &mut State, outcome: Result<String, String>) {
    match (outcome, &mut state.overlay) {
        (Ok(written), _) => {
            state.overlay = None;
            state.marked.clear();
            state.say(written, false);
        }
        (Err(why), Some(Overlay::Export { problem, .. })) => *problem = Some(why),
        (Err(why), _) => state.say(why, true),
    }
}
