//! A stranger's document against every kind of existing record, by every way in.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::{
    backup::{create, restore},
    ingest::{
        Apply, Phase, WatchedImport,
        hand::Draft,
        receipt::{ImportRecord, Standing},
        undo::{Turn, TurnRequest},
    },
    vault::Unlock,
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
    archive::{Archive, State, demo, only},
    exports::age,
};
use serde_json::Value;

use super::{files, filled, ids, read_store, write_store};

/// The id of a memory that only the stranger has.
const NEW: &str = "ffffffff-0000-4000-8000-000000000001";

/// The way in which a document arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Import,
    Apply,
    Watched,
}

fn bring(archive: &Archive, way: Way, folder: &Path) -> Result<ImportRecord> {
    match way {
        Way::Import => only(archive.import(folder)?),
        Way::Apply => archive.apply(folder),
        Way::Watched => {
            let root = folder.parent().context("a folder above")?.to_owned();
            let name = folder.file_name().context("a name")?.to_owned();
            let watched = WatchedImport { root, name, providers: Vec::new() };
            let job = archive.imports.start_watched(watched, Box::new(|_, _| {}))?;
            let mut view = archive.imports.subscribe(job).context("a job")?;
            let runtime = tokio::runtime::Builder::new_current_thread().build()?;
            let ended = runtime.block_on(view.wait_for(|view| view.phase == Phase::Ended))?.clone();
            only(ended.imports)
        }
    }
}

/// Writes everything that `archive` holds, retracted and rewritten at a later time by somebody else, together with a
/// new memory.
fn hostile(archive: &Archive, folder: &Path, key: Option<&SigningKey>) -> Result<PathBuf> {
    let copy = folder.join("copy");
    drop(fs::remove_dir_all(&copy));
    archive.export(&copy)?;
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
    (new.id, new.status) = (NEW.to_owned(), Status::Active);
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
        from: NEW.to_owned(),
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
    age(&out)?;
    Ok(out)
}

/// Returns the state without the memory that only the stranger has.
fn without_new(mut state: State) -> State {
    state.memories.retain(|memory| memory["id"] != NEW);
    state
}

fn vectors(archive: &Archive) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for id in ids(archive)? {
        let of_it = archive.store.embeddings_of(&id)?;
        all.extend(of_it.into_iter().map(|stored| format!("{:?}", stored.embedding)));
    }
    Ok(all)
}

#[test]
fn a_strangers_document_adds_and_changes_nothing_whatever_is_here() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let key = SigningKey::from_bytes(&[9; 32]);
    for (round, key) in [None, Some(&key)].into_iter().enumerate() {
        for way in [Way::Import, Way::Apply, Way::Watched] {
            let dir = folder.path().join(format!("{round}-{way:?}"));
            let archive = filled(&dir.join("data"))?;
            // Records from the bundle of a trusted friend, in addition to those from providers and by hand.
            let friend = Archive::open(&dir.join("friend"))?;
            let draft = Draft { content: Some("A friend keeps bees".into()), ..Default::default() };
            friend.imports.add_memory(&super::owner(), &draft)?;
            archive.trust(&friend.export(&dir.join("friends"))?.signer)?;
            archive.import(&dir.join("friends"))?;
            let theirs = hostile(&archive, &dir, key)?;
            let (before, had) = (archive.state()?, vectors(&archive)?);
            let import = bring(&archive, way, &theirs)?;
            let what =
                format!("{way:?} of {}", if key.is_some() { "a signed one" } else { "an unsigned one" });
            ensure!(import.standing == Some(Standing::Stranger), "{what}: {import:?}");
            ensure!(import.signer == key.map(|key| PublicKey::of(key).multibase()), "{what}: {import:?}");
            for counts in [import.conversations, import.messages, import.memories, import.embeddings] {
                ensure!(counts.balanced(), "{what}: {import:?}");
            }
            let after = archive.state()?;
            ensure!(after.memories.len() == before.memories.len() + 1, "{what}: what is new was not added");
            ensure!(without_new(after) == before, "{what}: something was changed");
            ensure!(vectors(&archive)? == had, "{what}: a vector was changed");
            let held = &import.would_change;
            // A retracted memory stays retracted, whatever other documents say.
            let final_ones =
                before.memories.iter().filter(|memory| memory["status"] == "retracted").count() as u64;
            let all = before.memories.len() as u64;
            ensure!(held.memories <= all && held.memories + final_ones >= all, "{what}: {held:?} of {all}");
            ensure!(held.conversations == before.conversations.len() as u64, "{what}: {held:?}");
            ensure!(held.relations > 0 && held.embeddings == 1, "{what}: {held:?}");
            let marked = satchel_core::lineage::stranger_of(&archive.store, NEW)?;
            let label = key.map_or("unsigned".to_owned(), |key| PublicKey::of(key).multibase());
            ensure!(marked.as_deref() == Some(label.as_str()), "{what}: {marked:?}");
            // The conflict is listed each time, and an undo withdraws what the document added.
            let again = only(archive.import_again(&theirs)?)?;
            ensure!(again.would_change.memories == held.memories, "{what}: {again:?}");
            for import in [&import.id, &again.id] {
                let request = TurnRequest { id: import, turn: Turn::Undo, dry_run: false, expected: None };
                archive.imports.turn(request, &CancelToken::new())?.context("the import")?;
            }
            ensure!(archive.state()? == before, "{what}: the undo left something");
            ensure!(satchel_core::lineage::stranger_of(&archive.store, NEW)?.is_none(), "{what}");
        }
    }
    Ok(())
}

