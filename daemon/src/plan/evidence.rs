//! Derives memories from everything that all exports say about them, whatever the order in which they arrived.
//!
//! A memory is one per (content hash, type, scope). What stands is decided per stream: a statement stands by itself, the
//! newest snapshot of a one-line list replaces the older ones, a log of edits is replayed. A memory is active if any stream
//! holds it; absence from a newer snapshot of a longer list proves nothing, as providers cut those lists.

use std::collections::{BTreeMap, BTreeSet};

use satchel_pam::{
    hash::ContentHash,
    ids,
    memory::{Access, Confidence, ExtractionMethod, Memory, MemoryType, Provenance, Status, Temporal},
    record::{Claim, Edit, Item},
    relation::{Relation, RelationType},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A piece of evidence as the store keeps it: keys resolved, times filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Witness {
    /// UUIDv5 of platform, account and the provider's id.
    pub id: String,
    /// PAM platform.
    pub platform: String,
    /// Whose export it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Microseconds.
    pub at: i64,
    /// PAM id of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// PAM id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How the memory came about.
    pub method: ExtractionMethod,
    /// The importer, `name/x.y.z`.
    pub extractor: String,
    /// What it says.
    pub claim: Claim,
}

/// Everything that follows from the evidence.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Derived {
    /// By id.
    pub memories: BTreeMap<String, Memory>,
    /// By id.
    pub relations: BTreeMap<String, Relation>,
}

/// Evidence ids named in a memory; the store keeps the rest, the count tells how many.
const LISTED_EVIDENCE: usize = 128;
/// Each further piece of evidence takes this share of the doubt away.
const REINFORCEMENT: f64 = 0.1;
/// Beyond this many pieces, confidence no longer moves.
const REINFORCEMENTS: usize = 40;

/// The id of the memory that `item` speaks of.
pub fn memory_id(item: &Item) -> String {
    let hash = ContentHash::of(&item.content);
    ids::memory_id(&hash, item.memory_type, item.custom_type.as_deref(), item.scope.as_deref()).to_string()
}

/// Every item that `claim` names.
pub fn items_of(claim: &Claim) -> Vec<&Item> {
    match claim {
        Claim::Statement(item) | Claim::Edit { edit: Edit::Add(item) | Edit::Replace { item, .. }, .. } => {
            vec![item]
        }
        Claim::Snapshot { items, .. } => items.iter().collect(),
        Claim::Edit { edit: Edit::Remove { .. }, .. } => Vec::new(),
    }
}

/// Every memory that `claim` speaks of.
pub fn memories_of(claim: &Claim) -> Vec<String> {
    items_of(claim).into_iter().map(memory_id).collect()
}

/// Replays all evidence.
pub fn derive(all: &[Witness]) -> Derived {
    let mut witnesses: Vec<&Witness> = all.iter().collect();
    witnesses.sort_by(|one, other| (one.at, &one.id).cmp(&(other.at, &other.id)));
    let mut streams: BTreeMap<(&str, Option<&str>, u8, &str), Vec<&Witness>> = BTreeMap::new();
    let mut says = Vec::new();
    for witness in witnesses {
        let account = witness.account.as_deref();
        match &witness.claim {
            Claim::Statement(item) => says.push(Said::new(witness, item, stated(item))),
            Claim::Snapshot { series, .. } => {
                streams.entry((&witness.platform, account, 0, series)).or_default().push(witness);
            }
            Claim::Edit { log, .. } => {
                streams.entry((&witness.platform, account, 1, log)).or_default().push(witness);
            }
        }
    }
    for ((_, _, kind, _), stream) in &streams {
        if *kind == 0 { snapshots(stream, &mut says) } else { edits(stream, &mut says) }
    }
    combine(says)
}

/// What one piece of evidence says of one memory, and what became of it in its stream.
struct Said<'a> {
    memory: String,
    witness: &'a Witness,
    item: &'a Item,
    fate: Fate,
}

/// The state of a memory in one stream.
#[derive(Clone, Debug, PartialEq)]
enum Fate {
    Stands,
    Stated(Status),
    Replaced { by: Option<String>, at: i64 },
    Removed { at: i64 },
}

impl<'a> Said<'a> {
    fn new(witness: &'a Witness, item: &'a Item, fate: Fate) -> Self {
        Self { memory: memory_id(item), witness, item, fate }
    }
}

