//! Evidence as hostile stores may write it: steps of any shape and order, circles of undos, and ids that do not fit.

use proptest::prelude::*;
use satchel_merge::{
    causality::{Causality, Dot, OriginId, VersionVector},
    evidence::{
        DocumentEvidence, MemoryField, MemoryPatch, RelationEvidence, StoredEvidence, derive, memory_id,
    },
};
use satchel_pam::{
    ids,
    memory::{ExtractionMethod, Memory, MemoryType, Status},
    record::{Claim, Edit, Item},
    relation::{Relation, RelationType},
    time::Timestamp,
};
use uuid::Uuid;

use super::*;

/// Numbers from which a piece of evidence is made.
type Numbers = (u8, u8, u8, u8, u8);

fn item(number: u8) -> Item {
    Item::new(format!("Fact {}", number % 4), MemoryType::Fact)
}

fn id(number: u8) -> String {
    memory_id(&item(number))
}

fn stated(at: u8, claim: Claim) -> StoredEvidence {
    StoredEvidence {
        id: format!("evidence {}", at % 7),
        platform: "chatgpt".to_owned(),
        account: None,
        at: i64::from(at),
        conversation: None,
        message: None,
        row: None,
        method: ExtractionMethod::ApiExport,
        extractor: "test/1.0.0".to_owned(),
        claim,
    }
}

fn memory(number: u8) -> Memory {
    derive([&stated(0, Claim::Statement(item(number)))]).memories.into_values().next().unwrap()
}

/// Returns a relation between two memories, sometimes under the id of another one.
fn relation((from, to, kind, at): (u8, u8, u8, u8)) -> Relation {
    let relation_type =
        if kind.is_multiple_of(2) { RelationType::Supersedes } else { RelationType::RelatedTo };
    let named = if kind % 8 == 7 { (id(to), id(from)) } else { (id(from), id(to)) };
    Relation {
        id: ids::relation_id(&named.0, &named.1, relation_type).to_string(),
        from: id(from),
        to: id(to),
        relation_type,
        confidence: None,
        created_at: Timestamp::saturating(i64::from(at)),
    }
}

fn evidence((kind, one, other, at, more): Numbers) -> EvidenceItem {
    let (log, sequence) = ("log".to_owned(), u64::from(more));
    let claim = match kind % 8 {
        0 => {
            let mut item = item(one);
            if more.is_multiple_of(2) {
                item.status = Some(Status::Superseded);
                let successor = id(other);
                item.superseded_by =
                    Some(if more.is_multiple_of(4) { successor.to_uppercase() } else { successor });
            }
            Claim::Statement(item)
        }
        1 => Claim::Statement(item(one)),
        2 => Claim::Snapshot { series: format!("series {}", more % 2), items: vec![item(one)] },
        3 => Claim::Snapshot { series: "series 0".to_owned(), items: vec![item(one), item(other)] },
        4 => Claim::Edit { log, sequence, edit: Edit::Add(item(one)) },
        5 => {
            let edit = Edit::Remove { line: None, target: Some(item(one).content) };
            Claim::Edit { log, sequence, edit }
        }
        6 => {
            let mut memory = memory(one);
            if more.is_multiple_of(3) {
                memory.status = Status::Superseded;
                memory.temporal.superseded_by = Some(id(other));
            }
            memory.temporal.updated_at = Some(Timestamp::saturating(i64::from(at)));
            let untrusted_signer = (more.is_multiple_of(2)).then(|| format!("stranger {}", more % 4));
            let document = DocumentEvidence { memory, exported: None, untrusted_signer };
            return EvidenceItem::Document(Box::new(document));
        }
        _ => {
            let untrusted_signer = (more.is_multiple_of(5)).then(|| "stranger 0".to_owned());
            let relation = relation((one, other, more, at));
            return EvidenceItem::Edge(Box::new(RelationEvidence { relation, untrusted_signer }));
        }
    };
    EvidenceItem::Stored(Box::new(stated(at, claim)))
}

fn edit_id(number: u8) -> String {
    format!("edit {}", number % 5)
}

