//! Changes that a person makes by hand persist: through exports of the same and of newer content, undone imports,
//! documents from others, a rebuild and a move to another machine.

mod calls;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use satchel_core::ingest::{
    Apply,
    hand::{Call, Draft, NewRelation},
    undo::{Turn, TurnRequest},
};
use satchel_pam::{memory::Status, relation::RelationType};
use satchel_source::CancelToken;
use satchel_store::{MemoryQuery, OpenOptions, Store, key_of};
use satchel_tests::archive::{Archive, State, only};
use serde_json::{Value, json};

/// Writes a ChatGPT export in which the assistant stored `memories`.
fn chatgpt(dir: &Path, name: &str, memories: &[&str]) -> Result<PathBuf> {
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

fn owner() -> Call {
    Call { actor: "owner".to_owned(), reason: "by hand".to_owned(), request: None }
}

fn content(text: &str) -> Draft {
    Draft { content: Some(text.to_owned()), ..Draft::default() }
}

/// Returns the id of the memory whose text begins with `content`.
fn find(archive: &Archive, content: &str) -> Result<String> {
    let all = archive.store.memories(&MemoryQuery::default(), None, 1_000, archive.store.revision())?.items;
    let found = all.into_iter().find(|record| record.memory.content.starts_with(content));
    Ok(found.with_context(|| format!("no memory says {content:?}"))?.memory.id)
}

fn memory(archive: &Archive, id: &str) -> Result<satchel_pam::memory::Memory> {
    Ok(archive.store.memory(id, None)?.context("it is known")?.memory)
}

/// The changes by a person: one edited text, one retraction, one tag, one new memory, one relation.
struct Hand {
    edited: String,
    retracted: String,
    added: String,
}

fn change(archive: &Archive) -> Result<Hand> {
    let (edited, retracted) = (find(archive, "Keeps bees")?, find(archive, "Has a van")?);
    let imports = &archive.imports;
    imports.edit_memory(&owner(), &edited, "", &content("Keeps twelve hives"))?;
    imports.set_memory_status(&owner(), &retracted, "", Status::Retracted)?;
    let added = imports.add_memory(&owner(), &content("Speaks Norwegian"))?.memories;
    let added = added.first().context("an id")?.clone();
    let tags = Draft { tags: Some(vec!["work".to_owned()]), ..Draft::default() };
    imports.edit_memory(&owner(), &edited, "", &tags)?;
    let (from, to) = (added.clone(), edited.clone());
    let relation = NewRelation { from, to, relation_type: RelationType::RelatedTo, confidence: None };
    imports.draw_relation(&owner(), &relation)?;
    Ok(Hand { edited, retracted, added })
}

fn stands(archive: &Archive, hand: &Hand) -> Result<()> {
    let edited = memory(archive, &hand.edited)?;
    ensure!(edited.content == "Keeps twelve hives" && edited.tags == ["work"], "{edited:#?}");
    ensure!(edited.status == Status::Active, "{edited:#?}");
    ensure!(archive.store.shows_memory(key_of(&hand.edited))?, "what the person wrote is shown");
    let retracted = memory(archive, &hand.retracted)?;
    ensure!(retracted.status == Status::Retracted, "{retracted:#?}");
    ensure!(memory(archive, &hand.added)?.content == "Speaks Norwegian");
    ensure!(archive.store.relations_of(&hand.added, None)?.len() == 1);
    Ok(())
}

fn turn(archive: &Archive, id: &str, turn: Turn) -> Result<()> {
    let request = TurnRequest { id, turn, dry_run: false, expected: None };
    archive.imports.turn(request, &CancelToken::new())?.context("there is no such import").map(drop)
}

#[test]
fn changes_outlive_the_same_export_a_newer_one_an_undo_and_a_rebuild() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let data = dir.path().join("data");
    let archive = Archive::open(&data)?;
    let export = chatgpt(dir.path(), "one", &["Keeps bees", "Has a van"])?;
    let first = only(archive.import(&export)?)?;
    let hand = change(&archive)?;
    stands(&archive, &hand)?;
    let told = archive.state()?;
    archive.import_again(&export)?;
    stands(&archive, &hand)?;
    ensure!(archive.state()? == told, "the same export changed what is shown");
    let newer = chatgpt(dir.path(), "two", &["Keeps bees", "Has a van", "Sails"])?;
    archive.import(&newer)?;
    stands(&archive, &hand)?;
    for import in [&first.id, &only(archive.import_again(&newer)?)?.id] {
        turn(&archive, import, Turn::Undo)?;
        stands(&archive, &hand)?;
        turn(&archive, import, Turn::Redo)?;
        stands(&archive, &hand)?;
    }
    let told = archive.state()?;
    archive.close()?;
    let options = OpenOptions { rebuild: true, ..OpenOptions::default() };
    Store::open(&data, options, &mut |_| {})?.close()?;
    let archive = Archive::open(&data)?;
    ensure!(archive.state()? == told, "a rebuild changed what is shown");
    stands(&archive, &hand)?;
    ensure!(archive.store.check(true, &mut |_| {})?.clean());
    Ok(())
}

