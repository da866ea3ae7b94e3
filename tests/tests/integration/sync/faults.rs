//! Changes that are wrong, stores that were rolled back, and exchanges that were interrupted.

use anyhow::{Context as _, Result, ensure};
use satchel_core::{edits::Draft, sync::SyncError};
use satchel_source::CancelToken;
use satchel_sync::{Author, Change, Frontier, Kind, SignedChange, SigningKey};
use satchel_tests::{
    samples::copy,
    test_core::{ExportedState, demo_folder},
};

use super::{Peer, exchange, in_step};

/// Returns a series with one change after its genesis.
pub(super) fn series_with(kind: Kind, payload: &[u8]) -> Result<Vec<SignedChange>> {
    let key = SigningKey::from_bytes(&[77; 32]);
    let (mut author, genesis) = Author::begin(key, [7; 16], &Frontier::new())?;
    let change = author.append(kind, payload.to_vec(), &Frontier::new())?;
    Ok(vec![genesis, change])
}

#[test]
fn an_invalid_payload_stops_its_origin_and_no_other() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = [Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?];
    let evidence_of_another_key = [&[0; 16][..], &[1; 16], br#"{"id":"e","platform":"p","at":1,"method":"manual","extractor":"x","claim":{"statement":{"content":"c","memory_type":"fact"}}}"#].concat();
    for (number, (kind, payload)) in (10..).zip([
        (1, b"short".to_vec()),
        (1, [&[0; 16][..], b"{}"].concat()),
        (3, evidence_of_another_key),
        (3, [&[0; 16][..], &[1; 16], b"not JSON"].concat()),
        (4, [&[0; 16][..], br#"{"conversation":1}"#].concat()),
        (4, [&[0; 16][..], contribution_with_an_invalid_body().as_bytes()].concat()),
        (5, [&[0; 16][..], b"[]"].concat()),
        (5, [&[0; 16][..], br#"{"record":{},"sources":[],"contributions":"","evidence":"abc"}"#].concat()),
        (6, [&[0; 16][..], br#"{"import":"no id"}"#].concat()),
    ]) {
        let store = Peer::new(dir.path(), number)?;
        let (received, applied) = store.take(series_with(Kind(kind), &payload)?)?;
        ensure!(received.refused.is_empty() && received.new == 2, "{received:?}");
        ensure!(applied.blocked.len() == 1, "kind {kind}: {applied:?}");
        ensure!(store.core.state()? == ExportedState::default());
        exchange_around(&peers[0], &store)?;
    }
    Ok(())
}

fn contribution_with_an_invalid_body() -> String {
    let report = serde_json::to_string(&satchel_merge::conversation::ConversationReport::default());
    let report = report.unwrap_or_default();
    format!(
        r#"{{"conversation":"c","platform":"p","import":{{"importer":null,"importer_version":null,"imported_at":null,"source_file":null,"source_checksum":null}},"report":{report},"nodes":[{{"id":"m","body":{{"role":7}}}}]}}"#
    )
}

/// Sends a new memory to a store of which another origin is blocked.
pub(super) fn exchange_around(from: &Peer, to: &Peer) -> Result<()> {
    let tea = from.add("Drinks tea")?;
    let changes = from.changes_after(&to.sync.frontier()?)?;
    to.take(changes)?;
    ensure!(to.memory(&tea)?.content == "Drinks tea");
    Ok(())
}

#[test]
fn a_change_of_an_unknown_kind_is_kept_and_passed_on() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = [Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?];
    let changes = series_with(Kind(60_000), b"what a newer program writes")?;
    let (_, applied) = peers[0].take(changes.clone())?;
    ensure!(applied.unknown == 1 && applied.blocked.is_empty(), "{applied:?}");
    let passed_on = peers[0].changes_after(&peers[1].sync.frontier()?)?;
    for change in &changes {
        ensure!(passed_on.contains(change));
    }
    Ok(())
}

#[test]
fn a_signature_that_is_not_the_origins_is_refused() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let store = Peer::new(dir.path(), 1)?;
    let mut changes = series_with(Kind(1), b"something")?;
    let forged: Change = changes[1].clone().into_change();
    changes[1] = forged.sign(&SigningKey::from_bytes(&[78; 32]))?;
    let (received, _) = store.take(changes)?;
    ensure!(received.new == 1 && received.refused.len() == 1, "{received:?}");
    Ok(())
}

#[test]
fn a_change_waits_for_what_its_author_had_seen() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = [Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?, Peer::new(dir.path(), 3)?];
    let tea = peers[0].add("Drinks tea")?;
    exchange(&peers[0], &peers[1])?;
    peers[1].tag(&tea, &["kitchen"])?;
    let all = peers[1].changes_after(&peers[2].sync.frontier()?)?;
    let own = peers[1].sync.origin()?.context("it has a series")?;
    let (late, first): (Vec<_>, Vec<_>) = all.into_iter().partition(|change| change.change().origin != own);
    peers[2].take(first)?;
    ensure!(peers[2].memory(&tea).is_err(), "the edit has no effect yet");
    peers[2].take(late)?;
    ensure!(peers[2].memory(&tea)?.tags == ["kitchen"]);
    in_step(&peers)
}

#[test]
fn what_was_received_takes_effect_after_a_restart() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (one, two) = (Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?);
    one.import(&demo_folder().join("claude-export"))?;
    let tea = one.add("Drinks tea")?;
    let changes = one.changes_after(&two.sync.frontier()?)?;
    // In pieces, the last one twice.
    let (first, second) = changes.split_at(changes.len() / 2);
    two.sync.receive(first.to_vec())?;
    two.sync.receive(second.to_vec())?;
    let repeated = two.sync.receive(second.to_vec())?;
    ensure!(repeated.new == 0 && repeated.repeated == second.len() as u64, "{repeated:?}");
    let two = two.reopened()?;
    two.sync.apply(&CancelToken::new())?;
    ensure!(two.memory(&tea)?.content == "Drinks tea");
    let bees = two.add("Keeps bees")?;
    in_step(&[one, two.reopened()?])?;
    let one = Peer::open(&dir.path().join("store-1"), 1);
    ensure!(one.is_err() || one?.memory(&bees).is_ok());
    Ok(())
}

#[test]
fn a_store_that_was_rolled_back_is_told() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (one, two) = (Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?);
    one.add("Drinks tea")?;
    exchange(&one, &two)?;
    let one = one.reopened()?;
    let copied = dir.path().join("copy");
    let original = one.dir.clone();
    drop(one.sync);
    one.core.close()?;
    copy(&original, &copied)?;
    let one = Peer::open(&original, 1)?;
    one.sync.unlock(one.key())?;
    one.add("Keeps bees")?;
    exchange(&one, &two)?;
    let restored = Peer::open(&copied, 1)?;
    let changes = two.changes_after(&restored.sync.frontier()?)?;
    let error = restored.sync.receive(changes).err().context("it must not go on")?;
    ensure!(
        matches!(error, SyncError::Series(_)) && error.to_string().contains("cannot be continued"),
        "{error}"
    );
    Ok(())
}

/// A step with a time far in the future would be the latest one for good. A clock that is wrong by years is not such a case.
#[test]
fn a_change_from_the_far_future_stops_its_own_series_only() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (wrong, right) = (Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?);
    let tea = wrong.add("Drinks tea")?;
    exchange(&wrong, &right)?;
    for days in [400, 366 * 60] {
        wrong.clock.set(days);
        let text = format!("Drinks tea, {days} days ahead");
        wrong.edit(&tea, &Draft { content: Some(text.clone()), ..Draft::default() })?;
        exchange(&wrong, &right)?;
        ensure!(right.memory(&tea)?.content == text);
    }
    // Here it is refused when it is made.
    wrong.clock.set(366 * 80);
    let refused = wrong.tag(&tea, &["future"]).err().context("it is refused")?.to_string();
    ensure!(refused.contains("set the clock"), "{refused}");
    wrong.clock.set(0);
    // A right clock goes on from what it has seen.
    right.edit(&tea, &Draft { content: Some("Drinks mate".to_owned()), ..Draft::default() })?;
    exchange(&right, &wrong)?;
    ensure!(wrong.memory(&tea)?.content == "Drinks mate");

    let year_9000 = br#"{"actor":"owner","step":{"word":"5e0b8c1e-0000-4000-8000-000000000000","at":221845392000000000,"deed":{"withdraw":"r"}}}"#;
    let payload = [&[0; 16][..], year_9000].concat();
    let (received, applied) = right.take(series_with(Kind(1), &payload)?)?;
    ensure!(received.refused.is_empty(), "{received:?}");
    let blocked = applied.blocked.first().context("it has no effect")?;
    ensure!(blocked.reason.contains("after the year 2100"), "{blocked:?}");
    let other = Peer::new(dir.path(), 3)?;
    let bees = other.add("Keeps bees")?;
    right.take(other.changes_after(&right.sync.frontier()?)?)?;
    right.memory(&bees).map(drop)
}

