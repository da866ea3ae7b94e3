//! Vectors that several imports brought for one memory, and the one that is shown when some of these imports are
//! undone.

use std::{path::Path, sync::Arc};

use satchel_host::Throttle;
use satchel_merge::evidence::{StoredEvidence, memories_of};
use satchel_pam::{conversation::ImportMetadata, record::Evidence as Reported};
use satchel_source::{CancelToken, Limits};
use satchel_store::{Durability, OpenOptions, Origin, Store};
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::{
    clock::SystemClock,
    ingest::{
        Imports, ledger,
        normalise::{KeyScope as Of, Normaliser},
        records::ImportItem,
        undo::{UndoDirection, UndoRequest},
        write::Writer,
    },
    plugins::Plugins,
    write_lock::WriteLock,
};

const MODEL: &str = "toy";

struct Shelf {
    store: Store,
    imports: Imports,
    lock: WriteLock,
}

impl Shelf {
    fn open(dir: &Path) -> Self {
        let store = Store::open(dir, OpenOptions::default(), &mut |_| {}).unwrap();
        let (plugins, clock) = (Arc::new(Plugins::built_in(None)), Arc::new(SystemClock));
        let limits = satchel_host::PluginLimits::default();
        let imports = Imports::new(store.clone(), plugins, clock, Limits::default(), limits).unwrap();
        Self { store, imports, lock: WriteLock::default() }
    }

    /// Imports the evidence for the memory, and a vector for it if there is one, given as creation time and first
    /// number.
    fn import(&self, vector: Option<(i64, f64)>) -> ImportRecord {
        let mut record = receipt();
        let origin = Origin {
            import: Uuid::parse_str(&record.id).ok(),
            actor: "p/1.0.0".to_owned(),
            reason: "import".to_owned(),
            at_micros: 1,
        };
        let lock = (&self.lock, CancelToken::new(), Throttle::default());
        let session = Session::new(&self.store, lock, origin, false);
        let mut writer = Writer::new(session, ImportMetadata::default());
        writer.write(ImportItem::Evidence(vec![witness()]), &mut record).unwrap();
        let vectors = vector
            .into_iter()
            .map(|(at, number)| vector_of(at, number))
            .map(|embedding| DocumentVector { embedding, of: None })
            .collect();
        writer.derive(DeferredRecords { vectors, ..DeferredRecords::default() }, &mut record).unwrap();
        ledger::put(&self.store, &record, Durability::Now).unwrap();
        record
    }

    fn turn(&self, record: &ImportRecord, turn: UndoDirection) {
        let request = UndoRequest { id: &record.id, turn, dry_run: false, expected: None };
        self.imports.turn(request, &CancelToken::new()).unwrap().unwrap();
    }

    /// Returns the first number of the vector that is shown.
    fn shown(&self) -> Option<f64> {
        let stored = self.store.embedding(&memory(), MODEL).unwrap();
        let all = self.store.embeddings_of(&memory()).unwrap();
        assert_eq!(stored.is_some(), all.len() == 1);
        Some(stored?.embedding.vector?[0])
    }
}

fn receipt() -> ImportRecord {
    let none = json!({"found": 0, "new": 0, "updated": 0, "unchanged": 0, "skipped": 0});
    serde_json::from_value(json!({
        "id": Uuid::new_v4(), "job": "j", "source": "s", "path": "/s", "status": "completed",
        "conversations": none, "messages": none, "memories": none, "attachments": 0, "skipped": [],
        "warnings": [], "warnings_found": 0, "issue_pages": 0, "bytes": 0, "started_at": 1, "elapsed_ms": 0,
    }))
    .unwrap()
}

fn witness() -> StoredEvidence {
    let reported: Reported = serde_json::from_value(json!({
        "id": "e", "at": 5, "extraction_method": "explicit_user_input",
        "claim": {"statement": {"content": "Keeps bees", "memory_type": "preference"}},
    }))
    .unwrap();
    let reader = Normaliser { platform: "p".to_owned(), extractor: "p/1.0.0".to_owned() };
    reader.evidence(reported, 0, &Of::Provider)
}

