//! An encrypted store: none of it is plain on disk, its content is that of a plain store, and data that was moved does not open.

use std::{fs, io::Read as _, path::Path, sync::Arc};

use satchel_seal::{DataKey, Seal};
use serde_json::json;

use super::{
    corruption, damage,
    fixture::{Model, TestRng, head, header, id, memory, open_real, seal, sealed, show_all},
    model, power,
};
use crate::{
    Batch, Change, ConversationWrite, EvidenceWrite, Ledger, LedgerWrite, MemoryQuery, MessageWrite,
    OpenOptions, Store, StoreError,
    blob::{blob_path, file_name},
    disk::{Disk, OsDisk},
    engine::{Changes, Engine as _, sled_engine::SledEngine},
    journal::{
        Acknowledged,
        copy::JournalCopy,
        frame::{FrameFields, FrameKind},
        segments::Segments,
    },
    keys,
};

/// A word that is planted in everything that users would consider their own.
pub(super) const PLANTED: &str = "planted-Tangerine";

/// Returns a batch with the planted word in every field that contains text.
pub(super) fn planted() -> Batch {
    let mut rng = TestRng(1);
    let mut remembered = memory(0, &mut rng);
    remembered.content = format!("Paula likes {PLANTED}");
    remembered.tags = vec![format!("{PLANTED}-tag")];
    let mut titled = header(0, &mut rng);
    titled.title = Some(format!("About {PLANTED}"));
    let body = format!("my {PLANTED} and {}", "x".repeat(70_000)).into_bytes();
    let mut first = head(0, 0, &mut rng);
    first.opaque = PLANTED.as_bytes().to_vec();
    let short = MessageWrite::Put { head: head(0, 1, &mut rng), body: PLANTED.as_bytes().to_vec() };
    let messages = vec![MessageWrite::Put { head: first, body }, short];
    let opaque = PLANTED.as_bytes().to_vec();
    let conversation = ConversationWrite { header: titled, current: None, opaque, messages };
    let value = json!({"source": format!("{PLANTED}.zip")}).to_string().into_bytes();
    let issues = LedgerWrite::Issues { import: uuid::Uuid::nil(), page: 0, value: value.clone() };
    let entry = LedgerWrite::Entry {
        ledger: Ledger::Import,
        id: "import".to_owned(),
        at_micros: 1,
        value: value.clone(),
    };
    let changes = vec![
        Change::Memory(Box::new(remembered)),
        Change::Conversation(Box::new(conversation)),
        Change::Evidence(EvidenceWrite { id: [1; 16], json: value.clone() }),
        Change::Ledger(entry),
        Change::Ledger(issues),
        Change::Ledger(LedgerWrite::Piece { digest: [3; 32], value }),
    ];
    let mut batch = Batch { changes, ..Batch::default() };
    batch.origin.reason = PLANTED.to_owned();
    batch.origin.actor = PLANTED.to_owned();
    batch
}

/// Returns every file below a folder that contains the planted word, or the repeated letters that zstd leaves readable in a plain
/// frame.
pub(super) fn readable(dir: &Path) -> Vec<std::path::PathBuf> {
    let found = |path: &std::path::PathBuf| {
        let bytes = fs::read(path).unwrap();
        bytes.windows(PLANTED.len()).any(|window| window == PLANTED.as_bytes())
    };
    corruption::all_files(dir).into_iter().filter(found).collect()
}

fn fill(dir: &Path) -> Model {
    let (store, _) = open_real(dir, "boot").unwrap();
    let (mut model, mut rng) = (Model::default(), TestRng(4));
    for n in 0..12_u8 {
        store.blob_put(&mut [PLANTED.as_bytes(), &vec![n; 70_000]].concat().as_slice()).unwrap();
        store.commit(model.batch(&mut rng)).unwrap();
    }
    store.commit(planted()).unwrap();
    let shown = show_all(&store).unwrap();
    store.close().unwrap();
    shown
}

