//! What one store has comes to the other one.

use anyhow::{Context as _, Result, ensure};
use satchel_core::{
    edits::{Draft, EditContext, NewRelation},
    ingest::{receipt::ImportStatus, undo::UndoDirection},
    purge::{self, Target},
};
use satchel_pam::{
    memory::{Access, Status, Visibility},
    relation::RelationType,
};
use satchel_store::{ConversationQuery, MemoryQuery};
use satchel_tests::{samples::samples, test_core::demo_folder};

use super::{
    Peer, exchange, in_step,
    peer::{owner, same},
};

fn pair(folder: &std::path::Path) -> Result<[Peer; 2]> {
    Ok([Peer::new(folder, 1)?, Peer::new(folder, 2)?])
}

#[test]
fn imports_of_two_stores_are_in_both() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = pair(dir.path())?;
    let here = peers[0].import(&demo_folder().join("chatgpt-export"))?;
    let there = peers[1].import(&demo_folder().join("claude-export"))?;
    in_step(&peers)?;
    ensure!(!peers[0].core.state()?.conversations.is_empty());
    for peer in &peers {
        for import in [&here, &there] {
            let known = peer.core.imports.get(&import.id)?.context("the import is known")?;
            ensure!(
                known.status == import.status && known.conversations == import.conversations,
                "{known:?}"
            );
        }
    }
    let again = peers[1].import(&demo_folder().join("chatgpt-export"))?;
    ensure!(again.status == ImportStatus::Unchanged && again.same_as.as_ref() == Some(&here.id), "{again:?}");
    in_step(&peers)
}

#[test]
fn every_sample_comes_to_the_other_store() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = pair(dir.path())?;
    for (at, sample) in samples()?.iter().enumerate() {
        peers[at % 2].core.import(&sample.input)?;
    }
    in_step(&peers)?;
    // Both also show what one store shows that has imported everything itself.
    let alone = Peer::silent(dir.path(), 3)?;
    for sample in samples()? {
        alone.core.import(&sample.input)?;
    }
    let [one, two] = peers;
    same(&[one, two, alone])
}

#[test]
fn edits_of_both_stores_are_kept() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = pair(dir.path())?;
    let tea = peers[0].add("Drinks tea")?;
    let bees = peers[1].add("Keeps bees")?;
    in_step(&peers)?;
    peers[0].tag(&tea, &["kitchen"])?;
    peers[1].tag(&bees, &["garden"])?;
    peers[1].edit(&tea, &Draft { content: Some("Drinks green tea".to_owned()), ..Draft::default() })?;
    let (from, to, relation_type) = (tea.clone(), bees.clone(), RelationType::RelatedTo);
    let relation = NewRelation { from, to, relation_type, confidence: None };
    peers[0].core.imports.edits().draw_relation(&owner(), &relation)?;
    in_step(&peers)?;
    let memory = peers[0].memory(&tea)?;
    ensure!(memory.content == "Drinks green tea" && memory.tags == ["kitchen"], "{memory:?}");
    ensure!(peers[1].memory(&bees)?.tags == ["garden"]);
    ensure!(peers[1].core.state()?.relations.len() == 1);
    Ok(())
}

#[test]
fn what_the_owner_edits_in_another_store_is_the_owners() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = pair(dir.path())?;
    let tea = peers[0].add("Drinks tea")?;
    in_step(&peers)?;
    let by_owner = Draft { content: Some("Drinks green tea".to_owned()), ..Draft::default() };
    peers[0].edit(&tea, &by_owner)?;
    in_step(&peers)?;
    let stated = |peer: &Peer| peer.core.imports.edits().stated_by_user(&tea, &|_| false);
    ensure!(stated(&peers[0])? && stated(&peers[1])?);
    let by_agent = Draft { content: Some("Obeys the bot".to_owned()), ..Draft::default() };
    let bot = EditContext { actor: "device:bot".to_owned(), ..EditContext::default() };
    peers[0].core.imports.edits().edit_memory(&bot, &tea, "", &by_agent)?;
    in_step(&peers)?;
    ensure!(!stated(&peers[0])? && !stated(&peers[1])?);
    Ok(())
}

