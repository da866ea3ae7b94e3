//! Payloads that are large, that come late, and that the store refuses.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use satchel_core::{
    ingest::undo::UndoDirection,
    purge::{self, Target},
};
use satchel_pam::time::Timestamp;
use satchel_source::CancelToken;
use satchel_store::{Batch, Change, ConversationQuery, Ledger, LedgerWrite, OpenOptions, Origin, Store};
use satchel_sync::{Frontier, Kind, SignedChange, limits::MAX_INLINE_BYTES};
use satchel_tests::{generate::Rng, test_core::demo_folder};
use serde_json::json;

use super::{
    Peer, exchange,
    faults::{exchange_around, series_with},
    in_step,
    peer::same,
};

const START: i64 = 1_770_000_000_000_000;
const MINUTE: i64 = 60_000_000;

/// Writes a Claude export with one conversation, whose messages have these lengths.
fn write_long_conversation(folder: &Path, lengths: &[usize]) -> Result<PathBuf> {
    let message = |(at, length): (usize, &usize)| {
        let (time, text) = (format!("2026-01-02T03:{at:02}:05.000000Z"), "tea ".repeat(length / 4));
        let sender = if at % 2 == 0 { "human" } else { "assistant" };
        json!({"uuid": format!("0a1b2c3d-0000-4000-8000-00000000f{at:03}"), "text": text, "sender": sender,
            "content": [{"type": "text", "text": text}], "created_at": time, "updated_at": time,
            "attachments": [], "files": []})
    };
    let messages: Vec<_> = lengths.iter().enumerate().map(message).collect();
    let export = json!([{"uuid": "0a1b2c3d-0000-4000-8000-00000000e777", "name": "All about tea",
        "created_at": "2026-01-02T03:00:05.000000Z", "updated_at": "2026-01-02T03:50:05.000000Z",
        "account": {"uuid": "0a1b2c3d-0000-4000-8000-00000000a001"}, "chat_messages": messages}]);
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("conversations.json"), export.to_string())?;
    Ok(folder.to_owned())
}

#[test]
fn a_conversation_that_is_too_large_for_one_change_comes_in_parts() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = [Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?, Peer::new(dir.path(), 3)?];
    // One message is longer than a payload may be.
    let export = write_long_conversation(&dir.path().join("export"), &[40, MAX_INLINE_BYTES + 4, 2_000_000])?;
    peers[0].import(&export)?;
    let shown = peers[0].core.state()?.conversations;
    ensure!(shown.len() == 1);
    exchange(&peers[0], &peers[1])?;
    exchange(&peers[1], &peers[2])?;
    same(&peers)?;
    ensure!(peers[2].core.state()?.conversations == shown);
    in_step(&peers)
}

#[test]
fn an_interrupted_transfer_of_parts_goes_on() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = [Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?];
    let export = write_long_conversation(&dir.path().join("export"), &[40, 5_000_000])?;
    peers[0].import(&export)?;
    let changes = peers[0].changes_after(&peers[1].sync.frontier()?)?;
    let parts = changes.iter().filter(|change| change.change().kind == Kind(7)).count();
    ensure!(parts >= 2, "{parts} parts");
    // One change at a time.
    for change in changes {
        let (received, applied) = peers[1].take(vec![change])?;
        ensure!(received.refused.is_empty() && applied.blocked.is_empty() && applied.missing == 0);
    }
    same(&peers)
}

