#![expect(clippy::unwrap_used, reason = "tests")]

use std::{
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use satchel_store::{Batch, Change, EvidenceWrite, OpenOptions, Store, StoreError};
use serde_json::json;
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use super::{
    create::{self, Backup, BackupError},
    manifest::{
        BackupEntry, BackupManifest, FORMAT, MANIFEST, MAX_FILES, MAX_MANIFEST_BYTES, is_backup_name,
    },
    restore::{self, RestoreError, RestoreOutcome},
};
use crate::vault::UnlockOptions;

struct TestDataDir(tempfile::TempDir);

impl TestDataDir {
    /// Creates a data directory with commits, an attachment and keys.
    fn new() -> (Self, Store) {
        let dir = Self(tempfile::tempdir().unwrap());
        let store = open(&dir.data());
        for n in 0..20 {
            commit(&store, n);
        }
        fs::create_dir(dir.data().join("keys")).unwrap();
        fs::write(dir.data().join("keys/signing.json"), "secret").unwrap();
        fs::write(dir.data().join("keys/.half-written"), "x").unwrap();
        (dir, store)
    }

    fn data(&self) -> PathBuf {
        self.0.path().join("data")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn open(dir: &Path) -> Store {
    Store::open(dir, OpenOptions::default(), &mut |_| {}).unwrap()
}

fn commit(store: &Store, n: u8) {
    store.blob_put(&mut vec![n; 2_000].as_slice()).unwrap();
    let relation = json!({
        "id": format!("relation-{n}"), "from": "m1", "to": format!("m{n}"), "type": "supports",
        "created_at": "2026-01-02T03:04:05Z",
    });
    let changes = vec![
        Change::Relation(serde_json::from_value(relation).unwrap()),
        Change::Evidence(EvidenceWrite { id: [n; 16], json: vec![n; 9_000] }),
    ];
    store.commit(Batch { changes, ..Batch::default() }).unwrap();
}

fn back_up(store: &Store, dir: &TestDataDir, name: &str) -> Result<Backup, BackupError> {
    create::create(store, &dir.data(), &dir.path(name), 5, &mut |_| true)
}

fn restore_backup(
    dir: &TestDataDir,
    name: &str,
    to: &str,
    replace: bool,
) -> Result<RestoreOutcome, RestoreError> {
    restore::restore(&dir.path(name), &dir.path(to), replace, &UnlockOptions::default(), &mut |_| true)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_backup_made_during_commits_restores_the_state_it_captured() {
    let (dir, store) = TestDataDir::new();
    let mut n = 20;
    // A commit at each progress report, so that the store is never idle.
    let backup = create::create(&store, &dir.data(), &dir.path("b.zip"), 5, &mut |_| {
        n += 1;
        commit(&store, n);
        true
    })
    .unwrap();
    assert!(n > 30 && backup.revision >= 20 && backup.revision < store.revision().get(), "{backup:?}");
    assert_eq!((backup.left_out.len(), mode(&dir.path("b.zip"))), (0, 0o600));
    assert_eq!(fs::metadata(dir.path("b.zip")).unwrap().len(), backup.bytes);
    let mut last = (0, 0);
    let restored = restore::restore(
        &dir.path("b.zip"),
        &dir.path("new"),
        false,
        &UnlockOptions::default(),
        &mut |progress| {
            last = (progress.done, progress.total);
            true
        },
    )
    .unwrap();
    assert!(last.0 > 0 && last.0 <= last.1, "{last:?}");
    assert_eq!((restored.revision, &restored.digest), (backup.revision, &backup.digest));
    assert_ne!(restored.store_id, store.store_id().to_string());
    let copy = open(&dir.path("new"));
    assert_eq!(copy.store_id().to_string(), restored.store_id);
    assert!(copy.check(true, &mut |_| {}).unwrap().clean());
    // All attachments that its commits refer to. Those of commits made during the backup may be included too.
    assert!(copy.blobs().unwrap().len() as u64 >= backup.revision);
    let key = dir.path("new/keys/signing.json");
    assert_eq!((fs::read_to_string(&key).unwrap().as_str(), mode(&key)), ("secret", 0o600));
    assert_eq!(mode(&dir.path("new")), 0o700);
    assert!(!dir.path("new/keys/.half-written").exists());
}

#[test]
fn nothing_is_overwritten_and_a_replaced_directory_is_set_aside() {
    let (dir, store) = TestDataDir::new();
    back_up(&store, &dir, "b.zip").unwrap();
    assert!(matches!(back_up(&store, &dir, "b.zip"), Err(BackupError::OutputExists { .. })));
    assert!(matches!(
        restore_backup(&dir, "b.zip", "data", false),
        Err(RestoreError::DataDirNotEmpty { .. })
    ));
    // The store is open; the error names the process that holds it.
    let refused = restore_backup(&dir, "b.zip", "data", true);
    assert!(matches!(refused, Err(RestoreError::Store(StoreError::Locked { .. }))), "{refused:?}");
    commit(&store, 99);
    let newer = store.state_digest();
    drop(store);
    let restored = restore_backup(&dir, "b.zip", "data", true).unwrap();
    assert_eq!(restored.set_aside, Some(dir.path("data.replaced-1")));
    assert_eq!(open(&dir.data()).state_digest().to_string(), restored.digest);
    assert_eq!(open(&dir.path("data.replaced-1")).state_digest(), newer);
    assert_eq!(
        restore_backup(&dir, "b.zip", "data", true).unwrap().set_aside,
        Some(dir.path("data.replaced-2"))
    );
    // An empty folder is treated like an absent one.
    fs::create_dir(dir.path("empty")).unwrap();
    assert_eq!(restore_backup(&dir, "b.zip", "empty", false).unwrap().set_aside, None);
}

#[test]
fn a_cancelled_backup_or_restore_leaves_nothing_behind() {
    let (dir, store) = TestDataDir::new();
    for after in [0, 1, 5] {
        let mut reports = 0;
        let cancelled = create::create(&store, &dir.data(), &dir.path("b.zip"), 5, &mut |_| {
            reports += 1;
            reports <= after
        });
        assert!(matches!(cancelled, Err(BackupError::Cancelled)), "{cancelled:?}");
        assert_eq!(dir.names(), ["data"]);
    }
    back_up(&store, &dir, "b.zip").unwrap();
    for after in [0, 10, 30] {
        let mut reports = 0;
        let cancelled = restore::restore(
            &dir.path("b.zip"),
            &dir.path("new"),
            false,
            &UnlockOptions::default(),
            &mut |_| {
                reports += 1;
                reports <= after
            },
        );
        assert!(matches!(cancelled, Err(RestoreError::Cancelled)), "{cancelled:?}");
        assert_eq!(dir.names(), ["b.zip", "data"]);
    }
}

#[test]
fn a_backup_with_a_changed_byte_is_refused_or_restores_the_same_state() {
    let (dir, store) = TestDataDir::new();
    let backup = back_up(&store, &dir, "b.zip").unwrap();
    drop(store);
    let bytes = fs::read(dir.path("b.zip")).unwrap();
    let mut refused = 0;
    let step = bytes.len() / 60;
    for at in (0..bytes.len()).step_by(step) {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        fs::write(dir.path("changed.zip"), changed).unwrap();
        match restore_backup(&dir, "changed.zip", "new", false) {
            // The changed byte has no meaning, such as a time in the archive.
            Ok(restored) => {
                assert_eq!(restored.digest, backup.digest, "byte {at}");
                fs::remove_dir_all(dir.path("new")).unwrap();
            }
            Err(_) => refused += 1,
        }
        assert_eq!(dir.names(), ["b.zip", "changed.zip", "data"], "byte {at}");
    }
    assert!(refused > 40, "{refused}");
    for length in [0, 10, bytes.len() / 2, bytes.len() - 1] {
        fs::write(dir.path("changed.zip"), &bytes[..length]).unwrap();
        let error = restore_backup(&dir, "changed.zip", "new", false).unwrap_err();
        assert!(matches!(error, RestoreError::NotABackup { .. }), "{error}");
        assert!(!dir.path("new").exists());
    }
}

/// Writes an archive of these files with a correct manifest.
fn write_archive(
    path: &Path,
    files: &[(&str, &str)],
    format: u32,
    shape: impl Fn(SimpleFileOptions) -> SimpleFileOptions,
) {
    let mut zip = ZipWriter::new(fs::File::create(path).unwrap());
    let plain = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let mut listed = Vec::new();
    for (name, content) in files {
        zip.start_file(*name, shape(plain)).unwrap();
        zip.write_all(content.as_bytes()).unwrap();
        let sha256 = satchel_pam::hash::Sha256Digest::of(content.as_bytes()).to_hex();
        listed.push(json!({"name": name, "bytes": content.len(), "sha256": sha256}));
    }
    let manifest = json!({
        "format": format, "program": "p", "store_id": "s", "revision": 0, "digest": "d", "made_at_micros": 0,
        "files": listed,
    });
    zip.start_file(MANIFEST, plain).unwrap();
    zip.write_all(manifest.to_string().as_bytes()).unwrap();
    zip.finish().unwrap();
}

#[test]
fn a_manifest_with_the_maximum_number_of_files_can_be_read() {
    let (name, sha256) = (format!("blobs/ab/{}", "0".repeat(62)), "0".repeat(64));
    let one = BackupEntry { name, bytes: u64::from(u32::MAX), sha256 };
    let manifest = |files| BackupManifest {
        format: FORMAT,
        program: "satchel 0.1.0".to_owned(),
        store_id: "0".repeat(36),
        revision: u64::MAX,
        digest: "0".repeat(80),
        made_at_micros: i64::MAX,
        files,
    };
    let bytes =
        |count: usize| serde_json::to_vec_pretty(&manifest(vec![one.clone(); count])).unwrap().len() as u64;
    let each = bytes(101) - bytes(100);
    assert!(bytes(0) + each * MAX_FILES as u64 <= MAX_MANIFEST_BYTES, "{each} bytes each");
}

#[test]
fn hostile_archives_are_refused_before_anything_is_written() {
    let dir = TestDataDir(tempfile::tempdir().unwrap());
    let same = |options: SimpleFileOptions| options;
    for name in [
        "../evil",
        "keys/../../evil",
        "/etc/evil",
        "keys/..",
        "keys//x",
        "keys/.ssh",
        "journal/1.seg",
        "store.lock",
        "blobs/ab/../../../evil",
        "keys/a\\b",
        "C:/x",
        "keys/a/b",
        "journal/00000001.seg/x",
        "blobs/AB/cd",
    ] {
        write_archive(&dir.path("b.zip"), &[(name, "x")], 1, same);
        let error = restore_backup(&dir, "b.zip", "new", false).unwrap_err();
        assert!(matches!(error, RestoreError::NotABackup { .. }), "{name}: {error}");
        assert_eq!(dir.names(), ["b.zip"], "{name}");
    }
    let big = "0".repeat(1_000_000);
    write_archive(&dir.path("b.zip"), &[("keys/bomb", &big)], 1, |options| {
        options.compression_method(CompressionMethod::Deflated)
    });
    let error = restore_backup(&dir, "b.zip", "new", false).unwrap_err().to_string();
    assert!(error.contains("compressed"), "{error}");
    write_archive(&dir.path("b.zip"), &[("keys/link", "/etc/passwd")], 1, |options| {
        options.unix_permissions(0o120_777)
    });
    let refused = restore_backup(&dir, "b.zip", "new", false);
    // The ZIP writer may keep only the permission bits. The entry is then a plain file, and the restore fails because
    // the journal is missing.
    assert!(refused.is_err(), "{refused:?}");
    write_archive(&dir.path("b.zip"), &[], 2, same);
    let error = restore_backup(&dir, "b.zip", "new", false).unwrap_err();
    assert!(matches!(error, RestoreError::Newer { found: 2, known: 1, .. }), "{error}");
    write_archive(&dir.path("b.zip"), &[("keys/a", "x")], 1, same);
    let error = restore_backup(&dir, "b.zip", "new", false).unwrap_err();
    assert!(error.to_string().contains("journal"), "{error}");
    fs::write(dir.path("b.zip"), "no archive").unwrap();
    assert!(matches!(restore_backup(&dir, "b.zip", "new", false), Err(RestoreError::NotABackup { .. })));
    assert!(matches!(restore_backup(&dir, "absent.zip", "new", false), Err(RestoreError::Read { .. })));
    assert_eq!(dir.names(), ["b.zip"]);
}

#[test]
fn all_names_that_a_backup_contains_are_accepted() {
    let hash = "cd".repeat(31);
    for name in
        ["journal/00000001.seg", "journal/4294967295.seg", &format!("blobs/ab/{hash}"), "keys/page-token.key"]
    {
        assert!(is_backup_name(name), "{name}");
    }
}

#[test]
fn a_damaged_attachment_is_left_out_and_named_and_a_damaged_journal_gives_no_backup() {
    let (dir, store) = TestDataDir::new();
    let hash = store.blobs().unwrap()[3];
    let hex = satchel_pam::hash::Sha256Digest::from_bytes(hash).to_hex();
    fs::write(dir.data().join("blobs").join(&hex[..2]).join(&hex[2..]), "other").unwrap();
    let backup = back_up(&store, &dir, "b.zip").unwrap();
    assert_eq!(backup.left_out, [hex]);
    restore_backup(&dir, "b.zip", "new", false).unwrap();
    let segment = dir.data().join("journal/00000001.seg");
    let mut bytes = fs::read(&segment).unwrap();
    bytes[500] ^= 4;
    fs::write(segment, bytes).unwrap();
    let refused = back_up(&store, &dir, "c.zip");
    assert!(matches!(refused, Err(BackupError::Store(StoreError::DamagedJournal { .. }))), "{refused:?}");
    assert!(!dir.path("c.zip").exists());
}
