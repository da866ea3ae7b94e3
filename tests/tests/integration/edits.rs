//! Changes that a person makes by hand persist: through exports of the same and of newer content, undone imports,
//! documents from others, a rebuild and a move to another machine.

mod grpc;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use satchel_core::{
    edits::{Draft, EditContext, NewRelation},
    ingest::{
        Apply,
        undo::{UndoDirection, UndoRequest},
    },
};
use satchel_pam::{memory::Status, relation::RelationType};
use satchel_source::CancelToken;
use satchel_store::{MemoryQuery, OpenOptions, Store, record_key};
use satchel_tests::test_core::{ExportedState, TestCore, only_import};
use serde_json::{Value, json};

/// Writes a ChatGPT export in which the assistant stored `memories`.
fn write_chatgpt_export(dir: &Path, name: &str, memories: &[&str]) -> Result<PathBuf> {
    let lines: Vec<String> = memories
        .iter()
        .enumerate()
        .map(|(at, memory)| format!("{}. [2025-05-0{}]. {memory}.", at + 1, at + 1))
        .collect();
    let all = json!([{
        "title": "Hives", "create_time": 1_751_360_400, "update_time": 1_751_360_500 + memories.len(),
        "current_node": "u1", "conversation_id": "68148099-7a10-800f-9c51-000000000001",
        "mapping": {
            "root": {"id": "root", "message": null, "parent": null, "children": ["mem"]},
            "mem": {"id": "mem", "parent": "root", "children": ["u1"], "message": {
                "id": "mem", "author": {"role": "assistant"}, "create_time": 1_751_360_401.0, "recipient": "all",
                "content": {"content_type": "model_editable_context", "model_set_context": lines.join("\n")},
                "metadata": {"is_visually_hidden_from_conversation": true}}},
            "u1": {"id": "u1", "parent": "mem", "children": [], "message": {
                "id": "u1", "author": {"role": "user"}, "create_time": 1_751_360_402.0, "recipient": "all",
                "content": {"content_type": "text", "parts": ["Hello"]}, "metadata": {}}},
        },
    }]);
    let folder = dir.join(name);
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("conversations.json"), serde_json::to_vec(&all)?)?;
    Ok(folder)
}

fn owner() -> EditContext {
    EditContext { actor: "owner".to_owned(), reason: "by hand".to_owned(), request: None }
}

fn draft(text: &str) -> Draft {
    Draft { content: Some(text.to_owned()), ..Draft::default() }
}

/// Returns the id of the memory whose text begins with `content`.
fn find_memory(core: &TestCore, content: &str) -> Result<String> {
    let all = core.store.memories(&MemoryQuery::default(), None, 1_000, core.store.revision())?.items;
    let found = all.into_iter().find(|record| record.memory.content.starts_with(content));
    Ok(found.with_context(|| format!("no memory starts with {content:?}"))?.memory.id)
}

fn memory(core: &TestCore, id: &str) -> Result<satchel_pam::memory::Memory> {
    Ok(core.store.memory(id, None)?.context("a memory")?.memory)
}

/// The changes by a person: one edited text, one retraction, one tag, one new memory, one relation.
struct PersonEdits {
    edited: String,
    retracted: String,
    added: String,
}

fn edit_as_owner(core: &TestCore) -> Result<PersonEdits> {
    let (edited, retracted) = (find_memory(core, "Keeps bees")?, find_memory(core, "Has a van")?);
    let imports = &core.imports;
    imports.edits().edit_memory(&owner(), &edited, "", &draft("Keeps twelve hives"))?;
    imports.edits().set_memory_status(&owner(), &retracted, "", Status::Retracted)?;
    let added = imports.edits().add_memory(&owner(), &draft("Speaks Norwegian"))?.memories;
    let added = added.first().context("an id")?.clone();
    let tags = Draft { tags: Some(vec!["work".to_owned()]), ..Draft::default() };
    imports.edits().edit_memory(&owner(), &edited, "", &tags)?;
    let (from, to) = (added.clone(), edited.clone());
    let relation = NewRelation { from, to, relation_type: RelationType::RelatedTo, confidence: None };
    imports.edits().draw_relation(&owner(), &relation)?;
    Ok(PersonEdits { edited, retracted, added })
}