#[test]
fn an_edit_needs_the_key_of_the_series() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let one = Peer::new(dir.path(), 1)?;
    one.add("Drinks tea")?;
    let (path, wrong) = (one.dir.clone(), SigningKey::from_bytes(&[99; 32]));
    drop(one.sync);
    one.core.close()?;
    let one = Peer::open(&path, 1)?;
    let refused = one.add("Keeps bees").err().context("it cannot be signed")?;
    ensure!(refused.to_string().contains("key of this store's own series"), "{refused}");
    ensure!(one.sync.unlock(wrong).is_err());
    one.sync.unlock(one.key())?;
    one.add("Keeps bees")?;
    Ok(())
}

#[test]
fn invented_changes_of_the_own_origin_stop_nothing_else() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (one, two) = (Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?);
    let tea = one.add("Drinks tea")?;
    let own = two.sync.origin()?.context("it has a series")?;
    let mut invented = series_with(Kind(1), b"something")?[1].clone().into_change();
    invented.origin = own;
    invented.counter = satchel_sync::Counter::new(1_000_000).context("a counter")?;
    let mut changes = vec![invented.sign(&SigningKey::from_bytes(&[78; 32]))?];
    changes.extend(one.changes_after(&two.sync.frontier()?)?);
    let (received, _) = two.take(changes)?;
    ensure!(received.refused.len() == 1 && received.refused[0].origin == own, "{received:?}");
    ensure!(two.memory(&tea)?.content == "Drinks tea");
    Ok(())
}
