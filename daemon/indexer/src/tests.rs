use std::{path::Path, time::Duration};

use satchel_merge::body::Body;
use satchel_pam::{
    conversation::{Content, ContentKind, ConversationHeader, ConversationTemporal, Provider, Role},
    hash::ContentHash,
    memory::{Memory, Status},
    time::Timestamp,
};
use satchel_search::{
    index::{DocumentKind, IndexLocation, SearchIndex, SearchOptions},
    query::{Calendar, Query},
};
use satchel_store::{Batch, Change, ConversationWrite, MessageHead, MessageWrite, OpenOptions, Origin};

use super::*;

const PATIENCE: Duration = Duration::from_mins(1);

fn store(folder: &Path) -> Store {
    Store::open(&folder.join("data"), OpenOptions::default(), &mut |_| {}).unwrap()
}

fn location(folder: &Path) -> IndexLocation {
    IndexLocation::Folder(folder.join("search"))
}

fn commit(store: &Store, change: Change) {
    let origin = Origin { import: None, actor: "test".to_owned(), reason: String::new(), at_micros: 1 };
    store.commit(Batch { origin, changes: vec![change] }).unwrap();
}

fn memory(id: &str, content: &str) -> Box<Memory> {
    let value = serde_json::json!({
        "id": id, "type": "fact", "content": content, "content_hash": ContentHash::of(content).to_string(),
        "temporal": {"created_at": "2025-01-01T00:00:00Z"}, "provenance": {"platform": "claude"},
    });
    Box::new(serde_json::from_value(value).unwrap())
}

fn conversation(id: &str, title: &str, messages: &[&str]) -> ConversationWrite {
    let text = |text: &&str| Body {
        provider_message_id: None,
        role: Role::User,
        content: Some(Content { kind: ContentKind::Text, text: Some((*text).to_owned()), parts: Vec::new() }),
        created_at: None,
        model: None,
        is_thought: false,
        token_count: None,
        attachments: Vec::new(),
        citations: Vec::new(),
        tool_calls: Vec::new(),
        raw_metadata: None,
    };
    let write = |(number, message): (usize, &&str)| {
        let (body, digest) = text(message).encode().unwrap();
        let head = MessageHead {
            id: format!("{id}-{number}"),
            parent: number.checked_sub(1).map(|before| format!("{id}-{before}")),
            role: Role::User,
            created_at_micros: 1,
            hidden: false,
            thought: false,
            digest,
            opaque: Vec::new(),
        };
        MessageWrite::Put { head, body }
    };
    let header = ConversationHeader {
        id: id.to_owned(),
        provider: Provider { name: "chatgpt".to_owned(), ..Provider::default() },
        title: Some(title.to_owned()),
        temporal: ConversationTemporal { created_at: Timestamp::saturating(1), updated_at: None },
        participants: Vec::new(),
        model: None,
        system_instruction: None,
        is_archived: false,
        tags: Vec::new(),
        raw_metadata: None,
        import_metadata: None,
    };
    let messages = messages.iter().enumerate().map(write).collect();
    ConversationWrite { header, current: None, opaque: Vec::new(), messages }
}

fn fill(store: &Store) {
    commit(store, Change::Memory(memory("m1", "Ana keeps bees")));
    commit(
        store,
        Change::Conversation(Box::new(conversation("c1", "Bees in winter", &["do bees sleep?", "no"]))),
    );
}

/// The ids of all that a query finds, sorted.
fn ids(snapshot: &Snapshot, text: &str) -> Vec<String> {
    let calendar = Calendar { now: jiff::Timestamp::UNIX_EPOCH, zone: jiff::tz::TimeZone::UTC };
    let query = Query::parse(text, &calendar).unwrap();
    let options = SearchOptions { limit: 1_000, ..SearchOptions::default() };
    let mut ids: Vec<String> =
        snapshot.search(&query, &options).unwrap().hits.into_iter().map(|hit| hit.id).collect();
    ids.sort();
    ids
}

/// What an indexer finds when it has everything.
fn found(indexer: &Indexer, store: &Store, text: &str) -> Vec<String> {
    let snapshot = indexer.snapshot_at(store.revision(), PATIENCE).unwrap();
    assert_eq!(snapshot.revision(), store.revision().get());
    ids(&snapshot, text)
}