fn patch(one: u8, other: u8, more: u8) -> EditAction {
    let mut to = memory(one);
    let field = match more % 4 {
        0 => {
            to.tags = vec![format!("tag {other}")];
            MemoryField::Tags
        }
        1 => {
            to.status = Status::Retracted;
            MemoryField::Status
        }
        2 => {
            to.content = format!("Text {other}");
            MemoryField::Content
        }
        _ => {
            to.status = Status::Superseded;
            to.temporal.superseded_by = Some(id(other));
            MemoryField::Status
        }
    };
    let reverses_retraction = other.is_multiple_of(2);
    EditAction::Patch(Box::new(MemoryPatch { fields: [field].into(), to, reverses_retraction }))
}

/// Returns a step with a dot of one of three series; `seen` says what its author had seen of the others.
fn step((kind, one, other, at, more): Numbers, edit: u8, seen: [u8; 4]) -> EditStep {
    let action = match kind % 8 {
        0 => EditAction::AddMemory(Box::new(stated(at, Claim::Statement(item(one))))),
        1..=3 => patch(one, other, more),
        4 => EditAction::AddRelation(relation((one, other, more, at))),
        5 => EditAction::WithdrawRelation(relation((one, other, more, at)).id),
        _ => EditAction::Undo(edit_id(one)),
    };
    let origin = |number: u8| OriginId::new(Uuid::from_u128(u128::from(number % 3) + 1));
    let [own, counter, others @ ..] = seen;
    let mut vector = VersionVector::default();
    for (number, counter) in (1..).zip(others) {
        vector.insert(Dot::new(origin(own % 3 + number), u64::from(counter % 16) + 1).unwrap());
    }
    let dot = Dot::new(origin(own % 3), u64::from(counter % 16) + 1).unwrap();
    let step = EditStep::new(edit_id(edit), i64::from(at), action);
    if counter.is_multiple_of(4) {
        step
    } else {
        EditStep { causality: Causality::Recorded { dot, seen: vector }, ..step }
    }
}

fn numbers() -> impl Strategy<Value = Numbers> {
    any::<Numbers>()
}

fn steps(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<EditStep>> {
    let one = (numbers(), 0u8..5, any::<[u8; 4]>());
    prop::collection::vec(one.prop_map(|(numbers, edit, seen)| step(numbers, edit, seen)), count)
}

fn change(item: &EvidenceItem) -> EvidenceWrite {
    let (id, json) = match item {
        EvidenceItem::Stored(evidence) => evidence.encode().unwrap(),
        EvidenceItem::Edit(step) => step.encode().unwrap(),
        EvidenceItem::Document(document) => {
            let (id, json) = document.encode().unwrap();
            (record_key(&id), json)
        }
        EvidenceItem::Edge(edge) => {
            let (id, json) = edge.encode().unwrap();
            (record_key(&id), json)
        }
        EvidenceItem::Vector(_) => unreachable!("none is made"),
    };
    EvidenceWrite { id, json }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn the_index_finds_everything_or_gives_up(
        exported in prop::collection::vec(numbers().prop_map(evidence), 0..10),
        stored in steps(0..8),
        new in steps(1..4),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), OpenOptions::default(), &mut |_| {}).unwrap();
        let items = exported.into_iter().chain(stored.into_iter().map(|step| EvidenceItem::Edit(Box::new(step))));
        let writes: BTreeMap<_, _> = items.map(|item| change(&item)).map(|write| (write.id, write)).collect();
        let changes = writes.into_values().map(Change::Evidence).collect();
        store.commit(Batch { changes, ..Batch::default() }).unwrap();
        let undone = UndoneImports::new();
        let shown = ActiveEvidence::load(&store, &undone).unwrap().derive();
        let memories = shown.memories.into_values().map(|memory| Change::Memory(Box::new(memory)));
        let changes = memories.chain(shown.relations.into_values().map(Change::Relation)).collect();
        store.commit(Batch { changes, ..Batch::default() }).unwrap();
        if let Some(change) = EvidenceIndex::default().derive_change(&store, &undone, &new).unwrap() {
            change.assert_same(derive_both(&mut ActiveEvidence::load(&store, &undone).unwrap(), &new));
        }
    }
}
