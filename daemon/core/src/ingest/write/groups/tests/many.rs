//! One export makes thousands of conversations of rows that another export has in one: the work depends on the number
//! of rows.

use std::cell::Cell;

use satchel_failpoints::listen_on_thread;
use satchel_merge::conversation::{ConversationState, NodeState};

use super::*;

thread_local! {
    static VERSION_READS: Cell<u64> = const { Cell::new(0) };
    static LOCATION_READS: Cell<u64> = const { Cell::new(0) };
}

/// Counts the reads of this thread from now on.
fn count() {
    listen_on_thread(|name| match name {
        "version of a conversation read" => VERSION_READS.set(VERSION_READS.get() + 1),
        "conversation of a row read" => LOCATION_READS.set(LOCATION_READS.get() + 1),
        _ => {}
    });
}

/// The cost of an import.
#[derive(Clone, Copy, Debug)]
struct Cost {
    revisions: u64,
    journal: u64,
    /// Older versions of conversations that were read.
    read: u64,
}

/// The distribution of rows to the conversations of the second export.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Rows per conversation.
    rows: i64,
    /// Whether each conversation has an event of its own.
    events: bool,
    /// Whether each conversation shares a row with the next, so that they are connected without the other export.
    chained: bool,
    /// Whether the newest conversation comes first.
    backwards: bool,
}

const PARTED: Shape = Shape { rows: 4, events: false, chained: false, backwards: false };

impl Shape {
    /// Returns `groups` conversations of consecutive rows.
    fn parts(self, groups: i64) -> Vec<Vec<i64>> {
        let part = |at: i64| -> Vec<i64> {
            let first = 1 + at * self.rows;
            let mut part: Vec<i64> = (first..first + self.rows + i64::from(self.chained)).collect();
            if self.events {
                part.insert(1, -(1_000_000 + at));
            }
            part
        };
        let mut parts: Vec<Vec<i64>> = (0..groups).map(part).collect();
        if self.backwards {
            parts.reverse();
        }
        parts
    }

    /// Returns the cost of importing `groups` conversations; if `before`, after an import of one conversation with all
    /// of their rows.
    fn cost(self, groups: i64, before: bool) -> Cost {
        let dir = tempfile::tempdir().unwrap();
        let fixture = Fixture::open(dir.path());
        let parts = self.parts(groups);
        let parts: Vec<&[i64]> = parts.iter().map(Vec::as_slice).collect();
        let all_rows: Vec<i64> = (1..=groups * self.rows + 1).collect();
        if before {
            fixture.import((&[&all_rows], None), true);
        }
        let now = || Cost {
            revisions: fixture.store.revision().get(),
            journal: journal(dir.path()),
            read: VERSION_READS.get(),
        };
        let then = now();
        let import = fixture.import((&parts, None), true);
        assert_eq!(import.conversations.found, parts.len() as u64);
        assert_eq!(fixture.messages(), all_rows.len() + if self.events { parts.len() } else { 0 });
        let now = now();
        Cost {
            revisions: now.revisions - then.revisions,
            journal: now.journal - then.journal,
            read: now.read - then.read,
        }
    }
}

impl Fixture {
    /// Returns the number of visible messages.
    fn messages(&self) -> usize {
        let (query, mut all) = (satchel_store::ConversationQuery::default(), 0);
        let mut after = None;
        loop {
            let page = self.store.conversations(&query, after.as_ref(), 100, self.store.revision()).unwrap();
            all += page.items.iter().map(|shown| shown.messages as usize).sum::<usize>();
            after = page.next;
            if after.is_none() {
                return all;
            }
        }
    }
}

fn journal(dir: &Path) -> u64 {
    let files = std::fs::read_dir(dir.join("journal")).unwrap();
    // A segment that is being prepared may be gone before its size is read.
    files.filter_map(|file| Some(file.ok()?.metadata().ok()?.len())).sum()
}

/// Checks that four times as many conversations cost about four times as much.
fn grows_with_the_rows(shape: Shape, before: bool) {
    count();
    let [some, more] = [60, 240].map(|groups| shape.cost(groups, before));
    assert!(more.journal < 6 * some.journal, "{some:?}, {more:?}");
    assert!(some.revisions == more.revisions && more.revisions <= 2, "{some:?}, {more:?}");
    assert!(more.read <= 2 && some.read <= 2, "{some:?}, {more:?}");
}