#[test]
fn changes_are_found_once_they_are_indexed() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let indexer = Indexer::new(store.clone(), location(folder.path()));
    let waker = indexer.waker();
    assert!(store.observe_revisions(move |_| waker.wake()));
    assert!(!indexer.progress().running);
    fill(&store);
    assert_eq!(found(&indexer, &store, "bees"), ["c1", "c1-0", "m1"]);
    assert!(indexer.progress().running && indexer.progress().bytes > 0);

    commit(&store, Change::Memory(memory("m1", "Ana keeps wasps")));
    let longer = conversation("c1", "Winter", &["do bees sleep?", "no", "why not?"]);
    commit(&store, Change::Conversation(Box::new(longer)));
    assert_eq!(found(&indexer, &store, "bees"), ["c1-0"]);
    assert_eq!(found(&indexer, &store, "wasps OR why"), ["c1-2", "m1"]);

    commit(&store, Change::WithdrawMemory(memory("m1", "Ana keeps wasps")));
    commit(&store, Change::WithdrawConversation(Box::new(conversation("c1", "Winter", &[]))));
    assert!(found(&indexer, &store, "bees OR wasps OR winter").is_empty());
    assert_eq!(indexer.progress().documents, 0);
    indexer.stop();
    store.close().unwrap();
}

#[test]
fn a_superseded_memory_is_valid_until_its_successor_began() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let indexer = Indexer::new(store.clone(), IndexLocation::Memory);
    let waker = indexer.waker();
    store.observe_revisions(move |_| waker.wake());
    let time = |text: &str| Some(Timestamp::parse(text).unwrap());
    let mut old = memory("old", "Lives in Oslo");
    commit(&store, Change::Memory(old.clone()));
    let mut new = memory("new", "Lives in Bergen");
    new.temporal.valid_from = time("2025-06-01T00:00:00Z");
    commit(&store, Change::Memory(new));
    assert_eq!(found(&indexer, &store, "valid:2025-07-01"), ["new", "old"]);
    old.status = Status::Superseded;
    old.temporal.superseded_by = Some("new".to_owned());
    commit(&store, Change::Memory(old.clone()));
    assert_eq!(found(&indexer, &store, "valid:2025-07-01"), ["new"]);
    assert_eq!(found(&indexer, &store, "valid:2025-05-31"), ["old"]);
    assert_eq!(found(&indexer, &store, "expired:2025-06-01"), ["old"]);
    old.temporal.valid_until = time("2025-03-01T00:00:00Z");
    commit(&store, Change::Memory(old));
    assert!(found(&indexer, &store, "valid:2025-05-31").is_empty());
    indexer.stop();
}

/// Messages that stay are not indexed again, and those that change, move or go are.
#[test]
fn a_conversation_that_changes_is_updated_message_by_message() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let indexer = Indexer::new(store.clone(), IndexLocation::Memory);
    let waker = indexer.waker();
    store.observe_revisions(move |_| waker.wake());
    let many: Vec<String> = (0..300).map(|number| format!("honey number {number}")).collect();
    let mut texts: Vec<&str> = many.iter().map(String::as_str).collect();
    let write = |texts: &[&str], title: &str| {
        commit(&store, Change::Conversation(Box::new(conversation("c1", title, texts))));
    };
    write(&texts, "long");
    assert_eq!(found(&indexer, &store, "honey").len(), 300);
    texts.push("one more about honey");
    write(&texts, "long");
    assert_eq!(found(&indexer, &store, "honey").len(), 301);
    texts[7] = "wasps";
    write(&texts, "longer");
    assert_eq!(found(&indexer, &store, "honey").len(), 300);
    assert_eq!(found(&indexer, &store, "wasps OR longer"), ["c1", "c1-7"]);
    // Several changes between two commits of the index.
    for length in [10, 5, 20] {
        write(&texts[..length], "short");
    }
    assert_eq!(found(&indexer, &store, "in:messages").len(), 20);
    commit(&store, Change::WithdrawConversation(Box::new(conversation("c1", "gone", &[]))));
    write(&texts[..3], "back");
    assert_eq!(found(&indexer, &store, "honey OR back"), ["c1", "c1-0", "c1-1", "c1-2"]);
    indexer.stop();
}

#[test]
fn an_index_that_was_left_behind_catches_up() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    fill(&store);
    let first = Indexer::new(store.clone(), location(folder.path()));
    assert_eq!(found(&first, &store, "bees").len(), 3);
    first.stop();
    // Nobody wakes this one, and it opens what the first has written.
    commit(&store, Change::Memory(memory("m2", "Ben keeps bees too")));
    let second = Indexer::new(store.clone(), location(folder.path()));
    assert_eq!(found(&second, &store, "bees"), ["c1", "c1-0", "m1", "m2"]);
    assert_eq!(second.progress().documents, 5);
    second.stop();
}

