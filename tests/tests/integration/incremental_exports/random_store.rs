//! A store with an invented history: memories that are added, changed and removed, relations, vectors.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::Result;
use satchel_core::export::ExportRecord;
use satchel_pam::{
    embedding::{Embedding, EmbeddingsDocument},
    hash::ContentHash,
    memory::{Access, Memory, MemoryType, Provenance, Status, Temporal},
    relation::{Relation, RelationType},
    time::Timestamp,
};
use satchel_store::{Batch, Change, Origin};
use satchel_tests::{generate::Rng, test_core::TestCore};

/// Start of every history, in microseconds since the Unix epoch.
const START: i64 = 1_700_000_000_000_000;
/// Time between two steps, in microseconds.
const HOUR: i64 = 3_600_000_000;

/// A data directory and the expected state after its random steps.
pub(super) struct RandomStore {
    pub(super) folder: tempfile::TempDir,
    pub(super) core: TestCore,
    rng: Rng,
    now: i64,
    memories: BTreeMap<String, Memory>,
    relations: BTreeMap<String, bool>,
    /// Whether a vector is present, by memory and model.
    vectors: BTreeMap<(String, &'static str), bool>,
}

/// The models of the vectors.
const MODELS: [&str; 2] = ["small", "large"];

impl RandomStore {
    pub(super) fn new(seed: u64) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let core = TestCore::open(&folder.path().join("data"))?;
        let (memories, relations, vectors) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Ok(Self { folder, core, rng: Rng::new(seed), now: START, memories, relations, vectors })
    }

    /// Writes a full export; returns its record and path.
    pub(super) fn export_full(&self, name: &str) -> Result<(ExportRecord, PathBuf)> {
        let path = self.folder.path().join(name);
        Ok((self.core.export(&path)?, path))
    }

    /// Writes the changes since a base; returns the record and path.
    pub(super) fn export_changes(&self, base: &str, name: &str) -> Result<(ExportRecord, PathBuf)> {
        let path = self.folder.path().join(name);
        Ok((self.core.export_changes(Some(base), &path)?, path))
    }

    /// Returns a random current memory that fits.
    pub(super) fn pick(&mut self, fits: impl Fn(&Memory) -> bool) -> Option<Memory> {
        let fitting: Vec<&Memory> = self.memories.values().filter(|memory| fits(memory)).collect();
        let at = self.rng.below(fitting.len().max(1) as u64);
        fitting.get(usize::try_from(at).ok()?).map(|memory| (*memory).clone())
    }

    /// Commits a batch of one to six random changes.
    pub(super) fn step(&mut self) -> Result<()> {
        self.now += HOUR;
        let mut changes = BTreeMap::new();
        for _ in 0..=self.rng.below(6) {
            let (key, change) = self.random_change();
            changes.insert(key, change);
        }
        self.commit(changes.into_values().collect())
    }

    pub(super) fn commit(&self, changes: Vec<Change>) -> Result<()> {
        let origin = Origin { actor: "owner".into(), at_micros: self.now, ..Origin::default() };
        self.core.store.commit(Batch { origin, changes })?;
        Ok(())
    }

    /// Stores a memory and records it in the expected state.
    pub(super) fn put(&mut self, memory: &Memory) -> Result<()> {
        self.memories.insert(memory.id.clone(), memory.clone());
        self.commit(vec![Change::Memory(Box::new(memory.clone()))])
    }

    fn random_change(&mut self) -> (String, Change) {
        match self.rng.below(12) {
            0..=3 => self.add_memory(),
            4..=6 => self.change_memory(),
            7 => self.add_relation(),
            8 => self.withdraw_relation(),
            9 => self.withdraw_vector(),
            _ => self.add_vector(),
        }
    }

    fn add_memory(&mut self) -> (String, Change) {
        let id = format!("{:016x}", self.rng.next_u64());
        let content = format!("Statement {}", self.rng.below(1_000));
        let memory = memory(&id, &content, self.now);
        self.memory_change(memory)
    }

    /// Changes a memory at random, with or without a new time. Retracted memories stay as they are, because retraction
    /// is final.
    fn change_memory(&mut self) -> (String, Change) {
        let Some(mut memory) = self.pick(|memory| memory.status != Status::Retracted) else {
            return self.add_memory();
        };
        if self.rng.chance(70) {
            memory.temporal.updated_at = Some(Timestamp::saturating(self.now));
        }
        match self.rng.below(4) {
            0 => {
                memory.content = format!("Changed {}", self.rng.below(1_000));
                memory.content_hash = ContentHash::of(&memory.content);
            }
            1 => memory.status = Status::Retracted,
            2 => memory.status = Status::Archived,
            _ => memory.tags = vec![format!("tag-{}", self.rng.below(9))],
        }
        self.memory_change(memory)
    }

    fn memory_change(&mut self, memory: Memory) -> (String, Change) {
        self.memories.insert(memory.id.clone(), memory.clone());
        (format!("memory {}", memory.id), Change::Memory(Box::new(memory)))
    }