fn assert_edits_shown(core: &TestCore, edits: &PersonEdits) -> Result<()> {
    let edited = memory(core, &edits.edited)?;
    ensure!(edited.content == "Keeps twelve hives" && edited.tags == ["work"], "{edited:#?}");
    ensure!(edited.status == Status::Active, "{edited:#?}");
    ensure!(core.store.memory_visible(record_key(&edits.edited))?, "the person's edit is not shown");
    let retracted = memory(core, &edits.retracted)?;
    ensure!(retracted.status == Status::Retracted, "{retracted:#?}");
    ensure!(memory(core, &edits.added)?.content == "Speaks Norwegian");
    ensure!(core.store.relations_of(&edits.added, None)?.len() == 1);
    Ok(())
}

fn undo_or_redo(core: &TestCore, id: &str, turn: UndoDirection) -> Result<()> {
    let request = UndoRequest { id, direction: turn, dry_run: false, expected: None };
    core.imports.undo_or_redo(request, &CancelToken::new())?.context("there is no such import").map(drop)
}

#[test]
fn edits_survive_reimports_newer_exports_undos_and_a_rebuild() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let data = dir.path().join("data");
    let core = TestCore::open(&data)?;
    let export = write_chatgpt_export(dir.path(), "one", &["Keeps bees", "Has a van"])?;
    let first = only_import(core.import(&export)?)?;
    let edits = edit_as_owner(&core)?;
    assert_edits_shown(&core, &edits)?;
    let expected = core.state()?;
    core.import_again(&export)?;
    assert_edits_shown(&core, &edits)?;
    ensure!(core.state()? == expected, "a repeated import changed the state");
    let newer = write_chatgpt_export(dir.path(), "two", &["Keeps bees", "Has a van", "Sails"])?;
    core.import(&newer)?;
    assert_edits_shown(&core, &edits)?;
    for import in [&first.id, &only_import(core.import_again(&newer)?)?.id] {
        undo_or_redo(&core, import, UndoDirection::Undo)?;
        assert_edits_shown(&core, &edits)?;
        undo_or_redo(&core, import, UndoDirection::Redo)?;
        assert_edits_shown(&core, &edits)?;
    }
    let expected = core.state()?;
    core.close()?;
    let options = OpenOptions { rebuild: true, ..OpenOptions::default() };
    Store::open(&data, options, &mut |_| {})?.close()?;
    let core = TestCore::open(&data)?;
    ensure!(core.state()? == expected, "a rebuild changed the state");
    assert_edits_shown(&core, &edits)?;
    ensure!(core.store.check(true, &mut |_| {})?.clean());
    Ok(())
}

#[test]
fn undoing_an_import_removes_its_memories_but_not_the_persons_edits() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    let export = write_chatgpt_export(dir.path(), "one", &["Keeps bees", "Has a van", "Sails"])?;
    let import = only_import(core.import(&export)?)?;
    let edits = edit_as_owner(&core)?;
    let sails = find_memory(&core, "Sails")?;
    undo_or_redo(&core, &import.id, UndoDirection::Undo)?;
    ensure!(
        !core.store.memory_visible(record_key(&sails))?
            && !core.store.memory_visible(record_key(&edits.retracted))?
    );
    ensure!(
        core.store.memory_visible(record_key(&edits.edited))?
            && core.store.memory_visible(record_key(&edits.added))?
    );
    core.import_again(&export)?;
    assert_edits_shown(&core, &edits)?;
    Ok(())
}

#[test]
fn the_order_of_imports_and_edits_does_not_matter() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let exports = [
        write_chatgpt_export(dir.path(), "one", &["Keeps bees", "Has a van"])?,
        write_chatgpt_export(dir.path(), "two", &["Keeps bees", "Has a van", "Sails"])?,
        write_chatgpt_export(dir.path(), "three", &["Has a van", "Keeps bees", "Sails", "Cooks"])?,
    ];
    let mut states: Vec<ExportedState> = Vec::new();
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let core = TestCore::open(&dir.path().join(format!("data-{}", order[0])))?;
        core.import(&exports[order[0]])?;
        let edits = edit_as_owner(&core)?;
        core.import(&exports[order[1]])?;
        core.import(&exports[order[2]])?;
        assert_edits_shown(&core, &edits)?;
        states.push(without_times(core.state()?));
    }
    ensure!(states.windows(2).all(|pair| pair[0] == pair[1]), "{states:#?}");
    Ok(())
}