fn memory() -> String {
    memories_of(&witness().claim).into_iter().next().unwrap()
}

fn vector_of(at: i64, number: f64) -> Embedding {
    serde_json::from_value(json!({
        "id": "v", "memory_id": memory(), "model": MODEL, "dimensions": 1, "vector": [number],
        "created_at": satchel_pam::time::Timestamp::saturating(at * 1_000_000),
    }))
    .unwrap()
}

#[test]
fn of_two_vectors_the_later_stands_and_an_undo_gives_back_the_other() {
    let (early, late) = (Some((10, 1.0)), Some((20, 2.0)));
    for order in [[early, late], [late, early]] {
        let dir = tempfile::tempdir().unwrap();
        let shelf = Shelf::open(dir.path());
        let mut imports = order.map(|vector| (vector, shelf.import(vector)));
        imports.sort_by_key(|(vector, _)| vector.map(|(at, _)| at));
        let [(_, early), (_, late)] = &imports;
        assert_eq!(shelf.shown(), Some(2.0));
        shelf.turn(early, UndoDirection::Undo);
        assert_eq!(shelf.shown(), Some(2.0));
        shelf.turn(late, UndoDirection::Undo);
        assert_eq!(shelf.shown(), None);
        shelf.turn(early, UndoDirection::Redo);
        assert_eq!(shelf.shown(), Some(1.0));
        shelf.turn(late, UndoDirection::Redo);
        assert_eq!(shelf.shown(), Some(2.0));
        shelf.turn(late, UndoDirection::Undo);
        assert_eq!(shelf.shown(), Some(1.0));
        assert!(shelf.store.check(true, &mut |_| {}).unwrap().clean());
        let digest = shelf.store.state_digest();
        drop(shelf);
        let options = OpenOptions { rebuild: true, ..OpenOptions::default() };
        let rebuilt = Store::open(dir.path(), options, &mut |_| {}).unwrap();
        assert_eq!(rebuilt.state_digest(), digest);
    }
}

#[test]
fn a_vector_leaves_with_the_import_that_brought_it_though_others_brought_the_memory() {
    let dir = tempfile::tempdir().unwrap();
    let shelf = Shelf::open(dir.path());
    shelf.import(None);
    let with = shelf.import(Some((10, 1.0)));
    assert_eq!(shelf.shown(), Some(1.0));
    shelf.turn(&with, UndoDirection::Undo);
    assert_eq!(shelf.shown(), None);
    assert!(shelf.store.memory_visible(record_key(&memory())).unwrap());
    // Another export brings the same vector.
    let again = shelf.import(Some((10, 1.0)));
    assert_eq!(shelf.shown(), Some(1.0));
    shelf.turn(&with, UndoDirection::Redo);
    shelf.turn(&again, UndoDirection::Undo);
    assert_eq!(shelf.shown(), Some(1.0));
    shelf.turn(&with, UndoDirection::Undo);
    assert_eq!(shelf.shown(), None);
}

#[test]
fn a_vector_that_was_stored_before_anybody_noted_whose_it_is_stays() {
    let dir = tempfile::tempdir().unwrap();
    let shelf = Shelf::open(dir.path());
    shelf.import(None);
    let origin = Origin { import: None, actor: "p/1.0.0".into(), reason: "import".into(), at_micros: 1 };
    let changes = vec![Change::Embedding(vector_of(10, 1.0))];
    shelf.store.commit(satchel_store::Batch { origin, changes }).unwrap();
    let later = shelf.import(Some((20, 2.0)));
    let same = shelf.import(Some((10, 1.0)));
    assert_eq!(shelf.shown(), Some(2.0));
    shelf.turn(&later, UndoDirection::Undo);
    shelf.turn(&same, UndoDirection::Undo);
    assert_eq!(shelf.shown(), Some(1.0));
}
