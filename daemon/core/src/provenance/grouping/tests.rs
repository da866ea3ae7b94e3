//! Deriving memories slice by slice gives the same result as deriving them all at once.

use proptest::prelude::*;
use satchel_merge::evidence::{
    DerivedMemories, DocumentEvidence, ExportTime, MemoryField, MemoryPatch, RelationEvidence, add_relations,
    derive, memory_id,
};
use satchel_pam::{
    memory::{ExtractionMethod, MemoryType, Status},
    record::{Claim, Edit, Item},
    relation::{Relation, RelationType},
    time::Timestamp,
};
use satchel_store::{Batch, Change, EvidenceWrite, OpenOptions, Origin};

use super::*;

/// Texts of memories.
const TEXTS: [&str; 9] = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];

fn item(text: usize, successor: Option<usize>) -> Item {
    let superseded_by = successor.map(|text| memory_id(&item(text, None)));
    let status = superseded_by.as_ref().map(|_| Status::Superseded);
    Item { status, superseded_by, ..Item::new(TEXTS[text], MemoryType::Fact) }
}

fn id_of(text: usize) -> String {
    memory_id(&item(text, None))
}

fn stored(id: &str, at: i64, claim: Claim) -> EvidenceItem {
    EvidenceItem::Stored(Box::new(StoredEvidence {
        id: id.to_owned(),
        platform: "p".to_owned(),
        account: None,
        at,
        conversation: None,
        message: None,
        row: None,
        method: ExtractionMethod::ApiExport,
        extractor: "p/1.0.0".to_owned(),
        claim,
    }))
}

fn document(text: usize, at: i64, successor: Option<usize>, exported: Option<i64>) -> EvidenceItem {
    let EvidenceItem::Stored(evidence) = stored("d", 1, Claim::Statement(item(text, None))) else {
        unreachable!()
    };
    let mut memory = derive([&*evidence]).memories.remove(&id_of(text)).unwrap();
    memory.temporal.updated_at = Some(Timestamp::saturating(at));
    memory.temporal.superseded_by = successor.map(id_of);
    let exported = exported.map(|at| ExportTime { at, revision: 0 });
    EvidenceItem::Document(Box::new(DocumentEvidence { memory, exported, untrusted_signer: None }))
}

fn relation(from: usize, to: usize, relation_type: RelationType) -> Relation {
    let (from, to) = (id_of(from), id_of(to));
    let id = satchel_pam::ids::relation_id(&from, &to, relation_type).to_string();
    Relation { id, from, to, relation_type, confidence: None, created_at: Timestamp::EPOCH }
}

fn edit_step(at: i64, action: EditAction) -> EvidenceItem {
    EvidenceItem::Edit(Box::new(EditStep::new(format!("act {at}"), at, action)))
}

fn archived(text: usize) -> EditAction {
    let EvidenceItem::Document(document) = document(text, 1, None, None) else { unreachable!() };
    let mut to = document.memory;
    to.status = Status::Archived;
    EditAction::Patch(Box::new(MemoryPatch {
        fields: [MemoryField::Status].into(),
        to,
        reverses_retraction: false,
    }))
}

