//! Random histories of a data directory: everything that a person can do with it, strangers' documents full of references that lead
//! nowhere, and exports of every kind in between.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use satchel_daemon::{
    export::{ExportRequest, Extent, Selection},
    ingest::{
        Apply,
        hand::{Call, Draft, NewRelation},
        purge::{self, Target},
        undo::{Turn, TurnRequest},
    },
};
use satchel_host::CancelToken;
use satchel_pam::{
    hash::ContentHash,
    memory::{Access, MemoryType, Status},
    relation::RelationType,
};
use satchel_store::{ConversationQuery, MemoryQuery, TimeRange};
use serde_json::{Value, json};

use crate::{
    archive::{Archive, demo, whole},
    generate::{Dice, chatgpt_short},
};

/// Ids of memories that strangers' documents use; few, so that they meet.
const MEMORIES: u64 = 8;
/// Those of their conversations.
const CONVERSATIONS: u64 = 4;

/// An export that was written on the way.
pub struct Made {
    /// A folder.
    pub path: PathBuf,
    /// The full export that it adds to.
    pub base: Option<PathBuf>,
    /// What happened before it, and how it was asked for.
    pub told: String,
}

/// A data directory with a past, and another that it exchanges bundles with.
pub struct History {
    folder: PathBuf,
    here: Archive,
    there: Archive,
    dice: Dice,
    made: Vec<Made>,
    /// Full exports of `here`, by id.
    bases: Vec<(String, PathBuf)>,
    imports: Vec<String>,
    told: Vec<String>,
    count: usize,
}

impl History {
    /// An empty data directory in `folder`.
    ///
    /// # Errors
    /// When a store does not open.
    pub fn new(folder: &Path, seed: u64) -> Result<Self> {
        Ok(Self {
            folder: folder.to_owned(),
            here: Archive::open(&folder.join("here"))?,
            there: Archive::open(&folder.join("there"))?,
            dice: Dice::new(seed),
            made: Vec::new(),
            bases: Vec::new(),
            imports: Vec::new(),
            told: vec![format!("seed {seed}")],
            count: 0,
        })
    }

    /// Lets `steps` things happen, each followed by an export; answers the exports.
    ///
    /// # Errors
    /// When something fails that a person may do.
    pub fn run(mut self, steps: usize) -> Result<Vec<Made>> {
        for _ in 0..steps {
            self.step().with_context(|| self.told.join("; "))?;
            self.export().with_context(|| self.told.join("; "))?;
        }
        Ok(self.made)
    }

    fn path(&mut self, name: &str) -> PathBuf {
        self.count += 1;
        self.folder.join(format!("{name}-{}", self.count))
    }

    fn step(&mut self) -> Result<()> {
        match self.dice.below(16) {
            0 => self.import_sample("chatgpt-export"),
            1 => self.import_sample("claude-export"),
            2 => {
                let (path, seed) = (self.path("generated"), self.dice.throw());
                chatgpt_short(&path, 20_000, seed)?;
                self.import(&path)
            }
            3..=6 => {
                let path = self.stranger(false)?;
                self.import(&path)
            }
            7 => {
                let path = self.stranger(true)?;
                self.told.push("a stranger's changes are applied".to_owned());
                self.here.apply_by(
                    &path,
                    false,
                    Apply { any_owner: true, force: true, ..Apply::default() },
                )?;
                Ok(())
            }
            8 | 9 => self.purge(),
            10 => self.turn(),
            11 => self.exchange(),
            _ => self.by_hand(),
        }
    }

    fn import_sample(&mut self, name: &str) -> Result<()> {
        self.import(&demo().join(name))
    }

    fn import(&mut self, path: &Path) -> Result<()> {
        self.told.push(format!("import {}", path.display()));
        for import in self.here.import_again(path)? {
            anyhow::ensure!(import.conversations.balanced() && import.memories.balanced(), "{import:?}");
            anyhow::ensure!(import.embeddings.balanced(), "{import:?}");
            self.imports.push(import.id);
        }
        Ok(())
    }

    /// Any memory, of any status.
    fn memory(&mut self) -> Result<Option<String>> {
        let at = self.here.store.revision();
        let rows = self.here.store.memories(&MemoryQuery::default(), None, 500, at)?.items;
        if rows.is_empty() {
            return Ok(None);
        }
        let at = usize::try_from(self.dice.below(rows.len() as u64))?;
        Ok(Some(rows[at].memory.id.clone()))
    }