#[test]
fn the_parts_of_an_erased_conversation_do_not_come_back() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = [Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?];
    let export = write_long_conversation(&dir.path().join("export"), &[40, 5_000_000])?;
    peers[0].import(&export)?;
    peers[1].import(&export)?;
    let store = &peers[1].core.store;
    let known = store.conversations(&ConversationQuery::default(), None, 1, store.revision())?;
    let id = known.items.first().context("a conversation")?.id.clone();
    let target = Target::Conversation { id, keep_memories: true };
    let plan = purge::planned(store, &target, START)?.context("there is something to erase")?;
    purge::record_purge(store, &plan.record)?;
    let (received, applied) = peers[1].take(peers[0].changes_after(&peers[1].sync.frontier()?)?)?;
    ensure!(received.refused.is_empty() && applied.blocked.is_empty(), "{received:?} {applied:?}");
    ensure!(
        peers[1].core.state()?.conversations.values().all(|shown| !shown.to_string().contains("tea tea"))
    );
    let other = Peer::new(dir.path(), 3)?;
    let passed_on = peers[1].changes_after(&other.sync.frontier()?)?;
    let origin = peers[0].sync.origin()?;
    let own = passed_on.iter().filter(|change| Some(change.change().origin) == origin);
    let parts: Vec<bool> = own
        .filter(|change| change.change().kind == Kind(7))
        .map(|change| change.payload().is_some())
        .collect();
    ensure!(parts.len() >= 2 && !parts.contains(&true), "{parts:?}");
    Ok(())
}

#[test]
fn an_erasure_removes_the_parts_from_the_disk() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = [Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?];
    peers[0].import(&write_long_conversation(&dir.path().join("export"), &[40, 5_000_000])?)?;
    exchange(&peers[0], &peers[1])?;
    // In the store that imported it, and in the one to which it came.
    for peer in peers {
        let data_dir = peer.dir.clone();
        let store = &peer.core.store;
        let known = store.conversations(&ConversationQuery::default(), None, 1, store.revision())?;
        let id = known.items.first().context("a conversation")?.id.clone();
        let target = Target::Conversation { id, keep_memories: true };
        let plan = purge::planned(store, &target, START)?.context("there is something to erase")?;
        purge::record_purge(store, &plan.record)?;
        drop(peer.sync);
        let store = peer.core.into_store()?;
        let open = || Store::open(&data_dir, OpenOptions::default(), &mut |_| {});
        let store = purge::complete(&data_dir, store, None, &mut { open })?;
        store.close()?;
        let peer = Peer::open(&data_dir, 1)?;
        let mut parts = 0;
        peer.sync.changes_after(&Frontier::new(), None, |change| {
            let part = change.change().kind == Kind(7);
            parts += u32::from(part);
            !part || change.payload().is_none()
        })?;
        ensure!(parts >= 3, "the payload of part {parts} is still there");
        ensure!(peer.core.store.check(true, &mut |_| {})?.clean());
    }
    Ok(())
}

/// A store with an import, an undone import, edits and a large conversation.
fn full_store(folder: &Path) -> Result<Peer> {
    let peer = Peer::new(folder, 1)?;
    peer.import(&demo_folder().join("chatgpt-export"))?;
    let undone = peer.import(&demo_folder().join("claude-export"))?;
    peer.undo(&undone.id, UndoDirection::Undo)?;
    peer.import(&write_long_conversation(&folder.join("export"), &[40, 5_000_000])?)?;
    let tea = peer.add("Drinks tea")?;
    peer.tag(&tea, &["kitchen"])?;
    peer.add("Keeps bees")?;
    Ok(peer)
}

fn withheld(changes: &[SignedChange]) -> Vec<SignedChange> {
    changes
        .iter()
        .map(|change| match change.change().kind {
            Kind::GENESIS => change.clone(),
            _ => change.clone().without_payload(),
        })
        .collect()
}

#[test]
fn payloads_that_come_late_take_effect() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let one = full_store(dir.path())?;
    let two = Peer::new(dir.path(), 2)?;
    let changes = one.changes_after(&two.sync.frontier()?)?;
    let (_, applied) = two.take(withheld(&changes))?;
    ensure!(applied.missing > 0 && applied.blocked.is_empty(), "{applied:?}");
    ensure!(two.core.state()? == satchel_tests::test_core::ExportedState::default());
    let (received, applied) = two.take(changes)?;
    ensure!(received.completed > 0 && received.new == 0, "{received:?}");
    ensure!(applied.blocked.is_empty() && applied.missing == 0, "{applied:?}");
    in_step(&[one, two])
}

