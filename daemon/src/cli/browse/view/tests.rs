//! Tests of what is drawn.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{Terminal, backend::TestBackend, buffer::Buffer, layout::Size, style::Modifier};
use satchel_proto::v1::{Content, Conversation, Message};

use super::*;
use crate::cli::{
    browse::{
        hits::{Hit, RecordKey, Target},
        record::{ConversationRecord, Record},
        state::{Effect, Event, Found, SearchError, WrongQuery},
        tests::forked,
        update::update,
    },
    time,
};

fn state(width: u16, height: u16) -> State {
    State::new("", time::fixed(), true, Size { width, height }).0
}

fn buffer(state: &State) -> Buffer {
    let mut terminal =
        Terminal::new(TestBackend::new(state.size.width, state.size.height)).expect("memory does not fail");
    terminal.draw(|frame| draw(frame, state)).expect("memory does not fail");
    terminal.backend().buffer().clone()
}

fn rows(state: &State) -> Vec<String> {
    let buffer = buffer(state);
    let area = buffer.area;
    let row = |y| {
        let mut row = String::new();
        let mut skip = 0;
        for x in 0..area.width {
            let symbol = buffer[(x, y)].symbol();
            if skip == 0 {
                row.push_str(symbol);
                skip = text::width(symbol);
            }
            skip = skip.saturating_sub(1);
        }
        row.trim_end().to_owned()
    };
    (0..area.height).map(row).collect()
}

fn press(state: &mut State, code: KeyCode) -> Vec<Effect> {
    update(state, Event::Key(code.into()))
}

fn control(state: &mut State, c: char) {
    update(state, Event::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL)));
}

fn hit(id: &str, title: &str) -> Hit {
    let key = RecordKey::Conversation(id.to_owned());
    Hit {
        target: Target { key, message: Some("a-two".to_owned()), title: title.to_owned() },
        facts: "chatgpt · 12 Mar".to_owned(),
        passage: vec![
            ("assistant: two ".to_owned(), false),
            ("small".to_owned(), true),
            (" ones".to_owned(), false),
        ],
        relaxed: false,
    }
}

fn found(state: &mut State, query: &str, hits: Vec<Hit>) {
    update(state, Event::Paste(query.to_owned()));
    let job = state.list.awaited.clone().expect("a request was made");
    let total = Some(hits.len() as u64);
    update(state, Event::Found(job, Ok(Found { hits, total, ..Found::default() })));
}

fn load(state: &mut State, record: ConversationRecord) {
    let serial = state.reader.as_ref().map_or(0, |reader| reader.serial);
    update(state, Event::Loaded(serial, Ok(Record::Conversation(Box::new(record)))));
}

#[test]
fn hits_are_listed_with_passage_filters_and_keys() {
    let mut state = state(80, 8);
    found(&mut state, "small", vec![hit("c1", "Hives on a balcony"), hit("c2", "蜂蜜 and 蜂")]);
    press(&mut state, KeyCode::Tab);
    let expected = "\
> small
  2 matches                 ^T everything · ^O without hidden · ^F all platforms
 ●Hives on a balcony                                            chatgpt · 12 Mar
  assistant: two small ones
▌ 蜂蜜 and 蜂                                                   chatgpt · 12 Mar
  assistant: two small ones

1 marked · Enter open · Tab mark · ^E export · Esc list · F1 help · ^C quit";
    assert_eq!(rows(&state).join("\n"), expected);
    let drawn = buffer(&state);
    assert_eq!(drawn[(17, 3)].symbol(), "s");
    assert!(drawn[(17, 3)].modifier.contains(Modifier::BOLD), "the match is highlighted");
    assert!(!drawn[(16, 3)].modifier.contains(Modifier::BOLD));
}

#[test]
fn the_place_of_an_error_is_marked_below_the_query() {
    let mut state = state(40, 6);
    found(&mut state, "small", vec![hit("c1", "Hives")]);
    update(&mut state, Event::Paste(" role:boss".to_owned()));
    let job = state.list.awaited.clone().expect("a request was made");
    let wrong = WrongQuery { message: "role: does not know \"boss\"".to_owned(), start: 11, end: 15 };
    update(&mut state, Event::Found(job, Err(SearchError::Query(wrong))));
    let rows = rows(&state);
    assert_eq!(rows[0], "> small role:boss");
    assert!(rows[1].starts_with("             ^^^^ role: does"), "{rows:?}");
    assert!(rows[2].contains("Hives"), "{rows:?}");
    assert_eq!(rows[5], "role: does not know \"boss\"");
}

#[test]
fn a_suggestion_is_shown_with_its_key() {
    let mut state = state(60, 6);
    update(&mut state, Event::Paste("hornats".to_owned()));
    let job = state.list.awaited.clone().expect("a request was made");
    let suggestion = Some("hornets".to_owned());
    update(&mut state, Event::Found(job, Ok(Found { suggestion, total: Some(0), ..Found::default() })));
    let rows = rows(&state);
    assert_eq!(rows[1], "  did you mean: hornets  (Ctrl-Y)");
    assert!(rows[2].contains("nothing was found"), "{rows:?}");
}