    /// What a person does by hand; what is not allowed is refused, and that is well.
    fn by_hand(&mut self) -> Result<()> {
        let call = Call { actor: "owner".into(), ..Call::default() };
        let number = self.dice.below(1_000);
        let draft = Draft { content: Some(format!("Said by hand {number}")), ..Draft::default() };
        let (Some(one), Some(other)) = (self.memory()?, self.memory()?) else {
            self.here.imports.add_memory(&call, &draft)?;
            return Ok(());
        };
        let deed = self.dice.below(8);
        self.told.push(format!("deed {deed} on {one} and {other}"));
        let imports = &self.here.imports;
        let done = match deed {
            0 => imports.edit_memory(&call, &one, "", &draft),
            1 => imports.set_memory_status(&call, &one, "", Status::Archived),
            2 => imports.set_memory_status(&call, &one, "", Status::Retracted),
            3 => imports.supersede_memory(&call, &one, "", Ok(&draft)),
            4 => imports.supersede_memory(&call, &one, "", Err(&other)),
            5 => {
                let relation_type = RelationType::RelatedTo;
                let new = NewRelation { from: one, to: other, relation_type, confidence: None };
                imports.draw_relation(&call, &new)
            }
            6 => {
                let access = Access { exportable: false, ..Access::default() };
                imports.edit_memory(&call, &one, "", &Draft { access: Some(access), ..Draft::default() })
            }
            _ => imports.undo_last_change(&call, &one),
        };
        if let Err(refusal) = done {
            self.told.push(format!("refused: {refusal}"));
        }
        Ok(())
    }

    fn purge(&mut self) -> Result<()> {
        let target = if self.dice.chance(60) {
            let Some(id) = self.memory()? else { return Ok(()) };
            Target::Memory(id)
        } else {
            let at = self.here.store.revision();
            let rows = self.here.store.conversations(&ConversationQuery::default(), None, 100, at)?.items;
            let Some(row) = rows.first() else { return Ok(()) };
            Target::Conversation { id: row.id.clone(), keep_memories: self.dice.chance(50) }
        };
        self.told.push(format!("purge {target:?}"));
        if let Some(plan) = purge::planned(&self.here.store, &target, 1_800_000_000_000_000)? {
            purge::note(&self.here.store, &plan.record)?;
        }
        Ok(())
    }

    fn turn(&mut self) -> Result<()> {
        if self.imports.is_empty() {
            return Ok(());
        }
        let at = usize::try_from(self.dice.below(self.imports.len() as u64))?;
        let id = self.imports[at].clone();
        for turn in [Turn::Undo, Turn::Redo] {
            let request = TurnRequest { id: &id, turn, dry_run: false, expected: None };
            if self.here.imports.turn(request, &CancelToken::new()).is_ok() {
                self.told.push(format!("{turn:?} {id}"));
                break;
            }
        }
        Ok(())
    }

    /// A bundle goes there, and one comes back.
    fn exchange(&mut self) -> Result<()> {
        self.told.push("a bundle goes there and comes back".to_owned());
        let (out, back) = (self.path("out"), self.path("back"));
        self.here.export(&out)?;
        self.there.apply_by(&out, false, Apply { any_owner: true, force: true, ..Apply::default() })?;
        self.there.export(&back)?;
        self.note(back.clone(), None, "there");
        self.here.apply_by(&back, false, Apply { any_owner: true, force: true, ..Apply::default() })?;
        Ok(())
    }

    fn note(&mut self, path: PathBuf, base: Option<PathBuf>, how: &str) {
        let told = format!("{}; {how} to {}", self.told.join("; "), path.display());
        self.made.push(Made { path, base, told });
    }

    /// An export of any kind.
    fn export(&mut self) -> Result<()> {
        let path = self.path("bundle");
        let (kind, mut request) = (self.dice.below(8), whole(path.clone()));
        let mut base = None;
        match kind {
            0 | 1 => {}
            2 => request.conversations = false,
            3 => request.attachments = true,
            4 | 5 => {
                if !self.bases.is_empty() {
                    let at = usize::try_from(self.dice.below(self.bases.len() as u64))?;
                    let (id, path) = self.bases[at].clone();
                    request.extent = Extent::Incremental { base: Some(id) };
                    request.conversations = self.dice.chance(70);
                    base = Some(path);
                }
            }
            _ => {
                request.selection = self.selection();
                request.conversations = self.dice.chance(80);
            }
        }
        let how = format!("{:?} {:?}", request.extent, request.selection);
        let whole = kind == 0 || kind == 1;
        let made = self.here.export_by(&ExportRequest { ..request })?;
        if whole {
            self.bases.push((made.export_id, path.clone()));
        }
        self.note(path, base, &how);
        Ok(())
    }

    fn selection(&mut self) -> Selection {
        let mut memories = MemoryQuery::default();
        match self.dice.below(6) {
            0 => memories.platforms = vec!["chatgpt".into(), "elsewhere".into()],
            1 => memories.types = vec![MemoryType::Fact, MemoryType::Preference],
            2 => memories.statuses = vec![Status::Active],
            3 => memories.statuses = vec![Status::Superseded, Status::Archived],
            4 => memories.updated = TimeRange { from: Some(1_740_000_000_000_000), until: None },
            _ => {}
        }
        Selection { memories, strip: self.dice.chance(50) }
    }