#[test]
fn an_index_of_another_history_is_built_anew() {
    // It claims more than this store has.
    assert_built_anew(99, |store| store.store_id().to_string());
    // Another store has as many revisions.
    assert_built_anew(1, |_| "another".to_owned());
}

fn assert_built_anew(revision: u64, name: impl Fn(&Store) -> String) {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    fill(&store);
    let foreign = SearchIndex::open(&location(folder.path()), &name(&store)).unwrap();
    let owner = satchel_search::index::OwnerId::Memory("x");
    let document = satchel_search::index::Document::new(DocumentKind::Memory, "x", "claude", "foreign bees");
    foreign.replace(&owner, [document]).unwrap();
    foreign.commit(revision).unwrap();
    foreign.rest().unwrap();
    drop(foreign);
    let indexer = Indexer::new(store.clone(), location(folder.path()));
    assert_eq!(found(&indexer, &store, "bees"), ["c1", "c1-0", "m1"]);
    indexer.stop();
}

#[test]
fn an_index_that_is_killed_anywhere_equals_a_fresh_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    for number in 0..60 {
        let id = format!("c{}", number % 20);
        let texts = [format!("message {number} about bees"), format!("number {number}")];
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        commit(&store, Change::Conversation(Box::new(conversation(&id, &format!("title {number}"), &texts))));
        commit(
            &store,
            Change::Memory(memory(&format!("m{}", number % 7), &format!("fact {number} about bees"))),
        );
    }
    let fresh = Indexer::new(store.clone(), IndexLocation::Memory);
    for stop_after in [0, 1, 3, 10, 40] {
        let copied = folder.path().join(format!("killed-{stop_after}"));
        let killed = IndexLocation::Folder(copied.clone());
        // What a killed process leaves: a commit of some changes, and the files of more that were not committed.
        let index = SearchIndex::open(&killed, &store.store_id().to_string()).unwrap();
        let mut position = satchel_store::ChangePosition::after(Revision::ZERO);
        for change in store.changes_since(position, stop_after).unwrap() {
            position = change.position;
            let record = store.memory(&change.id, None).unwrap();
            let documents = record.as_ref().map(|record| documents::memory(&record.memory, None));
            if record.is_some() {
                index.replace(&satchel_search::index::OwnerId::Memory(&change.id), documents).unwrap();
            }
        }
        index.commit(0).unwrap();
        drop(index);
        let indexer = Indexer::new(store.clone(), killed);
        for text in ["bees", "title", "number", "fact", "in:memories", "in:titles", "in:messages"] {
            assert_eq!(found(&indexer, &store, text), found(&fresh, &store, text), "{stop_after} {text}");
        }
        assert_eq!(indexer.progress().documents, fresh.progress().documents);
        indexer.stop();
    }
    fresh.stop();
}

fn commit_all(store: &Store, changes: Vec<Change>) {
    let origin = Origin { import: None, actor: "test".to_owned(), reason: String::new(), at_micros: 1 };
    store.commit(Batch { origin, changes }).unwrap();
}

/// A thousand changes are read at once: neither a commit of more of them nor one of just as many leaves anything behind.
#[test]
fn commits_of_many_changes_are_followed_to_their_end() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let indexer = Indexer::new(store.clone(), IndexLocation::Memory);
    let memories = |range: std::ops::Range<usize>| {
        range.map(|number| Change::Memory(memory(&format!("m{number}"), &format!("hive {number}")))).collect()
    };
    commit_all(&store, memories(0..1_000));
    assert_eq!(found(&indexer, &store, "+hive").len(), 1_000);
    commit_all(&store, memories(1_000..2_500));
    found(&indexer, &store, "hive");
    assert_eq!(indexer.progress().documents, 2_500);

    // Vectors are no documents: the index only has to reach their revision.
    let vectors = |range: std::ops::Range<usize>| {
        range.map(|number| embedding(&format!("m{number}"), &[1.0, 0.5])).collect::<Vec<_>>()
    };
    commit_all(&store, vectors(0..1_000));
    found(&indexer, &store, "hive");
    let models = || indexer.embedding_models().unwrap().into_iter().map(|model| model.vectors).sum::<usize>();
    assert_eq!(models(), 1_000);
    commit_all(&store, vectors(1_000..2_500));
    found(&indexer, &store, "hive");
    assert_eq!(models(), 2_500);
    indexer.stop();
}