#[test]
fn planted_content_is_not_on_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    assert!(readable(dir.path()).len() > 5, "the search finds what is plain");
    sealed(|| {
        let dir = tempfile::tempdir().unwrap();
        fill(dir.path());
        assert_eq!(readable(dir.path()), Vec::<std::path::PathBuf>::new(), "after a stop");
        let (store, _) = open_real(dir.path(), "boot").unwrap();
        store.commit(planted()).unwrap();
        store.blob_put(&mut PLANTED.as_bytes()).unwrap();
        assert_eq!(readable(dir.path()), Vec::<std::path::PathBuf>::new(), "while it is open");
        let found = store.memories(
            &MemoryQuery { tags_all: vec![format!("{PLANTED}-tag")], ..MemoryQuery::default() },
            None,
            10,
            store.revision(),
        );
        assert_eq!(found.unwrap().items.len(), 1, "a tag is found by its name");
        assert!(store.check(true, &mut |_| {}).unwrap().clean());
    });
}

#[test]
fn a_sealed_store_survives_power_losses_and_kills() {
    sealed(power::power_loss_at_any_call_loses_nothing);
    sealed(power::a_kill_at_any_call_loses_nothing);
}

#[test]
fn a_sealed_store_survives_torn_writes() {
    sealed(super::crash::a_power_loss_at_any_byte_of_a_group_leaves_whole_batches);
    sealed(super::crash::torn_sectors_of_a_group_leave_whole_batches);
    sealed(super::crash::a_killed_process_loses_nothing_whatever_its_engine_had_written);
    sealed(super::crash::a_blob_is_durable_after_the_next_acknowledged_commit);
}

#[test]
fn a_sealed_store_shows_the_same_as_a_plain_one() {
    sealed(model::sled_shows_what_was_committed_after_each_restart);
    sealed(model::equal_content_has_equal_digests_in_any_order);
}

#[test]
fn damage_to_a_sealed_journal_is_reported_as_exactly() {
    sealed(damage::any_flipped_bit_of_the_journal_is_reported_with_its_revisions);
    sealed(damage::a_truncated_or_missing_segment_is_reported_with_its_revisions);
}

#[test]
fn a_sealed_store_can_be_backed_up() {
    sealed(super::backup::a_snapshot_during_commits_is_the_store_at_one_revision);
    sealed(super::backup::an_empty_store_can_be_copied);
}

fn try_open(dir: &Path, seal: Option<Seal>, rebuild: bool) -> Result<Store, StoreError> {
    Store::open(dir, OpenOptions { rebuild, seal, ..OpenOptions::default() }, &mut |_| {})
}

/// Returns all bytes below a folder, except for the lock file, into which every process that tries to open the store writes its
/// id.
fn bytes(dir: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let files = corruption::all_files(dir).into_iter().filter(|path| !path.ends_with("store.lock"));
    files.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[test]
fn a_wrong_key_is_refused_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut shown = Model::default();
    sealed(|| shown = fill(dir.path()));
    let before = bytes(dir.path());
    let other = Seal::new(&DataKey::random().unwrap());
    for rebuild in [false, true] {
        let refused = try_open(dir.path(), Some(other.clone()), rebuild);
        assert!(matches!(refused, Err(StoreError::WrongKey { .. })), "{refused:?}");
        let refused = try_open(dir.path(), None, rebuild);
        assert!(matches!(refused, Err(StoreError::NoKey { .. })), "{refused:?}");
    }
    assert!(bytes(dir.path()) == before);
    sealed(|| assert_eq!(show_all(&open_real(dir.path(), "boot").unwrap().0).unwrap(), shown));
}

#[test]
fn a_key_for_a_plain_store_is_refused_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    let before = bytes(dir.path());
    let key = Seal::new(&DataKey::random().unwrap());
    let refused = try_open(dir.path(), Some(key), false);
    assert!(matches!(refused, Err(StoreError::NotEncrypted { .. })), "{refused:?}");
    assert!(bytes(dir.path()) == before);
}

