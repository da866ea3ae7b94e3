//! Each store lists the exports of the others, and builds nothing on them.

use anyhow::{Context as _, Result, ensure};
use satchel_core::ingest::{Apply, receipt::ImportStatus};
use satchel_tests::test_core::demo_folder;

use super::{Peer, exchange};

fn both_ways(peers: &[Peer; 2]) -> Result<()> {
    exchange(&peers[0], &peers[1])?;
    exchange(&peers[1], &peers[0])?;
    Ok(())
}

#[test]
fn exports_are_listed_everywhere_and_are_a_base_only_where_they_were_made() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = [Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?];
    peers[0].import(&demo_folder().join("claude-export"))?;
    let full = peers[0].core.export(&dir.path().join("full"))?;
    both_ways(&peers)?;
    let listed = |peer: &Peer| -> Result<_> { Ok(peer.core.exports.list(None, 10)?.items) };
    let there = listed(&peers[1])?.pop().context("it is listed")?;
    ensure!(there.export_id == full.export_id && there.path == full.path, "{there:?}");
    ensure!(there.machine.is_some(), "it names the machine");
    ensure!(listed(&peers[0])?[0].machine.is_none());
    ensure!(peers[1].core.exports.get(&full.export_id)?.is_some());
    ensure!(peers[1].core.exports.open(&there).is_err(), "the file is on the other machine");

    // An increment needs a base of its own machine.
    let error = peers[1].core.export_changes(Some(&full.export_id), &dir.path().join("no")).err();
    let error = error.context("it is refused")?.to_string();
    ensure!(error.contains("another machine"), "{error}");
    let first = peers[1].core.export_changes(None, &dir.path().join("first"))?;
    ensure!(first.export_type == "full", "{first:?}");
    let tea = peers[1].add("Drinks tea")?;
    let changes = peers[1].core.export_changes(None, &dir.path().join("changes"))?;
    ensure!(changes.base_export_id == Some(first.export_id.clone()), "{changes:?}");

    // Nothing is listed twice, and nothing comes back as the export of another machine.
    both_ways(&peers)?;
    both_ways(&peers)?;
    for peer in &peers {
        let all = listed(peer)?;
        ensure!(all.len() == 3, "{all:?}");
        peer.memory(&tea)?;
    }
    ensure!(listed(&peers[0])?.iter().filter(|export| export.machine.is_none()).count() == 1);
    ensure!(listed(&peers[1])?.iter().filter(|export| export.machine.is_none()).count() == 2);
    // An export of the other machine that is applied here counts as that.
    let rules = Apply { any_owner: true, ..Apply::default() };
    let applied = peers[0].core.apply_with(&dir.path().join("first"), false, rules)?;
    ensure!(applied.status == ImportStatus::Completed, "{applied:?}");
    let known = peers[0].core.exports.get(&first.export_id)?.context("it is known")?;
    ensure!(known.applied && known.machine.is_none(), "{known:?}");
    exchange(&peers[0], &peers[1])?;
    ensure!(
        peers[1].core.exports.get(&first.export_id)?.is_some_and(|own| own.machine.is_none() && !own.applied)
    );
    Ok(())
}
