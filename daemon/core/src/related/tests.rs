use satchel_pam::{hash::ContentHash, memory::Memory, relation::Relation, time::Timestamp};
use satchel_store::{Batch, Change, OpenOptions, Origin};
use tempfile::TempDir;

use super::*;

struct Fixture {
    _folder: TempDir,
    store: Store,
}

fn memory(id: &str, conversation: &str) -> Memory {
    let mut value = serde_json::json!({
        "id": id, "type": "fact", "content": id, "content_hash": ContentHash::of(id).to_string(),
        "temporal": {"created_at": "2025-01-01T00:00:00Z"}, "provenance": {"platform": "claude"},
    });
    if !conversation.is_empty() {
        value["provenance"]["conversation_ref"] = conversation.into();
    }
    serde_json::from_value(value).unwrap()
}

impl Fixture {
    /// A store with memories, each with its conversation, and with relations `related_to` between them.
    fn new(memories: &[(&str, &str)], relations: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("data"), OpenOptions::default(), &mut |_| {}).unwrap();
        let memories =
            memories.iter().map(|(id, conversation)| Change::Memory(Box::new(memory(id, conversation))));
        let relations = relations.iter().map(|(from, to)| {
            Change::Relation(Relation {
                id: format!("{from}-{to}"),
                from: (*from).to_owned(),
                to: (*to).to_owned(),
                relation_type: RelationType::RelatedTo,
                confidence: None,
                created_at: Timestamp::saturating(1),
            })
        });
        let fixture = Self { _folder: folder, store };
        fixture.commit(memories.chain(relations).collect());
        fixture
    }

    fn commit(&self, changes: Vec<Change>) {
        let origin = Origin { actor: "test".to_owned(), at_micros: 1, ..Origin::default() };
        self.store.commit(Batch { origin, changes }).unwrap();
    }

    fn query(&self, depth: usize) -> RelatedQuery {
        RelatedQuery { depth, kinds: Vec::new(), types: Vec::new(), at: self.store.revision() }
    }

    /// Finds what is related to `start` for a caller who does not see `hidden`.
    fn find(&self, start: &str, query: &RelatedQuery, hidden: &[&str]) -> RelatedMemories {
        let start = self.store.memory(start, Some(query.at)).unwrap().unwrap();
        let show = |record: MemoryRecord| {
            Ok::<_, StoreError>((!hidden.contains(&record.memory.id.as_str())).then_some(record))
        };
        related_memories(&self.store, &start, query, show).unwrap()
    }
}

/// Each memory with its distance.
fn distances(found: &RelatedMemories) -> Vec<(&str, usize)> {
    let mut all: Vec<_> = found.memories.iter().map(|one| (one.id.as_str(), one.path.len())).collect();
    all.sort_unstable();
    all
}

#[test]
fn a_cycle_is_walked_once_and_the_shortest_paths_are_found() {
    let memories = ["a", "b", "c", "d", "e"].map(|id| (id, ""));
    let fixture =
        Fixture::new(&memories, &[("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("c", "e"), ("a", "a")]);
    let found = fixture.find("a", &fixture.query(5), &[]);
    assert_eq!(distances(&found), [("b", 1), ("c", 2), ("d", 1), ("e", 3)]);
    assert!(!found.truncated);
    assert_eq!(distances(&fixture.find("a", &fixture.query(1), &[])), [("b", 1), ("d", 1)]);
    let last = found.memories.last().unwrap();
    let steps: Vec<&str> = last.path.iter().map(|step| step.memory.as_str()).collect();
    assert_eq!((steps[1], steps[2]), ("c", "e"));
    let last_link =
        Link::Relation { id: "c-e".to_owned(), relation_type: RelationType::RelatedTo, outgoing: true };
    assert_eq!(last.path[2].link, last_link);
    let of_type = RelatedQuery { types: vec![RelationType::Supports], ..fixture.query(5) };
    assert!(fixture.find("a", &of_type, &[]).memories.is_empty());
}

#[test]
fn a_hidden_memory_is_no_bridge() {
    let fixture = Fixture::new(&["a", "b", "c"].map(|id| (id, "")), &[("a", "b"), ("b", "c")]);
    assert!(fixture.find("a", &fixture.query(5), &["b"]).memories.is_empty());
    fixture.commit(vec![Change::WithdrawMemory(Box::new(memory("b", "")))]);
    assert!(fixture.find("a", &fixture.query(5), &[]).memories.is_empty());
    let earlier = RelatedQuery { at: Revision::new(fixture.store.revision().get() - 1), ..fixture.query(5) };
    assert_eq!(distances(&fixture.find("a", &earlier, &[])), [("b", 1), ("c", 2)]);
    fixture
        .commit(vec![Change::Memory(Box::new(memory("b", ""))), Change::WithdrawRelation("a-b".to_owned())]);
    assert!(fixture.find("a", &fixture.query(5), &[]).memories.is_empty());
}

#[test]
fn conversations_and_successors_are_followed() {
    let fixture = Fixture::new(&[("a", "x"), ("b", "x"), ("c", "y"), ("d", "y")], &[("b", "c")]);
    let mut old = memory("old", "");
    old.temporal.superseded_by = Some("a".to_owned());
    fixture.commit(vec![Change::Memory(Box::new(old))]);
    let found = fixture.find("old", &fixture.query(5), &[]);
    assert_eq!(distances(&found), [("a", 1), ("b", 2), ("c", 3), ("d", 4)]);
    let links: Vec<&Link> = found.memories.last().unwrap().path.iter().map(|step| &step.link).collect();
    assert_eq!((links[0], links[1]), (&Link::SupersededBy, &Link::Conversation("x".to_owned())));
    for (kind, expected) in
        [(LinkKind::Conversation, &[][..]), (LinkKind::SupersededBy, &[("a", 1)]), (LinkKind::Relation, &[])]
    {
        let only = RelatedQuery { kinds: vec![kind], ..fixture.query(5) };
        assert_eq!(distances(&fixture.find("old", &only, &[])), expected, "{kind:?}");
    }
}

#[test]
fn a_hub_is_cut_and_said_to_be() {
    let ids: Vec<String> = (0..MAX_LINKS + 50).map(|number| format!("leaf-{number}")).collect();
    let mut memories: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), "")).collect();
    memories.push(("hub", ""));
    let relations: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), "hub")).collect();
    let fixture = Fixture::new(&memories, &relations);
    let found = fixture.find("hub", &fixture.query(2), &[]);
    assert_eq!((found.memories.len(), found.truncated), (MAX_LINKS, true));
    // A caller who sees few of them is not told that there are more.
    let hidden: Vec<&str> = ids.iter().skip(3).map(String::as_str).collect();
    let found = fixture.find("hub", &fixture.query(2), &hidden);
    assert_eq!((found.memories.len(), found.truncated), (3, false));
}
