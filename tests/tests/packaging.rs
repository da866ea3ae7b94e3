//! The files of one export give the same store however they are packed: in one folder, in one archive, or one by one in any order.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail, ensure};
use satchel_importer::testkit::first_difference;
use satchel_tests::{
    archive::{Archive, State},
    exports::{Sample, copy, pack, samples},
    generate::Dice,
};
use serde_json::{Value, json};

/// Orders in which files arrive one by one, beside that of their names and its reverse.
const SHUFFLES: u64 = 1;

/// Files below a folder that are downloaded as one: archives, and everything else by itself.
fn pieces(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next)? {
            let path = entry?.path();
            if path.is_dir() && path.extension().is_none_or(|ending| ending != "zip") {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(folder)?.to_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Imports each of `sources` into a new data directory, and answers what it shows.
fn store_of(sources: &[PathBuf]) -> Result<State> {
    let dir = tempfile::tempdir()?;
    let archive = Archive::open(&dir.path().join("data"))?;
    for source in sources {
        archive.import(source)?;
    }
    archive.state()
}

/// A folder for each piece, with nothing but it at its place.
fn apart(input: &Path, pieces: &[PathBuf], to: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for (number, piece) in pieces.iter().enumerate() {
        let folder = to.join(number.to_string());
        let (from, place) = (input.join(piece), folder.join(piece));
        fs::create_dir_all(place.parent().context("a folder")?)?;
        if from.is_dir() {
            pack(&from, &place)?
        } else {
            fs::copy(&from, &place).map(drop)?
        }
        folders.push(folder);
    }
    Ok(folders)
}

fn shuffled(folders: &[PathBuf], seed: u64) -> Vec<PathBuf> {
    let mut dice = Dice::new(seed);
    let mut rest = folders.to_vec();
    let mut order = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let at = usize::try_from(dice.below(rest.len() as u64)).unwrap_or(0);
        order.push(rest.swap_remove(at));
    }
    order
}

fn difference(one: &State, other: &State) -> Option<String> {
    let value = |state: &State| json!([state.conversations, state.memories, state.relations]);
    first_difference(&value(one), &value(other))
}

/// Holds one export against itself in other packages; the first difference, if there is one.
fn check(sample: &Sample, pieces: &[PathBuf]) -> Result<Option<String>> {
    let dir = tempfile::tempdir()?;
    let (folder, zip) = (dir.path().join("export"), dir.path().join("export.zip"));
    copy(&sample.input, &folder)?;
    pack(&sample.input, &zip)?;
    let whole = store_of(&[folder])?;
    if let Some(found) = difference(&whole, &store_of(&[zip])?) {
        return Ok(Some(format!("as one archive: {found}")));
    }
    let forward = apart(&sample.input, pieces, &dir.path().join("apart"))?;
    let mut orders = vec![forward.clone(), forward.iter().rev().cloned().collect()];
    orders.extend((0..SHUFFLES).map(|seed| shuffled(&forward, seed)));
    for order in orders {
        if let Some(found) = difference(&whole, &store_of(&order)?) {
            return Ok(Some(format!("one by one: {found}")));
        }
    }
    Ok(None)
}

#[test]
fn an_export_is_the_same_in_every_package() -> Result<()> {
    let mut faults = Vec::new();
    let mut checked = 0;
    for sample in samples()? {
        let pieces = pieces(&sample.input)?;
        if pieces.len() < 2 {
            continue;
        }
        checked += 1;
        if let Some(fault) = check(&sample, &pieces)? {
            faults.push(format!("{}/{}: {fault}", sample.provider, sample.behaviour));
        }
    }
    ensure!(checked > 60, "only {checked} exports of several files were found");
    if !faults.is_empty() {
        bail!("{} differ:\n{}", faults.len(), faults.join("\n"));
    }
    Ok(())
}
