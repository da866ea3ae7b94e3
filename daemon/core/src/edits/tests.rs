//! Tests with a store, changes by hand and exports: a user's changes persist, whatever is imported later.

mod histories;
mod interrupted;
mod memories;
mod merges;

use satchel_registry::Plugins;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use satchel_merge::evidence::{StoredEvidence, memory_id};
use satchel_pam::{
    memory::{ExtractionMethod, Memory, MemoryType, Status},
    record::{Claim, Edit, Item},
    relation::Relation,
};
use satchel_source::Limits;
use satchel_store::{Batch, Change, EvidenceWrite, OpenOptions, Origin, Store};
use tempfile::TempDir;

use super::*;
use crate::{
    clock::Clock,
    ingest::Imports,
    provenance::{ActiveEvidence, UndoneImports},
};

/// 2026-01-01, in microseconds.
const START: i64 = 1_767_225_600_000_000;
const SECOND: i64 = 1_000_000;

/// A clock that a test sets; each reading advances it by one second.
struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn now_micros(&self) -> i64 {
        self.0.fetch_add(SECOND, Ordering::Relaxed)
    }
}

/// A store in a temporary directory.
struct Fixture {
    dir: TempDir,
    store: Store,
    imports: Imports,
    clock: Arc<TestClock>,
}

impl Fixture {
    fn new() -> Self {
        Self::open(tempfile::tempdir().unwrap(), START)
    }

    fn open(dir: TempDir, now: i64) -> Self {
        let store = Store::open(dir.path(), OpenOptions::default(), &mut |_| {}).unwrap();
        let clock = Arc::new(TestClock(AtomicI64::new(now)));
        let plugins = Arc::new(Plugins::built_in(None));
        let limits = satchel_host::PluginLimits::default();
        let imports = Imports::new(
            store.clone(),
            plugins,
            Arc::clone(&clock) as Arc<dyn Clock>,
            Limits::default(),
            limits,
        )
        .unwrap();
        Self { dir, store, imports, clock }
    }

    /// Restarts the program.
    fn restarted(self, rebuild: bool) -> Self {
        let Self { dir, store, imports, clock } = self;
        drop(imports);
        store.close().unwrap();
        let options = OpenOptions { rebuild, ..OpenOptions::default() };
        Store::open(dir.path(), options, &mut |_| {}).unwrap().close().unwrap();
        Self::open(dir, clock.0.load(Ordering::Relaxed))
    }

    /// Derives all records from the evidence.
    fn derived(&self) -> satchel_merge::evidence::DerivedMemories {
        ActiveEvidence::load(&self.store, &UndoneImports::new()).unwrap().derive()
    }

    /// Stores evidence and what follows from it, as the end of an import does.
    fn import(&self, evidence: &[StoredEvidence]) {
        let mut changes: Vec<Change> = Vec::new();
        for item in evidence {
            let (id, json) = item.encode().unwrap();
            changes.push(Change::Evidence(EvidenceWrite { id, json }));
        }
        let origin = Origin { actor: "test/1.0.0".to_owned(), at_micros: START, ..Origin::default() };
        self.store.commit(Batch { origin: origin.clone(), changes }).unwrap();
        let derived = self.derived();
        let (memories, relations) = self.shown();
        let mut changes: Vec<Change> = Vec::new();
        for id in relations.keys().filter(|id| !derived.relations.contains_key(*id)) {
            changes.push(Change::WithdrawRelation(id.clone()));
        }
        for (id, memory) in derived.memories {
            if memories.get(&id) != Some(&memory) {
                changes.push(Change::Memory(Box::new(memory)));
            }
        }
        for (id, relation) in derived.relations {
            if relations.get(&id) != Some(&relation) {
                changes.push(Change::Relation(relation));
            }
        }
        self.store.commit(Batch { origin, changes }).unwrap();
    }

