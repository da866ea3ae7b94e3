//! Decides what an event changes, and what has to be done. Without clock, terminal and daemon.

mod list;
mod overlay;
mod reader;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Position, Rect};

use super::{
    areas::Areas,
    hits::Target,
    line_editor::{Edit, LineEditor},
    page::Page,
    record::Record,
    state::{
        Effect, Event, Filters, Focus, Found, Overlay, PlatformList, ReaderContent, SearchError, SearchJob,
        SearchStage, State,
    },
};
use crate::cli::args::SearchKindArg;

pub(super) use self::reader::current_fork;

/// Rows before the end of the list at which more are requested.
const ROWS_AHEAD: usize = 20;
/// Most rows of the list.
const MAX_ROWS: usize = 10_000;

/// Applies an event.
pub(super) fn update(state: &mut State, event: Event) -> Vec<Effect> {
    let mut effects = Vec::new();
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => pressed(state, key, &mut effects),
        Event::Key(_) => {}
        Event::Paste(text) => pasted(state, &text, &mut effects),
        Event::Resize(size) => state.size = size,
        Event::Found(job, found) => answered(state, &job, found, &mut effects),
        Event::Loaded(serial, record) => loaded(state, serial, record),
        Event::Platforms(counts) => overlay::platforms_counted(state, counts),
        Event::Exported(outcome) => overlay::exported(state, outcome),
    }
    settle(state, &mut effects);
    effects
}

/// Returns the parts of the screen.
pub(super) fn areas(state: &State) -> Areas {
    Areas::of(state, Rect::from((Position::ORIGIN, state.size)))
}

/// Restores what always holds: the selected row is on the screen, its record is shown beside the list if there is room,
/// and the record fits the width.
fn settle(state: &mut State, effects: &mut Vec<Effect>) {
    let areas = areas(state);
    let list = &mut state.list;
    list.selected = list.selected.min(list.hits.len().saturating_sub(1));
    let rows = areas.list_rows();
    list.top = list.top.clamp((list.selected + 1).saturating_sub(rows), list.selected);
    if areas.has_preview() && state.focus != Focus::Reader {
        reader::preview(state, effects);
    }
    reader::fit(state, areas.reader);
}

fn pressed(state: &mut State, key: KeyEvent, effects: &mut Vec<Effect>) {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if control && key.code == KeyCode::Char('c') {
        effects.push(Effect::Quit);
        return;
    }
    // Escape and a letter that are typed fast arrive as this; which of both was meant is not known.
    if key.modifiers.contains(KeyModifiers::ALT) {
        return;
    }
    state.notice = None;
    if state.overlay.is_some() {
        return overlay::pressed(state, key, effects);
    }
    if state.reader.as_ref().is_some_and(|reader| reader.find.is_some()) {
        return reader::find_pressed(state, key);
    }
    if pressed_anywhere(state, key, effects) {
        return;
    }
    match state.focus {
        Focus::Query => query_pressed(state, key, effects),
        Focus::List => list::pressed(state, key, effects),
        Focus::Reader => reader::pressed(state, key, effects),
    }
}

/// Handles the keys that mean the same everywhere. Outside of the query, the letter alone does too.
fn pressed_anywhere(state: &mut State, key: KeyEvent, effects: &mut Vec<Effect>) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let letter = match key.code {
        KeyCode::Char(c) if control || state.focus != Focus::Query => c,
        KeyCode::F(1) => '?',
        // No query begins with this sign.
        KeyCode::Char('?') if state.query.text().is_empty() => '?',
        _ => return false,
    };
    match letter {
        '?' if !control => state.overlay = Some(Overlay::Help { scroll: 0 }),
        'e' => overlay::ask_for_file(state),
        't' if control || state.focus == Focus::List => {
            state.filters.kind = next_kind(state.filters.kind);
            effects.push(state.search(SearchStage::Immediate));
        }
        'o' => {
            state.filters.hidden = !state.filters.hidden;
            effects.push(state.search(SearchStage::Immediate));
            reader::fold_changed(state);
        }
        'f' if control || state.focus == Focus::List => {
            state.overlay = Some(Overlay::Platforms(PlatformList::default()));
            effects.push(Effect::CountPlatforms {
                query: state.query.text().to_owned(),
                filters: Filters { platform: None, ..state.filters.clone() },
            });
        }
        'y' if control || state.focus == Focus::List => accept_suggestion(state, effects),
        _ => return false,
    }
    true
}

fn next_kind(kind: SearchKindArg) -> SearchKindArg {
    match kind {
        SearchKindArg::All => SearchKindArg::Memories,
        SearchKindArg::Memories => SearchKindArg::Messages,
        SearchKindArg::Messages => SearchKindArg::Titles,
        SearchKindArg::Titles => SearchKindArg::All,
    }
}