/// Whatever a store showed at any time is a version in every store, also if others have replaced it, or prevail over it.
#[test]
fn every_value_is_in_the_history_of_every_store() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = pair(dir.path())?;
    let tea = peers[0].add("Drinks tea")?;
    in_step(&peers)?;
    let content = |text: &str| Draft { content: Some(text.to_owned()), ..Draft::default() };
    for text in ["Drinks green tea", "Drinks black tea", "Drinks white tea"] {
        peers[0].edit(&tea, &content(text))?;
    }
    peers[0].tag(&tea, &["kitchen"])?;
    peers[1].edit(&tea, &Draft { summary: Some(Some("A habit".to_owned())), ..Draft::default() })?;
    for text in ["Drinks mate", "Drinks cocoa"] {
        peers[1].edit(&tea, &content(text))?;
    }
    // Added and changed before the other store hears of it.
    let bees = peers[1].add("Keeps bees")?;
    peers[1].edit(&bees, &content("Keeps bees and hens"))?;
    in_step(&peers)?;
    for peer in &peers {
        let texts = |id: &str| -> Result<Vec<String>> {
            let versions = peer.core.store.memory_versions(id)?;
            Ok(versions.into_iter().map(|version| version.memory.content).collect())
        };
        let found = texts(&tea)?;
        for text in [
            "Drinks tea",
            "Drinks green tea",
            "Drinks black tea",
            "Drinks white tea",
            "Drinks mate",
            "Drinks cocoa",
        ] {
            ensure!(found.iter().any(|known| known == text), "{text}: {found:?}");
        }
        ensure!(texts(&bees)? == ["Keeps bees", "Keeps bees and hens"], "{:?}", texts(&bees)?);
        ensure!(found.last() == Some(&peer.memory(&tea)?.content), "{found:?}");
        ensure!(peer.memory(&tea)?.tags == ["kitchen"]);
    }
    // What both have already adds no version.
    let counts = || -> Result<Vec<usize>> {
        peers.iter().map(|peer| Ok(peer.core.store.memory_versions(&tea)?.len())).collect()
    };
    let before = counts()?;
    exchange(&peers[0], &peers[1])?;
    exchange(&peers[1], &peers[0])?;
    ensure!(counts()? == before);
    Ok(())
}

/// A value that does not prevail is in the history, and what is shown stays the owner's.
#[test]
fn a_value_of_an_agent_that_does_not_prevail_takes_nothing_from_the_owner() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = pair(dir.path())?;
    let tea = peers[0].add("Drinks tea")?;
    in_step(&peers)?;
    let by_agent = Draft { content: Some("Obeys the bot".to_owned()), ..Draft::default() };
    let bot = EditContext { actor: "device:bot".to_owned(), ..EditContext::default() };
    peers[1].core.imports.edits().edit_memory(&bot, &tea, "", &by_agent)?;
    // Later, and without having seen it.
    peers[0].edit(&tea, &Draft { content: Some("Drinks green tea".to_owned()), ..Draft::default() })?;
    peers[0].edit(&tea, &Draft { content: Some("Drinks black tea".to_owned()), ..Draft::default() })?;
    in_step(&peers)?;
    for peer in &peers {
        ensure!(peer.memory(&tea)?.content == "Drinks black tea");
        ensure!(peer.core.imports.edits().stated_by_user(&tea, &|_| false)?);
        let versions = peer.core.store.memory_versions(&tea)?;
        ensure!(versions.iter().any(|version| version.memory.content == "Obeys the bot"));
    }
    Ok(())
}