#[test]
fn merging_many_conversations_at_once_costs_linear_time() {
    grows_with_the_rows(PARTED, true);
}

#[test]
fn conversations_with_events_cost_linear_time() {
    grows_with_the_rows(Shape { events: true, ..PARTED }, true);
}

#[test]
fn merging_conversations_one_by_one_costs_linear_time() {
    for backwards in [false, true] {
        grows_with_the_rows(Shape { chained: true, backwards, ..PARTED }, false);
        grows_with_the_rows(Shape { chained: true, backwards, ..PARTED }, true);
    }
}

#[test]
fn each_conversation_is_read_once_to_locate_rows() {
    count();
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(dir.path());
    let parts = PARTED.parts(40);
    let parts: Vec<&[i64]> = parts.iter().map(Vec::as_slice).collect();
    let remembered: Vec<i64> = parts.iter().map(|part| part[1]).collect();
    fixture.import_remembering(&parts, &remembered, true);
    let all_rows: Vec<i64> = (1..=160).collect();
    for all_rows in [&all_rows[..], &all_rows[..159]] {
        LOCATION_READS.set(0);
        fixture.import_remembering(&[all_rows], &[], true);
        // Conversations that have become part of the single one are read as well.
        assert!(LOCATION_READS.get() <= 2 * 40, "{}", LOCATION_READS.get());
    }
    let evidence = fixture.memory().metadata["satchel"]["evidence"].as_array().unwrap().len();
    assert_eq!(evidence, 40);
    assert_eq!(fixture.around(), all_rows);
}

/// The visible conversations: id, title and messages of each.
type Shown = Vec<(String, Option<String>, Vec<NodeState>)>;

impl Fixture {
    fn shown(&self) -> Shown {
        let query = satchel_store::ConversationQuery::default();
        let page = self.store.conversations(&query, None, 100, self.store.revision()).unwrap();
        let mut all: Shown = Vec::new();
        for shown in page.items {
            let stored = self.store.conversation(&shown.id, None).unwrap().unwrap();
            let ConversationState { report, nodes, .. } = conversation_record::known(&stored);
            all.push((shown.id, report.title, nodes));
        }
        all.sort_by(|one, other| one.0.cmp(&other.0));
        all
    }
}

#[test]
fn importing_together_or_one_by_one_gives_the_same_result() {
    for (events, chained, backwards) in [
        (false, false, false),
        (true, false, true),
        (false, true, true),
        (true, true, false),
        (false, true, false),
    ] {
        let shape = Shape { rows: 3, events, chained, backwards };
        let parts = shape.parts(9);
        let parts: Vec<&[i64]> = parts.iter().map(Vec::as_slice).collect();
        // It has only the rows of the middle, so some conversations stay separate.
        let all_rows: &[i64] = &(9..=18).collect::<Vec<i64>>();
        let [together, apart] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let [together, apart] = [together.path(), apart.path()].map(Fixture::open);
        let complete = [&together, &apart].map(|fixture| fixture.import((&[all_rows], None), true));
        let before = together.shown();
        let batch = together.import((&parts, None), true);
        let single: Vec<ImportRecord> =
            parts.iter().map(|part| apart.import((&[part], None), true)).collect();
        assert_eq!(together.shown(), apart.shown(), "{shape:?}");
        for (what, of) in [("conversations", 0), ("messages", 1)] {
            let counts = |record: &ImportRecord| {
                let counts = [&record.conversations, &record.messages][of];
                [counts.found, counts.new, counts.updated, counts.unchanged]
            };
            let mut sum = [0; 4];
            for record in &single {
                sum.iter_mut().zip(counts(record)).for_each(|(sum, more)| *sum += more);
            }
            assert_eq!(counts(&batch), sum, "{what}, {shape:?}");
        }
        let undo = |fixture: &Fixture, record| fixture.undo_or_redo(record, UndoDirection::Undo);
        undo(&together, &complete[0]);
        undo(&apart, &complete[1]);
        assert_eq!(together.shown(), apart.shown(), "without what joins them, {shape:?}");
        together.undo_or_redo(&complete[0], UndoDirection::Redo);
        together.undo_or_redo(&batch, UndoDirection::Undo);
        assert_eq!(together.shown(), before, "{shape:?}");
        together.undo_or_redo(&batch, UndoDirection::Redo);
        apart.undo_or_redo(&complete[1], UndoDirection::Redo);
        assert_eq!(together.shown(), apart.shown(), "{shape:?}");
    }
}