/// Generates a piece of evidence of any kind. Statements with the same id always have the same content, because ids are
/// derived from the content.
fn report() -> impl Strategy<Value = (EvidenceKey, Vec<u8>)> {
    let text = || 0..TEXTS.len();
    let other = || prop::option::weighted(0.2, 0..TEXTS.len());
    let statement = (text(), 1..4_i64, other(), 0..3_u8).prop_map(|(text, at, other, copy)| {
        let id = format!("statement {text} {other:?} {copy}");
        let created_at = (copy == 2).then_some(2);
        stored(&id, at, Claim::Statement(Item { created_at, ..item(text, other) }))
    });
    let emptied = (text(), 1..4_i64, 0..3_u8).prop_map(|(text, at, copy)| {
        let gone = Item::new("", MemoryType::Fact);
        stored(&format!("statement {text} None {copy}"), at, Claim::Statement(gone))
    });
    let dated = || (text(), prop::option::of(1..6_i64));
    let shown = (prop::collection::vec(dated(), 0..4), 1..4_i64).prop_map(|(texts, at)| {
        let dated = |(text, own): &(usize, Option<i64>)| Item {
            created_at: *own,
            updated_at: own.map(|own| own + 2),
            ..item(*text, None)
        };
        let items = texts.iter().map(dated).collect();
        stored(&format!("shown {texts:?} {}", at % 2), at, Claim::Snapshot { series: "about".into(), items })
    });
    let edited = (text(), text(), 1..4_i64).prop_map(|(text, target, at)| {
        let target = Some(TEXTS[target].to_owned());
        let edit = Edit::Replace { line: None, target, item: item(text, None) };
        stored(&format!("edited {text}"), at, Claim::Edit { log: "log".into(), sequence: 0, edit })
    });
    let documents = (text(), 1..3_i64, other(), prop::option::of(1..4_i64))
        .prop_map(|(text, at, other, exported)| document(text, at, other, exported));
    let edge = (text(), text()).prop_map(|(from, to)| {
        let relation = relation(from, to, RelationType::RelatedTo);
        EvidenceItem::Edge(Box::new(RelationEvidence { relation, untrusted_signer: None }))
    });
    let edit_step = (text(), text(), 1..9_i64, any::<bool>()).prop_map(|(one, other, at, draws)| {
        edit_step(
            at,
            if draws {
                EditAction::AddRelation(relation(one, other, RelationType::Supports))
            } else {
                archived(one)
            },
        )
    });
    prop_oneof![6 => statement, 1 => emptied, 1 => shown, 1 => edited, 3 => documents, 1 => edge, 1 => edit_step]
        .prop_map(|report| encode(&report))
}

fn encode(report: &EvidenceItem) -> (EvidenceKey, Vec<u8>) {
    match report {
        EvidenceItem::Stored(evidence) => evidence.encode().unwrap(),
        EvidenceItem::Edit(step) => step.encode().unwrap(),
        EvidenceItem::Document(document) => {
            document.encode().map(|(id, json)| (record_key(&id), json)).unwrap()
        }
        EvidenceItem::Edge(edge) => edge.encode().map(|(id, json)| (record_key(&id), json)).unwrap(),
        EvidenceItem::Vector(_) => unreachable!("vectors are not derived"),
    }
}

fn store_reports(store: &Store, reports: &BTreeMap<EvidenceKey, Vec<u8>>) {
    let changes = reports.iter();
    let changes = changes.map(|(id, json)| Change::Evidence(EvidenceWrite { id: *id, json: json.clone() }));
    let changes: Vec<Change> = changes.collect();
    if !changes.is_empty() {
        let origin = Origin { import: None, actor: "p".into(), reason: "import".into(), at_micros: 1 };
        store.commit(Batch { origin, changes }).unwrap();
    }
}

/// Returns whether `json` replaces `stored` in the store: a document does not if it was exported earlier.
fn replaces(stored: Option<&Vec<u8>>, json: &[u8]) -> bool {
    let exported = |json: &[u8]| match EvidenceItem::decode(json).unwrap() {
        Some(EvidenceItem::Document(document)) => document.exported,
        _ => None,
    };
    stored.is_none_or(|stored| exported(stored) < exported(json))
}

fn packed(reports: impl IntoIterator<Item = (EvidenceKey, Vec<u8>)>) -> PackedMap {
    let mut packed = PackedMap::default();
    reports.into_iter().for_each(|(key, json)| packed.insert(key, &json).unwrap());
    packed
}

fn open(dir: &std::path::Path) -> Store {
    Store::open(dir, OpenOptions::default(), &mut |_| {}).unwrap()
}

/// Returns the state derived slice by slice, and the number of slices.
fn derive_in_slices(store: &Store, fresh: &PackedMap, all: bool, size: usize) -> (DerivedMemories, usize) {
    let never = || false;
    let collector =
        EvidenceCollector::collect_until(store, &UndoneImports::new(), fresh, &never).unwrap().unwrap();
    let (linked, mut grouped) = collector.group(all, &never).unwrap().unwrap();
    grouped.size = size;
    let mut together = linked.derive(true, &linked.documents, &never).unwrap();
    add_relations(&mut together, &linked.known.edges);
    let edited: BTreeSet<&String> = linked.known.user_edits.relations().collect();
    let mut slices = 0;
    while let Some(slice) = grouped.next(store, fresh).unwrap() {
        let DerivedMemories { memories, relations, .. } =
            slice.derive(true, &slice.documents, &never).unwrap();
        for (id, memory) in memories {
            assert!(!grouped.is_linked(&record_key(&id)), "{id} is derived twice");
            assert!(together.memories.insert(id.clone(), memory).is_none(), "{id} is split");
        }
        for (id, relation) in relations.into_iter().filter(|(id, _)| !edited.contains(id)) {
            assert!(together.relations.insert(id, relation).is_none());
        }
        slices += 1;
    }
    (together, slices)
}

