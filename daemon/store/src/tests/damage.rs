//! Flipped bits, truncated and missing files: found, reported, and repaired where the journal allows it.

use std::{fs, path::Path};

use super::fixture::{Model, TestRng, open_real, show_all};
use crate::{Damage, Health, OpenEvent, OpenOptions, Revision, Store, StoreError};

/// Makes a store of `count` batches and returns its content.
pub(super) fn make(dir: &Path, seed: u64, count: usize) -> Model {
    let (mut model, mut rng) = (Model::default(), TestRng(seed));
    let (store, _) = open_real(dir, "boot").unwrap();
    for _ in 0..count {
        store.commit(model.batch(&mut rng)).unwrap();
    }
    store.close().unwrap();
    model
}

pub(super) fn files(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

pub(super) fn flip(path: &Path, bit: u64) {
    let mut bytes = fs::read(path).unwrap();
    let at = (bit / 8) as usize % bytes.len();
    bytes[at] ^= 1 << (bit % 8);
    fs::write(path, bytes).unwrap();
}

pub(super) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_damaged_engine_is_rebuilt_to_the_same_state() {
    let dir = tempfile::tempdir().unwrap();
    let model = make(dir.path(), 1, 12);
    let digest = open_real(dir.path(), "boot").unwrap().0.state_digest();
    let kinds = ["flip", "cut", "remove", "empty folder", "note lost", "power loss"];
    for (n, kind) in kinds.iter().enumerate() {
        let copied = tempfile::tempdir().unwrap();
        copy(dir.path(), copied.path());
        let db = copied.path().join("db");
        let largest = files(&db).into_iter().max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
        match *kind {
            "flip" => flip(&largest, 8 * 8_000 + n as u64),
            "cut" => fs::File::options().write(true).open(&largest).unwrap().set_len(5_000).unwrap(),
            "remove" => fs::remove_file(&largest).unwrap(),
            "empty folder" => fs::remove_dir_all(&db).unwrap(),
            "note lost" => fs::remove_file(copied.path().join("db.state")).unwrap(),
            _ => fs::write(copied.path().join("db.state"), r#"{"state":"open","boot":"boot"}"#).unwrap(),
        }
        let boot = if *kind == "power loss" { "next boot" } else { "boot" };
        let (store, events) = open_real(copied.path(), boot).unwrap();
        assert!(matches!(events[0], OpenEvent::Rebuilding { .. }), "{kind}: {events:?}");
        assert_eq!(store.state_digest(), digest, "{kind}");
        assert_eq!(show_all(&store).unwrap(), model, "{kind}");
        assert!(store.check(true, &mut |_| {}).unwrap().clean(), "{kind}");
        assert_eq!(copied.path().join("db.broken-1").exists(), *kind != "empty folder");
    }
}

#[test]
fn a_requested_rebuild_keeps_one_old_database() {
    let dir = tempfile::tempdir().unwrap();
    let model = make(dir.path(), 2, 6);
    for round in 1..4 {
        let store =
            Store::open(dir.path(), OpenOptions { rebuild: true, ..OpenOptions::default() }, &mut |_| {})
                .unwrap();
        assert_eq!(show_all(&store).unwrap(), model);
        let old: Vec<_> = (1..9).filter(|n| dir.path().join(format!("db.broken-{n}")).exists()).collect();
        assert_eq!(old, [round]);
    }
}

/// Opens a copy whose journal was changed by `damage`, without its engine, and returns the result.
fn open_damaged(
    dir: &Path,
    keep_engine: bool,
    damage: impl FnOnce(&Path),
) -> (tempfile::TempDir, Store, Vec<Damage>) {
    let copied = tempfile::tempdir().unwrap();
    copy(dir, copied.path());
    damage(&copied.path().join("journal"));
    if !keep_engine {
        fs::remove_file(copied.path().join("db.state")).unwrap();
    }
    let (store, events) = open_real(copied.path(), "boot").unwrap();
    let reported = events.into_iter().filter_map(|event| match event {
        OpenEvent::Damaged(damage) => Some(damage),
        _ => None,
    });
    let reported = reported.collect();
    (copied, store, reported)
}

#[test]
pub(super) fn any_flipped_bit_of_the_journal_is_reported_with_its_revisions() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path(), 3, 30);
    let segments = files(&dir.path().join("journal"));
    assert!(segments.len() > 3, "{} segments", segments.len());
    let (whole, _) = open_real(dir.path(), "boot").unwrap();
    let last = whole.revision();
    let frames = whole.frames();
    drop(whole);
    let mut rng = TestRng(4);
    for _ in 0..40 {
        let segment = rng.roll(segments.len() as u64) as usize;
        let length = fs::metadata(&segments[segment]).unwrap().len();
        let bit = rng.roll(length * 8);
        let at = bit / 8;
        let (_copied, store, reported) = open_damaged(dir.path(), false, |journal| {
            flip(&journal.join(segments[segment].file_name().unwrap()), bit);
        });
        let owner = frames
            .iter()
            .find(|frame| frame.segment as usize == segment + 1 && (frame.start..frame.end).contains(&at));
        if owner.is_some_and(|frame| frame.seal) && segment + 1 == segments.len() {
            // The seal is the last frame. It was never acknowledged, and nothing is lost with it.
            assert_eq!((reported, store.revision()), (Vec::new(), last));
            continue;
        }
        assert_eq!(reported.len(), 1, "bit {bit} of segment {segment}: {reported:?}");
        assert_eq!(reported[0].file.file_name(), segments[segment].file_name());
        let revisions: Vec<u64> = reported[0].revisions.iter().cloned().flatten().collect();
        let expected: Vec<u64> = owner.and_then(|frame| frame.revision).into_iter().collect();
        assert_eq!(revisions, expected, "bit {bit} of segment {segment}, frame {owner:?}: {reported:?}");
        assert!(matches!(store.health(), Health::Damaged(_)));
        let refused = store.commit(Model::default().batch(&mut TestRng(1)));
        assert!(matches!(refused, Err(StoreError::DamagedJournal { .. })), "{refused:?}");
        // The last commit itself may be lost.
        let before = expected == [last.get()] && store.revision().get() == last.get() - 1;
        assert!(before || store.revision() == last, "what comes after the damage is shown");
    }
}