    fn add_relation(&mut self) -> (String, Change) {
        let Some(from) = self.pick(|_| true) else { return self.add_memory() };
        let Some(to) = self.pick(|memory| memory.id != from.id) else { return self.add_memory() };
        let id = format!("relation {}", self.rng.below(20));
        self.relations.insert(id.clone(), true);
        let relation = Relation {
            id: id.clone(),
            from: from.id,
            to: to.id,
            relation_type: RelationType::RelatedTo,
            confidence: None,
            created_at: Timestamp::saturating(self.now),
        };
        (id, Change::Relation(relation))
    }

    /// Withdraws a relation from an earlier commit. One that was drawn in this step is not stored yet; a relation is
    /// drawn instead.
    fn withdraw_relation(&mut self) -> (String, Change) {
        let standing = self.relations.iter().find(|(_, stands)| **stands).map(|(id, _)| id.clone());
        let stored = standing.filter(|id| self.core.store.relation(id, None).is_ok_and(|one| one.is_some()));
        let Some(id) = stored else { return self.add_relation() };
        self.relations.insert(id.clone(), false);
        (id.clone(), Change::WithdrawRelation(id))
    }

    fn add_vector(&mut self) -> (String, Change) {
        let Some(memory) = self.pick(|_| true) else { return self.add_memory() };
        let model = MODELS[usize::from(self.rng.chance(50))];
        self.vectors.insert((memory.id.clone(), model), true);
        let number = f64::from(u32::try_from(self.rng.below(100)).unwrap_or(0)) / 8.0;
        let embedding = vector(&memory.id, model, number, self.now);
        (embedding.id.clone(), Change::Embedding(embedding))
    }

    /// Withdraws a vector from an earlier commit.
    fn withdraw_vector(&mut self) -> (String, Change) {
        let store = &self.core.store;
        let stored =
            |memory: &str, model: &str| store.embedding(memory, model).is_ok_and(|one| one.is_some());
        let mut standing = self.vectors.iter().filter(|(_, stands)| **stands).map(|(place, _)| place);
        let Some((memory, model)) = standing.find(|(memory, model)| stored(memory, model)).cloned() else {
            return self.add_vector();
        };
        self.vectors.insert((memory.clone(), model), false);
        let key = vector_id(&memory, model);
        (key, Change::WithdrawEmbedding { memory, model: model.to_owned() })
    }
}

fn vector_id(memory: &str, model: &str) -> String {
    format!("{model} vector of {memory}")
}

/// Returns a vector of a memory.
pub(super) fn vector(memory: &str, model: &str, number: f64, at: i64) -> Embedding {
    Embedding {
        id: vector_id(memory, model),
        memory_id: memory.to_owned(),
        model: model.to_owned(),
        dimensions: 3,
        created_at: Timestamp::saturating(at),
        vector: Some(vec![number; 3]),
        storage: None,
    }
}

/// Returns the vectors of a bundle, by memory.
pub(super) fn read_vectors(bundle: &Path) -> Result<BTreeMap<String, Embedding>> {
    let file = bundle.join("embeddings.json");
    if !file.exists() {
        return Ok(BTreeMap::new());
    }
    let document: EmbeddingsDocument = serde_json::from_slice(&std::fs::read(file)?)?;
    let count = document.embeddings.len();
    let vectors: BTreeMap<_, _> =
        document.embeddings.into_iter().map(|one| (one.memory_id.clone(), one)).collect();
    anyhow::ensure!(vectors.len() == count, "a memory has two vectors");
    Ok(vectors)
}

/// Returns a memory with only the required fields.
pub(super) fn memory(id: &str, content: &str, at: i64) -> Memory {
    Memory {
        id: id.to_owned(),
        memory_type: MemoryType::Fact,
        custom_type: None,
        status: Status::Active,
        content: content.to_owned(),
        content_hash: ContentHash::of(content),
        summary: None,
        tags: Vec::new(),
        confidence: None,
        temporal: Temporal { created_at: Timestamp::saturating(at), ..empty_temporal() },
        provenance: Provenance { platform: "elsewhere".to_owned(), ..Provenance::default() },
        access: Some(Access::default()),
        embedding_ref: None,
        metadata: serde_json::Map::new(),
    }
}

fn empty_temporal() -> Temporal {
    Temporal {
        created_at: Timestamp::EPOCH,
        updated_at: None,
        valid_from: None,
        valid_until: None,
        superseded_by: None,
    }
}

/// Returns the text of a bundle's memories, byte for byte.
pub(super) fn read_memories_text(bundle: &Path) -> Result<String> {
    use anyhow::Context as _;
    let text = std::fs::read_to_string(bundle.join("memory-store.json"))?;
    let (_, rest) = text.split_once("\"memories\": ").context("memories")?;
    Ok(rest.split_once("\"relations\": ").context("relations")?.0.to_owned())
}
