//! Tests of what events change, without terminal and daemon.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Size;

use super::*;
use crate::cli::{
    browse::{
        hits::{Hit, RecordKey},
        state::{Reader, WrongQuery},
        tests::forked,
    },
    time,
};

/// A screen with room for the list only.
const NARROW: Size = Size { width: 60, height: 12 };
/// A screen with room for both.
const WIDE: Size = Size { width: 120, height: 12 };

fn state(size: Size) -> State {
    State::new("", time::fixed(), false, size).0
}

fn hit(id: &str, word: &str) -> Hit {
    Hit {
        target: Target {
            key: RecordKey::Conversation(id.to_owned()),
            message: Some("a-two".to_owned()),
            title: format!("About {id}"),
        },
        facts: "chatgpt · 12 Mar".to_owned(),
        passage: vec![("user: of ".to_owned(), false), (word.to_owned(), true)],
        relaxed: false,
    }
}

fn found(count: usize) -> Found {
    Found {
        hits: (0..count).map(|number| hit(&format!("c{number}"), "small")).collect(),
        total: Some(count as u64),
        revision: 3,
        ..Found::default()
    }
}

fn press(state: &mut State, code: KeyCode) -> Vec<Effect> {
    update(state, Event::Key(code.into()))
}

fn control(state: &mut State, c: char) -> Vec<Effect> {
    update(state, Event::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL)))
}

fn type_text(state: &mut State, text: &str) -> Vec<Effect> {
    text.chars().flat_map(|c| press(state, KeyCode::Char(c))).collect()
}

/// Answers the request that is awaited.
fn answer(state: &mut State, found: Result<Found, SearchError>) -> Vec<Effect> {
    let job = state.list.awaited.clone().expect("a request was made");
    update(state, Event::Found(job, found))
}

/// Returns a state with hits whose first one is open.
fn opened(size: Size) -> State {
    let mut state = state(size);
    type_text(&mut state, "small");
    answer(&mut state, Ok(found(3)));
    press(&mut state, KeyCode::Enter);
    load(&mut state, Some("a-two"));
    state
}

fn load(state: &mut State, message: Option<&str>) {
    let serial = state.reader.as_ref().map_or(0, |reader| reader.serial);
    let record = Record::Conversation(Box::new(forked(message)));
    update(state, Event::Loaded(serial, Ok(record)));
}

fn reader(state: &State) -> &Reader {
    state.reader.as_ref().expect("a record is open")
}

fn shown(state: &State) -> String {
    let page = reader(state).page().expect("the record is loaded");
    let lines: Vec<String> = page.lines.iter().map(ToString::to_string).collect();
    format!("{}\n", lines.join("\n"))
}

#[test]
fn each_key_replaces_the_search_and_old_responses_are_not_shown() {
    let mut state = state(NARROW);
    let first = press(&mut state, KeyCode::Char('b'));
    let old = state.list.awaited.clone().expect("a request was made");
    assert!(
        matches!(&first[..], [Effect::Search(job)] if job.query == "b" && job.stage == SearchStage::Typed)
    );
    press(&mut state, KeyCode::Char('e'));
    update(&mut state, Event::Found(old, Ok(found(5))));
    assert!(state.list.hits.is_empty());
    let again = answer(&mut state, Ok(found(2)));
    assert_eq!(state.list.hits.len(), 2);
    // The index is asked again for what it did not have yet.
    assert!(
        matches!(&again[..], [Effect::Search(job)] if job.stage == SearchStage::Current && job.query == "be")
    );
}

#[test]
fn newer_rows_keep_the_selection() {
    let mut state = state(NARROW);
    type_text(&mut state, "b");
    answer(&mut state, Ok(found(3)));
    press(&mut state, KeyCode::Down);
    let mut more = Found { revision: 4, ..found(3) };
    more.hits.insert(0, hit("new", "b"));
    answer(&mut state, Ok(more));
    assert_eq!(state.selected().map(|hit| hit.target.title.as_str()), Some("About c1"));
}

