//! The law of undo: after any sequence of imports and undos, the store shows the same as a new one with only the
//! imports that were not undone.

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::{Result, ensure};
use satchel_core::ingest::{receipt::ImportStatus, undo::Turn};
use satchel_importer::testkit::first_difference;
use satchel_tests::{
    archive::{Archive, State, demo},
    exports::sample,
    generate::Dice,
};
use serde_json::json;
use tempfile::TempDir;

use super::{
    exports::{Talk, chatgpt, claude},
    turn,
};

/// Number of sequences of imports and undos that are tried.
const ROWS: u64 = 12;
/// Number of steps in one sequence.
const STEPS: u64 = 14;

fn all(made: &TempDir) -> Result<Vec<PathBuf>> {
    let dir = made.path();
    Ok(vec![
        chatgpt(dir, "a", &[Talk::of(1, 3), Talk::of(2, 2)], &["Keeps bees"])?,
        chatgpt(dir, "b", &[Talk::of(2, 4), Talk::of(3, 2)], &["Keeps bees", "Has a van"])?,
        chatgpt(dir, "c", &[Talk::of(2, 4).slim(), Talk::of(1, 1).slim()], &["Has a van"])?,
        chatgpt(dir, "d", &[Talk::of(1, 5), Talk::of(3, 1).slim()], &[])?,
        claude(dir, "e", "keeps  BEES.")?,
        claude(dir, "f", "Keeps goats")?,
        sample("claude", "memory-edits"),
        sample("chatgpt", "memory-bio-writes"),
        sample("memu", "memory-objects"),
        demo().join("chatgpt-export"),
    ]
    .into_iter()
    .filter(|path| path.is_dir())
    .collect())
}

fn arrive(exports: &[&PathBuf]) -> Result<State> {
    let dir = tempfile::tempdir()?;
    let archive = Archive::open(&dir.path().join("data"))?;
    for export in exports {
        archive.import(export)?;
    }
    archive.state()
}

fn same(one: &State, other: &State, row: &[String]) -> Result<()> {
    for (what, left, right) in [
        ("memories", json!(one.memories), json!(other.memories)),
        ("relations", json!(one.relations), json!(other.relations)),
        ("conversations", json!(one.conversations), json!(other.conversations)),
    ] {
        let difference = first_difference(&left, &right);
        ensure!(difference.is_none(), "{what} differ after {row:#?}: {}", difference.unwrap_or_default());
    }
    Ok(())
}

#[test]
fn what_is_shown_follows_from_the_imports_that_are_not_undone() -> Result<()> {
    let made = tempfile::tempdir()?;
    let exports = all(&made)?;
    ensure!(exports.len() >= 9, "only {} exports were found", exports.len());
    let mut undone_rows = 0;
    for seed in 0..ROWS {
        let mut dice = Dice::new(seed);
        let dir = tempfile::tempdir()?;
        let archive = Archive::open(&dir.path().join("data"))?;
        // For each import: its export, and whether it counts.
        let mut made: BTreeMap<String, (usize, bool)> = BTreeMap::new();
        let mut row = Vec::new();
        for _ in 0..STEPS {
            let ids: Vec<String> = made.keys().cloned().collect();
            if ids.is_empty() || dice.chance(55) {
                let at = usize::try_from(dice.below(exports.len() as u64))?;
                for import in archive.import(&exports[at])? {
                    if import.status != ImportStatus::Unchanged {
                        made.insert(import.id, (at, true));
                    }
                }
                row.push(format!("import {}", exports[at].display()));
            } else {
                let id = &ids[usize::try_from(dice.below(ids.len() as u64))?];
                let Some((at, counts)) = made.get_mut(id) else { continue };
                turn(&archive, id, if *counts { Turn::Undo } else { Turn::Redo })?;
                *counts = !*counts;
                let verb = if *counts { "redo" } else { "undo" };
                row.push(format!("{verb} {id} {}", exports[*at].display()));
            }
        }
        let counted: Vec<&PathBuf> =
            made.values().filter(|(_, counts)| *counts).map(|(at, _)| &exports[*at]).collect();
        undone_rows += u64::from(counted.len() < made.len());
        same(&archive.state()?, &arrive(&counted)?, &row)?;
        let report = archive.store.check(true, &mut |_| {})?;
        ensure!(report.clean(), "after {row:#?}: {report:?}");
    }
    ensure!(undone_rows * 2 > ROWS, "too few rows ended with an import undone");
    Ok(())
}