#[test]
fn payloads_come_late_in_any_order() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let one = full_store(dir.path())?;
    for seed in 0..8 {
        let mut rng = Rng::new(seed);
        let two = Peer::new(dir.path(), 10 + u8::try_from(seed)?)?;
        let mut changes = one.changes_after(&two.sync.frontier()?)?;
        let bare = withheld(&changes);
        let mixed = changes.iter().zip(bare).map(|(whole, bare)| {
            let withhold = rng.chance(50);
            if withhold { bare } else { whole.clone() }
        });
        let mixed: Vec<SignedChange> = mixed.collect();
        two.take(mixed)?;
        // The payloads of all series follow in a few rounds, in no order.
        while !changes.is_empty() {
            let size = 1 + usize::try_from(rng.below(changes.len() as u64))?;
            let round = (0..size).map(|_| {
                let at = rng.below(changes.len() as u64);
                changes.swap_remove(usize::try_from(at).unwrap_or(0))
            });
            let round: Vec<SignedChange> = round.collect();
            let (received, applied) = two.take(round)?;
            ensure!(received.refused.is_empty() && applied.blocked.is_empty(), "seed {seed}: {applied:?}");
        }
        let expected = one.core.state()?;
        ensure!(two.core.state()? == expected, "seed {seed}");
    }
    Ok(())
}

#[test]
fn a_late_edit_does_not_replace_one_that_had_seen_it() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = [Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?, Peer::new(dir.path(), 3)?];
    let tea = peers[0].add("Drinks tea")?;
    in_step(&peers)?;
    peers[0].tag(&tea, &["old"])?;
    let late = peers[0].changes_after(&peers[2].sync.frontier()?)?;
    exchange(&peers[0], &peers[1])?;
    peers[1].tag(&tea, &["new"])?;
    let changes = peers[1].changes_after(&peers[2].sync.frontier()?)?;
    let own = peers[0].sync.origin()?;
    let first_withheld = changes
        .into_iter()
        .map(|change| if Some(change.change().origin) == own { change.without_payload() } else { change });
    peers[2].take(first_withheld.collect())?;
    ensure!(peers[2].memory(&tea)?.tags == ["new"]);
    let count = late.len() as u64;
    let (received, _) = peers[2].take(late)?;
    ensure!(received.completed == count, "{received:?}");
    ensure!(peers[2].memory(&tea)?.tags == ["new"]);
    in_step(&peers)
}

#[test]
fn changes_of_unknown_kinds_are_read_again_by_another_program() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let store = Peer::new(dir.path(), 1)?;
    let payload = [&[0; 16][..], b"what a newer program writes"].concat();
    let (_, applied) = store.take(series_with(Kind(60_000), &payload)?)?;
    ensure!(applied.unknown == 1, "{applied:?}");
    let again = store.sync.apply(&CancelToken::new())?;
    ensure!(again.unknown == 0, "{again:?}");
    // As if a program that knows one kind had passed it over.
    let (ledger, id, value) = (Ledger::Sync, "kinds".to_owned(), 1_u16.to_be_bytes().to_vec());
    let entry = Change::Ledger(LedgerWrite::Entry { ledger, id, at_micros: 0, value });
    store.core.store.commit(Batch { origin: Origin::default(), changes: vec![entry] })?;
    for expected in [1, 0] {
        let applied = store.sync.apply(&CancelToken::new())?;
        ensure!(applied.unknown == expected, "{applied:?}");
    }
    Ok(())
}

