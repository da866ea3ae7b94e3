//! The counts in a receipt, and how the counted records are found again.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, ThreadId},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::{
    clock::{Clock, SystemClock},
    ingest::{
        ImportRequest, Phase,
        receipt::{ImportRecord, ImportStatus, LISTED_SKIPS},
    },
};
use satchel_pam::{
    ids,
    relation::{Relation, RelationType},
    time::Timestamp,
};
use satchel_source::Limits;
use satchel_store::{Batch, Change, EvidenceWrite, Origin};
use satchel_tests::test_core::{TestCore, demo_folder, only_import};
use serde_json::json;

/// Stores evidence from which nothing was derived, as an import does that is killed between two batches.
fn store_underived_evidence(core: &TestCore, content: &str) -> Result<()> {
    let evidence = json!({
        "id": "07070707-0707-4707-8707-070707070707", "platform": "chatgpt", "at": 1, "method": "api_export",
        "extractor": "gone/1.0.0", "claim": {"statement": {"content": content, "memory_type": "fact"}},
    });
    let id = *b"\x07\x07\x07\x07\x07\x07\x47\x07\x87\x07\x07\x07\x07\x07\x07\x07";
    let change = Change::Evidence(EvidenceWrite { id, json: serde_json::to_vec(&evidence)? });
    core.store.commit(Batch { origin: Origin::default(), changes: vec![change] })?;
    Ok(())
}

#[test]
fn memories_derived_from_other_evidence_are_stored_and_not_counted() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let alone = TestCore::open(&dir.path().join("alone"))?;
    let expected = only_import(alone.import(&demo_folder().join("claude-export"))?)?.memories;

    let core = TestCore::open(&dir.path().join("data"))?;
    store_underived_evidence(&core, "Keeps bees on the roof")?;
    let import = only_import(core.import(&demo_folder().join("claude-export"))?)?;
    assert_eq!(import.memories, expected);
    let held = core.state()?.memories;
    assert!(held.iter().any(|memory| memory["content"] == "Keeps bees on the roof"), "{held:?}");
    Ok(())
}

#[test]
fn a_memory_that_an_import_replaces_counts_as_updated() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    let import = |name: &str, at: i64, about: &str| -> Result<ImportRecord> {
        let folder = dir.path().join(name);
        fs::create_dir(&folder)?;
        fs::write(folder.join("conversations.json"), export_with_instructions(name, at, about).to_string())?;
        only_import(core.import(&folder)?)
    };
    let first = import("first", 1_746_180_000, "I live in Bergen.")?;
    let second = import("second", 1_746_190_000, "I live in Oslo.")?;
    let counted =
        |import: &ImportRecord| (import.memories.found, import.memories.new, import.memories.updated);
    assert_eq!((counted(&first), counted(&second)), ((1, 1, 0), (2, 1, 1)));
    Ok(())
}

/// Returns a ChatGPT export of one conversation that shows the person's custom instructions.
fn export_with_instructions(id: &str, at: i64, about: &str) -> serde_json::Value {
    let node = |id: &str, parent: Option<&str>, children: &[&str], message: serde_json::Value| json!({"id": id, "parent": parent, "children": children, "message": message});
    let context = json!({
        "id": "context", "author": {"role": "user"}, "create_time": at, "weight": 0.0, "recipient": "all",
        "content": {"content_type": "user_editable_context", "user_profile": about, "user_instructions": ""},
        "metadata": {
            "is_visually_hidden_from_conversation": true, "is_user_system_message": true,
            "user_context_message_data": {"about_user_message": about},
        },
    });
    let question = json!({
        "id": "question", "author": {"role": "user"}, "create_time": at + 1, "weight": 1.0, "recipient": "all",
        "content": {"content_type": "text", "parts": ["Hello"]}, "metadata": {},
    });
    json!([{
        "title": "Hello", "create_time": at, "update_time": at + 1, "conversation_id": id,
        "current_node": "question",
        "mapping": {
            "root": node("root", None, &["context"], serde_json::Value::Null),
            "context": node("context", Some("root"), &["question"], context),
            "question": node("question", Some("context"), &[], question),
        },
    }])
}

