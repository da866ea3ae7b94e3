//! What leaves the part that a store gets is taken out there.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use satchel_core::{
    edits::{Draft, NewRelation},
    purge::Target,
};
use satchel_pam::relation::RelationType;
use satchel_source::CancelToken;
use satchel_tests::test_core::demo_folder;

use super::{
    Peer, erasures, exchange,
    part::{Part, conversations_of, full, give, give_payloads, included, shown, with_rows, write_list},
};
use crate::purge::fixture::files_containing;

/// Takes out of `to` what it has and does not get any more; returns it and the number of records.
pub(super) fn take_back(from: &Peer, to: Peer, part: &Part) -> Result<(Peer, u64)> {
    let removed = to.sync.revoke(&from.sync.withheld_payloads(part)?)?.records;
    Ok((if removed > 0 { erasures::completed(to)? } else { to }, removed))
}

/// Checks that a store shows what a new one shows that is given the same part.
pub(super) fn as_new(from: &Peer, store: &Peer, part: &Part) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let fresh = Peer::new(dir.path(), 99)?;
    give(from, &fresh, part)?;
    let (state, expected) = (store.core.state()?, fresh.core.state()?);
    ensure!(state.memories == expected.memories, "{:#?}\n{:#?}", state.memories, expected.memories);
    ensure!(state.relations == expected.relations);
    ensure!(
        state.conversations == expected.conversations,
        "{:#?}\n{:#?}",
        state.conversations,
        expected.conversations
    );
    ensure!(store.sync.state_digest()? == fresh.sync.state_digest()?);
    let report = store.core.store.check(true, &mut |_| {})?;
    ensure!(report.clean(), "{report:?}");
    Ok(())
}

/// Returns whether a file of a data directory contains a text.
fn on_disk(peer: &Peer, text: &str) -> Result<bool> {
    Ok(!files_containing(&peer.dir, text)?.is_empty())
}

#[test]
fn a_record_that_leaves_the_part_is_taken_out_and_comes_back() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (one, two) = (Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?);
    let part = Part::tagged("work");
    let (bees, cats) = (one.add("Keeps bees near Uelzen")?, one.add("Keeps cats")?);
    one.tag(&bees, &["work"])?;
    one.tag(&cats, &["work"])?;
    give(&one, &two, &part)?;
    ensure!(shown(&two)?.len() == 2);
    let (two, removed) = take_back(&one, two, &part)?;
    ensure!(removed == 0, "nothing has left");
    one.tag(&bees, &["home"])?;
    give(&one, &two, &part)?;
    ensure!(shown(&two)?.len() == 2, "the edit is about a record that it does not get any more");
    let (two, removed) = take_back(&one, two, &part)?;
    ensure!(removed == 1);
    ensure!(shown(&two)?.len() == 1 && shown(&one)?.len() == 2);
    ensure!(!on_disk(&two, "Uelzen")?, "{:?}", files_containing(&two.dir, "Uelzen"));
    as_new(&one, &two, &part)?;
    let (two, removed) = take_back(&one, two, &part)?;
    ensure!(removed == 0, "it is gone");
    // The other store does not say that it was erased.
    exchange(&two, &one)?;
    ensure!(shown(&one)?.len() == 2);
    one.tag(&bees, &["home", "work"])?;
    give(&one, &two, &part)?;
    ensure!(give_payloads(&one, &two, &part)? == 3);
    as_new(&one, &two, &part)?;
    ensure!(shown(&two)? == shown(&one)?);
    two.tag(&bees, &["hobby", "work"])?;
    exchange(&two, &one)?;
    ensure!(one.memory(&bees)?.tags == ["hobby", "work"]);
    Ok(())
}

#[test]
fn a_narrower_part_takes_out_what_is_not_in_it() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (one, mut two) = (full(dir.path())?, Peer::new(dir.path(), 2)?);
    give(&one, &two, &Part::default())?;
    let all = two.core.state()?;
    for part in [Part::of_platform("claude"), Part::of_platform("chatgpt"), Part::tagged("work")] {
        let removed;
        (two, removed) = take_back(&one, two, &part)?;
        ensure!(removed > 0);
        as_new(&one, &two, &part)?;
        let left: BTreeSet<String> =
            included(&one, &part)?.into_iter().map(|memory| memory.content).collect();
        for memory in shown(&one)?.into_iter().filter(|memory| !left.contains(&memory.content)) {
            let quoted = left.iter().any(|content| content.contains(&memory.content));
            ensure!(quoted || !on_disk(&two, &memory.content)?, "{:?} is on the disk", memory.content);
        }
        give_payloads(&one, &two, &Part::default())?;
        ensure!(two.core.state()? == all, "everything comes back");
    }
    Ok(())
}

