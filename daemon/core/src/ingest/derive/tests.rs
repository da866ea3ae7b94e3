//! Vectors that several imports brought for one memory, and the one that is shown when some of these imports are
//! undone.

use satchel_registry::Plugins;
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
    write_lock::WriteLock,
};

const MODEL: &str = "toy";

struct Fixture {
    store: Store,
    imports: Imports,
    lock: WriteLock,
}

impl Fixture {
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
        writer.write(ImportItem::Evidence(vec![stored_evidence()]), &mut record).unwrap();
        let vectors = vector
            .into_iter()
            .map(|(at, number)| vector_of(at, number))
            .map(|embedding| DocumentVector { embedding, of: None })
            .collect();
        writer.derive(DeferredRecords { vectors, ..DeferredRecords::default() }, &mut record).unwrap();
        ledger::put(&self.store, &record, Durability::Now).unwrap();
        record
    }

    fn undo_or_redo(&self, record: &ImportRecord, direction: UndoDirection) {
        let request = UndoRequest { id: &record.id, direction, dry_run: false, expected: None };
        self.imports.undo_or_redo(request, &CancelToken::new()).unwrap().unwrap();
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

fn stored_evidence() -> StoredEvidence {
    let reported: Reported = serde_json::from_value(json!({
        "id": "e", "at": 5, "extraction_method": "explicit_user_input",
        "claim": {"statement": {"content": "Keeps bees", "memory_type": "preference"}},
    }))
    .unwrap();
    let reader = Normaliser { platform: "p".to_owned(), extractor: "p/1.0.0".to_owned() };
    reader.evidence(reported, 0, &Of::Provider)
}

fn memory() -> String {
    memories_of(&stored_evidence().claim).into_iter().next().unwrap()
}

fn vector_of(at: i64, number: f64) -> Embedding {
    serde_json::from_value(json!({
        "id": "v", "memory_id": memory(), "model": MODEL, "dimensions": 1, "vector": [number],
        "created_at": satchel_pam::time::Timestamp::saturating(at * 1_000_000),
    }))
    .unwrap()
}

#[test]
fn the_later_vector_is_shown_and_an_undo_restores_the_earlier() {
    let (early, late) = (Some((10, 1.0)), Some((20, 2.0)));
    for order in [[early, late], [late, early]] {
        let dir = tempfile::tempdir().unwrap();
        let fixture = Fixture::open(dir.path());
        let mut imports = order.map(|vector| (vector, fixture.import(vector)));
        imports.sort_by_key(|(vector, _)| vector.map(|(at, _)| at));
        let [(_, early), (_, late)] = &imports;
        assert_eq!(fixture.shown(), Some(2.0));
        fixture.undo_or_redo(early, UndoDirection::Undo);
        assert_eq!(fixture.shown(), Some(2.0));
        fixture.undo_or_redo(late, UndoDirection::Undo);
        assert_eq!(fixture.shown(), None);
        fixture.undo_or_redo(early, UndoDirection::Redo);
        assert_eq!(fixture.shown(), Some(1.0));
        fixture.undo_or_redo(late, UndoDirection::Redo);
        assert_eq!(fixture.shown(), Some(2.0));
        fixture.undo_or_redo(late, UndoDirection::Undo);
        assert_eq!(fixture.shown(), Some(1.0));
        assert!(fixture.store.check(true, &mut |_| {}).unwrap().clean());
        let digest = fixture.store.state_digest();
        drop(fixture);
        let options = OpenOptions { rebuild: true, ..OpenOptions::default() };
        let rebuilt = Store::open(dir.path(), options, &mut |_| {}).unwrap();
        assert_eq!(rebuilt.state_digest(), digest);
    }
}

#[test]
fn undoing_an_import_removes_its_vector_and_keeps_a_shared_memory() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(dir.path());
    fixture.import(None);
    let with = fixture.import(Some((10, 1.0)));
    assert_eq!(fixture.shown(), Some(1.0));
    fixture.undo_or_redo(&with, UndoDirection::Undo);
    assert_eq!(fixture.shown(), None);
    assert!(fixture.store.memory_visible(record_key(&memory())).unwrap());
    // Another export brings the same vector.
    let again = fixture.import(Some((10, 1.0)));
    assert_eq!(fixture.shown(), Some(1.0));
    fixture.undo_or_redo(&with, UndoDirection::Redo);
    fixture.undo_or_redo(&again, UndoDirection::Undo);
    assert_eq!(fixture.shown(), Some(1.0));
    fixture.undo_or_redo(&with, UndoDirection::Undo);
    assert_eq!(fixture.shown(), None);
}

#[test]
fn a_vector_without_a_recorded_import_stays() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(dir.path());
    fixture.import(None);
    let origin = Origin { import: None, actor: "p/1.0.0".into(), reason: "import".into(), at_micros: 1 };
    let changes = vec![Change::Embedding(vector_of(10, 1.0))];
    fixture.store.commit(satchel_store::Batch { origin, changes }).unwrap();
    let later = fixture.import(Some((20, 2.0)));
    let same = fixture.import(Some((10, 1.0)));
    assert_eq!(fixture.shown(), Some(2.0));
    fixture.undo_or_redo(&later, UndoDirection::Undo);
    fixture.undo_or_redo(&same, UndoDirection::Undo);
    assert_eq!(fixture.shown(), Some(1.0));
}