/// Values that do not prevail change nothing about who stated a memory, whoever changed it last.
#[test]
fn a_value_that_does_not_prevail_gives_and_takes_no_authorship() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = pair(dir.path())?;
    let (tea, bees) = (peers[0].add("Drinks tea")?, peers[0].add("Keeps bees")?);
    in_step(&peers)?;
    let (edits, content) = (peers[0].core.imports.edits(), |text: &str| Draft {
        content: Some(text.to_owned()),
        ..Draft::default()
    });
    let bot = EditContext { actor: "device:bot".to_owned(), ..EditContext::default() };
    for id in [&tea, &bees] {
        peers[1].edit(id, &content("Was written elsewhere"))?;
    }
    // Later, without having seen it: the owner's text, which an agent only tags.
    peers[0].edit(&tea, &content("Drinks green tea"))?;
    let tags = Draft { tags: Some(vec!["kitchen".to_owned()]), ..Draft::default() };
    edits.edit_memory(&bot, &tea, "", &tags)?;
    // And the owner's text, which an agent brought back after the owner had archived it.
    peers[0].edit(&bees, &content("Keeps hens"))?;
    edits.set_memory_status(&owner(), &bees, "", Status::Archived)?;
    edits.undo_last_change(&bot, &bees)?;
    peers[0].tag(&bees, &["garden"])?;
    let stated = |peer: &Peer| -> Result<[bool; 2]> {
        let edits = peer.core.imports.edits();
        Ok([edits.stated_by_user(&tea, &|_| false)?, edits.stated_by_user(&bees, &|_| false)?])
    };
    ensure!(stated(&peers[0])? == [true, false]);
    in_step(&peers)?;
    ensure!(
        peers[0].memory(&tea)?.content == "Drinks green tea"
            && peers[0].memory(&bees)?.content == "Keeps hens"
    );
    ensure!(stated(&peers[0])? == [true, false], "{:?}", stated(&peers[0])?);
    Ok(())
}

/// What one store has made private is at no time visible because another one wanted it otherwise.
#[test]
fn no_version_is_more_visible_than_the_strictest_store_wanted() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = pair(dir.path())?;
    let tea = peers[0].add("Drinks tea")?;
    in_step(&peers)?;
    let private = Access { exportable: false, ..Access::default() };
    let open = Access { visibility: Visibility::Public, ..Access::default() };
    peers[0].edit(&tea, &Draft { access: Some(private), ..Draft::default() })?;
    let text = Some("Drinks a lot of tea".to_owned());
    peers[1].edit(&tea, &Draft { content: text, access: Some(open), ..Draft::default() })?;
    let seen = peers[0].core.store.memory_versions(&tea)?.len();
    in_step(&peers)?;
    let versions = peers[0].core.store.memory_versions(&tea)?;
    for version in &versions[seen..] {
        let access = version.memory.access.clone().unwrap_or_default();
        ensure!(!access.exportable && access.visibility == Visibility::Private, "{access:?}");
    }
    Ok(())
}

#[test]
fn an_edit_that_has_seen_the_others_replaces_them() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = pair(dir.path())?;
    let tea = peers[0].add("Drinks tea")?;
    in_step(&peers)?;
    peers[0].tag(&tea, &["one"])?;
    peers[1].tag(&tea, &["two"])?;
    in_step(&peers)?;
    let mut tags = peers[0].memory(&tea)?.tags;
    tags.sort();
    ensure!(tags == ["one", "two"], "{tags:?}");
    peers[1].tag(&tea, &["three"])?;
    in_step(&peers)?;
    ensure!(peers[0].memory(&tea)?.tags == ["three"]);
    Ok(())
}

#[test]
fn what_happened_before_the_series_began_comes_too() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = [Peer::silent(dir.path(), 1)?, Peer::silent(dir.path(), 2)?];
    let import = peers[0].import(&demo_folder().join("chatgpt-export"))?;
    let undone = peers[0].import(&demo_folder().join("claude-export"))?;
    peers[0].undo(&undone.id, UndoDirection::Undo)?;
    let tea = peers[0].add("Drinks tea")?;
    peers[0].tag(&tea, &["old"])?;
    peers[0].tag(&tea, &["new"])?;
    let bees = peers[1].add("Keeps bees")?;
    let before = peers[0].core.state()?;
    let digest = peers[0].sync.state_digest()?;
    ensure!(digest.conversations > 0 && digest.memories > 0, "{digest:?}");
    ensure!(digest != peers[1].sync.state_digest()?);
    peers.iter().try_for_each(|peer| peer.begin().map(drop))?;
    ensure!(peers[0].core.state()? == before, "beginning a series changes nothing");
    in_step(&peers)?;
    ensure!(peers[1].memory(&tea)?.tags == ["new"]);
    ensure!(peers[0].memory(&bees)?.content == "Keeps bees");
    let known = peers[1].core.imports.get(&undone.id)?.context("the import is known")?;
    ensure!(known.status == ImportStatus::Undone, "{known:?}");
    ensure!(peers[1].core.imports.get(&import.id)?.is_some());
    Ok(())
}

