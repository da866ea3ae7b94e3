//! The room that lists take in the engine.

use super::{
    disk::CrashDisk,
    map::MapHouse,
    world::{Dice, header, memory, open},
};
use crate::{
    Batch, Change, ConversationQuery, ConversationWrite, MemoryQuery, Origin, Revision, Store, keys,
};

const DAY: i64 = 24 * 3_600 * 1_000_000;

fn commit(store: &Store, at_micros: i64, changes: Vec<Change>) -> Revision {
    store.commit(Batch { origin: Origin { at_micros, ..Origin::default() }, changes }).unwrap()
}

fn entries(house: &MapHouse) -> usize {
    house.0.entries().keys().filter(|key| key[0] == keys::INDEX).count()
}

#[test]
fn versions_that_no_page_is_pinned_to_leave_the_lists() {
    let (dir, disk, house) = (tempfile::tempdir().unwrap(), CrashDisk::default(), MapHouse::default());
    let (store, _) = open(dir.path(), &disk, &house, "boot").unwrap();
    let mut dice = Dice(21);
    let (mut most, mut shown) = (0, Vec::new());
    for day in 0..120 {
        let mut one = memory(1, &mut dice);
        one.tags = vec!["tea".to_owned()];
        let write = ConversationWrite {
            header: header(1, &mut dice),
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
            most = most.max(entries(&house));
        }
        // What was shown within the last week is shown still.
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
        store.memory_versions(&memory(1, &mut dice).id).unwrap().len(),
        120,
        "versions are kept for ever"
    );
    assert!(store.check(true, &mut |_| {}).unwrap().clean());
}

#[test]
fn a_clock_that_ran_ahead_once_keeps_nothing_for_ever() {
    let (dir, disk, house) = (tempfile::tempdir().unwrap(), CrashDisk::default(), MapHouse::default());
    let (store, _) = open(dir.path(), &disk, &house, "boot").unwrap();
    let mut dice = Dice(22);
    for day in [0, 1, 40_000, 2, 12, 22, 32, 42] {
        commit(&store, day * DAY, vec![Change::Memory(Box::new(memory(1, &mut dice)))]);
    }
    assert!(entries(&house) <= 2 * 7, "{} entries", entries(&house));
}

#[test]
fn tags_do_not_multiply_each_other() {
    let (dir, disk, house) = (tempfile::tempdir().unwrap(), CrashDisk::default(), MapHouse::default());
    let (store, _) = open(dir.path(), &disk, &house, "boot").unwrap();
    let mut one = memory(1, &mut Dice(23));
    one.tags = (0..500).map(|tag| format!("a-tag-of-some-length-{tag}")).collect();
    let text: usize = one.tags.iter().map(String::len).sum();
    commit(&store, 0, vec![Change::Memory(Box::new(one))]);
    let bytes: usize = house.0.entries().iter().map(|(key, value)| key.len() + value.len()).sum();
    assert!(bytes < 16 * text, "{bytes} bytes for {text} of tags");
    for tag in [0, 499] {
        let tags_any = vec![format!("a-tag-of-some-length-{tag}")];
        let query = MemoryQuery { tags_any, ..MemoryQuery::default() };
        assert_eq!(store.memories(&query, None, 9, store.revision()).unwrap().items.len(), 1);
    }
}