#[test]
fn a_wrong_query_keeps_the_hits() {
    let mut state = state(NARROW);
    type_text(&mut state, "b");
    answer(&mut state, Ok(found(3)));
    type_text(&mut state, " role:x");
    let wrong = WrongQuery { message: "no role".to_owned(), start: 2, end: 8 };
    answer(&mut state, Err(SearchError::Query(wrong.clone())));
    assert_eq!((state.list.wrong.as_ref(), state.list.hits.len()), (Some(&wrong), 3));
    press(&mut state, KeyCode::Backspace);
    answer(&mut state, Ok(found(1)));
    assert_eq!((state.list.wrong.as_ref(), state.list.hits.len()), (None, 1));
    type_text(&mut state, "y");
    answer(&mut state, Err(SearchError::Other("the disk is full".to_owned())));
    assert!(state.notice.as_ref().is_some_and(|notice| notice.error));
    assert_eq!(state.list.hits.len(), 1);
}

#[test]
fn a_suggestion_is_taken_with_one_key() {
    let mut state = state(NARROW);
    type_text(&mut state, "hornats");
    answer(&mut state, Ok(Found { suggestion: Some("hornets".to_owned()), ..found(0) }));
    let effects = control(&mut state, 'y');
    assert!(matches!(&effects[..], [Effect::Search(job)] if job.query == "hornets"));
    assert_eq!(state.query.text(), "hornets");
}

#[test]
fn filters_are_cycled_and_searched() {
    let mut state = state(NARROW);
    type_text(&mut state, "b");
    answer(&mut state, Ok(found(1)));
    let kinds: Vec<SearchKindArg> = (0..4)
        .map(|_| {
            let effects = control(&mut state, 't');
            assert!(matches!(&effects[..], [Effect::Search(_)]), "{effects:?}");
            state.filters.kind
        })
        .collect();
    assert_eq!(
        kinds,
        [SearchKindArg::Memories, SearchKindArg::Messages, SearchKindArg::Titles, SearchKindArg::All]
    );
    let effects = control(&mut state, 'o');
    assert!(matches!(&effects[..], [Effect::Search(job)] if job.filters.hidden));
}

#[test]
fn a_platform_is_chosen_from_those_that_were_found() {
    let mut state = state(NARROW);
    type_text(&mut state, "b");
    let effects = control(&mut state, 'f');
    assert!(matches!(&effects[..], [Effect::CountPlatforms { query, .. }] if query == "b"), "{effects:?}");
    let counts = vec![("chatgpt".to_owned(), 5), ("claude".to_owned(), 2)];
    update(&mut state, Event::Platforms(Ok(counts.clone())));
    press(&mut state, KeyCode::Down);
    press(&mut state, KeyCode::Down);
    press(&mut state, KeyCode::Down);
    let effects = press(&mut state, KeyCode::Enter);
    assert!(
        matches!(&effects[..], [Effect::Search(job)] if job.filters.platform.as_deref() == Some("claude"))
    );
    assert!(state.overlay.is_none());
    control(&mut state, 'f');
    update(&mut state, Event::Platforms(Ok(counts)));
    // The chosen one is selected; the first row is all of them.
    assert!(matches!(&state.overlay, Some(Overlay::Platforms(list)) if list.selected == 2));
    press(&mut state, KeyCode::Up);
    press(&mut state, KeyCode::Up);
    press(&mut state, KeyCode::Enter);
    assert_eq!(state.filters.platform, None);
    // A list that was closed does not come back.
    update(&mut state, Event::Platforms(Ok(Vec::new())));
    assert!(state.overlay.is_none());
}