#[test]
pub(super) fn a_truncated_or_missing_segment_is_reported_with_its_revisions() {
    let dir = tempfile::tempdir().unwrap();
    let model = make(dir.path(), 5, 30);
    let (whole, _) = open_real(dir.path(), "boot").unwrap();
    let last = whole.revision().get();
    drop(whole);
    let segments = files(&dir.path().join("journal"));
    for segment in [0, 1, segments.len() - 1] {
        for cut in [true, false] {
            for keep_engine in [true, false] {
                let is_last = segment == segments.len() - 1;
                let (copied, store, reported) = open_damaged(dir.path(), keep_engine, |journal| {
                    let path = journal.join(segments[segment].file_name().unwrap());
                    if cut {
                        let length = fs::metadata(&path).unwrap().len();
                        fs::File::options().write(true).open(&path).unwrap().set_len(length / 2).unwrap();
                    } else if segment > 0 {
                        fs::remove_file(&path).unwrap();
                    }
                });
                let what = format!("segment {segment}, cut {cut}, engine {keep_engine}: {reported:?}");
                if segment == 0 && !cut {
                    continue;
                }
                if is_last && !keep_engine {
                    // Nothing that knows the end is left, so it looks like a tail that was never acknowledged.
                    assert!(store.revision().get() < last);
                    continue;
                }
                assert_eq!(reported.len(), 1, "{what}");
                assert!(!reported[0].revisions.is_empty(), "{what}");
                assert!(matches!(
                    store.commit(Model::default().batch(&mut TestRng(1))),
                    Err(StoreError::DamagedJournal { .. })
                ));
                if keep_engine {
                    assert_eq!(store.revision().get(), last, "{what}");
                }
                drop(store);
                // The next start reports the same, and once the file is restored nothing is wrong any more.
                let (store, _) = open_real(copied.path(), "boot").unwrap();
                assert!(matches!(store.health(), Health::Damaged(_)), "{what}");
                drop(store);
                fs::copy(
                    &segments[segment],
                    copied.path().join("journal").join(segments[segment].file_name().unwrap()),
                )
                .unwrap();
                let (store, _) = open_real(copied.path(), "boot").unwrap();
                assert_eq!(store.health(), Health::Good, "{what}");
                assert_eq!(show_all(&store).unwrap(), model, "{what}");
                assert!(store.check(true, &mut |_| {}).unwrap().clean());
            }
        }
    }
}