#[test]
fn what_was_made_here_stays() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (one, two) = (Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?);
    let (bees, cats) = (one.add("Keeps bees")?, one.add("Keeps cats")?);
    one.import(&demo_folder().join("claude-export"))?;
    one.import(&demo_folder().join("chatgpt-export"))?;
    // One of them has also imported it itself.
    two.import(&demo_folder().join("claude-export"))?;
    two.add("Was written here")?;
    exchange(&one, &two)?;
    exchange(&two, &one)?;
    two.tag(&cats, &["pets"])?;
    exchange(&two, &one)?;
    let before = two.core.state()?;
    let none = Part::tagged("nothing has this tag");
    let (two, removed) = take_back(&one, two, &none)?;
    ensure!(removed > 0);
    let after = two.core.state()?;
    ensure!(two.memory(&cats)?.tags == ["pets"] && two.memory(&bees).is_err());
    ensure!(
        conversations_of(&after, "claude") == conversations_of(&before, "claude")
            && !conversations_of(&after, "claude").is_empty()
    );
    ensure!(after.conversations.len() == conversations_of(&after, "claude").len());
    ensure!(shown(&two)?.iter().any(|memory| memory.content == "Was written here"));
    give_payloads(&one, &two, &Part::default())?;
    ensure!(two.core.state()? == before);
    Ok(())
}

#[test]
fn what_was_made_under_an_earlier_series_stays() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (one, two) = (Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?);
    let bees = one.add("Keeps bees")?;
    exchange(&one, &two)?;
    two.add("Was written here")?;
    two.tag(&bees, &["hives"])?;
    two.import(&demo_folder().join("claude-export"))?;
    super::recordings::record(&two, None, "Was said here")?;
    exchange(&two, &one)?;
    // As after a restore.
    two.sync.renew_origin(&two.dir)?;
    exchange(&two, &one)?;
    let before = two.core.state()?;
    let (two, removed) = take_back(&one, two, &Part::tagged("nothing has this tag"))?;
    ensure!(removed == 0 && two.core.state()? == before);
    Ok(())
}

#[test]
fn bytes_that_were_imported_on_both_machines_stay() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (one, two) = (Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?);
    one.import(&demo_folder().join("claude-export"))?;
    exchange(&one, &two)?;
    let again = two.import(&demo_folder().join("claude-export"))?;
    ensure!(again.same_as.is_some());
    let before = two.core.state()?;
    let (two, _) = take_back(&one, two, &Part::tagged("nothing has this tag"))?;
    ensure!(two.core.state()? == before && !before.conversations.is_empty());
    Ok(())
}

#[test]
fn what_another_store_imported_twice_leaves() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (one, two) = (Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?);
    one.import(&demo_folder().join("claude-export"))?;
    let again = one.import(&demo_folder().join("claude-export"))?;
    ensure!(again.same_as.is_some());
    exchange(&one, &two)?;
    let none = Part::tagged("nothing has this tag");
    let (two, removed) = take_back(&one, two, &none)?;
    ensure!(removed > 0);
    as_new(&one, &two, &none)
}

#[test]
fn an_import_of_what_was_taken_out_brings_it_back_and_passes_it_on() -> Result<()> {
    for completes in [true, false] {
        let dir = tempfile::tempdir()?;
        let (one, mut two) = (Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?);
        let three = Peer::new(dir.path(), 3)?;
        one.import(&demo_folder().join("claude-export"))?;
        one.import(&demo_folder().join("chatgpt-export"))?;
        exchange(&one, &two)?;
        let all = two.core.state()?;
        let none = Part::tagged("nothing has this tag");
        ensure!(two.sync.revoke(&one.sync.withheld_payloads(&none)?)?.records > 0);
        if completes {
            two = erasures::completed(two)?;
        }
        // Also while the earlier text is still on the disk.
        let imported = two.import(&demo_folder().join("claude-export"))?;
        ensure!(imported.same_as.is_none() && imported.skipped.is_empty(), "{imported:?}");
        let mut two = erasures::completed(two)?;
        let state = two.core.state()?;
        ensure!(
            conversations_of(&state, "claude") == conversations_of(&all, "claude")
                && state.conversations.len() == conversations_of(&all, "claude").len()
        );
        // A third store gets it from here.
        give(&two, &three, &Part::default())?;
        ensure!(three.core.state()?.memories == state.memories);
        ensure!(three.core.state()?.conversations == state.conversations);
        let removed;
        (two, removed) = take_back(&one, two, &none)?;
        ensure!(removed == 0 && two.core.state()? == state);
        give_payloads(&one, &two, &Part::default())?;
        ensure!(two.core.state()?.memories == all.memories);
        ensure!(two.core.state()?.conversations == all.conversations);
    }
    Ok(())
}