/// Writes a list of prompts of Gemini, a minute apart, and returns its folder.
pub(super) fn write_prompts(folder: &Path, prompts: std::ops::Range<i64>) -> Result<PathBuf> {
    let row = |at: i64| {
        let time = Timestamp::saturating(START + at * MINUTE).to_string();
        json!({"header": "Gemini Apps", "title": format!("Prompted Question {at}"), "time": time,
            "products": ["Gemini Apps"], "safeHtmlItem": [{"html": format!("<p>Answer {at}</p>")}]})
    };
    let rows: Vec<_> = prompts.rev().map(row).collect();
    let inner = folder.join("Takeout/My Activity/Gemini Apps");
    std::fs::create_dir_all(&inner)?;
    std::fs::write(inner.join("MyActivity.json"), serde_json::to_vec(&rows)?)?;
    Ok(folder.to_owned())
}

#[test]
fn lists_that_a_later_import_joined_come_to_the_other_store() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = [Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?];
    for (name, prompts) in [("first", 0..4), ("second", 8..14), ("both", 2..10)] {
        peers[0].import(&write_prompts(&dir.path().join(name), prompts)?)?;
        // Each import is in the series before the next one is made.
        peers[0].sync.record_history()?;
    }
    let shown = peers[0].core.state()?.conversations;
    ensure!(shown.len() == 1, "{} conversations", shown.len());
    in_step(&peers)?;
    ensure!(peers[1].core.state()?.conversations == shown);
    Ok(())
}

#[test]
fn what_the_store_refuses_stops_its_origin_and_no_other() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let honest = Peer::new(dir.path(), 1)?;
    let long = "x".repeat(400);
    let memory = json!({"id": long, "type": "fact", "status": "active", "tags": [], "content": "c",
        "content_hash": satchel_pam::hash::ContentHash::of("c").to_string(),
        "temporal": {"created_at": "2026-01-02T03:04:05Z"}, "provenance": {"platform": "chatgpt"}});
    let patch = json!({"word": "0a1b2c3d-0000-4000-8000-00000000e777", "at": 1,
        "deed": {"set": {"fields": ["content"], "to": memory}}});
    let contribution = |conversation: &str, ids: &[&str]| {
        let report = json!(satchel_merge::conversation::ConversationReport::default());
        let nodes: Vec<_> = ids.iter().map(|id| json!({"id": id, "body": {"role": "user"}})).collect();
        json!({"conversation": conversation, "platform": "p", "report": report, "nodes": nodes,
            "import": {"importer": null, "importer_version": null, "imported_at": null, "source_file": null,
                "source_checksum": null}})
    };
    let reserved = "parts 0a1b2c3d-0000-4000-8000-00000000e777 0";
    let cases = [
        (1, json!({"actor": "owner", "step": patch}).to_string()),
        (2, patch.to_string()),
        (4, contribution(reserved, &["m"]).to_string()),
        (4, contribution(&long, &["m"]).to_string()),
        (4, contribution("c", &[&long]).to_string()),
        (4, contribution("c", &["m", "m"]).to_string()),
    ];
    for (number, (kind, content)) in (10..).zip(cases) {
        let store = Peer::new(dir.path(), number)?;
        let payload = [&[0; 16][..], content.as_bytes()].concat();
        let (_, applied) = store.take(series_with(Kind(kind), &payload)?)?;
        ensure!(applied.blocked.len() == 1, "case {number}: {applied:?}");
        let reason = &applied.blocked[0].reason;
        ensure!(reason.contains("id"), "case {number}: {reason}");
        exchange_around(&honest, &store)?;
    }
    Ok(())
}

#[test]
fn wrong_joins_stop_their_origin() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let joined = |kind: u16, parts: u32| [&[0; 16][..], &kind.to_be_bytes(), &parts.to_be_bytes()].concat();
    let cases =
        [joined(1, 0), joined(1, 1), joined(1, 2), joined(1, 129), joined(8, 1), joined(0, 1), vec![0; 17]];
    for (number, payload) in (10..).zip(cases) {
        let store = Peer::new(dir.path(), number)?;
        let (_, applied) = store.take(series_with(Kind(8), &payload)?)?;
        ensure!(applied.blocked.len() == 1, "case {number}: {applied:?}");
    }
    Ok(())
}