#[test]
fn a_missing_journal_is_not_mistaken_for_a_new_store() {
    for kind in ["folder removed", "file removed", "cut to nothing", "cut in its header", "zeroed"] {
        let dir = tempfile::tempdir().unwrap();
        let (mut model, mut rng) = (Model::default(), TestRng(9));
        let store = Store::open(dir.path(), OpenOptions::default(), &mut |_| {}).unwrap();
        store.commit(model.batch(&mut rng)).unwrap();
        store.close().unwrap();
        let segment = dir.path().join("journal/00000001.seg");
        let bytes = fs::read(&segment).unwrap();
        match kind {
            "folder removed" => fs::remove_dir_all(dir.path().join("journal")).unwrap(),
            "file removed" => fs::remove_file(&segment).unwrap(),
            "cut to nothing" => fs::write(&segment, "").unwrap(),
            "cut in its header" => fs::write(&segment, &bytes[..50]).unwrap(),
            _ => fs::write(&segment, vec![0; bytes.len()]).unwrap(),
        }
        for rebuild in [false, true] {
            let options = OpenOptions { rebuild, ..OpenOptions::default() };
            let refused = Store::open(dir.path(), options, &mut |_| {});
            assert!(matches!(refused, Err(StoreError::DamagedJournal { .. })), "{kind}: {refused:?}");
        }
        assert!(!dir.path().join("db.broken-1").exists(), "{kind}");
        fs::write(&segment, bytes).unwrap();
        let store = Store::open(dir.path(), OpenOptions::default(), &mut |_| {}).unwrap();
        assert_eq!(show_all(&store).unwrap(), model, "{kind}");
    }
}

#[test]
fn a_truncated_end_is_damage_if_db_state_records_more() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path(), 5, 30);
    let last = open_real(dir.path(), "boot").unwrap().0.revision().get();
    fs::remove_dir_all(dir.path().join("db")).unwrap();
    let segment = files(&dir.path().join("journal")).pop().unwrap();
    let length = fs::metadata(&segment).unwrap().len();
    fs::File::options().write(true).open(&segment).unwrap().set_len(length / 2).unwrap();
    let (store, events) = open_real(dir.path(), "boot").unwrap();
    let Health::Damaged(damage) = store.health() else { panic!("{events:?}") };
    assert_eq!(damage.len(), 1, "{damage:?}");
    assert_eq!(damage[0].revisions, [store.revision().get() + 1..=last]);
}

#[test]
fn a_truncated_journal_does_not_restore_an_older_note() {
    use crate::{Durability, Ledger, LedgerWrite};
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open_real(dir.path(), "boot").unwrap();
    for value in ["running", "completed"] {
        let id = "import".to_owned();
        let write =
            LedgerWrite::Entry { ledger: Ledger::Import, id, at_micros: 1, value: value.as_bytes().to_vec() };
        store.put_ledger(write, Durability::Now).unwrap();
    }
    let first = store.frames()[0].clone();
    store.close().unwrap();
    let segment = dir.path().join("journal/00000001.seg");
    fs::File::options().write(true).open(segment).unwrap().set_len(first.end).unwrap();
    let (store, _) = open_real(dir.path(), "boot").unwrap();
    assert!(matches!(store.health(), Health::Damaged(_)));
    assert_eq!(store.ledger_get(Ledger::Import, "import").unwrap().unwrap().value, b"completed");
}

