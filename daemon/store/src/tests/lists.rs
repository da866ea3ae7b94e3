//! The space that lists take in the engine.

use super::{
    disk::CrashDisk,
    fixture::{TestRng, header, memory, open},
    map::MapFolder,
};
use crate::{
    Batch, Change, ConversationQuery, ConversationWrite, MemoryOrder, MemoryQuery, Origin, Revision, Store,
    TimeRange, keys,
};

const DAY: i64 = 24 * 3_600 * 1_000_000;

fn commit(store: &Store, at_micros: i64, changes: Vec<Change>) -> Revision {
    store.commit(Batch { origin: Origin { at_micros, ..Origin::default() }, changes }).unwrap()
}

fn entries(db: &MapFolder) -> usize {
    db.0.entries().keys().filter(|key| key[0] == keys::INDEX).count()
}

#[test]
fn versions_no_page_is_pinned_to_are_dropped_from_lists() {
    let (dir, disk, db) = (tempfile::tempdir().unwrap(), CrashDisk::default(), MapFolder::default());
    let (store, _) = open(dir.path(), &disk, &db, "boot").unwrap();
    let mut rng = TestRng(21);
    let (mut most, mut shown) = (0, Vec::new());
    for day in 0..120 {
        let mut one = memory(1, &mut rng);
        one.tags = vec!["tea".to_owned()];
        let write = ConversationWrite {
            header: header(1, &mut rng),
            current: None,
            opaque: Vec::new(),
            messages: Vec::new(),
        };
        let title = write.header.title.clone();
        let text = one.content.clone();
        let changes = vec![Change::Memory(Box::new(one)), Change::Conversation(Box::new(write))];
        let revision = commit(&store, day * DAY, changes);
        shown.push((revision, text, title));
        if day >= 20 {
            most = most.max(entries(&db));
        }
        // Entries that were shown within the last week are still shown.
        for (revision, text, title) in shown.iter().rev().take(7) {
            let query = MemoryQuery { tags_all: vec!["tea".to_owned()], ..MemoryQuery::default() };
            for query in [query, MemoryQuery::default()] {
                let page = store.memories(&query, None, 9, *revision).unwrap();
                let texts: Vec<_> = page.items.iter().map(|record| &record.memory.content).collect();
                assert_eq!(texts, [text], "day {day}, at {revision}");
            }
            let page = store.conversations(&ConversationQuery::default(), None, 9, *revision).unwrap();
            let titles: Vec<_> = page.items.iter().map(|summary| &summary.title).collect();
            assert_eq!(titles, [title], "day {day}, at {revision}");
        }
    }
    // Six entries a day: five lists of the memory, one of the conversation.
    assert!(most <= 6 * 9, "{most} entries");
    assert_eq!(
        store.memory_versions(&memory(1, &mut rng).id).unwrap().len(),
        120,
        "versions are kept for ever"
    );
    assert!(store.check(true, &mut |_| {}).unwrap().clean());
}

#[test]
fn a_clock_that_once_ran_ahead_retains_no_entries() {
    let (dir, disk, db) = (tempfile::tempdir().unwrap(), CrashDisk::default(), MapFolder::default());
    let (store, _) = open(dir.path(), &disk, &db, "boot").unwrap();
    let mut rng = TestRng(22);
    for day in [0, 1, 40_000, 2, 12, 22, 32, 42] {
        commit(&store, day * DAY, vec![Change::Memory(Box::new(memory(1, &mut rng)))]);
    }
    assert!(entries(&db) <= 2 * 7, "{} entries", entries(&db));
}

#[test]
fn tags_do_not_multiply_each_other() {
    let (dir, disk, db) = (tempfile::tempdir().unwrap(), CrashDisk::default(), MapFolder::default());
    let (store, _) = open(dir.path(), &disk, &db, "boot").unwrap();
    let mut one = memory(1, &mut TestRng(23));
    one.tags = (0..500).map(|tag| format!("a-tag-of-some-length-{tag}")).collect();
    let text: usize = one.tags.iter().map(String::len).sum();
    commit(&store, 0, vec![Change::Memory(Box::new(one))]);
    let bytes: usize = db.0.entries().iter().map(|(key, value)| key.len() + value.len()).sum();
    assert!(bytes < 16 * text, "{bytes} bytes for {text} of tags");
    for tag in [0, 499] {
        let tags_any = vec![format!("a-tag-of-some-length-{tag}")];
        let query = MemoryQuery { tags_any, ..MemoryQuery::default() };
        assert_eq!(store.memories(&query, None, 9, store.revision()).unwrap().items.len(), 1);
    }
}

/// Times of records in microseconds; 0 means unknown.
const TIMES: [i64; 6] = [5 * DAY, -3 * DAY, 1, 0, 400 * DAY, -1];