/// Returns a state without the times of the person's changes and without their ids.
fn without_times(mut state: ExportedState) -> ExportedState {
    for memory in &mut state.memories {
        memory["temporal"]["updated_at"] = Value::Null;
        memory["metadata"]["satchel"]["edited"] = Value::Null;
        if memory["content"] == "Speaks Norwegian" {
            *memory = memory["content"].clone();
        }
    }
    for relation in &mut state.relations {
        relation["created_at"] = Value::Null;
    }
    state
}

#[test]
fn edits_applied_to_an_empty_store_survive_later_imports() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let here = TestCore::open(&dir.path().join("here"))?;
    let export = write_chatgpt_export(dir.path(), "one", &["Keeps bees", "Has a van"])?;
    here.import(&export)?;
    let edits = edit_as_owner(&here)?;
    let bundle = dir.path().join("bundle");
    here.export(&bundle)?;
    let there = TestCore::open(&dir.path().join("there"))?;
    there.trust(&here.exports.public_keys()[0])?;
    there.apply(&bundle)?;
    assert_edits_shown(&there, &edits)?;
    let (one, other) = (here.state()?, there.state()?);
    ensure!(one.memories == other.memories && one.relations == other.relations, "{one:#?} is not {other:#?}");
    // Later the provider's own exports arrive there and contain the memories that the person changed.
    there.import(&export)?;
    there.import(&write_chatgpt_export(dir.path(), "two", &["Has a van", "Keeps bees", "Sails"])?)?;
    assert_edits_shown(&there, &edits)?;
    // The bundle returns to where it was made.
    here.apply(&bundle)?;
    assert_edits_shown(&here, &edits)?;
    ensure!(here.state()? == one, "the store's own export changed the state");
    Ok(())
}

/// Writes a document from somebody else that names the store's owner as its own and in which every memory has a newer
/// change.
fn write_foreign_document(core: &TestCore, dir: &Path, change: impl Fn(&mut Value)) -> Result<PathBuf> {
    let bundle = dir.join("theirs");
    core.export(&bundle)?;
    let mut store: Value = serde_json::from_slice(&std::fs::read(bundle.join("memory-store.json"))?)?;
    for memory in store["memories"].as_array_mut().context("memories")? {
        memory["temporal"]["updated_at"] = json!("2031-01-01T00:00:00Z");
        change(memory);
    }
    let file = dir.join("theirs.json");
    let object = store.as_object_mut().context("an object")?;
    for key in ["integrity", "signature", "export_id", "base_export_id"] {
        object.remove(key);
    }
    std::fs::write(&file, serde_json::to_vec(&store)?)?;
    Ok(file)
}

#[test]
fn an_untrusted_document_does_not_revert_edits() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    core.import(&write_chatgpt_export(dir.path(), "one", &["Keeps bees", "Has a van", "Sails"])?)?;
    let sails = find_memory(&core, "Sails")?;
    let theirs = write_foreign_document(&core, dir.path(), |memory| {
        memory["status"] = json!("active");
        memory["tags"] = json!(["theirs"]);
    })?;
    let edits = edit_as_owner(&core)?;
    let import = only_import(core.import(&theirs)?)?;
    assert_edits_shown(&core, &edits)?;
    ensure!(memory(&core, &sails)?.tags.is_empty(), "an untrusted document changed an unedited memory");
    ensure!(import.would_change.listed.contains(&sails), "{import:?}");
    core.apply_with(&theirs, false, Apply { force: true, ..Apply::default() })?;
    assert_edits_shown(&core, &edits)?;
    ensure!(
        memory(&core, &sails)?.tags == ["theirs"],
        "the forced document did not change an unedited memory"
    );
    Ok(())
}