#[test]
fn an_index_that_cannot_be_written_can_still_be_searched() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    fill(&store);
    let indexer = Indexer::new(store.clone(), location(folder.path()));
    assert_eq!(found(&indexer, &store, "bees"), ["c1", "c1-0", "m1"]);
    indexer.stop();
    // Somebody else has the lock of the writer.
    let other = SearchIndex::open(&location(folder.path()), &store.store_id().to_string()).unwrap();
    let owner = satchel_search::index::OwnerId::Memory("x");
    other
        .replace(&owner, [satchel_search::index::Document::new(DocumentKind::Memory, "x", "y", "z")])
        .unwrap();
    commit(&store, Change::Memory(memory("m2", "Ben keeps bees")));
    let indexer = Indexer::new(store.clone(), location(folder.path()));
    assert!(indexer.snapshot_at(store.revision(), PATIENCE).is_err(), "it does not get the new memory");
    let snapshot = indexer.snapshot_at(Revision::ZERO, PATIENCE).unwrap();
    assert_eq!(ids(&snapshot, "bees"), ["c1", "c1-0", "m1"]);
    assert!(indexer.progress().error.is_some());
    indexer.stop();
}

#[test]
fn a_memory_was_valid_until_its_successor_says_now() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let mut old = memory("old", "Lives in Porto");
    (old.status, old.temporal.superseded_by) = (Status::Superseded, Some("new".to_owned()));
    let new = |valid_from: &str| {
        let mut new = memory("new", "Lives in Lisbon");
        new.temporal.valid_from = Some(valid_from.parse().unwrap());
        new
    };
    let relation = serde_json::json!({
        "id": "r", "from": "new", "to": "old", "type": "supersedes", "created_at": "2025-01-01T00:00:00Z",
    });
    commit(&store, Change::Memory(new("2020-01-01T00:00:00Z")));
    commit(&store, Change::Memory(old));
    commit(&store, Change::Relation(serde_json::from_value(relation).unwrap()));
    let indexer = Indexer::new(store.clone(), location(folder.path()));
    assert_eq!(found(&indexer, &store, "lives valid:2022"), ["new"]);
    commit(&store, Change::Memory(new("2023-01-01T00:00:00Z")));
    assert_eq!(found(&indexer, &store, "lives valid:2022"), ["old"]);
    indexer.stop();
}

#[test]
fn memories_of_a_revision_are_kept_for_the_next_search() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let mut revisions = Vec::new();
    for text in ["Ana keeps bees", "Ana keeps wasps", "Ana keeps ants"] {
        commit(&store, Change::Memory(memory("m1", text)));
        revisions.push(store.revision());
    }
    let indexer = Indexer::new(store.clone(), IndexLocation::Memory);
    let first = indexer.snapshot_as_of(revisions[0], 5).unwrap();
    assert_eq!(
        (ids(&first.snapshot, "bees").len(), ids(&first.snapshot, "ants").len(), first.now),
        (1, 0, 5)
    );
    assert_eq!(indexer.snapshot_as_of(revisions[0], 6).unwrap().now, 5, "not read again");
    let later = 11 * 60 * 1_000_000;
    assert_eq!(
        indexer.snapshot_as_of(revisions[0], later).unwrap().now,
        later,
        "its time is not kept for ever"
    );
    assert_eq!(indexer.pinned_as_of(revisions[0]).unwrap().now, later);
    indexer.snapshot_as_of(revisions[1], 7).unwrap();
    assert!(indexer.pinned_as_of(revisions[0]).is_some());
    indexer.snapshot_as_of(revisions[2], 8).unwrap();
    assert!(indexer.pinned_as_of(revisions[1]).is_none(), "it was used before the others");
    assert!(indexer.pinned_as_of(revisions[0]).is_some());
    assert!(!indexer.progress().running, "nothing of this needs the index of what is stored now");
    indexer.stop();
    assert!(indexer.pinned_as_of(revisions[0]).is_none());
}