fn timed() -> (tempfile::TempDir, Store) {
    let (dir, disk, db) = (tempfile::tempdir().unwrap(), CrashDisk::default(), MapFolder::default());
    let (store, _) = open(dir.path(), &disk, &db, "boot").unwrap();
    let mut rng = TestRng(24);
    for (n, micros) in (0..).zip(TIMES.into_iter().chain([0])) {
        let time = satchel_pam::time::Timestamp::from_micros(micros).unwrap();
        let mut one = memory(n, &mut rng);
        (one.temporal.created_at, one.temporal.updated_at) = (time, None);
        (one.content, one.tags) = (format!("{micros}"), vec!["tea".to_owned()]);
        let mut header = header(n, &mut rng);
        (header.temporal.created_at, header.temporal.updated_at) = (time, None);
        let write = ConversationWrite { header, current: None, opaque: Vec::new(), messages: Vec::new() };
        commit(&store, 0, vec![Change::Memory(Box::new(one)), Change::Conversation(Box::new(write))]);
    }
    (dir, store)
}

/// Reads all rows in pages of `limit`.
fn walked<T>(limit: usize, page: impl Fn(Option<&crate::Cursor>, usize) -> crate::Page<T>) -> Vec<T> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = page(after.as_ref(), limit);
        all.extend(page.items);
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}

#[test]
fn records_of_unknown_time_come_last_in_every_order() {
    let (_dir, store) = timed();
    let newest = [400 * DAY, 5 * DAY, 1, -1, -3 * DAY, 0, 0];
    let oldest = [-3 * DAY, -1, 1, 5 * DAY, 400 * DAY, 0, 0];
    let tagged = MemoryQuery { tags_all: vec!["tea".to_owned()], ..MemoryQuery::default() };
    let oldest_first = MemoryQuery { order: MemoryOrder::CreatedAscending, ..MemoryQuery::default() };
    let of_hash = |query: &MemoryQuery| MemoryQuery {
        ids: (0..7).map(|n| super::fixture::id("memory", n)).collect(),
        ..query.clone()
    };
    for limit in 1..9 {
        let memories = |query: &MemoryQuery| -> Vec<i64> {
            let page =
                |after: Option<&_>, limit| store.memories(query, after, limit, store.revision()).unwrap();
            walked(limit, page).iter().map(|record| record.memory.temporal.created_at.micros()).collect()
        };
        for query in [MemoryQuery::default(), tagged.clone(), of_hash(&MemoryQuery::default())] {
            assert_eq!(memories(&query), newest, "{query:?}, {limit} a page");
        }
        for query in [oldest_first.clone(), of_hash(&oldest_first)] {
            assert_eq!(memories(&query), oldest, "{query:?}, {limit} a page");
        }
        let every = ConversationQuery::default();
        let page =
            |after: Option<&_>, limit| store.conversations(&every, after, limit, store.revision()).unwrap();
        let times: Vec<i64> = walked(limit, page).iter().map(|row| row.updated_at_micros).collect();
        assert_eq!(times, newest, "{limit} a page");
    }
}

#[test]
fn records_of_unknown_time_match_no_range() {
    let (_dir, store) = timed();
    let (from, until) = (Some(-10 * DAY), Some(10 * DAY));
    for range in [TimeRange { from, until }, TimeRange { from, until: None }, TimeRange { from: None, until }]
    {
        let of = |created, updated| MemoryQuery { created, updated, ..MemoryQuery::default() };
        for query in [of(range, TimeRange::default()), of(TimeRange::default(), range)] {
            let page = store.memories(&query, None, 20, store.revision()).unwrap();
            assert!(page.items.len() >= 4);
            assert!(page.items.iter().all(|record| record.memory.temporal.created_at.known()), "{range:?}");
        }
        let query = ConversationQuery { updated: range, ..ConversationQuery::default() };
        let page = store.conversations(&query, None, 20, store.revision()).unwrap();
        assert!(page.items.iter().all(|row| row.updated_at_micros != 0), "{range:?}");
    }
}

#[test]
fn ids_of_withdrawn_records_are_found_by_prefix_too() {
    let (_dir, store) = timed();
    let at = store.revision();
    let (memory, conversation) = (super::fixture::id("memory", 1), super::fixture::id("conversation", 2));
    let withdrawn = store.memory(&memory, None).unwrap().unwrap().memory;
    let header = store.conversation(&conversation, None).unwrap().unwrap().header;
    let write = ConversationWrite { header, current: None, opaque: Vec::new(), messages: Vec::new() };
    let withdrawn =
        vec![Change::WithdrawMemory(Box::new(withdrawn)), Change::WithdrawConversation(Box::new(write))];
    commit(&store, 0, withdrawn);
    assert_eq!(store.memory_ids(&memory[..18].to_uppercase(), at).unwrap(), [memory]);
    assert_eq!(store.conversation_ids("conv", at).unwrap().len(), 2, "those that are no UUIDs");
    assert!(store.conversation_ids("CONVERSATION/2", at).unwrap().contains(&conversation));
    assert_eq!(store.memory_ids("", at).unwrap().len(), 7);
    assert_eq!(store.memory_ids("", Revision::new(3)).unwrap().len(), 3, "what came later is not there yet");
    assert!(store.memory_ids("zz", at).unwrap().is_empty());
}