    /// A stranger's document, whole or of changes, with references to what is in it, beside it, and nowhere.
    fn stranger(&mut self, changes: bool) -> Result<PathBuf> {
        let path = self.path("stranger");
        fs::create_dir_all(path.join("conversations"))?;
        let all = MEMORIES;
        let memories: Vec<Value> = (0..all)
            .filter(|_| self.dice.chance(60))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|id| self.told_memory(id))
            .collect();
        let relations: Vec<Value> = (0..3)
            .map(|id| {
                let (from, to) = (self.dice.below(all), self.dice.below(all));
                json!({"id": format!("r{id}"), "from": format!("m{from}"), "to": format!("m{to}"),
                    "type": "related_to", "created_at": "2025-03-01T00:00:00Z"})
            })
            .collect();
        let mut index = Vec::new();
        for id in 0..CONVERSATIONS {
            if self.dice.chance(60) {
                index.push(self.told_entry(id, &path)?);
            }
        }
        let mut store = json!({
            "schema": "portable-ai-memory", "schema_version": "1.0", "owner": {"id": "a stranger"},
            "export_type": "full", "memories": memories, "relations": relations, "conversations_index": index,
        });
        if changes {
            store["export_type"] = "incremental".into();
            store["base_export_id"] = "0b5e1a52-0000-4000-8000-000000000001".into();
            store["since"] = "2025-01-01T00:00:00Z".into();
        }
        fs::write(path.join("memory-store.json"), store.to_string())?;
        let vectors: Vec<Value> = (0..all)
            .filter(|_| self.dice.chance(30))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|id| self.told_vector(id))
            .collect();
        let embeddings = json!({"schema": "portable-ai-memory-embeddings", "schema_version": "1.0", "embeddings": vectors});
        fs::write(path.join("embeddings.json"), embeddings.to_string())?;
        Ok(path)
    }

    fn told_vector(&mut self, id: u64) -> Value {
        json!({
            "id": format!("e{id}"), "memory_id": format!("m{id}"), "model": "small", "dimensions": 2,
            "created_at": format!("2025-0{}-01T00:00:00Z", 1 + self.dice.below(6)),
            "vector": [0.5, self.dice.below(8)],
        })
    }

    fn told_memory(&mut self, id: u64) -> Value {
        let content = format!("A stranger says {} of {id}", self.dice.below(4));
        let mut memory = json!({
            "id": format!("m{id}"), "type": "fact", "content": content, "tags": [],
            "content_hash": ContentHash::of(&content).to_string(), "status": "active",
            "temporal": {
                "created_at": "2025-01-01T00:00:00Z",
                "updated_at": format!("2025-0{}-02T00:00:00Z", 1 + self.dice.below(6)),
            },
            "provenance": {"platform": "elsewhere"},
        });
        if self.dice.chance(40) {
            memory["provenance"]["conversation_ref"] =
                format!("c{}", self.dice.below(CONVERSATIONS + 2)).into();
        }
        if self.dice.chance(30) {
            memory["status"] = "superseded".into();
            memory["temporal"]["superseded_by"] = format!("m{}", self.dice.below(MEMORIES + 2)).into();
        }
        if self.dice.chance(40) {
            memory["embedding_ref"] = format!("e{}", self.dice.below(MEMORIES)).into();
        }
        if self.dice.chance(20) {
            memory["metadata"] = json!({"language": if self.dice.chance(50) { "English" } else { "en_us" }});
        }
        memory
    }

    /// An entry of the index: with its file, without it, or with another place.
    fn told_entry(&mut self, id: u64, folder: &Path) -> Result<Value> {
        let mut entry = json!({
            "id": format!("c{id}"), "platform": "elsewhere", "title": format!("Talk {id}"), "message_count": 2,
            "temporal": {"created_at": "2025-01-01T00:00:00Z"}, "tags": ["told"],
            "derived_memories": [format!("m{}", self.dice.below(MEMORIES))],
        });
        match self.dice.below(4) {
            0 => {
                let name = format!("conversations/c{id}.json");
                let second = if self.dice.chance(50) { json!("nowhere") } else { Value::Null };
                let conversation = json!({
                    "schema": "portable-ai-memory-conversation", "schema_version": "1.0", "id": format!("c{id}"),
                    "provider": {"name": "elsewhere"}, "title": format!("Talk {id}"),
                    "temporal": {"created_at": "2025-01-01T00:00:00Z"},
                    "messages": [
                        {"id": format!("c{id}-0"), "role": "user", "created_at": "2025-01-01T00:00:00Z",
                            "content": {"type": "text", "text": "Hello"}},
                        {"id": format!("c{id}-1"), "role": "assistant", "created_at": "2025-01-01T00:00:01Z",
                            "content": {"type": "text", "text": "Hello you"}, "parent_id": second},
                    ],
                });
                fs::write(folder.join(&name), conversation.to_string())?;
                entry["storage"] = json!({"type": "file", "ref": name, "format": "json"});
            }
            1 => entry["storage"] = json!({"type": "file", "ref": "conversations/gone.json"}),
            2 => entry["storage"] = json!({"type": "uri", "ref": "https://example.org/talks"}),
            _ => {}
        }
        Ok(entry)
    }
}