#[test]
fn a_wide_screen_has_list_and_record_and_a_narrow_one_either() {
    let mut state = state(120, 16);
    found(&mut state, "small", vec![hit("c1", "Hives")]);
    load(&mut state, forked(Some("a-two")));
    let shown = rows(&state).join("\n");
    assert!(shown.contains("Hives") && shown.contains("│") && shown.contains("Two small ones."), "{shown}");
    update(&mut state, Event::Resize(Size { width: 60, height: 16 }));
    let shown = rows(&state).join("\n");
    assert!(shown.contains("Hives") && !shown.contains("Two small ones."), "{shown}");
    press(&mut state, KeyCode::Enter);
    let shown = rows(&state).join("\n");
    assert!(!shown.contains("chatgpt · 12 Mar") && shown.contains("Two small ones."), "{shown}");
    assert!(shown.contains("branch 2 of 2   ← → switch") && shown.contains("match 1 of 1"), "{shown}");
}

#[test]
fn matches_in_a_record_are_highlighted() {
    let mut state = state(60, 16);
    found(&mut state, "small", vec![hit("c1", "Hives")]);
    press(&mut state, KeyCode::Enter);
    load(&mut state, forked(Some("a-two")));
    let drawn = buffer(&state);
    let highlighted: String = drawn
        .content()
        .iter()
        .filter(|cell| cell.modifier.contains(Modifier::REVERSED))
        .map(ratatui::buffer::Cell::symbol)
        .collect();
    assert_eq!(highlighted, "small");
}

#[test]
fn help_platforms_and_the_question_for_a_file_are_drawn() {
    let mut state = state(90, 30);
    found(&mut state, "small", vec![hit("c1", "Hives on a balcony")]);
    press(&mut state, KeyCode::F(1));
    let shown = rows(&state).join("\n");
    assert!(shown.contains("Keys") && shown.contains("mark for export"), "{shown}");
    press(&mut state, KeyCode::Esc);
    control(&mut state, 'f');
    update(&mut state, Event::Platforms(Ok(vec![("claude\u{1b}".to_owned(), 1_234)])));
    let shown = rows(&state).join("\n");
    assert!(shown.contains("all platforms") && shown.contains("1,234"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    press(&mut state, KeyCode::Esc);
    control(&mut state, 'e');
    update(&mut state, Event::Exported(Err("\"x.md\" exists already".to_owned())));
    let rows = rows(&state);
    assert_eq!(rows[29], "write 1 record as Markdown to: hives-on-a-balcony.md");
    assert_eq!(rows[28], "\"x.md\" exists already");
}

#[test]
fn every_state_fits_every_size() {
    for (width, height) in
        [(1, 1), (2, 2), (10, 3), (19, 4), (30, 5), (100, 1), (100, 2), (101, 6), (200, 50)]
    {
        let mut state = state(width, height);
        drop(buffer(&state));
        found(&mut state, "a 蜂 small", vec![hit("c1", "日本語のタイトル"), hit("c2", "x")]);
        drop(buffer(&state));
        press(&mut state, KeyCode::Enter);
        drop(buffer(&state));
        load(&mut state, forked(Some("a-two")));
        for code in "/G?fo".chars().map(KeyCode::Char).chain([KeyCode::F(1), KeyCode::Esc, KeyCode::Tab]) {
            press(&mut state, code);
            drop(buffer(&state));
        }
        for c in ['e', 'f'] {
            state.overlay = None;
            control(&mut state, c);
            update(&mut state, Event::Platforms(Ok(vec![("x".repeat(99), 1); 99])));
            update(&mut state, Event::Exported(Err("no".to_owned())));
            drop(buffer(&state));
        }
    }
}

#[test]
fn nothing_that_is_stored_reaches_the_terminal_as_a_control_character() {
    let hostile = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}small";
    let message = Message {
        id: "a-two".to_owned(),
        content: Some(Content { text: Some(hostile.to_owned()), ..Content::default() }),
        ..Message::default()
    };
    let conversation = Conversation { title: Some(hostile.to_owned()), ..Conversation::default() };
    let listed = Hit::conversation(&conversation, &time::fixed());
    let mut state = state(120, 16);
    found(&mut state, "small", vec![listed]);
    load(&mut state, ConversationRecord::new(conversation, vec![message], None));
    state.say(text::one_line(hostile), true);
    let shown = rows(&state).join("\n");
    assert!(shown.contains("u{1b}"), "{shown}");
    assert!(!shown.chars().any(|c| c != '\n' && text::is_unsafe(c)), "{shown:?}");
}

#[test]
fn without_colours_there_are_none() {
    let mut state = state(120, 16);
    state.color = false;
    found(&mut state, "small", vec![hit("c1", "Hives")]);
    load(&mut state, forked(Some("a-two")));
    let drawn = buffer(&state);
    let reset = ratatui::style::Color::Reset;
    assert!(drawn.content().iter().all(|cell| cell.fg == reset && cell.bg == reset));
}
