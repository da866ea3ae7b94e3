//! Encryption is switched on for an existing store, whatever interrupts the process.

use std::{fs, path::Path, sync::Arc};

use satchel_seal::{DataKey, Seal};

use super::{
    damage::copy,
    fixture::{Model, TestRng, open_real, seal, sealed, show_all},
    sealed::{PLANTED, planted, readable},
};
use crate::{
    Health, StateDigest, StoreError,
    disk::{Disk, OsDisk},
    encrypt::{finish_encryption, replace_some, stage_encryption},
    entry::JournalEntry,
    journal::{
        rewrite::{FrameContent, rewrite},
        segments::Segments,
    },
};

/// Makes a plain store with everything that a data directory may contain. Returns its content and its digest.
fn make_plain(dir: &Path) -> (Model, StateDigest) {
    let (store, _) = open_real(dir, "boot").unwrap();
    let (mut model, mut rng) = (Model::default(), TestRng(5));
    for n in 0..14_u8 {
        store.blob_put(&mut [PLANTED.as_bytes(), &[n; 5_000]].concat().as_slice()).unwrap();
        store.commit(model.batch(&mut rng)).unwrap();
    }
    store.commit(planted()).unwrap();
    let found = (show_all(&store).unwrap(), store.state_digest());
    store.close().unwrap();
    copy(&dir.join("db"), &dir.join("db.broken-1"));
    found
}

fn test_seal() -> Seal {
    Seal::new(&DataKey::from_bytes(&[42; 32]))
}

/// Checks that the store is sealed, shows the same content, and that nothing plain is left.
fn check_encrypted(dir: &Path, (shown, digest): &(Model, StateDigest), what: &str) {
    assert_eq!(readable(dir), Vec::<std::path::PathBuf>::new(), "{what}");
    assert!(!dir.join("encrypting").exists() && !dir.join("db.broken-1").exists(), "{what}");
    sealed(|| {
        let (store, events) = open_real(dir, "boot").unwrap();
        assert_eq!(events.len(), 1, "{what}: the database came along: {events:?}");
        assert_eq!(store.health(), Health::Good, "{what}");
        assert_eq!(show_all(&store).unwrap(), *shown, "{what}");
        assert_eq!(store.state_digest(), *digest, "{what}");
        let report = store.check(true, &mut |_| {}).unwrap();
        assert!(report.clean(), "{what}: {report:?}");
        assert_eq!(store.blobs().unwrap().len(), 14, "{what}");
    });
}

#[test]
fn an_encrypted_store_leaves_nothing_plain_behind() {
    let dir = tempfile::tempdir().unwrap();
    let before = make_plain(dir.path());
    assert!(readable(dir.path()).len() > 5);
    stage_encryption(dir.path(), &test_seal(), &|| false, &mut |_| {}).unwrap().unwrap().replace().unwrap();
    check_encrypted(dir.path(), &before, "at once");
    finish_encryption(dir.path()).unwrap();
    check_encrypted(dir.path(), &before, "finished again");
    sealed(|| {
        let (store, _) = open_real(dir.path(), "boot").unwrap();
        store.commit(planted()).unwrap();
        drop(store);
        assert_eq!(readable(dir.path()), Vec::<std::path::PathBuf>::new(), "it goes on sealed");
    });
}

#[test]
fn a_replacement_interrupted_at_any_step_is_resumed() {
    let origin = tempfile::tempdir().unwrap();
    let before = make_plain(origin.path());
    drop(stage_encryption(origin.path(), &test_seal(), &|| false, &mut |_| {}).unwrap().unwrap());
    for steps in 0.. {
        let dir = tempfile::tempdir().unwrap();
        copy(origin.path(), dir.path());
        let done = replace_some(dir.path(), steps).unwrap();
        finish_encryption(dir.path()).unwrap();
        check_encrypted(dir.path(), &before, &format!("cut off after {steps} steps"));
        if done {
            assert!(steps > 8, "{steps} steps");
            return;
        }
    }
}

#[test]
fn an_interrupted_staging_changes_nothing_and_starts_again() {
    let dir = tempfile::tempdir().unwrap();
    let before = make_plain(dir.path());
    // Another key, as from an attempt whose key was never stored, and half of its staged files.
    drop(
        stage_encryption(dir.path(), &Seal::new(&DataKey::from_bytes(&[1; 32])), &|| false, &mut |_| {})
            .unwrap()
            .unwrap(),
    );
    fs::remove_dir_all(dir.path().join("encrypting/db")).unwrap();
    {
        let (store, events) = open_real(dir.path(), "boot").unwrap();
        assert_eq!(events.len(), 1, "{events:?}");
        assert_eq!(show_all(&store).unwrap(), before.0);
    }
    stage_encryption(dir.path(), &test_seal(), &|| false, &mut |_| {}).unwrap().unwrap().replace().unwrap();
    check_encrypted(dir.path(), &before, "begun anew");
}