#[test]
fn whoever_comes_later_counts_before_a_stranger_who_was_here_first() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = filled(&folder.path().join("here"))?;
    let theirs = hostile(&here, folder.path(), None)?;
    let there = Archive::open(&folder.path().join("there"))?;
    let first = only(there.import(&theirs)?)?;
    ensure!(first.would_change.none(), "there was nothing to change: {first:?}");
    here.export(&folder.path().join("bundle"))?;
    there.trust(&here.exports.signers()[0])?;
    there.apply(&folder.path().join("bundle"))?;
    let (one, other) = (here.state()?, without_new(there.state()?));
    ensure!(one.memories == other.memories, "what a stranger planted is shown");
    let planted = |relation: &Value| relation["type"] == "supersedes" && relation["from"] == NEW;
    ensure!(!other.relations.iter().any(planted), "{:?}", other.relations);
    Ok(())
}

#[test]
fn strangers_change_what_they_brought_and_not_what_other_strangers_did() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (one, other) = (SigningKey::from_bytes(&[5; 32]), SigningKey::from_bytes(&[6; 32]));
    let here = filled(&folder.path().join("here"))?;
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
    let there = Archive::open(&folder.path().join("there"))?;
    let shown = || -> Result<String> {
        let id = &ids(&there)?[0];
        Ok(there.store.memory(id, None)?.context("a memory")?.memory.content)
    };
    there.import(&version("first", "First", 1, Some(&one))?)?;
    there.import(&version("later", "Later", 2, Some(&one))?)?;
    assert_eq!(shown()?, "Later");
    for (name, key) in [("theirs", Some(&other)), ("nobodys", None)] {
        let import = only(there.import(&version(name, "Theirs", 3, key)?)?)?;
        ensure!(import.would_change.memories == 1 && import.memories.unchanged == 1, "{import:?}");
        assert_eq!(shown()?, "Later", "{name}");
    }
    // Once its signer is trusted, it replaces the other.
    let trust = Apply { trust: Some(PublicKey::of(&other)), any_owner: true, ..Apply::default() };
    let merged = there.apply_by(&folder.path().join("theirs"), false, trust)?;
    ensure!(merged.standing == Some(Standing::Trusted), "{merged:?}");
    assert_eq!(shown()?, "Theirs");
    Ok(())
}

/// A conversation that a stranger rewrote and extended is shown only until a source of the person contains it.
#[test]
fn an_own_conversation_takes_the_place_of_a_strangers_who_was_here_first() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for provider in ["chatgpt-export", "claude-export"] {
        let dir = folder.path().join(provider);
        let export = demo().join(provider);
        let own = Archive::open(&dir.join("own"))?;
        own.import(&export)?;
        let theirs = hostile(&own, &dir, None)?;
        let here = Archive::open(&dir.join("here"))?;
        let first = only(here.import(&theirs)?)?;
        ensure!(first.conversations.new > 0 && first.conversations.skipped == 0, "{provider}: {first:?}");
        let planted = here.state()?;
        ensure!(serde_json::to_string(&planted.conversations)?.contains("Theirs"), "{provider}");
        let later = only(here.import(&export)?)?;
        ensure!(later.conversations.balanced() && later.messages.balanced(), "{provider}: {later:?}");
        let told = later.warnings.iter().filter(|warning| warning.message.contains("do not trust")).count();
        ensure!(told as u64 == later.conversations.updated && told > 0, "{provider}: {later:?}");
        ensure!(
            here.state()?.conversations == own.state()?.conversations,
            "{provider}: something of theirs is shown"
        );
        // The stranger's document, imported again, changes nothing, and undo and redo of the person's own import still
        // work.
        let again = only(here.import_again(&theirs)?)?;
        ensure!(again.would_change.conversations > 0, "{provider}: {again:?}");
        ensure!(here.state()?.conversations == own.state()?.conversations, "{provider}");
        for turn in [Turn::Undo, Turn::Redo] {
            let request = TurnRequest { id: &later.id, turn, dry_run: false, expected: None };
            here.imports.turn(request, &CancelToken::new())?.context("the import")?;
            let expected = if turn == Turn::Undo { &planted } else { &own.state()? };
            ensure!(here.state()?.conversations == expected.conversations, "{provider}: after {turn:?}");
        }
    }
    Ok(())
}