#[test]
fn a_list_of_which_an_item_was_edited_here_stays() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (one, two) = (Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?);
    one.import(&write_list(&dir.path().join("list"), &["Keeps bees.", "Sells honey.", "Has a van."])?)?;
    exchange(&one, &two)?;
    let ids: Vec<String> = shown(&one)?.into_iter().map(|memory| memory.id).collect();
    two.tag(&ids[0], &["mine"])?;
    exchange(&two, &one)?;
    let before = two.core.state()?.memories;
    let (two, _) = take_back(&one, two, &Part::tagged("nothing has this tag"))?;
    ensure!(two.core.state()?.memories == before && before.len() == 3);
    Ok(())
}

#[test]
fn what_is_linked_to_a_record_that_was_edited_here_leaves() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (one, two) = (Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?);
    let (from, to) = (one.add("Keeps bees")?, one.add("Sells honey")?);
    let relation_type = RelationType::RelatedTo;
    let relation = NewRelation { from: from.clone(), to: to.clone(), relation_type, confidence: None };
    one.core.imports.edits().draw_relation(&super::peer::owner(), &relation)?;
    exchange(&one, &two)?;
    two.tag(&to, &["mine"])?;
    exchange(&two, &one)?;
    let (two, removed) = take_back(&one, two, &Part::tagged("nothing has this tag"))?;
    ensure!(removed == 1 && erasures::memories(&two)? == std::slice::from_ref(&to));
    ensure!(two.core.state()?.relations.is_empty());
    give_payloads(&one, &two, &Part::default())?;
    ensure!(two.core.state()?.memories == one.core.state()?.memories);
    ensure!(two.core.state()?.relations == one.core.state()?.relations);
    Ok(())
}

#[test]
fn a_memory_of_which_an_edit_was_undone_here_stays() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (one, two) = (Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?);
    let bees = one.add("Keeps bees")?;
    let edit = one.tag(&bees, &["home"])?;
    exchange(&one, &two)?;
    two.core.imports.edits().undo_change(&super::peer::owner(), &edit)?;
    exchange(&two, &one)?;
    let before = two.core.state()?;
    let (two, removed) = take_back(&one, two, &Part::tagged("nothing has this tag"))?;
    ensure!(removed == 0 && two.core.state()? == before);
    Ok(())
}

#[test]
fn receipts_of_the_own_store_stay_as_they_are() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (one, two) = (Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?);
    one.add("conversations.json")?;
    two.import(&demo_folder().join("claude-export"))?;
    exchange(&one, &two)?;
    let receipts =
        |peer: &Peer| Ok::<_, anyhow::Error>(format!("{:?}", peer.core.imports.list(None, 10)?.items));
    let before = receipts(&two)?;
    let (two, removed) = take_back(&one, two, &Part::tagged("nothing has this tag"))?;
    ensure!(removed == 1 && receipts(&two)? == before && before.contains("conversations.json"));
    Ok(())
}

#[test]
fn an_edit_that_names_what_has_left_stays() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (one, two) = (Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?);
    let part = Part::tagged("work");
    let (old, new) = (one.add("Has one hive")?, one.add("Has two hives")?);
    one.tag(&old, &["work"])?;
    one.tag(&new, &["work"])?;
    one.core.imports.edits().supersede_memory(&super::peer::owner(), &old, "", Err(&new))?;
    let relation = NewRelation {
        from: new.clone(),
        to: old.clone(),
        relation_type: RelationType::RelatedTo,
        confidence: None,
    };
    one.core.imports.edits().draw_relation(&super::peer::owner(), &relation)?;
    give(&one, &two, &part)?;
    one.tag(&new, &["home"])?;
    give(&one, &two, &part)?;
    let (two, removed) = take_back(&one, two, &part)?;
    ensure!(removed == 1);
    as_new(&one, &two, &part)?;
    one.tag(&new, &["work"])?;
    give(&one, &two, &part)?;
    give_payloads(&one, &two, &part)?;
    as_new(&one, &two, &part)?;
    ensure!(two.core.state()?.memories == one.core.state()?.memories);
    ensure!(two.core.state()?.relations == one.core.state()?.relations);
    Ok(())
}