#[test]
fn a_damaged_header_is_found_despite_a_trusted_engine_and_loses_no_revision() {
    let dir = tempfile::tempdir().unwrap();
    let model = make(dir.path(), 10, 20);
    let segments = files(&dir.path().join("journal")).len();
    for segment in 0..segments {
        let (_copied, store, reported) =
            open_damaged(dir.path(), true, |journal| flip(&files(journal)[segment], 8 * 20));
        assert_eq!(reported.len(), 1, "segment {segment}: {reported:?}");
        assert_eq!(reported[0].problem, "a header that does not check");
        assert_eq!(reported[0].revisions, [], "segment {segment}");
        assert!(matches!(store.health(), Health::Damaged(_)));
        assert_eq!(show_all(&store).unwrap(), model);
    }
}

#[test]
fn a_deep_check_finds_what_an_open_does_not_read() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path(), 6, 12);
    let (_copied, store, reported) =
        open_damaged(dir.path(), true, |journal| flip(&files(journal)[0], 8 * 300));
    assert_eq!(reported, []);
    let report = store.check(true, &mut |_| {}).unwrap();
    assert_eq!(report.damage.len(), 1, "{report:?}");
    assert_eq!(report.damage[0].revisions.len(), 1);
    assert!(store.check(false, &mut |_| {}).unwrap().damage.is_empty());
}

#[test]
fn damage_found_by_a_check_is_remembered_until_repaired() {
    let dir = tempfile::tempdir().unwrap();
    let model = make(dir.path(), 6, 12);
    let (copied, store, reported) =
        open_damaged(dir.path(), true, |journal| flip(&files(journal)[0], 8 * 300));
    assert_eq!((reported.len(), store.health()), (0, Health::Good));
    assert_eq!(store.check(true, &mut |_| {}).unwrap().damage.len(), 1);
    let mut open = Some(store);
    for _ in 0..3 {
        let store = open.take().unwrap_or_else(|| open_real(copied.path(), "boot").unwrap().0);
        let Health::Damaged(damage) = store.health() else { panic!("it was forgotten") };
        assert_eq!(damage.len(), 1);
        let refused = store.commit(Model::default().batch(&mut TestRng(1)));
        assert!(matches!(refused, Err(StoreError::DamagedJournal { .. })), "{refused:?}");
        store.close().unwrap();
    }
    flip(&files(&copied.path().join("journal"))[0], 8 * 300);
    let (store, _) = open_real(copied.path(), "boot").unwrap();
    assert_eq!((store.health(), show_all(&store).unwrap()), (Health::Good, model));
    store.commit(Model::default().batch(&mut TestRng(77))).unwrap();
    assert!(!copied.path().join("journal.damaged").exists());
}

#[test]
fn old_databases_are_kept_while_the_journal_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path(), 6, 12);
    let (copied, store, reported) =
        open_damaged(dir.path(), false, |journal| flip(&files(journal)[0], 8 * 300));
    assert_eq!(reported.len(), 1);
    let old_databases =
        || (1..9).filter(|n| copied.path().join(format!("db.broken-{n}")).exists()).collect::<Vec<_>>();
    assert_eq!(old_databases(), [1]);
    drop(store);
    fs::remove_file(copied.path().join("db.state")).unwrap();
    drop(open_real(copied.path(), "boot").unwrap());
    assert_eq!(old_databases(), [1, 2], "what may be the only copy was removed");
    flip(&files(&copied.path().join("journal"))[0], 8 * 300);
    assert_eq!(open_real(copied.path(), "boot").unwrap().0.health(), Health::Good);
    assert_eq!(old_databases().len(), 1);
}