#[test]
fn the_selection_stays_on_the_screen_and_more_rows_are_requested() {
    let mut state = state(NARROW);
    type_text(&mut state, "b");
    answer(&mut state, Ok(Found { next: "more".to_owned(), ..found(30) }));
    let rows = areas(&state).list_rows();
    let mut effects = Vec::new();
    for _ in 0..12 {
        effects.extend(control(&mut state, 'n'));
        assert!((state.list.top..state.list.top + rows).contains(&state.list.selected));
    }
    assert!(matches!(&effects[..], [Effect::Search(job)] if job.page_token == "more"), "{effects:?}");
    answer(&mut state, Ok(found(5)));
    assert_eq!((state.list.hits.len(), state.list.selected), (35, 12));
    press(&mut state, KeyCode::Esc);
    press(&mut state, KeyCode::Char('G'));
    assert_eq!(state.list.selected, 34);
    press(&mut state, KeyCode::Char('g'));
    assert_eq!((state.list.selected, state.list.top), (0, 0));
    press(&mut state, KeyCode::Char(' '));
    assert_eq!(state.list.selected, rows);
}

#[test]
fn letters_are_text_in_the_query_and_keys_in_the_list() {
    let mut state = state(NARROW);
    type_text(&mut state, "jq?e");
    assert_eq!(state.query.text(), "jq?e");
    press(&mut state, KeyCode::Esc);
    assert_eq!(state.focus, Focus::List);
    press(&mut state, KeyCode::Char('?'));
    assert!(matches!(state.overlay, Some(Overlay::Help { .. })));
    assert!(press(&mut state, KeyCode::Char('q')).is_empty());
    assert!(state.overlay.is_none());
    press(&mut state, KeyCode::Char('/'));
    assert_eq!(state.focus, Focus::Query);
    assert_eq!(control(&mut state, 'c'), [Effect::Quit]);
    press(&mut state, KeyCode::Esc);
    assert_eq!(press(&mut state, KeyCode::Char('q')), [Effect::Quit]);
}

#[test]
fn pasted_text_is_searched() {
    let mut state = state(NARROW);
    let effects = update(&mut state, Event::Paste("queen\nbee\u{1b}".to_owned()));
    assert!(matches!(&effects[..], [Effect::Search(job)] if job.query == "queen bee"));
}

#[test]
fn a_hit_is_opened_where_it_was_found() {
    let state = opened(NARROW);
    assert_eq!(state.focus, Focus::Reader);
    let reader = reader(&state);
    let page = reader.page().expect("it is loaded");
    let current = page.matches[reader.at_match.expect("a word of the query is in it")];
    let height = usize::from(areas(&state).reader.height);
    assert!((reader.scroll..reader.scroll + height).contains(&current.line));
    assert!(page.hit.as_ref().is_some_and(|hit| hit.contains(&current.line)));
}

#[test]
fn a_wide_screen_shows_the_selected_record() {
    let mut state = state(WIDE);
    type_text(&mut state, "b");
    let effects = answer(&mut state, Ok(found(2)));
    let wanted = |effects: &[Effect], id: &str| {
        effects.iter().any(|effect| {
            matches!(effect, Effect::Load { target, delayed: true, .. }
                if target.key == RecordKey::Conversation(id.to_owned()))
        })
    };
    assert!(wanted(&effects, "c0"), "{effects:?}");
    let old = reader(&state).serial;
    let effects = press(&mut state, KeyCode::Down);
    assert!(wanted(&effects, "c1"), "{effects:?}");
    // The response for the row before is too late.
    update(&mut state, Event::Loaded(old, Err("gone".to_owned())));
    assert!(matches!(reader(&state).content, ReaderContent::Loading));
    let serial = reader(&state).serial;
    update(&mut state, Event::Loaded(serial, Err("gone".to_owned())));
    assert!(matches!(reader(&state).content, ReaderContent::Failed(_)));
    // Enter tries again.
    assert!(matches!(press(&mut state, KeyCode::Enter)[..], [Effect::Load { delayed: false, .. }]));
}

#[test]
fn branches_are_switched_in_a_circle() {
    let mut state = opened(NARROW);
    assert!(shown(&state).contains("Two small ones."));
    press(&mut state, KeyCode::Char('G'));
    press(&mut state, KeyCode::Right);
    assert!(shown(&state).contains("How many hives"), "{}", shown(&state));
    let first = shown(&state);
    press(&mut state, KeyCode::Char(']'));
    assert_ne!(shown(&state), first);
    press(&mut state, KeyCode::Char('['));
    assert_eq!(shown(&state), first);
}