#[test]
fn a_forced_retraction_overrides_edits_until_the_person_reverts_it() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    core.import(&write_chatgpt_export(dir.path(), "one", &["Keeps bees", "Has a van"])?)?;
    let theirs = write_foreign_document(&core, dir.path(), |memory| memory["status"] = json!("retracted"))?;
    let edits = edit_as_owner(&core)?;
    core.import(&theirs)?;
    ensure!(
        memory(&core, &edits.edited)?.status == Status::Active,
        "an untrusted document retracted a memory"
    );
    let forced = || core.apply_with(&theirs, false, Apply { force: true, ..Apply::default() });
    forced()?;
    ensure!(memory(&core, &edits.edited)?.status == Status::Retracted, "the forced retraction was lost");
    let version = core.store.memory(&edits.edited, None)?.context("a memory")?.version - 1;
    core.imports.edits().restore_memory_version(&owner(), &edits.edited, version)?;
    ensure!(memory(&core, &edits.edited)?.status == Status::Active);
    forced()?;
    ensure!(memory(&core, &edits.edited)?.status == Status::Active, "the reverted retraction came back");
    Ok(())
}

#[test]
fn incremental_exports_carry_edits_and_their_undo() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let here = TestCore::open(&dir.path().join("here"))?;
    here.import(&write_chatgpt_export(dir.path(), "one", &["Keeps bees", "Has a van"])?)?;
    let there = TestCore::open(&dir.path().join("there"))?;
    let base = dir.path().join("base");
    here.export(&base)?;
    there.apply(&base)?;
    let (bees, van) = (find_memory(&here, "Keeps bees")?, find_memory(&here, "Has a van")?);
    let act = here.imports.edits().edit_memory(&owner(), &bees, "", &draft("Keeps twelve hives"))?.act;
    here.imports.edits().set_memory_status(&owner(), &van, "", Status::Archived)?;
    let delta = dir.path().join("delta");
    here.export_changes(None, &delta)?;
    there.apply(&delta)?;
    ensure!(memory(&there, &bees)?.content == "Keeps twelve hives");
    ensure!(memory(&there, &van)?.status == Status::Archived);
    here.imports.edits().undo_change(&owner(), &act)?;
    let delta = dir.path().join("delta-2");
    here.export_changes(None, &delta)?;
    there.apply(&delta)?;
    ensure!(memory(&there, &bees)?.content.starts_with("Keeps bees"), "{:?}", memory(&there, &bees)?);
    ensure!(here.state()?.memories == there.state()?.memories);
    Ok(())
}

#[test]
fn an_import_that_states_the_persons_memory_reinforces_it() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    let draft = Draft { tags: Some(vec!["own".to_owned()]), ..draft("Keeps bees.") };
    let id = core.imports.edits().add_memory(&owner(), &draft)?.memories[0].clone();
    core.import(&write_chatgpt_export(dir.path(), "one", &["Keeps bees"])?)?;
    let memory = memory(&core, &id)?;
    ensure!(memory.metadata["satchel"]["evidence_count"] == json!(2), "{memory:#?}");
    ensure!(
        memory.tags == ["own"] && memory.confidence.as_ref().is_some_and(|one| one.last_reinforced.is_some())
    );
    Ok(())
}

#[test]
fn a_vector_of_replaced_text_is_not_exported() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    let id = core.imports.edits().add_memory(&owner(), &draft("Keeps bees"))?.memories[0].clone();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    core.export(&first)?;
    let vector = json!({"schema": "portable-ai-memory-embeddings", "schema_version": "1.0", "embeddings": [{
        "id": "e-1", "memory_id": id, "model": "m", "dimensions": 2,
        "created_at": "2026-01-01T00:00:00Z", "vector": [0.5, 0.25]}]});
    std::fs::write(first.join("embeddings.json"), serde_json::to_vec(&vector)?)?;
    std::fs::remove_file(first.join("satchel-manifest.json"))?;
    core.import(&first)?;
    ensure!(core.store.embeddings_of(&id)?.len() == 1, "the vector was not stored");
    let act = core.imports.edits().edit_memory(&owner(), &id, "", &draft("Keeps twelve hives"))?.act;
    core.export(&second)?;
    let written = std::fs::read_to_string(second.join("embeddings.json"))?;
    ensure!(!written.contains("e-1"), "{written}");
    core.imports.edits().undo_change(&owner(), &act)?;
    let third = dir.path().join("third");
    core.export(&third)?;
    ensure!(std::fs::read_to_string(third.join("embeddings.json"))?.contains("e-1"));
    Ok(())
}