#[test]
fn a_preserved_database_is_restored_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let model = make(dir.path(), 6, 12);
    let (copied, store, _) = open_damaged(dir.path(), true, |journal| flip(&files(journal)[0], 8 * 300));
    let digest = store.state_digest();
    store.close().unwrap();
    let lock = crate::lock_store(copied.path()).unwrap();
    assert!(crate::preserve_database(&lock, copied.path()).unwrap().is_some());
    drop(lock);
    let rebuild = OpenOptions { rebuild: true, ..OpenOptions::default() };
    let rebuilt = Store::open(copied.path(), rebuild, &mut |_| {}).unwrap();
    assert!(matches!(rebuilt.health(), Health::Damaged(_)) && rebuilt.state_digest() != digest);
    rebuilt.close().unwrap();
    let lock = crate::lock_store(copied.path()).unwrap();
    assert!(crate::restore_preserved_database(&lock, copied.path()).unwrap().is_some());
    assert!(crate::restore_preserved_database(&lock, copied.path()).unwrap().is_none());
    drop(lock);
    let (store, events) = open_real(copied.path(), "boot").unwrap();
    assert_eq!(store.state_digest(), digest, "{events:?}");
    assert!(matches!(store.health(), Health::Damaged(_)));
    drop(store);
    flip(&files(&copied.path().join("journal"))[0], 8 * 300);
    assert_eq!(show_all(&open_real(copied.path(), "boot").unwrap().0).unwrap(), model);
}

#[test]
fn a_changed_blob_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open_real(dir.path(), "boot").unwrap();
    let bytes = vec![b'p'; 700_000];
    let blob = store.blob_put(&mut bytes.as_slice()).unwrap();
    assert_eq!(store.blob_put(&mut bytes.as_slice()).unwrap(), blob);
    assert_eq!(blob.len, 700_000);
    assert!(store.blob_open(&blob.sha256).unwrap().is_none());
    store.commit(Model::default().batch(&mut TestRng(5))).unwrap();
    let mut read = Vec::new();
    std::io::Read::read_to_end(&mut store.blob_open(&blob.sha256).unwrap().unwrap(), &mut read).unwrap();
    assert_eq!(read, bytes);
    assert!(store.blob_open(&[0; 32]).unwrap().is_none());
    assert_eq!(store.stats().unwrap().blob_bytes, 700_000);
    let report = store.check(true, &mut |_| {}).unwrap();
    assert_eq!((report.blobs, report.clean()), (1, true));
    let unfinished = dir.path().join("blobs/tmp/1-0");
    fs::create_dir_all(unfinished.parent().unwrap()).unwrap();
    fs::write(&unfinished, "half").unwrap();
    drop(store);
    let (store, _) = open_real(dir.path(), "boot").unwrap();
    assert!(!unfinished.exists());
    flip(&crate::blob::blob_path(dir.path(), &blob.sha256), 77);
    assert_eq!(store.check(true, &mut |_| {}).unwrap().blob_problems.len(), 1);
}

#[test]
fn many_blobs_without_a_commit_keep_few_files_open() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open_real(dir.path(), "boot").unwrap();
    let open_blobs = || {
        let open =
            fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        open.filter(|path| path.starts_with(dir.path().join("blobs"))).count()
    };
    let mut blobs = Vec::new();
    for number in 0..300_u32 {
        blobs.push(store.blob_put(&mut number.to_le_bytes().as_slice()).unwrap());
        assert!(open_blobs() < 200, "{}", open_blobs());
    }
    store.commit(Model::default().batch(&mut TestRng(5))).unwrap();
    assert_eq!(open_blobs(), 0);
    for (number, blob) in (0_u32..).zip(&blobs) {
        let mut read = Vec::new();
        std::io::Read::read_to_end(&mut store.blob_open(&blob.sha256).unwrap().unwrap(), &mut read).unwrap();
        assert_eq!(read, number.to_le_bytes());
    }
}