fn stated(item: &Item) -> Fate {
    match item.status {
        None | Some(Status::Active) => Fate::Stands,
        Some(Status::Superseded) => {
            Fate::Replaced { by: item.superseded_by.clone(), at: item.updated_at.unwrap_or(0) }
        }
        Some(status) => Fate::Stated(status),
    }
}

/// A list of at most one line is a slot: what stands in it is what the newest snapshot shows.
fn snapshots<'a>(stream: &[&'a Witness], says: &mut Vec<Said<'a>>) {
    let items = |witness: &'a Witness| match &witness.claim {
        Claim::Snapshot { items, .. } => items.as_slice(),
        Claim::Statement(_) | Claim::Edit { .. } => &[],
    };
    let slot = stream.iter().all(|witness| items(witness).len() <= 1);
    let held: Vec<(&Witness, String)> = stream
        .iter()
        .flat_map(|witness| items(witness).iter().map(|item| (*witness, memory_id(item))))
        .collect();
    let newest = held.last().map(|(_, memory)| memory.clone());
    let last: BTreeMap<&str, usize> =
        held.iter().enumerate().map(|(at, (_, memory))| (memory.as_str(), at)).collect();
    for witness in stream {
        for item in items(witness) {
            let memory = memory_id(item);
            let fate = if slot && newest.as_ref() != Some(&memory) {
                replaced(&held, last.get(memory.as_str()).copied())
            } else {
                stated(item)
            };
            says.push(Said { memory, witness, item, fate });
        }
    }
}

/// What came after the `last` time that a memory stood in the slot.
fn replaced(held: &[(&Witness, String)], last: Option<usize>) -> Fate {
    match last.and_then(|last| held.get(last + 1)) {
        Some((witness, by)) => Fate::Replaced { by: Some(by.clone()), at: witness.at },
        None => Fate::Stands,
    }
}

struct Line<'a> {
    memory: String,
    witness: &'a Witness,
    item: &'a Item,
}

/// The provider's list of memories after each edit; what leaves it was replaced or removed.
fn edits<'a>(stream: &[&'a Witness], says: &mut Vec<Said<'a>>) {
    let mut ordered: Vec<(&'a Witness, u64, &'a Edit)> = stream
        .iter()
        .filter_map(|witness| match &witness.claim {
            Claim::Edit { sequence, edit, .. } => Some((*witness, *sequence, edit)),
            Claim::Statement(_) | Claim::Snapshot { .. } => None,
        })
        .collect();
    ordered.sort_by(|one, other| (one.0.at, one.1, &one.0.id).cmp(&(other.0.at, other.1, &other.0.id)));
    let mut lines: Vec<Line<'a>> = Vec::new();
    for (witness, _, edit) in ordered {
        match edit {
            Edit::Add(item) => lines.push(Line { memory: memory_id(item), witness, item }),
            Edit::Replace { line, target, item } => {
                let new = Line { memory: memory_id(item), witness, item };
                match find(&lines, *line, target.as_deref()) {
                    Some(at) => {
                        let fate = Fate::Replaced { by: Some(new.memory.clone()), at: witness.at };
                        let old = std::mem::replace(&mut lines[at], new);
                        says.push(Said { memory: old.memory, witness: old.witness, item: old.item, fate });
                    }
                    None => lines.push(new),
                }
            }
            Edit::Remove { line, target } => {
                if let Some(at) = find(&lines, *line, target.as_deref()) {
                    let old = lines.remove(at);
                    let fate = Fate::Removed { at: witness.at };
                    says.push(Said { memory: old.memory, witness: old.witness, item: old.item, fate });
                }
            }
        }
    }
    says.extend(lines.into_iter().map(|line| Said {
        memory: line.memory,
        witness: line.witness,
        item: line.item,
        fate: stated(line.item),
    }));
}

