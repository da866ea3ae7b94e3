//! Every file of a store is flipped, truncated, zeroed, filled with noise and removed: the corruption is always detected, the database
//! is always repaired, and a journal that lost something names the revisions.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    damage::{copy, flip},
    fixture::{Model, TestRng, open_real, show, show_all},
    rounds,
};
use crate::{Health, OpenEvent, Revision, Store, StoreError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Corruption {
    Flip,
    Cut,
    ZeroPage,
    ZeroAll,
    Noise,
    Remove,
}

const CORRUPTIONS: [Corruption; 6] = [
    Corruption::Flip,
    Corruption::Cut,
    Corruption::ZeroPage,
    Corruption::ZeroAll,
    Corruption::Noise,
    Corruption::Remove,
];

/// Corrupts a file. Returns false if it is unchanged.
fn corrupt(path: &Path, kind: Corruption, rng: &mut TestRng) -> bool {
    let before = fs::read(path).unwrap();
    let length = before.len() as u64;
    let mut bytes = before.clone();
    match kind {
        Corruption::Remove => {
            fs::remove_file(path).unwrap();
            return true;
        }
        _ if length == 0 => return false,
        Corruption::Flip => flip(path, rng.roll(length * 8)),
        Corruption::Cut => bytes.truncate(rng.roll(length) as usize),
        Corruption::ZeroAll => bytes.fill(0),
        Corruption::ZeroPage | Corruption::Noise => {
            let from = (rng.roll(length) / 4_096 * 4_096) as usize;
            let until = bytes.len().min(from + 4_096);
            for byte in &mut bytes[from..until] {
                *byte = if kind == Corruption::Noise { rng.roll(256) as u8 } else { 0 };
            }
        }
    }
    if kind != Corruption::Flip {
        fs::write(path, bytes).unwrap();
    }
    fs::read(path).unwrap() != before
}

pub(super) fn all_files(dir: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// A store that was closed cleanly, with a model after each revision.
struct IntactStore {
    dir: tempfile::TempDir,
    model: Model,
    at: Vec<Model>,
    digest: crate::StateDigest,
    files: Vec<PathBuf>,
}

fn intact() -> IntactStore {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open_real(dir.path(), "boot").unwrap();
    let (mut model, mut rng, mut at) = (Model::default(), TestRng(31), vec![Model::default()]);
    for n in 0..18_u8 {
        let batch = model.batch(&mut rng);
        if batch.raises_revision() {
            at.push(model.versioned());
        }
        store.blob_put(&mut vec![n; 5_000].as_slice()).unwrap();
        store.commit(batch).unwrap();
    }
    let digest = store.state_digest();
    store.close().unwrap();
    let files =
        all_files(dir.path()).iter().map(|path| path.strip_prefix(dir.path()).unwrap().to_owned()).collect();
    IntactStore { dir, model, at, digest, files }
}

/// Checks that everything that is not reported as lost is shown unchanged, at every undamaged revision.
fn check_losses_reported(store: &Store, intact: &IntactStore, what: &str) {
    let Health::Damaged(damage) = store.health() else { panic!("{what}: {:?}", store.health()) };
    let reported: Vec<u64> =
        damage.iter().flat_map(|damage| damage.revisions.iter().cloned().flatten()).collect();
    assert!(damage.iter().all(|damage| !damage.problem.is_empty()), "{what}");
    let first_lost = reported.iter().copied().min().unwrap_or(u64::MAX);
    let last = store.revision().get().min(first_lost.saturating_sub(1));
    for revision in 0..=last {
        // A version that a lost commit replaced may still be shown in its place; nothing else differs.
        if reported.is_empty() {
            assert_eq!(
                show(store, Revision::new(revision)).unwrap(),
                intact.at[revision as usize],
                "{what}: {revision}"
            );
        }
    }
    let end = (intact.at.len() - 1) as u64;
    for revision in store.revision().get() + 1..=end {
        assert!(
            reported.contains(&revision),
            "{what}: revision {revision} is gone and not named: {damage:?}"
        );
    }
    let refused = store.commit(Model::default().batch(&mut TestRng(1)));
    assert!(matches!(refused, Err(StoreError::DamagedJournal { .. })), "{what}: {refused:?}");
}

#[test]
fn corruption_of_any_file_is_detected_and_repaired_if_possible() {
    let intact = intact();
    let (mut rebuilt, mut reported, mut refused, mut blobs) = (0, 0, 0, 0);
    for round in 0..rounds(1) {
        let mut rng = TestRng(900 + round);
        for (index, name) in intact.files.iter().enumerate() {
            for kind in CORRUPTIONS {
                if name.starts_with("blobs")
                    && kind != CORRUPTIONS[(index + round as usize) % CORRUPTIONS.len()]
                {
                    // There are many such files and all are alike, so each of them gets only one kind of corruption.
                    continue;
                }
                let copied = tempfile::tempdir().unwrap();
                copy(intact.dir.path(), copied.path());
                if !corrupt(&copied.path().join(name), kind, &mut rng) {
                    continue;
                }
                let what = format!("round {round}, {kind:?} of {}", name.display());
                let area = name.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
                let opened = open_real(copied.path(), "boot");
                if area == "journal" {
                    // A check finds corruption in the parts that an open need not read.
                    match opened {
                        Err(StoreError::DamagedJournal { .. } | StoreError::NewerFormat { .. }) => {
                            refused += 1;
                        }
                        Err(error) => panic!("{what}: {error}"),
                        Ok((store, _)) if store.health() == Health::Good => {
                            let report = store.check(true, &mut |_| {}).unwrap();
                            let seal_only = store.state_digest() == intact.digest
                                && show_all(&store).ok() == Some(intact.model.clone());
                            assert!(!report.damage.is_empty() || seal_only, "{what}: {report:?}");
                            reported += 1;
                        }
                        Ok((store, _)) => {
                            check_losses_reported(&store, &intact, &what);
                            reported += 1;
                        }
                    }
                    continue;
                }
                let (store, events) = opened.unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(store.health(), Health::Good, "{what}");
                assert_eq!(store.state_digest(), intact.digest, "{what}");
                assert_eq!(show_all(&store).unwrap(), intact.model, "{what}");
                let report = store.check(true, &mut |_| {}).unwrap();
                assert!(report.damage.is_empty() && report.engine_problems.is_empty(), "{what}: {report:?}");
                if area == "db" {
                    assert!(
                        events.iter().any(|event| matches!(event, OpenEvent::Rebuilding { .. })),
                        "{what}: {events:?}"
                    );
                    rebuilt += 1;
                } else if area == "blobs" {
                    let expected = if kind == Corruption::Remove { (17, 0) } else { (18, 1) };
                    assert_eq!((report.blobs, report.blob_problems.len()), expected, "{what}: {report:?}");
                    blobs += 1;
                }
            }
        }
    }
    assert!(rebuilt > 5 && reported > 15 && blobs > 12, "{rebuilt} {reported} {refused} {blobs}");
}

#[test]
fn an_older_database_catches_up_with_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    let older = tempfile::tempdir().unwrap();
    let (mut model, mut rng) = (Model::default(), TestRng(41));
    let part = |model: &mut Model, rng: &mut TestRng| {
        let (store, _) = open_real(dir.path(), "boot").unwrap();
        for _ in 0..8 {
            store.commit(model.batch(rng)).unwrap();
        }
        let digest = store.state_digest();
        store.close().unwrap();
        digest
    };
    part(&mut model, &mut rng);
    copy(dir.path(), older.path());
    let digest = part(&mut model, &mut rng);
    for note in ["older note", "newer note", "no note", "open in this boot"] {
        let copied = tempfile::tempdir().unwrap();
        copy(dir.path(), copied.path());
        fs::remove_dir_all(copied.path().join("db")).unwrap();
        copy(&older.path().join("db"), &copied.path().join("db"));
        let state = copied.path().join("db.state");
        match note {
            "older note" => drop(fs::copy(older.path().join("db.state"), &state).unwrap()),
            "no note" => fs::remove_file(&state).unwrap(),
            "newer note" => {}
            _ => fs::write(&state, r#"{"state":"open","boot":"boot"}"#).unwrap(),
        }
        let (store, events) = open_real(copied.path(), "boot").unwrap();
        assert_eq!((store.health(), store.state_digest()), (Health::Good, digest), "{note}: {events:?}");
        assert_eq!(show_all(&store).unwrap(), model, "{note}");
        assert!(store.check(true, &mut |_| {}).unwrap().clean(), "{note}");
        let replayed = matches!(events[0], OpenEvent::Replaying { .. });
        assert_eq!(replayed, note == "older note" || note == "open in this boot", "{note}: {events:?}");
    }
}