#[test]
fn an_erasure_and_what_is_taken_back_leave_the_disk_together() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (one, two) = (Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?);
    let part = Part::tagged("work");
    let (bees, cats) = (one.add("Keeps bees near Uelzen")?, one.add("Keeps cats near Celle")?);
    one.tag(&bees, &["work"])?;
    one.tag(&cats, &["work"])?;
    give(&one, &two, &part)?;
    one.tag(&bees, &["home"])?;
    give(&one, &two, &part)?;
    ensure!(two.sync.revoke(&one.sync.withheld_payloads(&part)?)?.records == 1);
    let two = erasures::erase(two, &Target::Memory(cats.clone()))?;
    ensure!(shown(&two)?.is_empty());
    for text in ["Uelzen", "Celle"] {
        ensure!(!on_disk(&two, text)?, "{text}");
    }
    // Only what the owner has erased is erased in the other store.
    let mut peers = vec![one, two];
    let sent = peers[1].changes_after(&peers[0].sync.frontier()?)?;
    ensure!(erasures::take(&mut peers, 0, sent)? == 1);
    ensure!(erasures::memories(&peers[0])? == std::slice::from_ref(&bees));
    peers[0].tag(&bees, &["work"])?;
    give(&peers[0], &peers[1], &part)?;
    give_payloads(&peers[0], &peers[1], &part)?;
    ensure!(erasures::memories(&peers[1])? == [bees]);
    Ok(())
}

#[test]
fn a_list_leaves_as_a_whole() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (one, two) = (Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?);
    let part = Part::tagged("work");
    one.import(&write_list(&dir.path().join("list"), &["Keeps bees.", "Sells honey.", "Has a van."])?)?;
    let ids: Vec<String> = shown(&one)?.into_iter().map(|memory| memory.id).collect();
    for id in &ids {
        one.tag(id, &["work"])?;
    }
    give(&one, &two, &part)?;
    ensure!(shown(&two)?.len() == 3);
    one.tag(&ids[0], &["home"])?;
    give(&one, &two, &part)?;
    let (two, removed) = take_back(&one, two, &part)?;
    ensure!(removed > 0);
    as_new(&one, &two, &part)?;
    one.tag(&ids[0], &["work"])?;
    give(&one, &two, &part)?;
    give_payloads(&one, &two, &part)?;
    as_new(&one, &two, &part)?;
    ensure!(shown(&two)?.len() == 3);
    Ok(())
}

#[test]
fn conversations_of_rows_leave_and_come_back() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (one, two) = (with_rows(dir.path())?, Peer::new(dir.path(), 2)?);
    give(&one, &two, &Part::default())?;
    let all = two.core.state()?;
    let part = Part::of_platform("claude");
    let (two, removed) = take_back(&one, two, &part)?;
    ensure!(removed > 0);
    as_new(&one, &two, &part)?;
    give_payloads(&one, &two, &Part::default())?;
    ensure!(two.core.state()? == all);
    Ok(())
}

#[test]
fn what_is_taken_out_does_not_come_back_with_an_erasure() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (mut one, two) = (Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?);
    let part = Part::tagged("work");
    let bees = one.add("Keeps bees")?;
    one.tag(&bees, &["work"])?;
    give(&one, &two, &part)?;
    one.tag(&bees, &[])?;
    give(&one, &two, &part)?;
    let (two, removed) = take_back(&one, two, &part)?;
    ensure!(removed == 1);
    one = erasures::erase(one, &Target::Memory(bees.clone()))?;
    let mut peers = vec![one, two];
    let sent = super::part::changes(&peers[0], &peers[1], &part)?;
    erasures::take(&mut peers, 1, sent)?;
    ensure!(shown(&peers[1])?.is_empty());
    ensure!(give_payloads(&peers[0], &peers[1], &Part::default())? == 0, "nobody has it");
    // What was written here afterwards with the same text is refused as in the other store.
    let draft = Draft { content: Some("Keeps bees".to_owned()), ..Draft::default() };
    let refused = peers[1].core.imports.edits().add_memory(&super::peer::owner(), &draft);
    ensure!(refused.is_err());
    Ok(())
}

#[test]
fn payloads_that_come_before_the_disk_is_cleared_are_asked_for_again() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (one, two) = (Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?);
    let part = Part::tagged("work");
    let bees = one.add("Keeps bees")?;
    one.tag(&bees, &["work"])?;
    give(&one, &two, &part)?;
    one.tag(&bees, &[])?;
    give(&one, &two, &part)?;
    ensure!(two.sync.revoke(&one.sync.withheld_payloads(&part)?)?.records == 1);
    ensure!(shown(&two)?.is_empty(), "it is hidden at once");
    one.tag(&bees, &["work"])?;
    let (missing, mut sent) = (two.sync.missing_payloads()?, one.changes_after(&two.sync.frontier()?)?);
    one.sync.payloads(&missing, Some(&part), &|| true, |change| {
        sent.push(change);
        true
    })?;
    two.sync.receive(sent)?;
    two.sync.apply(&CancelToken::new())?;
    let two = erasures::completed(two)?;
    two.sync.apply(&CancelToken::new())?;
    ensure!(shown(&two)?.is_empty());
    ensure!(give_payloads(&one, &two, &part)? > 0);
    as_new(&one, &two, &part)?;
    ensure!(shown(&two)?.len() == 1);
    Ok(())
}