#[test]
fn what_only_undone_imports_brought_goes_but_not_what_the_person_wrote() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let archive = Archive::open(&dir.path().join("data"))?;
    let export = chatgpt(dir.path(), "one", &["Keeps bees", "Has a van", "Sails"])?;
    let import = only(archive.import(&export)?)?;
    let hand = change(&archive)?;
    let sails = find(&archive, "Sails")?;
    turn(&archive, &import.id, Turn::Undo)?;
    ensure!(
        !archive.store.shows_memory(key_of(&sails))?
            && !archive.store.shows_memory(key_of(&hand.retracted))?
    );
    ensure!(
        archive.store.shows_memory(key_of(&hand.edited))?
            && archive.store.shows_memory(key_of(&hand.added))?
    );
    archive.import_again(&export)?;
    stands(&archive, &hand)?;
    Ok(())
}

#[test]
fn the_order_of_exports_and_changes_never_matters() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let exports = [
        chatgpt(dir.path(), "one", &["Keeps bees", "Has a van"])?,
        chatgpt(dir.path(), "two", &["Keeps bees", "Has a van", "Sails"])?,
        chatgpt(dir.path(), "three", &["Has a van", "Keeps bees", "Sails", "Cooks"])?,
    ];
    let mut states: Vec<State> = Vec::new();
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let archive = Archive::open(&dir.path().join(format!("data-{}", order[0])))?;
        archive.import(&exports[order[0]])?;
        let hand = change(&archive)?;
        archive.import(&exports[order[1]])?;
        archive.import(&exports[order[2]])?;
        stands(&archive, &hand)?;
        states.push(without_times(archive.state()?));
    }
    ensure!(states.windows(2).all(|pair| pair[0] == pair[1]), "{states:#?}");
    Ok(())
}

/// Returns a state without the times of the person's changes and without their ids.
fn without_times(mut state: State) -> State {
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
fn an_empty_store_that_takes_the_export_has_the_same_and_keeps_it_over_the_providers() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let here = Archive::open(&dir.path().join("here"))?;
    let export = chatgpt(dir.path(), "one", &["Keeps bees", "Has a van"])?;
    here.import(&export)?;
    let hand = change(&here)?;
    let bundle = dir.path().join("bundle");
    here.export(&bundle)?;
    let there = Archive::open(&dir.path().join("there"))?;
    there.trust(&here.exports.signers()[0])?;
    there.apply(&bundle)?;
    stands(&there, &hand)?;
    let (one, other) = (here.state()?, there.state()?);
    ensure!(one.memories == other.memories && one.relations == other.relations, "{one:#?} is not {other:#?}");
    // Later the provider's own exports arrive there and contain the memories that the person changed.
    there.import(&export)?;
    there.import(&chatgpt(dir.path(), "two", &["Has a van", "Keeps bees", "Sails"])?)?;
    stands(&there, &hand)?;
    // The bundle returns to where it was made.
    here.apply(&bundle)?;
    stands(&here, &hand)?;
    ensure!(here.state()? == one, "one's own export changed what is shown");
    Ok(())
}

/// Writes a document from somebody else that names the store's owner as its own and in which every memory has a newer
/// change.
fn foreign(archive: &Archive, dir: &Path, change: impl Fn(&mut Value)) -> Result<PathBuf> {
    let bundle = dir.join("theirs");
    archive.export(&bundle)?;
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
fn a_document_of_another_takes_nothing_back_that_the_person_said() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let archive = Archive::open(&dir.path().join("data"))?;
    archive.import(&chatgpt(dir.path(), "one", &["Keeps bees", "Has a van", "Sails"])?)?;
    let sails = find(&archive, "Sails")?;
    let theirs = foreign(&archive, dir.path(), |memory| {
        memory["status"] = json!("active");
        memory["tags"] = json!(["theirs"]);
    })?;
    let hand = change(&archive)?;
    let import = only(archive.import(&theirs)?)?;
    stands(&archive, &hand)?;
    ensure!(memory(&archive, &sails)?.tags.is_empty(), "what nobody edited stays as the provider has it");
    ensure!(import.would_change.listed.contains(&sails), "{import:?}");
    archive.apply_by(&theirs, false, Apply { force: true, ..Apply::default() })?;
    stands(&archive, &hand)?;
    ensure!(memory(&archive, &sails)?.tags == ["theirs"], "what nobody edited follows the newer document");
    Ok(())
}