#[test]
fn a_relation_stated_by_an_export_survives_other_imports() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    core.import(&demo_folder().join("chatgpt-export"))?;
    let held = core.state()?.memories;
    let id = |at: usize| Some(held.get(at)?["id"].as_str()?.to_owned());
    let (from, to) = id(0).zip(id(1)).context("two memories")?;
    let named = Relation {
        id: ids::relation_id(&from, &to, RelationType::Supersedes).to_string(),
        from,
        to,
        relation_type: RelationType::Supersedes,
        confidence: None,
        created_at: Timestamp::saturating(0),
    };
    let origin = Origin { reason: "import".into(), ..Origin::default() };
    core.store.commit(Batch { origin, changes: vec![Change::Relation(named.clone())] })?;
    core.import(&demo_folder().join("claude-export"))?;
    let stored = core.store.relation(&named.id, None)?.context("the edge")?;
    assert!(!stored.withdrawn);
    Ok(())
}

#[test]
fn an_unchanged_import_is_in_the_history_with_all_issues() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let data = dir.path().join("data");
    let core = TestCore::open(&data)?;
    let export = dir.path().join("export");
    let broken = LISTED_SKIPS + 150;
    fs::create_dir(&export)?;
    let mut all = export_with_instructions("whole", 1_746_180_000, "I live in Oslo.");
    let conversations = all.as_array_mut().context("a list")?;
    conversations.extend(vec![json!({"mapping": null, "title": "broken", "conversation_id": "x"}); broken]);
    fs::write(export.join("conversations.json"), all.to_string())?;
    let first = only_import(core.import(&export)?)?;
    ensure!(first.conversations.skipped == broken as u64, "{:?}", first.conversations);
    let second = only_import(core.import(&export)?)?;
    assert_eq!(second.status, ImportStatus::Unchanged);
    core.close()?;

    let core = TestCore::open(&data)?;
    for shown in [first, second] {
        let found = core.imports.get(&shown.id)?.context("the import")?;
        assert_eq!((found.status, found.conversations), (shown.status, shown.conversations));
        assert_eq!(core.imports.issues(&found, 0, 10_000)?.len(), broken, "{:?}", found.status);
    }
    Ok(())
}

#[test]
fn a_dry_run_can_be_looked_up_as_long_as_its_job() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    let request = ImportRequest {
        path: demo_folder().join("claude-export"),
        provider: None,
        plugin: None,
        again: false,
        dry_run: true,
        apply: None,
    };
    let shown = only_import(core.run(request)?)?;
    assert_eq!(core.imports.get(&shown.id)?, Some(shown));
    assert!(core.imports.list(None, 10)?.items.is_empty());
    Ok(())
}

/// A clock that panics once when it is read on a thread other than the test's.
struct PanickingClock(AtomicBool, ThreadId);

impl Clock for PanickingClock {
    fn now_micros(&self) -> i64 {
        let breaks = thread::current().id() != self.1 && self.0.swap(false, Ordering::SeqCst);
        assert!(!breaks, "the clock breaks");
        SystemClock.now_micros()
    }
}

#[test]
fn a_job_that_panics_fails_and_the_next_one_runs() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let clock = Arc::new(PanickingClock(AtomicBool::new(false), thread::current().id()));
    let core = TestCore::with_limits_and_clock(&dir.path().join("data"), Limits::default(), clock.clone())?;
    clock.0.store(true, Ordering::SeqCst);
    let broken = only_import(import_with_timeout(&core, &demo_folder().join("claude-export"))?)?;
    assert_eq!(broken.status, ImportStatus::Failed);
    assert!(broken.reason.context("a reason")?.contains("internal error"));
    let next = only_import(import_with_timeout(&core, &demo_folder().join("claude-export"))?)?;
    assert_eq!(next.status, ImportStatus::Completed);
    Ok(())
}

fn import_with_timeout(core: &TestCore, path: &Path) -> Result<Vec<ImportRecord>> {
    let request = ImportRequest {
        path: path.to_owned(),
        provider: None,
        plugin: None,
        again: false,
        dry_run: false,
        apply: None,
    };
    let job = core.imports.start(request)?;
    let mut view = core.imports.subscribe(job).context("the job")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let ended = runtime.block_on(async {
        let ended = view.wait_for(|view| view.phase == Phase::Ended);
        Ok::<_, anyhow::Error>(tokio::time::timeout(Duration::from_mins(1), ended).await??.clone())
    })?;
    Ok(ended.imports)
}
