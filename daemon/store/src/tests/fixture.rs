//! Invented records, random batches of them, and the content that a store must show after them.

use std::{cell::Cell, collections::BTreeMap, path::Path, sync::Arc};

use satchel_pam::{
    conversation::{ConversationHeader, Role},
    embedding::Embedding,
    memory::Memory,
    relation::Relation,
};
use satchel_seal::{DataKey, Seal};
use serde_json::json;

use super::{disk::CrashDisk, map::MapFolder};
use crate::{
    Batch, Change, ConversationQuery, ConversationRecord, ConversationWrite, EvidenceWrite, Ledger,
    LedgerWrite, MemoryOrder, MemoryQuery, MessageHead, MessageWrite, OpenEvent, OpenOptions, Origin,
    Revision, Store, StoreError, open::StoreEnvironment,
};

/// Small, so that a short test has many segments.
pub(super) const SEGMENT_LIMIT: u64 = 6_000;

thread_local! {
    static SEALED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` with encrypted stores.
pub(super) fn sealed(work: impl FnOnce()) {
    SEALED.set(true);
    work();
    SEALED.set(false);
}

/// Returns the seal of this test's stores.
pub(super) fn seal() -> Option<Seal> {
    SEALED.get().then(|| Seal::new(&DataKey::from_bytes(&[42; 32])))
}

/// A generator of random numbers; the same seed gives the same sequence.
pub(super) struct TestRng(pub(super) u64);

impl TestRng {
    pub(super) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }
}

pub(super) fn id(kind: &str, n: u64) -> String {
    // Some ids are not UUIDs.
    if n % 3 == 2 {
        format!("{kind}/{n}")
    } else {
        uuid::Uuid::from_u128((u128::from(n) << 64) + kind.len() as u128).to_string()
    }
}

pub(super) fn time(seconds: u64) -> String {
    satchel_pam::time::Timestamp::from_micros(1_700_000_000_000_000 + seconds.cast_signed() * 1_000_000)
        .unwrap()
        .to_string()
}

pub(super) fn memory(n: u64, rng: &mut TestRng) -> Memory {
    let text = format!("Paula likes tea number {}", rng.roll(5));
    let types = ["fact", "preference", "skill"];
    let statuses = ["active", "superseded", "archived"];
    let platform = ["chatgpt", "claude"][rng.roll(2) as usize];
    let mut value = json!({
        "id": id("memory", n), "type": (types[rng.roll(3) as usize]), "status": (statuses[rng.roll(3) as usize]),
        "content": text, "content_hash": satchel_pam::hash::ContentHash::of(&text).to_string(),
        "tags": (0..rng.roll(3)).map(|tag| format!("tag{tag}")).collect::<Vec<_>>(),
        "temporal": {"created_at": time(n % 4), "updated_at": time(rng.roll(50))},
        "provenance": {"platform": platform, "conversation_ref": id("conversation", n % 2)},
    });
    if rng.roll(8) == 0 {
        // Longer than a text that the engine stores.
        value["metadata"] = json!({"long": "x".repeat(40_000)});
    }
    serde_json::from_value(value).unwrap()
}

pub(super) fn header(n: u64, rng: &mut TestRng) -> ConversationHeader {
    serde_json::from_value(json!({
        "id": id("conversation", n), "title": format!("Tea {}", rng.roll(9)),
        "provider": {"name": "chatgpt", "account_id": format!("account{}", rng.roll(2))},
        "temporal": {"created_at": time(n), "updated_at": time(rng.roll(50))},
    }))
    .unwrap()
}

pub(super) fn head(n: u64, message: u64, rng: &mut TestRng) -> MessageHead {
    MessageHead {
        id: id(&format!("message{n}"), message),
        parent: message.checked_sub(1 + rng.roll(2)).map(|parent| id(&format!("message{n}"), parent)),
        role: [Role::User, Role::Assistant][(message % 2) as usize],
        created_at_micros: (message * 1_000 + rng.roll(100)).cast_signed(),
        hidden: rng.roll(4) == 0,
        thought: rng.roll(4) == 0,
        digest: [rng.roll(200) as u8; 16],
        opaque: vec![7; rng.roll(3) as usize],
    }
}

pub(super) fn relation(n: u64, rng: &mut TestRng) -> Relation {
    serde_json::from_value(json!({
        "id": id("relation", n), "from": id("memory", rng.roll(3)), "to": id("memory", 3 + rng.roll(3)), "type": "supports",
        "created_at": time(n),
    }))
    .unwrap()
}

pub(super) fn embedding(n: u64, rng: &mut TestRng) -> Embedding {
    serde_json::from_value(json!({
        "id": id("embedding", n), "memory_id": id("memory", n), "model": "toy", "dimensions": 2, "created_at": time(n),
        "vector": [rng.roll(9) as f64 / 7.0, 0.5],
    }))
    .unwrap()
}

/// The content that a store must show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Model {
    pub(super) memories: BTreeMap<String, (String, u32)>,
    pub(super) conversations: BTreeMap<String, ModelConversation>,
    /// Records that can be read by their id only.
    pub(super) withdrawn_memories: BTreeMap<String, (String, u32)>,
    pub(super) withdrawn_conversations: BTreeMap<String, ModelConversation>,
    pub(super) relations: BTreeMap<String, (String, bool)>,
    pub(super) embeddings: BTreeMap<String, String>,
    pub(super) evidence: BTreeMap<[u8; 16], Vec<u8>>,
    pub(super) ledger: BTreeMap<String, (i64, Vec<u8>)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ModelConversation {
    header: String,
    current: Option<String>,
    version: u32,
    messages: Vec<(MessageHead, Vec<u8>)>,
}

impl Model {
    /// Returns a random batch and applies it to the model.
    pub(super) fn batch(&mut self, rng: &mut TestRng) -> Batch {
        let mut changes: BTreeMap<String, Change> = BTreeMap::new();
        for _ in 0..=rng.roll(4) {
            let n = rng.roll(6);
            match rng.roll(11) {
                0..3 => drop(changes.insert(format!("m{n}"), Change::Memory(Box::new(memory(n, rng))))),
                3..5 => {
                    let write = self.conversation(n % 3, rng);
                    changes.insert(format!("c{}", n % 3), Change::Conversation(Box::new(write)));
                }
                5 => drop(changes.insert(format!("r{n}"), Change::Relation(relation(n, rng)))),
                6 if self.relations.contains_key(&id("relation", n)) => {
                    changes.insert(format!("r{n}"), Change::WithdrawRelation(id("relation", n)));
                }
                7 if self.embeddings.contains_key(&id("memory", n)) && rng.roll(2) == 0 => {
                    let (memory, model) = (id("memory", n), "toy".to_owned());
                    changes.insert(format!("e{n}"), Change::WithdrawEmbedding { memory, model });
                }
                6 | 7 => drop(changes.insert(format!("e{n}"), Change::Embedding(embedding(n, rng)))),
                8 => drop(changes.insert(format!("m{n}"), Change::WithdrawMemory(Box::new(memory(n, rng))))),
                9 => {
                    let write = self.conversation(n % 3, rng);
                    changes.insert(format!("c{}", n % 3), Change::WithdrawConversation(Box::new(write)));
                }
                _ => {
                    // Empty bytes remove it.
                    let bytes = if rng.roll(4) == 0 { 0 } else { rng.roll(60) };
                    let json = vec![b'e'; bytes as usize];
                    changes
                        .insert(format!("v{n}"), Change::Evidence(EvidenceWrite { id: [n as u8; 16], json }));
                    let (at_micros, value) = (rng.roll(9).cast_signed(), vec![b'l'; rng.roll(9) as usize]);
                    let write = LedgerWrite::Entry {
                        ledger: Ledger::Import,
                        id: format!("import{n}"),
                        at_micros,
                        value,
                    };
                    changes.insert(format!("l{n}"), Change::Ledger(write));
                }
            }
        }
        let origin = Origin {
            import: None,
            actor: "owner".to_owned(),
            reason: format!("roll {}", rng.roll(99)),
            at_micros: 5,
        };
        let batch = Batch { origin, changes: changes.into_values().collect() };
        self.apply(&batch);
        batch
    }

    /// Returns a batch whose frames are written to the file before the commit ends.
    pub(super) fn large_batch(&mut self, rng: &mut TestRng) -> Batch {
        let mut batch = self.clone().batch(rng);
        batch.changes.retain(|change| !matches!(change, Change::Conversation(_)));
        let mut messages = Vec::new();
        for message in 0..3 {
            // Random bytes do not compress.
            let body = (0..500_000).map(|_| rng.roll(256) as u8).collect();
            messages.push(MessageWrite::Put { head: head(9, message, rng), body });
        }
        let write = ConversationWrite { header: header(9, rng), current: None, opaque: Vec::new(), messages };
        batch.changes.push(Change::Conversation(Box::new(write)));
        self.apply(&batch);
        batch
    }

    fn conversation(&self, n: u64, rng: &mut TestRng) -> ConversationWrite {
        let id = id("conversation", n);
        let stored = self.conversations.get(&id).or(self.withdrawn_conversations.get(&id));
        let mut messages = Vec::new();
        for message in 0..rng.roll(7) {
            let head = head(n, message, rng);
            let known = stored
                .is_some_and(|conversation| conversation.messages.iter().any(|(old, _)| old.id == head.id));
            if known && rng.roll(2) == 0 {
                messages.push(MessageWrite::Keep { head });
            } else {
                let length = if rng.roll(6) == 0 { 70_000 } else { rng.roll(900) };
                let body = (0..length).map(|_| b'a' + rng.roll(4) as u8).collect();
                messages.push(MessageWrite::Put { head, body });
            }
        }
        let current = messages.last().map(|message| message.head().id.clone());
        ConversationWrite { header: header(n, rng), current, opaque: vec![1, 2], messages }
    }

    fn apply(&mut self, batch: &Batch) {
        for change in &batch.changes {
            match change {
                Change::Memory(memory) => self.apply_memory(memory, false),
                Change::WithdrawMemory(memory) => self.apply_memory(memory, true),
                Change::Conversation(write) => self.apply_conversation(write, false),
                Change::WithdrawConversation(write) => self.apply_conversation(write, true),
                Change::Relation(relation) => {
                    self.relations
                        .insert(relation.id.clone(), (serde_json::to_string(relation).unwrap(), false));
                }
                Change::WithdrawRelation(id) => self.relations.get_mut(id).unwrap().1 = true,
                Change::Embedding(embedding) => {
                    self.embeddings
                        .insert(embedding.memory_id.clone(), serde_json::to_string(embedding).unwrap());
                }
                Change::WithdrawEmbedding { memory, .. } => drop(self.embeddings.remove(memory)),
                Change::Evidence(evidence) if evidence.json.is_empty() => {
                    self.evidence.remove(&evidence.id);
                }
                Change::Evidence(evidence) => drop(self.evidence.insert(evidence.id, evidence.json.clone())),
                Change::Ledger(LedgerWrite::Entry { id, at_micros, value, .. }) => {
                    if value.is_empty() {
                        self.ledger.remove(id);
                    } else {
                        self.ledger.insert(id.clone(), (*at_micros, value.clone()));
                    }
                }
                Change::Ledger(LedgerWrite::Issues { .. } | LedgerWrite::Piece { .. }) => {}
            }
        }
    }

    fn apply_memory(&mut self, memory: &Memory, withdrawn: bool) {
        let old = self.memories.remove(&memory.id).or(self.withdrawn_memories.remove(&memory.id));
        let version = old.map_or(0, |(_, version)| version) + 1;
        let memories = if withdrawn { &mut self.withdrawn_memories } else { &mut self.memories };
        memories.insert(memory.id.clone(), (serde_json::to_string(memory).unwrap(), version));
    }

    fn apply_conversation(&mut self, write: &ConversationWrite, withdrawn: bool) {
        let id = &write.header.id;
        let old = self.conversations.remove(id).or(self.withdrawn_conversations.remove(id));
        let body = |id: &str| {
            let messages = &old.as_ref().unwrap().messages;
            messages.iter().find(|(head, _)| head.id == id).unwrap().1.clone()
        };
        let messages = write.messages.iter().map(|message| match message {
            MessageWrite::Keep { head } => (head.clone(), body(&head.id)),
            MessageWrite::Put { head, body } => (head.clone(), body.clone()),
        });
        let messages = messages.collect();
        let header = serde_json::to_string(&write.header).unwrap();
        let version = old.as_ref().map_or(0, |conversation| conversation.version) + 1;
        let conversation = ModelConversation { header, current: write.current.clone(), version, messages };
        let all = if withdrawn { &mut self.withdrawn_conversations } else { &mut self.conversations };
        all.insert(write.header.id.clone(), conversation);
    }

    /// Returns only the records that have a history: memories, conversations, relations.
    pub(super) fn versioned(&self) -> Self {
        Self {
            embeddings: BTreeMap::new(),
            evidence: BTreeMap::new(),
            ledger: BTreeMap::new(),
            ..self.clone()
        }
    }
}

/// Reads everything that a store shows at a revision, page by page.
pub(super) fn show(store: &Store, at: Revision) -> Result<Model, StoreError> {
    let mut model = Model::default();
    let query = MemoryQuery { order: MemoryOrder::IdAscending, ..MemoryQuery::default() };
    let mut after = None;
    loop {
        let page = store.memories(&query, after.as_ref(), 2, at)?;
        for record in page.items {
            let json = serde_json::to_string(&record.memory).unwrap();
            assert_eq!(model.memories.insert(record.memory.id, (json, record.version)), None);
        }
        let Some(next) = page.next else { break };
        after = Some(next);
    }
    let mut after = None;
    loop {
        let page = store.conversations(&ConversationQuery::default(), after.as_ref(), 2, at)?;
        for summary in page.items {
            let record = store.conversation(&summary.id, Some(at))?.unwrap();
            assert_eq!(record.revision, summary.revision);
            assert!(!record.withdrawn);
            assert_eq!(model.conversations.insert(summary.id, conversation(store, record)?), None);
        }
        let Some(next) = page.next else { break };
        after = Some(next);
    }
    for page in [store.relations(None, 100, at)?, store.withdrawn_relations(None, 100, at)?] {
        for record in page.items {
            let json = serde_json::to_string(&record.relation).unwrap();
            model.relations.insert(record.relation.id, (json, record.withdrawn));
        }
    }
    for n in 0..6 {
        let record = store.memory(&id("memory", n), Some(at))?.filter(|record| record.withdrawn);
        if let Some(record) = record {
            let json = serde_json::to_string(&record.memory).unwrap();
            model.withdrawn_memories.insert(record.memory.id, (json, record.version));
        }
        let record = store.conversation(&id("conversation", n), Some(at))?;
        if let Some(record) = record.filter(|record| record.withdrawn) {
            model.withdrawn_conversations.insert(record.header.id.clone(), conversation(store, record)?);
        }
    }
    Ok(model)
}

fn conversation(store: &Store, record: ConversationRecord) -> Result<ModelConversation, StoreError> {
    let same = store.conversation_version(&record.header.id, record.version)?.unwrap();
    assert_eq!((same.revision, &same.heads), (record.revision, &record.heads));
    let bodies: Result<Vec<_>, _> = store.all_bodies(&record).collect();
    let bodies = bodies?.into_iter().map(|(_, body)| body);
    let messages = record.heads.iter().cloned().zip(bodies).collect();
    let header = serde_json::to_string(&record.header).unwrap();
    Ok(ModelConversation { header, current: record.current, version: record.version, messages })
}

/// Reads everything that a store shows now.
pub(super) fn show_all(store: &Store) -> Result<Model, StoreError> {
    let mut model = show(store, store.revision())?;
    let mut paged = Vec::new();
    for record in store.embeddings(None, 100)?.items {
        let json = serde_json::to_string(&record.embedding).unwrap();
        paged.push((record.revision, json.clone()));
        model.embeddings.insert(record.embedding.memory_id, json);
    }
    let mut visited = Vec::new();
    store.each_embedding(|record| {
        visited.push((record.revision, serde_json::to_string(&record.embedding).unwrap()));
        Ok::<_, StoreError>(())
    })?;
    assert!(visited.is_sorted_by_key(|(revision, _)| *revision), "in the order of the commits");
    paged.sort();
    visited.sort();
    assert_eq!(visited, paged);
    for record in store.evidence_all() {
        let record = record?;
        model.evidence.insert(record.id, record.json);
    }
    for entry in store.ledger_list(Ledger::Import, None, 100)?.items {
        model.ledger.insert(entry.id, (entry.at_micros, entry.value));
    }
    Ok(model)
}

/// Opens a store on test doubles.
pub(super) fn open(
    dir: &Path,
    disk: &CrashDisk,
    db: &MapFolder,
    boot: &str,
) -> Result<(Store, Vec<OpenEvent>), StoreError> {
    open_with(dir, disk, db, boot, 0)
}

/// Opens a store on test doubles that requires this many free bytes.
pub(super) fn open_with(
    dir: &Path,
    disk: &CrashDisk,
    db: &MapFolder,
    boot: &str,
    headroom: u64,
) -> Result<(Store, Vec<OpenEvent>), StoreError> {
    let (disk, db) = (Arc::new(disk.clone()), Arc::new(db.clone()));
    let environment = StoreEnvironment { disk, db, segment_limit: SEGMENT_LIMIT, headroom };
    let options = OpenOptions { boot_id: Some(boot.to_owned()), seal: seal(), ..OpenOptions::default() };
    let mut events = Vec::new();
    let store = Store::open_in(dir, options, environment, &mut |event| events.push(event))?;
    Ok((store, events))
}

/// Opens a store on the real disk with sled.
pub(super) fn open_real(dir: &Path, boot: &str) -> Result<(Store, Vec<OpenEvent>), StoreError> {
    let options = OpenOptions { boot_id: Some(boot.to_owned()), seal: seal(), ..OpenOptions::default() };
    let mut environment = StoreEnvironment::new(dir, &options);
    (environment.segment_limit, environment.headroom) = (SEGMENT_LIMIT, 0);
    let mut events = Vec::new();
    let store = Store::open_in(dir, options, environment, &mut |event| events.push(event))?;
    Ok((store, events))
}

/// The place of one frame, and the revision that it belongs to.
#[derive(Clone, Debug)]
pub(super) struct FrameSpan {
    pub(super) segment: u32,
    pub(super) start: u64,
    pub(super) end: u64,
    /// `None` for notes and seals, whose loss affects no revision.
    pub(super) revision: Option<u64>,
    pub(super) seal: bool,
}

impl Store {
    /// Returns all frames of a whole journal.
    pub(super) fn frames(&self) -> Vec<FrameSpan> {
        use crate::journal::{Acknowledged, frame::FrameKind, segments::Segments};
        let context = self.reader().context().clone();
        let segments = Segments::list(self.reader().disk(), context.folder, context.seal).unwrap().unwrap();
        let mut frames = Vec::new();
        let scanned = segments.scan(Segments::beginning(), 0, Acknowledged::default(), &mut |visit| {
            let owned = matches!(visit.header.kind, FrameKind::Body | FrameKind::Batch);
            frames.push(FrameSpan {
                segment: visit.start.segment,
                start: visit.start.offset,
                end: visit.end.offset,
                revision: owned.then_some(visit.header.revision),
                seal: visit.header.kind == FrameKind::Seal,
            });
            Ok(())
        });
        assert!(scanned.unwrap().damage.is_empty());
        frames
    }
}
