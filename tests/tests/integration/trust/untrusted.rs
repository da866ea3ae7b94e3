//! Untrusted documents against every kind of existing record, imported in every way.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::{
    backup::{create, restore},
    edits::Draft,
    ingest::{
        Apply, Phase, WatchedImport,
        receipt::{DocumentStanding, ImportRecord},
        undo::{UndoDirection, UndoRequest},
    },
    vault::UnlockOptions,
};
use satchel_pam::{
    hash::ContentHash,
    memory::{Confidence, Status},
    relation::{Relation, RelationType},
    sign::{PublicKey, SigningKey},
    time::Timestamp,
};
use satchel_source::CancelToken;
use satchel_store::MemoryQuery;
use satchel_tests::{
    samples::backdate,
    test_core::{ExportedState, TestCore, demo_folder, only_import},
};
use serde_json::Value;

use super::{core_with_records, files, ids, read_store, write_store};

/// The id of a memory that only the untrusted document has.
const ADDED_ID: &str = "ffffffff-0000-4000-8000-000000000001";

/// How a document is imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ImportPath {
    Import,
    Apply,
    Watched,
}

fn import_by(core: &TestCore, import_path: ImportPath, folder: &Path) -> Result<ImportRecord> {
    match import_path {
        ImportPath::Import => only_import(core.import(folder)?),
        ImportPath::Apply => core.apply(folder),
        ImportPath::Watched => {
            let root = folder.parent().context("a folder above")?.to_owned();
            let name = folder.file_name().context("a name")?.to_owned();
            let watched = WatchedImport { root, name, session: false, providers: Vec::new() };
            let job = core.imports.start_watched(watched, Box::new(|_, _| {}))?;
            let mut view = core.imports.subscribe(job).context("a job")?;
            let runtime = tokio::runtime::Builder::new_current_thread().build()?;
            let ended = runtime.block_on(view.wait_for(|view| view.phase == Phase::Ended))?.clone();
            only_import(ended.imports)
        }
    }
}

/// Writes everything that `core` holds, retracted and rewritten at a later time by somebody else, together with a
/// new memory.
fn write_hostile_bundle(core: &TestCore, folder: &Path, key: Option<&SigningKey>) -> Result<PathBuf> {
    let copy = folder.join("copy");
    drop(fs::remove_dir_all(&copy));
    core.export(&copy)?;
    let mut store = read_store(&copy)?;
    let later = Timestamp::saturating(1_924_992_000_000_000);
    for (at, memory) in store.memories.iter_mut().enumerate() {
        memory.temporal.updated_at = Some(later);
        memory.tags = vec!["theirs".to_owned()];
        memory.confidence =
            Some(Confidence { initial: Some(0.01), current: Some(0.01), ..Confidence::default() });
        if at % 2 == 0 {
            memory.status = Status::Retracted;
        } else {
            memory.content = format!("Rewritten {at}");
            memory.content_hash = ContentHash::of(&memory.content);
        }
    }
    let mut new = store.memories[0].clone();
    (new.id, new.status) = (ADDED_ID.to_owned(), Status::Active);
    "Only the stranger says so".clone_into(&mut new.content);
    new.content_hash = ContentHash::of(&new.content);
    new.temporal.superseded_by = None;
    new.provenance = satchel_pam::memory::Provenance { platform: "elsewhere".into(), ..Default::default() };
    for relation in &mut store.relations {
        (relation.relation_type, relation.created_at) = (RelationType::Contradicts, later);
    }
    let targets: Vec<String> = store.memories.iter().map(|memory| memory.id.clone()).collect();
    store.relations.extend(targets.iter().enumerate().map(|(at, to)| Relation {
        id: format!("takes the place {at}"),
        from: ADDED_ID.to_owned(),
        to: to.clone(),
        relation_type: RelationType::Supersedes,
        confidence: None,
        created_at: later,
    }));
    store.memories.push(new);
    store.conversations_index.iter_mut().for_each(|entry| entry.title = Some("Theirs".to_owned()));
    let out = folder.join("theirs");
    drop(fs::remove_dir_all(&out));
    write_store(&out, store, key)?;
    for path in files(&copy.join("conversations"))? {
        let mut talk: Value = serde_json::from_slice(&fs::read(&path)?)?;
        talk["title"] = "Theirs".into();
        talk["temporal"]["updated_at"] = "2031-01-01T00:00:00Z".into();
        if let Some(message) = talk["messages"][0].as_object_mut() {
            message.insert("content".into(), serde_json::json!({"type": "text", "text": "Theirs"}));
        }
        fs::create_dir_all(out.join("conversations"))?;
        let name = path.file_name().context("a name")?;
        fs::write(out.join("conversations").join(name), serde_json::to_vec(&talk)?)?;
    }
    if let Ok(vectors) = fs::read_to_string(copy.join("embeddings.json")) {
        fs::write(out.join("embeddings.json"), vectors.replace("0.5", "0.125").replace("2023-", "2031-"))?;
    }
    backdate(&out)?;
    Ok(out)
}