#[test]
fn swapped_values_in_the_database_are_detected() {
    sealed(|| {
        let dir = tempfile::tempdir().unwrap();
        let shown = fill(dir.path());
        // The key of the first leaf of each kind is the kind itself.
        let (one, other) = (vec![keys::MEMORY], vec![keys::INDEX]);
        let (store, _) = open_real(dir.path(), "boot").unwrap();
        drop(store);
        {
            let engine = SledEngine::open(&dir.path().join("db"), 1 << 20).unwrap();
            let (first, second) = (engine.get(&one).unwrap().unwrap(), engine.get(&other).unwrap().unwrap());
            let mut changes = Changes::default();
            changes.put(one, second);
            changes.put(other, first);
            engine.apply(changes).unwrap();
            engine.flush().unwrap();
        }
        // As after a kill: the `db.state` of a clean stop would show that the files changed.
        let state = fs::read_to_string(dir.path().join("db.state")).unwrap();
        let mut state: serde_json::Value = serde_json::from_str(&state).unwrap();
        state["state"] = json!("open");
        state["crc32c"] = serde_json::Value::Null;
        fs::write(dir.path().join("db.state"), state.to_string()).unwrap();
        let (store, _) = open_real(dir.path(), "boot").unwrap();
        let error = store.memory(&id("memory", 0), None).unwrap_err().to_string();
        assert!(error.contains("does not open with the data key"), "{error}");
        let report = store.check(true, &mut |_| {}).unwrap();
        assert!(report.engine_problems.iter().any(|problem| problem.contains("does not open")), "{report:?}");
        drop(store);
        let store = try_open(dir.path(), seal(), true).unwrap();
        assert!(store.check(true, &mut |_| {}).unwrap().clean(), "a rebuild mends it");
        assert_eq!(show_all(&store).unwrap(), shown);
    });
}

/// Rewrites the journal with two payloads of a kind exchanged. All checksums and links are valid.
fn exchange(dir: &Path, kind: FrameKind) {
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let old = Segments::list(&disk, dir.join("journal"), seal()).unwrap().unwrap();
    let mut frames = Vec::new();
    let scanned = old.scan(Segments::beginning(), 0, Acknowledged::default(), &mut |visit| {
        frames.push((visit.start.segment, visit.header, visit.payload.to_vec()));
        Ok(())
    });
    scanned.unwrap();
    let chosen: Vec<usize> = (0..frames.len()).filter(|&n| frames[n].1.kind == kind).collect();
    // They have equal lengths, otherwise all places after them would move.
    let pair = chosen.iter().flat_map(|&a| chosen.iter().map(move |&b| (a, b)));
    let (a, b) = pair.clone().find(|&(a, b)| a < b && frames[a].2.len() == frames[b].2.len()).unwrap();
    let first = frames[a].2.clone();
    frames[a].2 = std::mem::replace(&mut frames[b].2, first);
    let mut context = old.context.clone();
    context.folder = dir.join("exchanged");
    disk.create_folders(&context.folder).unwrap();
    let mut copy = JournalCopy::new(Arc::clone(&disk), context, &old);
    for (segment, header, payload) in &frames {
        let fields = FrameFields {
            kind: header.kind,
            flags: header.flags,
            key: header.key,
            revision: header.revision,
        };
        copy.put(*segment, fields, payload).unwrap();
    }
    copy.finish().unwrap();
    fs::remove_dir_all(dir.join("journal")).unwrap();
    fs::rename(dir.join("exchanged"), dir.join("journal")).unwrap();
}

/// Makes a store whose notes and bodies have equal lengths.
fn regular(dir: &Path) {
    let (store, _) = open_real(dir, "boot").unwrap();
    let mut rng = TestRng(9);
    for n in 0..3_u8 {
        let put = MessageWrite::Put { head: head(u64::from(n), 0, &mut rng), body: vec![n; 90] };
        let header = header(u64::from(n), &mut rng);
        let write = ConversationWrite { header, current: None, opaque: Vec::new(), messages: vec![put] };
        let changes = vec![Change::Conversation(Box::new(write))];
        store.commit(Batch { changes, ..Batch::default() }).unwrap();
        let changes = vec![Change::Evidence(EvidenceWrite { id: [n; 16], json: vec![n; 40] })];
        store.commit(Batch { changes, ..Batch::default() }).unwrap();
    }
    store.close().unwrap();
}

#[test]
fn swapped_frames_in_the_journal_are_detected() {
    sealed(|| {
        let dir = tempfile::tempdir().unwrap();
        regular(dir.path());
        exchange(dir.path(), FrameKind::Note);
        let refused = try_open(dir.path(), seal(), true).unwrap_err();
        assert!(matches!(refused, StoreError::DamagedJournal { .. }), "{refused}");
        assert!(refused.to_string().contains("does not open with the data key"), "{refused}");
        let dir = tempfile::tempdir().unwrap();
        regular(dir.path());
        exchange(dir.path(), FrameKind::Body);
        // Bodies are read only on request.
        let store = try_open(dir.path(), seal(), true).unwrap();
        let wrong = (0..3).filter(|&n| {
            let record = store.conversation(&id("conversation", n), None).unwrap().unwrap();
            matches!(store.bodies_at(&record, &[0]), Err(StoreError::DamagedRecord { .. }))
        });
        assert_eq!(wrong.count(), 2);
        assert!(!store.check(true, &mut |_| {}).unwrap().clean());
    });
}