#[test]
fn a_search_that_cannot_wait_gets_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    fill(&store);
    let indexer = Indexer::new(store.clone(), IndexLocation::Memory);
    indexer.snapshot_at(store.revision(), PATIENCE).unwrap();
    let ahead = Revision::new(store.revision().get() + 1);
    let snapshot = indexer.snapshot_at(ahead, Duration::from_millis(1)).unwrap();
    assert_eq!(snapshot.revision(), store.revision().get());
    indexer.pin(&snapshot, 5);
    assert_eq!(indexer.pinned(snapshot.revision()).unwrap().now, 5);
    assert!(indexer.pinned(ahead.get()).is_none());
    indexer.stop();
    assert!(indexer.pinned(snapshot.revision()).is_none());
    // The snapshot of a call that is still open can be searched.
    assert_eq!(ids(&snapshot, "bees"), ["c1", "c1-0", "m1"]);
}

fn embedding(memory: &str, vector: &[f64]) -> Change {
    let value = serde_json::json!({
        "id": format!("v-{memory}"), "memory_id": memory, "model": "m", "dimensions": vector.len(),
        "created_at": "2025-01-01T00:00:00Z", "vector": vector,
    });
    Change::Embedding(serde_json::from_value(value).unwrap())
}

fn nearest(indexer: &Indexer, query: VectorQuery<'_>) -> Vec<String> {
    let (model, hits) = indexer.search_vectors("", query, 10, &|_| true).unwrap();
    assert_eq!(model, "m");
    hits.into_iter().map(|hit| hit.id).collect()
}

#[test]
fn vectors_follow_the_store_and_those_of_a_changed_text_are_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let indexer = Indexer::new(store.clone(), location(folder.path()));
    let north = [0.0, 1.0];
    let nothing = indexer.search_vectors("m", VectorQuery::Vector(&north), 10, &|_| true);
    assert!(matches!(nothing, Err(VectorSearchError::NoModel { .. })), "{nothing:?}");

    for (id, vector) in [("a", [1.0, 0.0]), ("b", [0.6, 0.8]), ("c", [0.0, 1.0])] {
        commit(&store, Change::Memory(memory(id, id)));
        commit(&store, embedding(id, &vector));
    }
    assert_eq!(nearest(&indexer, VectorQuery::Vector(&north)), ["c", "b", "a"]);
    // The memory itself is not similar to itself.
    assert_eq!(nearest(&indexer, VectorQuery::Memory("a")), ["b", "c"]);

    commit(&store, Change::Memory(memory("c", "another text")));
    assert_eq!(nearest(&indexer, VectorQuery::Vector(&north)), ["b", "a"]);
    commit(&store, embedding("c", &[1.0, 0.1]));
    assert_eq!(nearest(&indexer, VectorQuery::Vector(&north)), ["b", "c", "a"]);
    commit(&store, Change::WithdrawEmbedding { memory: "b".to_owned(), model: "m".to_owned() });
    commit(&store, Change::WithdrawMemory(memory("a", "a")));
    assert_eq!(nearest(&indexer, VectorQuery::Vector(&north)), ["c"]);
    let [model] = <[_; 1]>::try_from(indexer.embedding_models().unwrap()).unwrap();
    assert_eq!((model.name.as_str(), model.dimension, model.vectors), ("m", 2, 1));

    // A filter comes before the cut.
    commit(&store, embedding("b", &[0.6, 0.8]));
    let (_, hits) = indexer.search_vectors("m", VectorQuery::Vector(&north), 1, &|id| id == "c").unwrap();
    assert_eq!(hits.iter().map(|hit| hit.id.as_str()).collect::<Vec<_>>(), ["c"]);
    for wrong in [VectorQuery::Vector(&[1.0]), VectorQuery::Vector(&[0.0, 0.0]), VectorQuery::Memory("a")] {
        assert!(indexer.search_vectors("m", wrong, 10, &|_| true).is_err(), "{wrong:?}");
    }
}

#[test]
fn what_an_import_brings_is_found_by_a_search_at_once_and_without_one_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let indexer = Indexer::new(store.clone(), location(folder.path()));
    let importing = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let runs = Arc::clone(&importing);
    indexer.yield_to_imports(move || runs.load(Ordering::Relaxed));
    indexer.start().unwrap();
    commit(&store, Change::Memory(memory("m1", "oolong tea")));
    let snapshot = indexer.snapshot_at(store.revision(), PATIENCE).unwrap();
    assert_eq!(snapshot.documents(), 1);
    commit(&store, Change::Memory(memory("m2", "green tea")));
    importing.store(false, Ordering::Relaxed);
    // Nobody searches.
    let until = Instant::now() + PATIENCE;
    while indexer.progress().revision < store.revision() {
        assert!(Instant::now() < until, "it is not indexed");
        thread::yield_now();
    }
    assert_eq!(indexer.progress().documents, 2);
    indexer.stop();
}