/// Returns the state without the memory that only the untrusted document has.
fn without_added_memory(mut state: ExportedState) -> ExportedState {
    state.memories.retain(|memory| memory["id"] != ADDED_ID);
    state
}

fn all_vectors(core: &TestCore) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for id in ids(core)? {
        let of_it = core.store.embeddings_of(&id)?;
        all.extend(of_it.into_iter().map(|stored| format!("{:?}", stored.embedding)));
    }
    Ok(all)
}

#[test]
fn an_untrusted_document_adds_records_and_changes_none() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let key = SigningKey::from_bytes(&[9; 32]);
    for (round, key) in [None, Some(&key)].into_iter().enumerate() {
        for import_path in [ImportPath::Import, ImportPath::Apply, ImportPath::Watched] {
            let dir = folder.path().join(format!("{round}-{import_path:?}"));
            let core = core_with_records(&dir.join("data"))?;
            // Records from the bundle of a trusted friend, in addition to those from providers and by hand.
            let friend = TestCore::open(&dir.join("friend"))?;
            let draft = Draft { content: Some("A friend keeps bees".into()), ..Default::default() };
            friend.imports.edits().add_memory(&super::owner(), &draft)?;
            core.trust(&friend.export(&dir.join("friends"))?.signer)?;
            core.import(&dir.join("friends"))?;
            let theirs = write_hostile_bundle(&core, &dir, key)?;
            let (before, vectors_before) = (core.state()?, all_vectors(&core)?);
            let import = import_by(&core, import_path, &theirs)?;
            let what = format!(
                "{import_path:?} of {}",
                if key.is_some() { "a signed one" } else { "an unsigned one" }
            );
            ensure!(import.standing == Some(DocumentStanding::Untrusted), "{what}: {import:?}");
            ensure!(import.signer == key.map(|key| PublicKey::of(key).multibase()), "{what}: {import:?}");
            for counts in [import.conversations, import.messages, import.memories, import.embeddings] {
                ensure!(counts.balanced(), "{what}: {import:?}");
            }
            let after = core.state()?;
            ensure!(
                after.memories.len() == before.memories.len() + 1,
                "{what}: the new memory was not added"
            );
            ensure!(without_added_memory(after) == before, "{what}: an existing record was changed");
            ensure!(all_vectors(&core)? == vectors_before, "{what}: a vector was changed");
            let held = &import.would_change;
            // A retracted memory stays retracted, whatever other documents say.
            let final_ones =
                before.memories.iter().filter(|memory| memory["status"] == "retracted").count() as u64;
            let all = before.memories.len() as u64;
            ensure!(held.memories <= all && held.memories + final_ones >= all, "{what}: {held:?} of {all}");
            ensure!(held.conversations == before.conversations.len() as u64, "{what}: {held:?}");
            ensure!(held.relations > 0 && held.embeddings == 1, "{what}: {held:?}");
            let marked = satchel_core::provenance::untrusted_signer(&core.store, ADDED_ID)?;
            let label = key.map_or("unsigned".to_owned(), |key| PublicKey::of(key).multibase());
            ensure!(marked.as_deref() == Some(label.as_str()), "{what}: {marked:?}");
            // The conflict is listed each time, and an undo withdraws what the document added.
            let again = only_import(core.import_again(&theirs)?)?;
            ensure!(again.would_change.memories == held.memories, "{what}: {again:?}");
            for import in [&import.id, &again.id] {
                let request = UndoRequest {
                    id: import,
                    direction: UndoDirection::Undo,
                    dry_run: false,
                    expected: None,
                };
                core.imports.undo_or_redo(request, &CancelToken::new())?.context("the import")?;
            }
            ensure!(core.state()? == before, "{what}: the undo left changes");
            ensure!(satchel_core::provenance::untrusted_signer(&core.store, ADDED_ID)?.is_none(), "{what}");
        }
    }
    Ok(())
}