fn accept_suggestion(state: &mut State, effects: &mut Vec<Effect>) {
    if let Some(suggestion) = state.list.suggestion.take() {
        state.query = LineEditor::new(&suggestion);
        effects.push(state.search(SearchStage::Immediate));
    }
}

/// Handles a key while the query is edited. Keys that do not edit it work on the list.
fn query_pressed(state: &mut State, key: KeyEvent, effects: &mut Vec<Effect>) {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let up_or_down = control && matches!(key.code, KeyCode::Char('n' | 'p' | 'j' | 'k'));
    if up_or_down || !matches!(edit_query(state, key, effects), Edit::Changed | Edit::Moved) {
        match key.code {
            KeyCode::Esc => state.focus = Focus::List,
            _ => list::moved(state, key, effects),
        }
    }
}

fn edit_query(state: &mut State, key: KeyEvent, effects: &mut Vec<Effect>) -> Edit {
    let edit = state.query.key(key);
    if edit == Edit::Changed {
        effects.push(state.search(SearchStage::Typed));
    }
    edit
}

fn pasted(state: &mut State, text: &str, effects: &mut Vec<Effect>) {
    if let Some(Overlay::Export { file, .. }) = &mut state.overlay {
        file.insert(text);
    } else if let Some(find) = state.reader.as_mut().and_then(|reader| reader.find.as_mut()) {
        find.insert(text);
    } else if state.overlay.is_none() && state.focus == Focus::Query {
        state.query.insert(text);
        effects.push(state.search(SearchStage::Immediate));
    }
}

/// Takes the response to a search. Errors leave the rows as they are.
fn answered(
    state: &mut State,
    job: &SearchJob,
    found: Result<Found, SearchError>,
    effects: &mut Vec<Effect>,
) {
    if state.list.awaited.as_ref() != Some(job) {
        return;
    }
    state.list.awaited = None;
    let found = match found {
        Ok(found) => found,
        Err(SearchError::Query(wrong)) => {
            state.list.wrong = Some(wrong);
            state.list.suggestion = None;
            return;
        }
        Err(SearchError::Behind) => {
            return state.say("the search index is being built: there may be more", false);
        }
        Err(SearchError::Other(problem)) => return state.say(problem, true),
    };
    state.list.wrong = None;
    state.list.answered = true;
    if job.page_token.is_empty() {
        first_page(state, job, found, effects);
    } else {
        state.list.next = found.next;
        state.list.hits.extend(found.hits);
    }
}

fn first_page(state: &mut State, job: &SearchJob, found: Found, effects: &mut Vec<Effect>) {
    let list = &mut state.list;
    let again = job.stage == SearchStage::Current;
    if again && found.revision == list.revision {
        return;
    }
    let selected = list.hits.get(list.selected).filter(|_| again).map(|hit| hit.target.clone());
    let at = selected.and_then(|target| found.hits.iter().position(|hit| hit.target == target));
    list.selected = at.unwrap_or(0);
    if !again {
        list.top = 0;
    }
    (list.next, list.total, list.revision) = (found.next, found.total, found.revision);
    (list.hits, list.suggestion) = (found.hits, found.suggestion);
    // Lists of the newest records come from the store, which is never behind.
    if !again && list.total.is_some() {
        let job = SearchJob { stage: SearchStage::Current, ..job.clone() };
        list.awaited = Some(job.clone());
        effects.push(Effect::Search(job));
    }
}

/// Asks for the next rows if the end of the list is near.
fn continue_list(state: &mut State, effects: &mut Vec<Effect>) {
    let list = &state.list;
    let near = list.selected + ROWS_AHEAD >= list.hits.len();
    let busy = list.awaited.as_ref().is_some_and(|job| job.stage != SearchStage::Current);
    if !near || busy || list.next.is_empty() || list.hits.len() >= MAX_ROWS || list.wrong.is_some() {
        return;
    }
    let job = SearchJob {
        serial: state.next_serial(),
        query: state.query.text().trim_end().to_owned(),
        filters: state.filters.clone(),
        page_token: state.list.next.clone(),
        stage: SearchStage::Immediate,
    };
    state.list.awaited = Some(job.clone());
    effects.push(Effect::Search(job));
}

fn loaded(state: &mut State, serial: u64, record: Result<Record, String>) {
    let Some(reader) = state.reader.as_mut().filter(|reader| reader.serial == serial) else { return };
    match record {
        // It is laid out when it has a place on the screen.
        Ok(record) => reader.content = ReaderContent::Open(record, Page::default()),
        Err(problem) => reader.content = ReaderContent::Failed(problem),
    }
}

/// Marks a record, or removes its mark.
fn toggle_mark(state: &mut State, target: Target) {
    if state.marked.remove(&target.key).is_none() {
        state.marked.insert(target.key.clone(), target);
    }
}

#[cfg(test)]
mod tests;