    /// Returns all visible memories and relations.
    fn shown(&self) -> (BTreeMap<String, Memory>, BTreeMap<String, Relation>) {
        let revision = self.store.revision();
        let memories = self.store.memories(&satchel_store::MemoryQuery::default(), None, 1_000, revision);
        let relations = self.store.relations(None, 1_000, revision).unwrap().items;
        let memories = memories.unwrap().items.into_iter();
        (
            memories.map(|record| (record.memory.id.clone(), record.memory)).collect(),
            relations.into_iter().map(|record| (record.relation.id.clone(), record.relation)).collect(),
        )
    }

    fn memory(&self, id: &str) -> Memory {
        self.store.memory(id, None).unwrap().unwrap().memory
    }

    fn add(&self, content: &str) -> String {
        let draft = Draft { content: Some(content.to_owned()), ..Draft::default() };
        self.imports.edits().add_memory(&call(""), &draft).unwrap().memories.pop().unwrap()
    }

    fn status(&self, id: &str, status: Status) -> Result<EditOutcome, EditError> {
        self.imports.edits().set_memory_status(&call(""), id, "", status)
    }

    fn edit(&self, id: &str, draft: &Draft) -> Result<EditOutcome, EditError> {
        self.imports.edits().edit_memory(&call(""), id, "", draft)
    }

    /// Checks that the visible records are those derived from all evidence, that they are valid under PAM's rules, and
    /// that memories and relations agree on successors.
    fn check(&self) -> Result<(), String> {
        let (memories, relations) = self.shown();
        let derived = self.derived();
        for (id, memory) in &memories {
            if derived.memories.get(id) != Some(memory) {
                return Err(format!("{id} is shown as {memory:#?}, derived {:#?}", derived.memories.get(id)));
            }
            let issues = satchel_pam::validate::memory(memory, "memory");
            if !issues.is_empty() {
                return Err(format!("{issues:?} in {memory:#?}"));
            }
        }
        if memories.len() != derived.memories.len() {
            return Err(format!("{} memories are shown, {} derived", memories.len(), derived.memories.len()));
        }
        if relations != derived.relations {
            return Err(format!("shown {relations:#?}, derived {:#?}", derived.relations));
        }
        let faults = satchel_pam::lifecycle::inconsistencies(memories.values(), relations.values());
        if faults.is_empty() { Ok(()) } else { Err(format!("{faults:?}")) }
    }
}

fn call(reason: &str) -> EditContext {
    EditContext { actor: "owner".to_owned(), reason: reason.to_owned(), request: None }
}

fn content(text: &str) -> Draft {
    Draft { content: Some(text.to_owned()), ..Draft::default() }
}

fn tags(tags: &[&str]) -> Draft {
    Draft { tags: Some(tags.iter().map(|tag| (*tag).to_owned()).collect()), ..Draft::default() }
}

fn item(content: &str) -> Item {
    Item::new(content, MemoryType::Fact)
}

fn evidence(id: &str, at: i64, claim: Claim) -> StoredEvidence {
    StoredEvidence {
        id: id.to_owned(),
        platform: "chatgpt".to_owned(),
        account: None,
        at: START + at * SECOND,
        conversation: None,
        message: None,
        row: None,
        method: ExtractionMethod::ApiExport,
        extractor: "test/1.0.0".to_owned(),
        claim,
    }
}

fn stated(id: &str, at: i64, content: &str) -> StoredEvidence {
    evidence(id, at, Claim::Statement(item(content)))
}

/// Evidence of a list with a single line, which providers overwrite.
fn slot(id: &str, at: i64, content: &str) -> StoredEvidence {
    evidence(id, at, Claim::Snapshot { series: "about".to_owned(), items: vec![item(content)] })
}

fn logged(id: &str, at: i64, edit: Edit) -> StoredEvidence {
    evidence(id, at, Claim::Edit { log: "edits".to_owned(), sequence: 0, edit })
}

fn id_of(content: &str) -> String {
    memory_id(&item(content))
}