#[test]
fn a_retraction_by_a_document_holds_against_edits_but_not_against_the_person_taking_it_back() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let archive = Archive::open(&dir.path().join("data"))?;
    archive.import(&chatgpt(dir.path(), "one", &["Keeps bees", "Has a van"])?)?;
    let theirs = foreign(&archive, dir.path(), |memory| memory["status"] = json!("retracted"))?;
    let hand = change(&archive)?;
    archive.import(&theirs)?;
    ensure!(memory(&archive, &hand.edited)?.status == Status::Active, "a stranger retracts nothing");
    let forced = || archive.apply_by(&theirs, false, Apply { force: true, ..Apply::default() });
    forced()?;
    ensure!(memory(&archive, &hand.edited)?.status == Status::Retracted, "PAM lets no retraction be lost");
    let version = archive.store.memory(&hand.edited, None)?.context("a memory")?.version - 1;
    archive.imports.restore_memory_version(&owner(), &hand.edited, version)?;
    ensure!(memory(&archive, &hand.edited)?.status == Status::Active);
    forced()?;
    ensure!(memory(&archive, &hand.edited)?.status == Status::Active, "the person took it back");
    Ok(())
}

#[test]
fn changes_travel_in_an_incremental_export_and_so_does_their_undo() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let here = Archive::open(&dir.path().join("here"))?;
    here.import(&chatgpt(dir.path(), "one", &["Keeps bees", "Has a van"])?)?;
    let there = Archive::open(&dir.path().join("there"))?;
    let base = dir.path().join("base");
    here.export(&base)?;
    there.apply(&base)?;
    let (bees, van) = (find(&here, "Keeps bees")?, find(&here, "Has a van")?);
    let act = here.imports.edit_memory(&owner(), &bees, "", &content("Keeps twelve hives"))?.act;
    here.imports.set_memory_status(&owner(), &van, "", Status::Archived)?;
    let delta = dir.path().join("delta");
    here.export_changes(None, &delta)?;
    there.apply(&delta)?;
    ensure!(memory(&there, &bees)?.content == "Keeps twelve hives");
    ensure!(memory(&there, &van)?.status == Status::Archived);
    here.imports.undo_change(&owner(), &act)?;
    let delta = dir.path().join("delta-2");
    here.export_changes(None, &delta)?;
    there.apply(&delta)?;
    ensure!(memory(&there, &bees)?.content.starts_with("Keeps bees"), "{:?}", memory(&there, &bees)?);
    ensure!(here.state()?.memories == there.state()?.memories);
    Ok(())
}

#[test]
fn an_import_that_says_a_persons_memory_reinforces_it() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let archive = Archive::open(&dir.path().join("data"))?;
    let draft = Draft { tags: Some(vec!["own".to_owned()]), ..content("Keeps bees.") };
    let id = archive.imports.add_memory(&owner(), &draft)?.memories[0].clone();
    archive.import(&chatgpt(dir.path(), "one", &["Keeps bees"])?)?;
    let memory = memory(&archive, &id)?;
    ensure!(memory.metadata["satchel"]["evidence_count"] == json!(2), "{memory:#?}");
    ensure!(
        memory.tags == ["own"] && memory.confidence.as_ref().is_some_and(|one| one.last_reinforced.is_some())
    );
    Ok(())
}

#[test]
fn a_vector_of_what_the_person_replaced_stays_at_home() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let archive = Archive::open(&dir.path().join("data"))?;
    let id = archive.imports.add_memory(&owner(), &content("Keeps bees"))?.memories[0].clone();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    archive.export(&first)?;
    let vector = json!({"schema": "portable-ai-memory-embeddings", "schema_version": "1.0", "embeddings": [{
        "id": "e-1", "memory_id": id, "model": "m", "dimensions": 2,
        "created_at": "2026-01-01T00:00:00Z", "vector": [0.5, 0.25]}]});
    std::fs::write(first.join("embeddings.json"), serde_json::to_vec(&vector)?)?;
    std::fs::remove_file(first.join("satchel-manifest.json"))?;
    archive.import(&first)?;
    ensure!(archive.store.embeddings_of(&id)?.len() == 1, "the vector was not taken");
    let act = archive.imports.edit_memory(&owner(), &id, "", &content("Keeps twelve hives"))?.act;
    archive.export(&second)?;
    let written = std::fs::read_to_string(second.join("embeddings.json"))?;
    ensure!(!written.contains("e-1"), "{written}");
    archive.imports.undo_change(&owner(), &act)?;
    let third = dir.path().join("third");
    archive.export(&third)?;
    ensure!(std::fs::read_to_string(third.join("embeddings.json"))?.contains("e-1"));
    Ok(())
}