#[test]
fn an_undo_reaches_the_other_store_and_so_does_the_redo() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = pair(dir.path())?;
    let import = peers[0].import(&demo_folder().join("chatgpt-export"))?;
    in_step(&peers)?;
    let shown = peers[1].core.state()?;
    peers[1].undo(&import.id, UndoDirection::Undo)?;
    in_step(&peers)?;
    ensure!(peers[0].core.state()?.conversations.is_empty());
    peers[0].undo(&import.id, UndoDirection::Redo)?;
    in_step(&peers)?;
    ensure!(peers[1].core.state()? == shown);
    Ok(())
}

#[test]
fn an_import_that_one_store_undid_stays_undone_whatever_others_do_at_the_same_time() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = pair(dir.path())?;
    let import = peers[0].import(&demo_folder().join("chatgpt-export"))?;
    in_step(&peers)?;
    peers[0].undo(&import.id, UndoDirection::Undo)?;
    // The other store undoes it and redoes it meanwhile, without knowing of the first undo.
    peers[1].undo(&import.id, UndoDirection::Undo)?;
    peers[1].undo(&import.id, UndoDirection::Redo)?;
    in_step(&peers)?;
    ensure!(peers[1].core.state()?.conversations.is_empty());
    peers[1].undo(&import.id, UndoDirection::Redo)?;
    in_step(&peers)?;
    ensure!(!peers[0].core.state()?.conversations.is_empty());
    Ok(())
}

#[test]
fn changes_travel_through_a_third_store() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = [Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?, Peer::new(dir.path(), 3)?];
    let tea = peers[0].add("Drinks tea")?;
    peers[0].import(&demo_folder().join("claude-export"))?;
    exchange(&peers[0], &peers[1])?;
    peers[1].tag(&tea, &["kitchen"])?;
    exchange(&peers[1], &peers[2])?;
    ensure!(peers[2].memory(&tea)?.tags == ["kitchen"]);
    ensure!(peers[2].core.state()?.conversations == peers[0].core.state()?.conversations);
    in_step(&peers)
}

#[test]
fn what_one_store_erased_does_not_come_back_from_another() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = pair(dir.path())?;
    // Both have the same export, and know of no change of the other.
    peers[0].import(&demo_folder().join("claude-export"))?;
    peers[1].import(&demo_folder().join("claude-export"))?;
    let tea = peers[0].add("Drinks tea")?;
    ensure!(peers[1].add("Drinks tea")? == tea);
    let store = &peers[1].core.store;
    let conversation = store.conversations(&ConversationQuery::default(), None, 1, store.revision())?;
    let conversation = conversation.items.first().context("there are conversations")?.id.clone();
    let imported = store.memories(&MemoryQuery::default(), None, 100, store.revision())?.items;
    let imported = imported.into_iter().map(|record| record.memory.id).find(|id| *id != tea);
    let imported = imported.context("the export has memories")?;
    let targets = [
        Target::Memory(tea.clone()),
        Target::Memory(imported.clone()),
        Target::Conversation { id: conversation.clone(), keep_memories: true },
    ];
    for target in targets {
        let plan =
            purge::planned(store, &target, 1_800_000_000_000_000)?.context("there is something to erase")?;
        purge::record_purge(store, &plan.record)?;
    }
    let changes = peers[0].changes_after(&peers[1].sync.frontier()?)?;
    let sent = changes.iter().filter(|change| change.payload().is_some()).count();
    let (received, applied) = peers[1].take(changes)?;
    ensure!(received.refused.is_empty() && applied.blocked.is_empty(), "{received:?} {applied:?}");
    for memory in [&tea, &imported] {
        let shown = store.memory(memory, None)?;
        ensure!(
            shown.is_none_or(|shown| shown.withdrawn || shown.memory.content.is_empty()),
            "{memory} is back"
        );
    }
    let shown = store.conversation(&conversation, None)?;
    ensure!(shown.is_none_or(|shown| shown.withdrawn || shown.heads.is_empty()), "the conversation is back");
    // It passes on what it has not erased.
    let other = Peer::new(dir.path(), 3)?;
    let passed_on = peers[1].changes_after(&other.sync.frontier()?)?;
    let origin = peers[0].sync.origin()?.context("it has a series")?;
    let kept =
        passed_on.iter().filter(|change| change.change().origin == origin && change.payload().is_some());
    let kept = kept.count();
    ensure!(0 < kept && kept < sent, "{kept} payloads of {sent} were kept");
    Ok(())
}