#[test]
fn a_store_in_use_or_damaged_is_not_staged() {
    let dir = tempfile::tempdir().unwrap();
    make_plain(dir.path());
    let (store, _) = open_real(dir.path(), "boot").unwrap();
    let refused = stage_encryption(dir.path(), &test_seal(), &|| false, &mut |_| {});
    assert!(matches!(refused, Err(StoreError::Locked { .. })), "{refused:?}");
    drop(store);
    let staged = stage_encryption(dir.path(), &test_seal(), &|| false, &mut |_| {}).unwrap().unwrap();
    assert!(
        matches!(open_real(dir.path(), "boot"), Err(StoreError::Locked { .. })),
        "nobody writes meanwhile"
    );
    drop(staged);
    super::damage::flip(&dir.path().join("journal/00000001.seg"), 8 * 300);
    let refused = stage_encryption(dir.path(), &test_seal(), &|| false, &mut |_| {});
    assert!(matches!(refused, Err(StoreError::DamagedJournal { .. })), "{refused:?}");
    assert!(!readable(dir.path()).is_empty(), "the plain store stands");
}

#[test]
fn a_failed_staging_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let before = make_plain(dir.path());
    // Something is in the way of the sealed attachments.
    let (store, _) = open_real(dir.path(), "boot").unwrap();
    let blob = store.blobs().unwrap()[0];
    drop(store);
    let path = crate::blob::blob_path(dir.path(), &blob);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let refused = stage_encryption(dir.path(), &test_seal(), &|| false, &mut |_| {});
    assert!(refused.is_err(), "{refused:?}");
    assert!(!dir.path().join("encrypting").exists(), "half of a sealed store was left");
    let (store, _) = open_real(dir.path(), "boot").unwrap();
    assert_eq!(show_all(&store).unwrap().memories, before.0.memories);
}

#[test]
fn a_folder_without_a_store_needs_no_staging() {
    let dir = tempfile::tempdir().unwrap();
    stage_encryption(dir.path(), &test_seal(), &|| false, &mut |_| {}).unwrap().unwrap().replace().unwrap();
    assert!(!dir.path().join("journal").exists());
}

#[test]
fn a_rewrite_can_change_content() {
    sealed(|| {
        let dir = tempfile::tempdir().unwrap();
        let (shown, _) = make_plain(dir.path());
        let disk: Arc<dyn Disk> = Arc::new(OsDisk);
        let old = Segments::list(&disk, dir.path().join("journal"), seal()).unwrap().unwrap();
        let to = dir.path().join("journal.new");
        let mut times = Vec::new();
        let mut overwrite = |content: FrameContent<'_>| {
            match content {
                FrameContent::Bodies { segment, offset, bytes } => {
                    assert!(segment > 0 && offset > 0);
                    bytes.fill(b'-');
                }
                FrameContent::Changes { origin, entries } => {
                    times.push(origin.at_micros);
                    for entry in entries {
                        if let JournalEntry::Memory(memory) = entry {
                            // A longer one, so that all places after it move.
                            memory.json = [memory.json.as_slice(), &[b' '; 500]].concat();
                        }
                    }
                }
            }
            Ok(())
        };
        rewrite(&disk, &old, to.clone(), seal().as_ref(), Some(&mut overwrite), &mut |_| {}).unwrap();
        assert!(times.len() > 10, "every commit is shown");
        fs::remove_dir_all(dir.path().join("journal")).unwrap();
        fs::rename(to, dir.path().join("journal")).unwrap();
        fs::remove_file(dir.path().join("db.state")).unwrap();
        let (store, _) = open_real(dir.path(), "boot").unwrap();
        assert_eq!(store.health(), Health::Good);
        let after = show_all(&store).unwrap();
        assert_eq!(after.memories, shown.memories, "spaces mean nothing in JSON");
        assert!(!after.conversations.is_empty());
        for id in after.conversations.keys() {
            let record = store.conversation(id, None).unwrap().unwrap();
            for body in store.all_bodies(&record) {
                assert!(body.unwrap().1.iter().all(|byte| *byte == b'-'));
            }
        }
    });
}

#[test]
fn a_replacement_in_progress_is_not_disturbed() {
    let dir = tempfile::tempdir().unwrap();
    make_plain(dir.path());
    drop(stage_encryption(dir.path(), &test_seal(), &|| false, &mut |_| {}).unwrap().unwrap());
    let staged = dir.path().join("encrypting").join("journal");
    assert!(staged.is_dir());
    assert!(stage_encryption(dir.path(), &test_seal(), &|| true, &mut |_| {}).unwrap().is_none());
    assert!(staged.is_dir(), "the only copy is gone");
}

#[test]
fn a_store_with_links_is_not_encrypted() {
    let (dir, large) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    make_plain(dir.path());
    let (blobs, there) = (dir.path().join("blobs"), large.path().join("blobs"));
    fs::rename(&blobs, &there).unwrap();
    std::os::unix::fs::symlink(&there, &blobs).unwrap();
    let refused = stage_encryption(dir.path(), &test_seal(), &|| false, &mut |_| {}).unwrap_err();
    assert!(refused.to_string().contains("blobs"), "{refused}");
}

#[test]
fn a_store_without_its_journal_is_not_treated_as_empty() {
    let dir = tempfile::tempdir().unwrap();
    make_plain(dir.path());
    fs::rename(dir.path().join("journal"), dir.path().join("elsewhere")).unwrap();
    assert!(stage_encryption(dir.path(), &test_seal(), &|| false, &mut |_| {}).is_err());
}
