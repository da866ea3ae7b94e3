//! Pages: pinned during writes, filtered and ordered like a plain list.

use std::collections::BTreeSet;

use proptest::prelude::*;
use satchel_pam::memory::{Memory, MemoryType, Status};

use super::{
    disk::CrashDisk,
    fixture::{Model, TestRng, id, memory, open, show},
    map::MapFolder,
};
use crate::{
    Batch, Change, ConversationQuery, MemoryOrder, MemoryQuery, Store, TimeRange, entry::memory_entry,
    read::memory::matches,
};

fn query(rng: &mut TestRng) -> MemoryQuery {
    let mut query = MemoryQuery::default();
    let orders = [MemoryOrder::UpdatedDescending, MemoryOrder::CreatedAscending, MemoryOrder::IdAscending];
    query.order = orders[rng.roll(3) as usize];
    match rng.roll(9) {
        0 => query.types = vec![MemoryType::Fact, MemoryType::Skill],
        1 => query.statuses = vec![Status::Active],
        2 => query.platforms = vec!["claude".to_owned()],
        3 => query.tags_any = vec!["tag0".to_owned(), "tag1".to_owned()],
        4 => query.tags_all = vec!["tag0".to_owned(), "tag1".to_owned()],
        5 => query.conversation = Some(id("conversation", 1)),
        6 => {
            query.updated =
                TimeRange { from: Some(1_700_000_010_000_000), until: Some(1_700_000_030_000_000) }
        }
        7 => query.ids = (0..4).map(|n| id("memory", n)).collect(),
        _ => {}
    }
    query
}

/// The simple implementation: all memories, filtered, sorted.
fn expected(store: &Store, model: &Model, query: &MemoryQuery) -> Vec<String> {
    let memories: Vec<Memory> =
        model.memories.values().map(|(json, _)| serde_json::from_str(json).unwrap()).collect();
    let wanted: BTreeSet<&String> = query.ids.iter().collect();
    let mut rows: Vec<_> = memories
        .iter()
        .filter(|memory| wanted.is_empty() || wanted.contains(&memory.id))
        .filter(|memory| matches(query, &memory_entry(memory, false).unwrap().facets))
        .map(|memory| {
            let created = memory.temporal.created_at.micros();
            let updated = memory.temporal.updated_at.map_or(created, satchel_pam::time::Timestamp::micros);
            let sort = match query.order {
                MemoryOrder::UpdatedDescending => -updated,
                MemoryOrder::CreatedAscending => created,
                MemoryOrder::IdAscending => 0,
            };
            let id16 =
                if query.order == MemoryOrder::IdAscending { [0; 16] } else { crate::keys::id16(&memory.id) };
            (sort, id16, memory.id.clone())
        })
        .collect();
    rows.sort();
    assert!(store.revision().get() > 0);
    rows.into_iter().map(|(_, _, id)| id).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn pages_pinned_at_a_revision_are_stable_during_commits(seed in any::<u64>()) {
        let (dir, disk, db) = (tempfile::tempdir().unwrap(), CrashDisk::default(), MapFolder::default());
        let (store, _) = open(dir.path(), &disk, &db, "boot").unwrap();
        let (mut model, mut rng) = (Model::default(), TestRng(seed));
        while store.revision().get() < 12 {
            store.commit(model.batch(&mut rng)).unwrap();
        }
        for _ in 0..20 {
            let (at, then) = (store.revision(), model.clone());
            let query = query(&mut rng);
            let limit = 1 + rng.roll(3) as usize;
            let (mut rows, mut after) = (Vec::new(), None);
            loop {
                let page = store.memories(&query, after.as_ref(), limit, at).unwrap();
                prop_assert!(page.items.len() <= limit);
                rows.extend(page.items.into_iter().map(|record| (record.memory.id.clone(), serde_json::to_string(&record.memory).unwrap())));
                store.commit(model.batch(&mut rng)).unwrap();
                let Some(next) = page.next else { break };
                after = Some(crate::Cursor::from_bytes(next.as_bytes()));
            }
            let ids: Vec<_> = rows.iter().map(|(id, _)| id.clone()).collect();
            prop_assert_eq!(ids, expected(&store, &then, &query), "{:?}", query);
            for (id, json) in rows {
                prop_assert_eq!(&json, &then.memories[&id].0);
            }
            prop_assert_eq!(show(&store, at).unwrap(), then.versioned());
        }
    }
}