/// A memory that only a stranger stated becomes the person's own once they state it themselves.
#[test]
fn what_the_person_adds_that_a_stranger_said_is_the_persons() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = Archive::open(&folder.path().join("here"))?;
    let there = Archive::open(&folder.path().join("there"))?;
    let draft = Draft { content: Some("Keeps bees".into()), ..Default::default() };
    there.imports.add_memory(&super::owner(), &draft)?;
    there.export(&folder.path().join("theirs"))?;
    let import = only(here.import(&folder.path().join("theirs"))?)?;
    let id = ids(&here)?.pop().context("a memory")?;
    let stranger = || satchel_core::lineage::stranger_of(&here.store, &id);
    ensure!(stranger()?.is_some());
    let added = here.imports.add_memory(&super::owner(), &draft)?;
    ensure!(!added.existed && added.memories == [id.clone()] && stranger()?.is_none(), "{added:?}");
    here.imports.undo_change(&super::owner(), &added.act)?;
    ensure!(stranger()?.is_some() && ids(&here)? == [id.clone()], "the stranger's is there without it");
    here.imports.add_memory(&super::owner(), &draft)?;
    let request = TurnRequest { id: &import.id, turn: Turn::Undo, dry_run: false, expected: None };
    here.imports.turn(request, &CancelToken::new())?.context("the import")?;
    ensure!(
        ids(&here)? == [id.clone()] && stranger()?.is_none(),
        "the person's word went with the stranger's"
    );
    Ok(())
}

/// Creates another data directory whose bundles are merged here. It belongs to the person or to somebody who is
/// trusted.
fn relied_on(here: &Archive, dir: &Path, own: bool) -> Result<(Archive, Standing)> {
    let (data, first) = (dir.join("there"), dir.join("first"));
    let draft = Draft { content: Some("Will be retracted".into()), ..Draft::default() };
    if own {
        here.imports.add_memory(&super::owner(), &draft)?;
        here.export(&first)?;
        create::create(&here.store, here.store.dir(), &dir.join("backup"), 1, &mut |_| true)?;
        restore::restore(&dir.join("backup"), &data, false, &Unlock::default(), &mut |_| true)?;
        return Ok((Archive::open(&data)?, Standing::Own));
    }
    let there = Archive::open(&data)?;
    there.imports.add_memory(&super::owner(), &draft)?;
    here.trust(&there.export(&first)?.signer)?;
    here.import(&first)?;
    Ok((there, Standing::Trusted))
}

#[test]
fn a_watched_folder_merges_nothing_even_of_own_and_trusted_keys() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for own in [true, false] {
        let dir = folder.path().join(own.to_string());
        let here = filled(&dir.join("here"))?;
        let (there, standing) = relied_on(&here, &dir, own)?;
        let rows = there.store.memories(&MemoryQuery::default(), None, 500, there.store.revision())?.items;
        let retracted = rows.iter().find(|row| row.memory.content == "Will be retracted");
        let id = &retracted.context("the memory")?.memory.id;
        there.imports.set_memory_status(&super::owner(), id, "", Status::Retracted)?;
        let bundle = dir.join("watched/bundle");
        there.export(&bundle)?;
        age(&bundle)?;
        let before = here.state()?;
        let watched = bring(&here, Way::Watched, &bundle)?;
        ensure!(
            watched.standing == Some(Standing::Stranger) && watched.would_change.memories == 1,
            "{watched:?}"
        );
        ensure!(here.state()? == before, "a file in a watched folder changed what is here");
        let merged = only(here.import_again(&bundle)?)?;
        ensure!(merged.standing == Some(standing), "{merged:?}");
        let status = here.store.memory(id, None)?.context("the memory")?.memory.status;
        ensure!(status == Status::Retracted, "own {own}: {status:?}");
    }
    Ok(())
}
