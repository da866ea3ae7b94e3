//! The changes that a released version wrote are read by every later one, and come to the same.
//!
//! `SATCHEL_BLESS=1` writes the files anew. That is right only for a format that was never released: otherwise keep the old files, and add
//! new ones.

use std::{collections::BTreeSet, fs, io::Cursor, path::PathBuf};

use anyhow::{Context as _, Result, ensure};
use satchel_core::{edits::Draft, ingest::undo::UndoDirection, purge::Target};
use satchel_store::MemoryQuery;
use satchel_sync::{
    Frontier, SignedChange,
    batch::{BatchReader, BatchWriter, Pushed},
};
use satchel_tests::test_core::demo_folder;

use super::{Peer, erasures, recordings};

/// The kinds of changes that a store writes, except parts of large payloads.
const KINDS: [u16; 10] = [0, 1, 2, 3, 4, 5, 6, 9, 10, 11];

fn kept(extension: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("contract/changes-1").with_extension(extension)
}

/// Returns the changes of a store in which everything has happened that changes tell of.
fn written() -> Result<(Peer, Vec<SignedChange>, tempfile::TempDir)> {
    let dir = tempfile::tempdir()?;
    let peer = Peer::silent(dir.path(), 1)?;
    let tea = peer.add("Drinks tea")?;
    peer.begin()?;
    for export in ["chatgpt-export", "claude-export"] {
        // The path becomes part of the kept changes.
        let path = dir.path().join(export);
        fs::create_dir(&path)?;
        for entry in fs::read_dir(demo_folder().join(export))? {
            let entry = entry?;
            fs::copy(entry.path(), path.join(entry.file_name()))?;
        }
        peer.core.import(&path)?;
    }
    peer.edit(&tea, &Draft { content: Some("Drinks green tea".to_owned()), ..Draft::default() })?;
    let recorded = recordings::record(&peer, None, "What is a hive?")?;
    recordings::record(&peer, Some(&recorded), "And a swarm?")?;
    let import = peer.core.imports.list(None, 1)?.items.pop().context("an import")?.id;
    peer.undo(&import, UndoDirection::Undo)?;
    peer.undo(&import, UndoDirection::Redo)?;
    peer.changes_after(&Frontier::new())?;
    let store = &peer.core.store;
    let rows = store.memories(&MemoryQuery::default(), None, 500, store.revision())?.items;
    let erased = rows.into_iter().map(|row| row.memory.id).find(|id| *id != tea).context("a memory")?;
    let peer = erasures::erase(peer, &Target::Memory(erased))?;
    let changes = peer.changes_after(&Frontier::new())?;
    Ok((peer, changes, dir))
}

fn bless() -> Result<()> {
    let (peer, changes, _dir) = written()?;
    let mut batch = BatchWriter::begin(Vec::new())?;
    for change in &changes {
        ensure!(batch.push(change)? == Pushed::Written, "they fit into one batch");
    }
    fs::write(kept("batch"), batch.finish()?)?;
    fs::write(kept("digest"), peer.sync.state_digest()?.digest.to_string())?;
    Ok(())
}

#[test]
fn the_changes_of_the_first_release_are_read_and_passed_on() -> Result<()> {
    if std::env::var_os("SATCHEL_BLESS").is_some() {
        bless()?;
    }
    let bytes = fs::read(kept("batch"))?;
    let batch = BatchReader::open(Cursor::new(&bytes))?.context("a batch")?;
    let changes = batch.collect::<Result<Vec<SignedChange>, _>>()?;
    let kinds: BTreeSet<u16> = changes.iter().map(|change| change.change().kind.0).collect();
    ensure!(kinds == KINDS.into(), "{kinds:?}");

    let dir = tempfile::tempdir()?;
    let mut peers = vec![Peer::new(dir.path(), 2)?];
    erasures::take(&mut peers, 0, changes.clone())?;
    let digest = peers[0].sync.state_digest()?.digest.to_string();
    ensure!(digest == fs::read_to_string(kept("digest"))?, "the store shows something else: {digest}");

    // What this store passes on is what it got.
    let passed = peers[0].changes_after(&Frontier::new())?;
    for change in &changes {
        ensure!(passed.iter().any(|one| one.encode() == change.encode()), "{:?}", change.change());
    }
    Ok(())
}