#[test]
fn concurrent_readers_see_whole_revisions() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = super::fixture::open_real(dir.path(), "boot").unwrap();
    let (mut model, mut rng) = (Model::default(), TestRng(77));
    let plan: Vec<_> = (0..60).map(|_| model.batch(&mut rng)).collect();
    let mut states = vec![Model::default().versioned()];
    let mut again = (Model::default(), TestRng(77));
    for _ in 0..60 {
        if again.0.batch(&mut again.1).raises_revision() {
            states.push(again.0.versioned());
        }
    }
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut looks = 0;
                    loop {
                        let at = store.revision();
                        assert_eq!(show(&store, at).unwrap(), states[at.get() as usize], "at {at}");
                        looks += 1;
                        if at.get() as usize == states.len() - 1 {
                            return looks;
                        }
                    }
                })
            })
            .collect();
        for batch in plan {
            store.commit(batch).unwrap();
        }
        assert!(readers.into_iter().all(|reader| reader.join().unwrap() > 0));
    });
}

#[test]
fn conversations_are_filtered_by_header_fields() {
    let (dir, disk, db) = (tempfile::tempdir().unwrap(), CrashDisk::default(), MapFolder::default());
    let (store, _) = open(dir.path(), &disk, &db, "boot").unwrap();
    let mut rng = TestRng(5);
    for n in 0..4 {
        let mut header = super::fixture::header(n, &mut rng);
        header.title = Some(format!("Über Tee {n}"));
        header.is_archived = n == 2;
        header.tags = vec![format!("tag{}", n % 2)];
        let write =
            crate::ConversationWrite { header, current: None, opaque: Vec::new(), messages: Vec::new() };
        let batch = Batch { changes: vec![Change::Conversation(Box::new(write))], ..Batch::default() };
        store.commit(batch).unwrap();
    }
    let count = |query: ConversationQuery| {
        store.conversations(&query, None, 10, store.revision()).unwrap().items.len()
    };
    assert_eq!(count(ConversationQuery::default()), 4);
    assert_eq!(
        count(ConversationQuery {
            title_contains: Some("üBER tee".to_owned()),
            ..ConversationQuery::default()
        }),
        4
    );
    assert_eq!(
        count(ConversationQuery { title_contains: Some("tee 3".to_owned()), ..ConversationQuery::default() }),
        1
    );
    assert_eq!(count(ConversationQuery { archived: Some(true), ..ConversationQuery::default() }), 1);
    assert_eq!(
        count(ConversationQuery { tags_any: vec!["tag1".to_owned()], ..ConversationQuery::default() }),
        2
    );
    assert_eq!(
        count(ConversationQuery { platforms: vec!["claude".to_owned()], ..ConversationQuery::default() }),
        0
    );
    let versions = store.memory_versions("nobody").unwrap();
    assert!(versions.is_empty());
}

#[test]
fn uuid_ids_and_other_ids_are_sorted_together() {
    let (dir, disk, db) = (tempfile::tempdir().unwrap(), CrashDisk::default(), MapFolder::default());
    let (store, _) = open(dir.path(), &disk, &db, "boot").unwrap();
    let mut rng = TestRng(31);
    let uuid = |number: u128| uuid::Uuid::from_u128(number).to_string();
    let mut ids: Vec<String> = (0..40_u128).map(|n| uuid(n * (u128::MAX / 40))).collect();
    // The same ids in capitals, shortened, and extended: these are not canonical UUIDs, and sort among them.
    ids.extend(
        (0..40).step_by(3).map(|n| ids[n].to_uppercase()).filter(|id| id.contains('E')).collect::<Vec<_>>(),
    );
    ids.extend((0..40).step_by(4).map(|n| ids[n][..n].to_owned() + "-").collect::<Vec<_>>());
    ids.extend((0..40).step_by(5).map(|n| ids[n].clone() + "0").collect::<Vec<_>>());
    ids.extend(["!".to_owned(), "~".to_owned(), uuid(u128::MAX)]);
    let written = |id: &String| {
        let memory = Memory { id: id.clone(), ..memory(1, &mut rng) };
        Change::Memory(Box::new(memory))
    };
    let changes = ids.iter().map(written).collect();
    store.commit(Batch { changes, ..Batch::default() }).unwrap();
    ids.sort();
    let query = MemoryQuery { order: MemoryOrder::IdAscending, ..MemoryQuery::default() };
    for limit in [1, 2, 7, 1_000] {
        let (mut after, mut found) = (None, Vec::new());
        loop {
            let page = store.memories(&query, after.as_ref(), limit, store.revision()).unwrap();
            found.extend(page.items.into_iter().map(|record| record.memory.id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(found, ids, "{limit} a page");
    }
}