#[test]
fn a_plain_frame_in_a_sealed_journal_is_damage() {
    let (plain, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    regular(plain.path());
    sealed(|| regular(dir.path()));
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let key = Seal::new(&DataKey::from_bytes(&[42; 32]));
    let old = Segments::list(&disk, dir.path().join("journal"), Some(key.clone())).unwrap().unwrap();
    let mut context = old.context.clone();
    context.folder = dir.path().join("mixed");
    disk.create_folders(&context.folder).unwrap();
    let mut copy = JournalCopy::new(Arc::clone(&disk), context, &old);
    let mut n = 0;
    old.scan(Segments::beginning(), 0, Acknowledged::default(), &mut |visit| {
        n += 1;
        let (kind, flags, revision) = (visit.header.kind, visit.header.flags, visit.header.revision);
        let key = if n == 3 { 0 } else { visit.header.key };
        copy.put(visit.start.segment, FrameFields { kind, flags, key, revision }, visit.payload)
    })
    .unwrap();
    copy.finish().unwrap();
    fs::remove_dir_all(dir.path().join("journal")).unwrap();
    fs::rename(dir.path().join("mixed"), dir.path().join("journal")).unwrap();
    let store = try_open(dir.path(), Some(key), true).unwrap();
    assert!(matches!(store.health(), crate::Health::Damaged(_)), "{:?}", store.health());
}

#[test]
fn sealed_attachments_are_bound_to_their_names_and_order() {
    sealed(|| {
        let dir = tempfile::tempdir().unwrap();
        let (store, _) = open_real(dir.path(), "boot").unwrap();
        let contents = [vec![], vec![1; 10], vec![2; 64 << 10], vec![3; (64 << 10) + 1], vec![4; 300_000]];
        let blobs: Vec<_> =
            contents.iter().map(|bytes| store.blob_put(&mut bytes.as_slice()).unwrap()).collect();
        store.commit(Model::default().batch(&mut TestRng(1))).unwrap();
        let read = |n: usize| {
            let mut bytes = Vec::new();
            let mut blob = store.blob_open(&blobs[n].sha256).map_err(std::io::Error::other)?.unwrap();
            assert_eq!(blob.length()?, contents[n].len() as u64);
            blob.read_to_end(&mut bytes).map(|_| bytes)
        };
        for (n, bytes) in contents.iter().enumerate() {
            assert!(read(n).unwrap() == *bytes, "blob {n}");
        }
        let mut listed = store.blobs().unwrap();
        let mut hashes: Vec<_> = blobs.iter().map(|blob| blob.sha256).collect();
        listed.sort_unstable();
        hashes.sort_unstable();
        assert_eq!(listed, hashes);
        let path = |n: usize| blob_path(dir.path(), &file_name(&blobs[n].sha256, seal().as_ref()));
        let (three, four) = (fs::read(path(3)).unwrap(), fs::read(path(4)).unwrap());
        fs::write(path(3), &four).unwrap();
        assert!(read(3).is_err(), "another file under this name");
        // Two chunks of one file exchanged.
        let (begin, chunk) = (108, (64 << 10) + 40);
        let mut exchanged = four.clone();
        exchanged[begin..begin + chunk].copy_from_slice(&four[begin + chunk..begin + 2 * chunk]);
        exchanged[begin + chunk..begin + 2 * chunk].copy_from_slice(&four[begin..begin + chunk]);
        fs::write(path(4), exchanged).unwrap();
        assert!(read(4).is_err(), "chunks in another order");
        fs::write(path(3), &three[..three.len() - 41]).unwrap();
        assert!(read(3).is_err(), "a chunk is missing");
        let report = store.check(true, &mut |_| {}).unwrap();
        assert_eq!(report.blob_problems.len(), 2, "{report:?}");
    });
}