/// The text is sure, the number is what the model counted.
fn find(lines: &[Line<'_>], number: Option<u32>, target: Option<&str>) -> Option<usize> {
    let by_text = target
        .map(ContentHash::of)
        .and_then(|hash| lines.iter().rposition(|line| ContentHash::of(&line.item.content) == hash));
    by_text.or_else(|| {
        let at = usize::try_from(number?).ok()?.checked_sub(1)?;
        (at < lines.len()).then_some(at)
    })
}

fn combine(mut says: Vec<Said<'_>>) -> Derived {
    says.sort_by(|one, other| {
        (&one.memory, one.witness.at, &one.witness.id).cmp(&(
            &other.memory,
            other.witness.at,
            &other.witness.id,
        ))
    });
    let known: BTreeSet<String> = says.iter().map(|said| said.memory.clone()).collect();
    let mut derived = Derived::default();
    for group in says.chunk_by(|one, other| one.memory == other.memory) {
        let (memory, relation) = memory(group, &known);
        if let Some(relation) = relation {
            derived.relations.insert(relation.id.clone(), relation);
        }
        derived.memories.insert(memory.id.clone(), memory);
    }
    derived
}

/// One memory from all that is said of it; `group` is not empty and stands in the order of time.
fn memory(group: &[Said<'_>], known: &BTreeSet<String>) -> (Memory, Option<Relation>) {
    let first = &group[0];
    let item = first.item;
    let (status, by, changed) = fate(group, known);
    let last_seen = group.iter().map(|said| said.witness.at).max().unwrap_or(first.witness.at);
    let updated = [changed, item.updated_at].into_iter().flatten().max().filter(|at| *at > first.witness.at);
    let earliest = |field: fn(&Item) -> Option<i64>| {
        group.iter().find_map(|said| field(said.item)).map(Timestamp::saturating)
    };
    let relation = by.clone().map(|by| supersedes(&by, &first.memory, changed.unwrap_or(last_seen)));
    let memory = Memory {
        id: first.memory.clone(),
        memory_type: item.memory_type,
        custom_type: item.custom_type.clone().filter(|_| item.memory_type == MemoryType::Custom),
        status,
        content: item.content.clone(),
        content_hash: ContentHash::of(&item.content),
        summary: group.iter().find_map(|said| said.item.summary.clone()),
        tags: group
            .iter()
            .flat_map(|said| said.item.tags.iter().cloned())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect(),
        confidence: Some(confidence(group, last_seen)),
        temporal: Temporal {
            created_at: Timestamp::saturating(first.witness.at),
            updated_at: updated.map(Timestamp::saturating),
            valid_from: earliest(|item| item.valid_from),
            valid_until: earliest(|item| item.valid_until),
            superseded_by: by,
        },
        provenance: provenance(first.witness),
        access: group.iter().find_map(|said| said.item.access.clone()).or_else(|| Some(Access::default())),
        embedding_ref: group.iter().find_map(|said| said.item.embedding_ref.clone()),
        metadata: metadata(group, last_seen),
    };
    (memory, relation)
}

/// Active if any stream holds it; else what happened last.
fn fate(group: &[Said<'_>], known: &BTreeSet<String>) -> (Status, Option<String>, Option<i64>) {
    if group.iter().any(|said| said.fate == Fate::Stands) {
        return (Status::Active, None, None);
    }
    let rank = |fate: &Fate| match fate {
        Fate::Stands => (i64::MAX, 3),
        Fate::Removed { at } => (*at, 2),
        Fate::Replaced { at, .. } => (*at, 1),
        Fate::Stated(_) => (i64::MIN, 0),
    };
    match group.iter().map(|said| &said.fate).max_by_key(|fate| rank(fate)) {
        Some(Fate::Removed { at }) => (Status::Retracted, None, Some(*at)),
        Some(Fate::Replaced { by, at }) => {
            (Status::Superseded, by.clone().filter(|by| known.contains(by)), Some(*at))
        }
        Some(Fate::Stated(status)) => (*status, None, None),
        Some(Fate::Stands) | None => (Status::Active, None, None),
    }
}

fn supersedes(newer: &str, older: &str, at: i64) -> Relation {
    Relation {
        id: ids::relation_id(newer, older, RelationType::Supersedes).to_string(),
        from: newer.to_owned(),
        to: older.to_owned(),
        relation_type: RelationType::Supersedes,
        confidence: None,
        created_at: Timestamp::saturating(at),
    }
}

fn provenance(witness: &Witness) -> Provenance {
    Provenance {
        platform: witness.platform.clone(),
        platform_user_id: witness.account.clone(),
        conversation_ref: witness.conversation.clone(),
        message_ref: witness.message.clone(),
        extraction_method: Some(witness.method),
        extracted_at: Some(Timestamp::saturating(witness.at)),
        extractor: Some(witness.extractor.clone()),
    }
}

fn confidence(group: &[Said<'_>], last_seen: i64) -> Confidence {
    let given = group.iter().find_map(|said| said.item.confidence.as_ref());
    let initial = given.and_then(|given| given.initial).unwrap_or_else(|| trust(group[0].witness.method));
    let pieces: BTreeSet<&str> = group.iter().map(|said| said.witness.id.as_str()).collect();
    let times = pieces.len().saturating_sub(1).min(REINFORCEMENTS);
    let start = given.and_then(|given| given.current).unwrap_or(initial);
    let doubt = (0..times).fold(1.0 - start, |doubt, _| doubt * (1.0 - REINFORCEMENT));
    Confidence {
        initial: Some(initial),
        current: Some(((1.0 - doubt) * 10_000.0).round() / 10_000.0),
        decay_model: given.and_then(|given| given.decay_model),
        last_reinforced: (times > 0).then(|| Timestamp::saturating(last_seen)),
    }
}

/// How far a memory is believed that comes without a figure of its own.
fn trust(method: ExtractionMethod) -> f64 {
    match method {
        ExtractionMethod::Manual => 1.0,
        ExtractionMethod::ExplicitUserInput => 0.95,
        ExtractionMethod::ApiExport => 0.8,
        ExtractionMethod::BrowserExtraction => 0.7,
        ExtractionMethod::LlmInference => 0.6,
    }
}

/// The items' own metadata, the earliest first, and under `satchel` where the memory was seen.
fn metadata(group: &[Said<'_>], last_seen: i64) -> Map<String, Value> {
    let mut metadata = Map::new();
    for raw in group.iter().filter_map(|said| said.item.metadata.as_ref()) {
        for (key, value) in raw.to_map() {
            if !value.is_null() && !metadata.contains_key(&key) {
                metadata.insert(key, value);
            }
        }
    }
    let mut evidence: Vec<&Witness> = group.iter().map(|said| said.witness).collect();
    evidence.dedup_by(|one, other| one.id == other.id);
    let listed: Vec<Value> = evidence.iter().take(LISTED_EVIDENCE).map(|witness| sighting(witness)).collect();
    let mut own = Map::new();
    own.insert("evidence".into(), listed.into());
    own.insert("evidence_count".into(), evidence.len().into());
    own.insert("last_seen".into(), Timestamp::saturating(last_seen).to_string().into());
    if let Some(scope) = &group[0].item.scope {
        own.insert("scope".into(), scope.clone().into());
    }
    metadata.insert("satchel".into(), own.into());
    metadata
}

fn sighting(witness: &Witness) -> Value {
    let mut sighting = json!({
        "id": witness.id,
        "at": Timestamp::saturating(witness.at).to_string(),
        "platform": witness.platform,
    });
    if let (Some(map), Some(conversation)) = (sighting.as_object_mut(), &witness.conversation) {
        map.insert("conversation".into(), conversation.clone().into());
    }
    if let (Some(map), Some(message)) = (sighting.as_object_mut(), &witness.message) {
        map.insert("message".into(), message.clone().into());
    }
    sighting
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn item(content: &str) -> Item {
        Item {
            key: None,
            content: content.to_owned(),
            memory_type: MemoryType::Fact,
            custom_type: None,
            status: None,
            scope: None,
            summary: None,
            tags: Vec::new(),
            confidence: None,
            updated_at: None,
            valid_from: None,
            valid_until: None,
            superseded_by: None,
            access: None,
            embedding_ref: None,
            metadata: None,
        }
    }

    fn witness(id: &str, platform: &str, at: i64, claim: Claim) -> Witness {
        Witness {
            id: id.to_owned(),
            platform: platform.to_owned(),
            account: None,
            at,
            conversation: None,
            message: None,
            method: ExtractionMethod::ApiExport,
            extractor: "test/0.1.0".to_owned(),
            claim,
        }
    }

    fn status(derived: &Derived, content: &str) -> Status {
        derived.memories[&memory_id(&item(content))].status
    }

    fn slot(id: &str, at: i64, content: &str) -> Witness {
        witness(id, "chatgpt", at, Claim::Snapshot { series: "about".into(), items: vec![item(content)] })
    }

    fn edit(id: &str, at: i64, edit: Edit) -> Witness {
        witness(id, "claude", at, Claim::Edit { log: "edits".into(), sequence: 0, edit })
    }

    #[test]
    fn a_replaced_statement_is_superseded_and_linked() {
        let derived = derive(&[slot("b", 2, "I live in Oslo"), slot("a", 1, "I live in Bergen")]);
        assert_eq!(status(&derived, "I live in Bergen"), Status::Superseded);
        assert_eq!(status(&derived, "I live in Oslo"), Status::Active);
        let old = &derived.memories[&memory_id(&item("I live in Bergen"))];
        let successor = memory_id(&item("I live in Oslo"));
        assert_eq!(old.temporal.superseded_by.as_deref(), Some(successor.as_str()));
        let edges: Vec<_> =
            derived.relations.values().map(|edge| (edge.from.as_str(), edge.to.as_str())).collect();
        assert_eq!(edges, [(successor.as_str(), old.id.as_str())]);
    }

    #[test]
    fn a_value_that_comes_back_is_active_again() {
        let derived = derive(&[slot("a", 1, "one"), slot("b", 2, "two"), slot("c", 3, "one")]);
        assert_eq!((status(&derived, "one"), status(&derived, "two")), (Status::Active, Status::Superseded));
    }

    #[test]
    fn absence_from_a_longer_list_proves_nothing() {
        let list = |id: &str, at, texts: &[&str]| {
            witness(
                id,
                "chatgpt",
                at,
                Claim::Snapshot {
                    series: "set".into(),
                    items: texts.iter().map(|text| item(text)).collect(),
                },
            )
        };
        let derived = derive(&[list("a", 1, &["x", "y"]), list("b", 2, &["y"])]);
        assert_eq!((status(&derived, "x"), status(&derived, "y")), (Status::Active, Status::Active));
        let last_seen =
            |text: &str| derived.memories[&memory_id(&item(text))].metadata["satchel"]["last_seen"].clone();
        assert!(last_seen("x").as_str() < last_seen("y").as_str());
    }

    #[test]
    fn the_providers_log_replaces_and_removes() {
        let derived = derive(&[
            edit("a", 1, Edit::Add(item("likes tea"))),
            edit("b", 2, Edit::Add(item("has a cat"))),
            edit("c", 3, Edit::Replace { line: Some(1), target: None, item: item("likes coffee") }),
            edit("d", 4, Edit::Remove { line: None, target: Some("Has a  cat".into()) }),
        ]);
        assert_eq!(status(&derived, "likes tea"), Status::Superseded);
        assert_eq!(status(&derived, "likes coffee"), Status::Active);
        assert_eq!(status(&derived, "has a cat"), Status::Retracted);
    }

    #[test]
    fn the_same_statement_on_two_platforms_is_one_memory_and_surer() {
        let alone = derive(&[witness("a", "chatgpt", 1, Claim::Statement(item("Keeps bees")))]);
        let both = derive(&[
            witness("a", "chatgpt", 1, Claim::Statement(item("Keeps bees"))),
            witness("b", "claude", 2, Claim::Statement(item("keeps  BEES"))),
        ]);
        assert_eq!(both.memories.len(), 1);
        let sure = |derived: &Derived| {
            derived.memories.values().find_map(|memory| memory.confidence.as_ref()?.current)
        };
        assert!(sure(&both) > sure(&alone));
        let memory = both.memories.values().next().expect("one memory");
        assert_eq!(memory.metadata["satchel"]["evidence_count"], 2);
        assert_eq!(memory.provenance.platform, "chatgpt");
    }

    proptest! {
        #[test]
        fn what_follows_does_not_depend_on_the_order_of_evidence(
            kinds in prop::collection::vec((0_u8..5, 0_u8..3, 0_i64..4), 1..12),
            turn in 0_usize..12,
        ) {
            let texts = ["red", "green", "blue"];
            let all: Vec<Witness> = kinds
                .iter()
                .enumerate()
                .map(|(at, (kind, text, time))| {
                    let (id, text) = (format!("w{at}"), texts[usize::from(*text)]);
                    match kind {
                        0 => witness(&id, "chatgpt", *time, Claim::Statement(item(text))),
                        1 => slot(&id, *time, text),
                        2 => edit(&id, *time, Edit::Add(item(text))),
                        3 => edit(&id, *time, Edit::Replace { line: Some(1), target: None, item: item(text) }),
                        _ => edit(&id, *time, Edit::Remove { line: None, target: Some(text.to_owned()) }),
                    }
                })
                .collect();
            let mut other = all.clone();
            other.reverse();
            let pivot = turn % other.len();
            other.rotate_left(pivot);
            prop_assert_eq!(derive(&all), derive(&other));
            let derived = derive(&all);
            for memory in derived.memories.values() {
                prop_assert!(memory.temporal.superseded_by.iter().all(|by| derived.memories.contains_key(by)));
            }
        }
    }
}