/// Returns the memories as they were before the import, derived slice by slice.
fn before(store: &Store, fresh: &PackedMap) -> BTreeMap<String, satchel_pam::memory::Memory> {
    let never = || false;
    let collector =
        EvidenceCollector::collect_until(store, &UndoneImports::new(), fresh, &never).unwrap().unwrap();
    let (linked, mut grouped) = collector.group(true, &never).unwrap().unwrap();
    let mut before = linked.derive(false, &[], &never).unwrap().memories;
    while let Some(slice) = grouped.next(store, fresh).unwrap() {
        before.extend(slice.derive(false, &[], &never).unwrap().memories);
    }
    before
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn slices_derive_the_same_state_as_all_evidence_at_once(
        stored in prop::collection::vec(report(), 0..16),
        fresh in prop::collection::vec(report(), 0..12),
        size in 1..5_usize,
    ) {
        let [one, both] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let (store, whole) = (open(one.path()), open(both.path()));
        let mut stored: BTreeMap<EvidenceKey, Vec<u8>> = stored.into_iter().collect();
        // An import does not add edges, manual changes or erased content in this way.
        let (fresh, others): (BTreeMap<EvidenceKey, Vec<u8>>, BTreeMap<EvidenceKey, Vec<u8>>) = fresh.into_iter().partition(|(_, json)| {
            let erased = r#"{"statement":{"content":"","#;
            !RelationEvidence::is(json) && !EditStep::is(json) && !String::from_utf8_lossy(json).contains(erased)
        });
        stored.extend(others);
        store_reports(&store, &stored);
        store_reports(&whole, &stored);
        store_reports(&whole, &fresh.iter().filter(|(key, json)| replaces(stored.get(*key), json)).map(|(key, json)| (*key, json.clone())).collect());
        let fresh = packed(fresh);
        let at_once = ActiveEvidence::load(&whole, &UndoneImports::new()).unwrap().derive();
        let (together, _) = derive_in_slices(&store, &fresh, true, size);
        prop_assert_eq!(&together.memories, &at_once.memories);
        prop_assert_eq!(&together.relations, &at_once.relations);
        prop_assert_eq!(before(&store, &fresh), ActiveEvidence::load(&store, &UndoneImports::new()).unwrap().derive().memories);
        // Leaving out the memories that the import does not affect gives the same result for the others.
        let (changed, _) = derive_in_slices(&store, &fresh, false, size);
        for (id, memory) in &changed.memories {
            prop_assert_eq!(Some(memory), at_once.memories.get(id));
        }
        let known = ActiveEvidence::load(&store, &UndoneImports::new()).unwrap().derive();
        for (id, memory) in &at_once.memories {
            prop_assert!(changed.memories.contains_key(id) || known.memories.get(id) == Some(memory), "{} is missing", id);
        }
        for (id, relation) in &at_once.relations {
            prop_assert!(changed.relations.contains_key(id) || known.relations.get(id) == Some(relation), "{} is missing", id);
        }
    }
}

#[test]
fn a_slice_is_bounded_and_never_splits_a_memory() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let reports = (0..40).map(|n| {
        encode(&stored(&format!("{n}"), n, Claim::Statement(item(usize::try_from(n % 8).unwrap(), None))))
    });
    let (derived, slices) = derive_in_slices(&store, &packed(reports), true, 5);
    assert_eq!((derived.memories.len(), slices), (8, 8));
    let evidence =
        |memory: &satchel_pam::memory::Memory| memory.metadata["satchel"]["evidence_count"].as_u64();
    assert!(derived.memories.values().all(|memory| evidence(memory) == Some(5)));
}