#[test]
fn later_sources_override_an_untrusted_document_that_came_first() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = core_with_records(&folder.path().join("here"))?;
    let theirs = write_hostile_bundle(&here, folder.path(), None)?;
    let there = TestCore::open(&folder.path().join("there"))?;
    let first = only_import(there.import(&theirs)?)?;
    ensure!(first.would_change.none(), "the first import was held back: {first:?}");
    here.export(&folder.path().join("bundle"))?;
    there.trust(&here.exports.public_keys()[0])?;
    there.apply(&folder.path().join("bundle"))?;
    let (one, other) = (here.state()?, without_added_memory(there.state()?));
    ensure!(one.memories == other.memories, "an untrusted memory overrides a trusted one");
    let planted = |relation: &Value| relation["type"] == "supersedes" && relation["from"] == ADDED_ID;
    ensure!(!other.relations.iter().any(planted), "{:?}", other.relations);
    Ok(())
}

#[test]
fn an_untrusted_signer_can_change_only_its_own_records() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (one, other) = (SigningKey::from_bytes(&[5; 32]), SigningKey::from_bytes(&[6; 32]));
    let here = core_with_records(&folder.path().join("here"))?;
    here.export(&folder.path().join("bundle"))?;
    let version = |name: &str, content: &str, at: i64, key: Option<&SigningKey>| -> Result<PathBuf> {
        let mut store = read_store(&folder.path().join("bundle"))?;
        store.memories.truncate(1);
        (store.relations, store.conversations_index) = (Vec::new(), Vec::new());
        content.clone_into(&mut store.memories[0].content);
        store.memories[0].content_hash = ContentHash::of(content);
        store.memories[0].temporal.updated_at = Some(Timestamp::saturating(1_800_000_000_000_000 + at));
        store.memories[0].provenance.conversation_ref = None;
        store.memories[0].provenance.message_ref = None;
        write_store(&folder.path().join(name), store, key)
    };
    let there = TestCore::open(&folder.path().join("there"))?;
    let shown = || -> Result<String> {
        let id = &ids(&there)?[0];
        Ok(there.store.memory(id, None)?.context("a memory")?.memory.content)
    };
    there.import(&version("first", "First", 1, Some(&one))?)?;
    there.import(&version("later", "Later", 2, Some(&one))?)?;
    assert_eq!(shown()?, "Later");
    for (name, key) in [("theirs", Some(&other)), ("nobodys", None)] {
        let import = only_import(there.import(&version(name, "Theirs", 3, key)?)?)?;
        ensure!(import.would_change.memories == 1 && import.memories.unchanged == 1, "{import:?}");
        assert_eq!(shown()?, "Later", "{name}");
    }
    // Once its signer is trusted, it replaces the other.
    let trust = Apply { trust: Some(PublicKey::of(&other)), any_owner: true, ..Apply::default() };
    let merged = there.apply_with(&folder.path().join("theirs"), false, trust)?;
    ensure!(merged.standing == Some(DocumentStanding::Trusted), "{merged:?}");
    assert_eq!(shown()?, "Theirs");
    Ok(())
}

/// A conversation that an untrusted document rewrote and extended is shown only until a source of the person contains it.
#[test]
fn an_own_conversation_replaces_an_untrusted_one_that_came_first() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for provider in ["chatgpt-export", "claude-export"] {
        let dir = folder.path().join(provider);
        let export = demo_folder().join(provider);
        let original = TestCore::open(&dir.join("own"))?;
        original.import(&export)?;
        let theirs = write_hostile_bundle(&original, &dir, None)?;
        let here = TestCore::open(&dir.join("here"))?;
        let first = only_import(here.import(&theirs)?)?;
        ensure!(first.conversations.new > 0 && first.conversations.skipped == 0, "{provider}: {first:?}");
        let planted = here.state()?;
        ensure!(serde_json::to_string(&planted.conversations)?.contains("Theirs"), "{provider}");
        let later = only_import(here.import(&export)?)?;
        ensure!(later.conversations.balanced() && later.messages.balanced(), "{provider}: {later:?}");
        let replaced =
            later.warnings.iter().filter(|warning| warning.message.contains("do not trust")).count();
        ensure!(replaced as u64 == later.conversations.updated && replaced > 0, "{provider}: {later:?}");
        ensure!(
            here.state()?.conversations == original.state()?.conversations,
            "{provider}: untrusted content is shown"
        );
        // The untrusted document, imported again, changes nothing, and undo and redo of the person's own import still
        // work.
        let again = only_import(here.import_again(&theirs)?)?;
        ensure!(again.would_change.conversations > 0, "{provider}: {again:?}");
        ensure!(here.state()?.conversations == original.state()?.conversations, "{provider}");
        for turn in [UndoDirection::Undo, UndoDirection::Redo] {
            let request = UndoRequest { id: &later.id, direction: turn, dry_run: false, expected: None };
            here.imports.undo_or_redo(request, &CancelToken::new())?.context("the import")?;
            let expected = if turn == UndoDirection::Undo { &planted } else { &original.state()? };
            ensure!(here.state()?.conversations == expected.conversations, "{provider}: after {turn:?}");
        }
    }
    Ok(())
}