#[test]
fn a_second_open_reports_the_process_that_holds_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open_real(dir.path(), "boot").unwrap();
    match open_real(dir.path(), "boot") {
        Err(StoreError::Locked { pid, .. }) => assert_eq!(pid, std::process::id().to_string()),
        other => panic!("{other:?}"),
    }
    drop(store);
    assert!(open_real(dir.path(), "boot").is_ok());
}

#[test]
fn a_database_in_use_is_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    let model = make(dir.path(), 8, 4);
    let held = fs::File::open(dir.path().join("db/db")).unwrap();
    held.lock().unwrap();
    // The lock file was removed while a process was running, so only the database's own lock is left to detect it.
    match open_real(dir.path(), "boot") {
        Err(StoreError::Locked { pid, .. }) => assert_eq!(pid, "?"),
        other => panic!("{other:?}"),
    }
    assert!(!dir.path().join("db.broken-1").exists());
    drop(held);
    let (store, events) = open_real(dir.path(), "boot").unwrap();
    assert!(matches!(events[..], [OpenEvent::Ready { .. }]), "{events:?}");
    assert_eq!(show_all(&store).unwrap(), model);
}

#[test]
fn refused_batches_leave_nothing_behind() {
    use crate::{Batch, Change, MessageWrite};
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open_real(dir.path(), "boot").unwrap();
    let mut rng = TestRng(1);
    let memory = |n: u64, rng: &mut TestRng| Change::Memory(Box::new(super::fixture::memory(n, rng)));
    let batch = |changes| Batch { changes, ..Batch::default() };
    let twice = batch(vec![memory(1, &mut rng), memory(1, &mut rng)]);
    assert!(matches!(store.commit(twice), Err(StoreError::DuplicateRecord { .. })));
    let head = super::fixture::head(0, 0, &mut rng);
    let header = super::fixture::header(0, &mut rng);
    let keep = crate::ConversationWrite {
        header,
        current: None,
        opaque: Vec::new(),
        messages: vec![MessageWrite::Keep { head }],
    };
    let unknown = batch(vec![memory(2, &mut rng), Change::Conversation(Box::new(keep))]);
    assert!(matches!(
        store.commit_group(vec![batch(vec![memory(3, &mut rng)]), unknown]),
        Err(StoreError::UnknownMessage { .. })
    ));
    let withdraw = batch(vec![Change::WithdrawRelation("none".to_owned())]);
    assert!(matches!(store.commit(withdraw), Err(StoreError::UnknownRelation(_))));
    // "foo" hashes to the bytes of this UUID.
    let key = crate::keys::id16("foo");
    let mut first = super::fixture::memory(1, &mut rng);
    first.id = "foo".to_owned();
    let mut second = first.clone();
    second.id = uuid::Uuid::from_bytes(key).to_string();
    assert_eq!(store.revision(), Revision::ZERO);
    assert_eq!(store.commit(batch(vec![Change::Memory(Box::new(first))])).unwrap(), Revision::new(1));
    let collision = store.commit(batch(vec![Change::Memory(Box::new(second))]));
    assert!(matches!(collision, Err(StoreError::IdCollision { .. })), "{collision:?}");
    assert_eq!(store.stats().unwrap().memories, 1);
    assert!(matches!(store.memory("foo", Some(Revision::new(2))), Err(StoreError::FutureRevision { .. })));
    assert!(store.memory(&uuid::Uuid::from_bytes(key).to_string(), None).unwrap().is_none());
    store.close().unwrap();
    let (store, events) = open_real(dir.path(), "boot").unwrap();
    assert_eq!((store.revision(), events.len()), (Revision::new(1), 1));
}
