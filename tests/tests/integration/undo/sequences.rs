//! Random sequences: after any sequence of imports and undos, the store shows the same as a new one with only the
//! imports that were not undone.

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::{Result, ensure};
use satchel_core::ingest::{receipt::ImportStatus, undo::UndoDirection};
use satchel_importer::testkit::first_difference;
use satchel_tests::{
    generate::Rng,
    samples::sample,
    test_core::{ExportedState, TestCore, demo_folder},
};
use serde_json::json;
use tempfile::TempDir;

use super::{
    exports::{TestConversation, write_chatgpt, write_claude},
    undo_or_redo,
};

/// Number of sequences of imports and undos that are tried.
const SEQUENCES: u64 = 12;
/// Number of steps in one sequence.
const STEPS: u64 = 14;

fn test_exports(made: &TempDir) -> Result<Vec<PathBuf>> {
    let dir = made.path();
    Ok(vec![
        write_chatgpt(
            dir,
            "a",
            &[TestConversation::new(1, 3), TestConversation::new(2, 2)],
            &["Keeps bees"],
        )?,
        write_chatgpt(
            dir,
            "b",
            &[TestConversation::new(2, 4), TestConversation::new(3, 2)],
            &["Keeps bees", "Has a van"],
        )?,
        write_chatgpt(
            dir,
            "c",
            &[TestConversation::new(2, 4).slim(), TestConversation::new(1, 1).slim()],
            &["Has a van"],
        )?,
        write_chatgpt(dir, "d", &[TestConversation::new(1, 5), TestConversation::new(3, 1).slim()], &[])?,
        write_claude(dir, "e", "keeps  BEES.")?,
        write_claude(dir, "f", "Keeps goats")?,
        sample("claude", "memory-edits"),
        sample("chatgpt", "memory-bio-writes"),
        sample("memu", "memory-objects"),
        demo_folder().join("chatgpt-export"),
    ]
    .into_iter()
    .filter(|path| path.is_dir())
    .collect())
}

fn state_after_imports(exports: &[&PathBuf]) -> Result<ExportedState> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    for export in exports {
        core.import(export)?;
    }
    core.state()
}

fn assert_same_state(one: &ExportedState, other: &ExportedState, steps: &[String]) -> Result<()> {
    for (what, left, right) in [
        ("memories", json!(one.memories), json!(other.memories)),
        ("relations", json!(one.relations), json!(other.relations)),
        ("conversations", json!(one.conversations), json!(other.conversations)),
    ] {
        let difference = first_difference(&left, &right);
        ensure!(difference.is_none(), "{what} differ after {steps:#?}: {}", difference.unwrap_or_default());
    }
    Ok(())
}

#[test]
fn the_state_depends_only_on_imports_that_are_not_undone() -> Result<()> {
    let made = tempfile::tempdir()?;
    let exports = test_exports(&made)?;
    ensure!(exports.len() >= 9, "only {} exports were found", exports.len());
    let mut undone_sequences = 0;
    for seed in 0..SEQUENCES {
        let mut rng = Rng::new(seed);
        let dir = tempfile::tempdir()?;
        let core = TestCore::open(&dir.path().join("data"))?;
        // For each import: its export, and whether it counts.
        let mut made: BTreeMap<String, (usize, bool)> = BTreeMap::new();
        let mut steps = Vec::new();
        for _ in 0..STEPS {
            let ids: Vec<String> = made.keys().cloned().collect();
            if ids.is_empty() || rng.chance(55) {
                let at = usize::try_from(rng.below(exports.len() as u64))?;
                for import in core.import(&exports[at])? {
                    if import.status != ImportStatus::Unchanged {
                        made.insert(import.id, (at, true));
                    }
                }
                steps.push(format!("import {}", exports[at].display()));
            } else {
                let id = &ids[usize::try_from(rng.below(ids.len() as u64))?];
                let Some((at, counts)) = made.get_mut(id) else { continue };
                undo_or_redo(&core, id, if *counts { UndoDirection::Undo } else { UndoDirection::Redo })?;
                *counts = !*counts;
                let verb = if *counts { "redo" } else { "undo" };
                steps.push(format!("{verb} {id} {}", exports[*at].display()));
            }
        }
        let counted: Vec<&PathBuf> =
            made.values().filter(|(_, counts)| *counts).map(|(at, _)| &exports[*at]).collect();
        undone_sequences += u64::from(counted.len() < made.len());
        assert_same_state(&core.state()?, &state_after_imports(&counted)?, &steps)?;
        let report = core.store.check(true, &mut |_| {})?;
        ensure!(report.clean(), "after {steps:#?}: {report:?}");
    }
    ensure!(undone_sequences * 2 > SEQUENCES, "too few rows ended with an import undone");
    Ok(())
}