/// A memory that only an untrusted document stated becomes the person's own once they state it themselves.
#[test]
fn a_memory_that_the_person_adds_too_is_no_longer_untrusted() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = TestCore::open(&folder.path().join("here"))?;
    let there = TestCore::open(&folder.path().join("there"))?;
    let draft = Draft { content: Some("Keeps bees".into()), ..Default::default() };
    there.imports.edits().add_memory(&super::owner(), &draft)?;
    there.export(&folder.path().join("theirs"))?;
    let import = only_import(here.import(&folder.path().join("theirs"))?)?;
    let id = ids(&here)?.pop().context("a memory")?;
    let signer = || satchel_core::provenance::untrusted_signer(&here.store, &id);
    ensure!(signer()?.is_some());
    let added = here.imports.edits().add_memory(&super::owner(), &draft)?;
    ensure!(!added.existed && added.memories == [id.clone()] && signer()?.is_none(), "{added:?}");
    here.imports.edits().undo_change(&super::owner(), &added.act)?;
    ensure!(signer()?.is_some() && ids(&here)? == [id.clone()], "the untrusted memory was not restored");
    here.imports.edits().add_memory(&super::owner(), &draft)?;
    let request =
        UndoRequest { id: &import.id, direction: UndoDirection::Undo, dry_run: false, expected: None };
    here.imports.undo_or_redo(request, &CancelToken::new())?.context("the import")?;
    ensure!(
        ids(&here)? == [id.clone()] && signer()?.is_none(),
        "the person's memory was undone with the untrusted import"
    );
    Ok(())
}

/// Creates another data directory whose bundles are merged here. It belongs to the user or to a person who is
/// trusted.
fn merged_core(here: &TestCore, dir: &Path, own: bool) -> Result<(TestCore, DocumentStanding)> {
    let (data, first) = (dir.join("there"), dir.join("first"));
    let draft = Draft { content: Some("Will be retracted".into()), ..Draft::default() };
    if own {
        here.imports.edits().add_memory(&super::owner(), &draft)?;
        here.export(&first)?;
        create::create(&here.store, here.store.dir(), &dir.join("backup"), 1, &mut |_| true)?;
        restore::restore(&dir.join("backup"), &data, false, &UnlockOptions::default(), &mut |_| true)?;
        return Ok((TestCore::open(&data)?, DocumentStanding::Own));
    }
    let there = TestCore::open(&data)?;
    there.imports.edits().add_memory(&super::owner(), &draft)?;
    here.trust(&there.export(&first)?.signer)?;
    here.import(&first)?;
    Ok((there, DocumentStanding::Trusted))
}

#[test]
fn a_watched_folder_merges_nothing_even_of_own_and_trusted_keys() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for own in [true, false] {
        let dir = folder.path().join(own.to_string());
        let here = core_with_records(&dir.join("here"))?;
        let (there, standing) = merged_core(&here, &dir, own)?;
        let rows = there.store.memories(&MemoryQuery::default(), None, 500, there.store.revision())?.items;
        let retracted = rows.iter().find(|row| row.memory.content == "Will be retracted");
        let id = &retracted.context("the memory")?.memory.id;
        there.imports.edits().set_memory_status(&super::owner(), id, "", Status::Retracted)?;
        let bundle = dir.join("watched/bundle");
        there.export(&bundle)?;
        backdate(&bundle)?;
        let before = here.state()?;
        let watched = import_by(&here, ImportPath::Watched, &bundle)?;
        ensure!(
            watched.standing == Some(DocumentStanding::Untrusted) && watched.would_change.memories == 1,
            "{watched:?}"
        );
        ensure!(here.state()? == before, "a watched file changed existing records");
        let merged = only_import(here.import_again(&bundle)?)?;
        ensure!(merged.standing == Some(standing), "{merged:?}");
        let status = here.store.memory(id, None)?.context("the memory")?.memory.status;
        ensure!(status == Status::Retracted, "own {own}: {status:?}");
    }
    Ok(())
}