#[test]
fn an_export_takes_the_branch_that_is_shown() {
    let mut state = opened(NARROW);
    press(&mut state, KeyCode::Char('g'));
    // The fork of the questions: the other branch is the one that was edited away.
    press(&mut state, KeyCode::Right);
    assert!(shown(&state).contains("It depends."), "{}", shown(&state));
    press(&mut state, KeyCode::Char('e'));
    control(&mut state, 'u');
    type_text(&mut state, "bees.md");
    let effects = press(&mut state, KeyCode::Enter);
    let [Effect::Export { file, targets, .. }] = &effects[..] else { unreachable!("{effects:?}") };
    assert_eq!(file.to_str(), Some("bees.md"));
    assert_eq!(targets[0].message.as_deref(), Some("a-old"));
}

#[test]
fn marked_hits_are_exported_together_and_a_taken_name_is_asked_again() {
    let mut state = state(NARROW);
    type_text(&mut state, "b");
    answer(&mut state, Ok(found(3)));
    press(&mut state, KeyCode::Tab);
    press(&mut state, KeyCode::Tab);
    assert_eq!((state.marked.len(), state.list.selected), (2, 2));
    press(&mut state, KeyCode::BackTab);
    press(&mut state, KeyCode::BackTab);
    assert_eq!(state.marked.len(), 2, "one was marked, one was not any more");
    control(&mut state, 'e');
    let effects = press(&mut state, KeyCode::Enter);
    assert!(matches!(&effects[..], [Effect::Export { targets, .. }] if targets.len() == 2), "{effects:?}");
    update(&mut state, Event::Exported(Err("it exists".to_owned())));
    assert!(matches!(&state.overlay, Some(Overlay::Export { problem: Some(why), .. }) if why == "it exists"));
    type_text(&mut state, "2");
    press(&mut state, KeyCode::Enter);
    update(&mut state, Event::Exported(Ok("2 records written".to_owned())));
    assert!(state.overlay.is_none() && state.marked.is_empty());
    assert_eq!(state.notice.as_ref().map(|notice| notice.text.as_str()), Some("2 records written"));
}

#[test]
fn text_is_found_in_a_record() {
    let mut state = opened(NARROW);
    press(&mut state, KeyCode::Char('g'));
    press(&mut state, KeyCode::Char('/'));
    type_text(&mut state, "HIVES");
    press(&mut state, KeyCode::Enter);
    let count = reader(&state).page().map_or(0, |page| page.matches.len());
    assert!(count > 0 && reader(&state).at_match == Some(0), "{}", shown(&state));
    press(&mut state, KeyCode::Char('N'));
    assert_eq!(reader(&state).at_match, Some(count - 1));
    press(&mut state, KeyCode::Char('n'));
    assert_eq!(reader(&state).at_match, Some(0));
    press(&mut state, KeyCode::Char('/'));
    type_text(&mut state, "wasps");
    press(&mut state, KeyCode::Enter);
    assert_eq!(state.notice.as_ref().map(|notice| notice.text.as_str()), Some("not found"));
    press(&mut state, KeyCode::Char('q'));
    assert_eq!(state.focus, Focus::Query);
}

#[test]
fn every_size_and_key_is_survived() {
    let sizes = [(0, 0), (1, 1), (10, 3), (20, 5), (99, 40), (100, 2), (300, 100)];
    let codes = "jkgGnN/ bdu[]eotfy?q".chars().map(KeyCode::Char).chain([
        KeyCode::Enter,
        KeyCode::Esc,
        KeyCode::Tab,
        KeyCode::PageDown,
        KeyCode::PageUp,
        KeyCode::F(1),
    ]);
    for code in codes {
        let mut state = opened(WIDE);
        for (width, height) in sizes {
            update(&mut state, Event::Resize(Size { width, height }));
            press(&mut state, code);
            assert!(state.list.selected < state.list.hits.len().max(1));
        }
    }
}
