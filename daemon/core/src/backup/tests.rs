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
    manifest::{Entry, FORMAT, MANIFEST, MAX_MANIFEST_BYTES, MOST_FILES, Manifest, known},
    restore::{self, RestoreError, Restored},
};
use crate::vault::Unlock;

struct Home(tempfile::TempDir);

impl Home {
    /// Creates a data directory with commits, an attachment and keys.
    fn new() -> (Self, Store) {
        let home = Self(tempfile::tempdir().unwrap());
        let store = open(&home.data());
        for n in 0..20 {
            commit(&store, n);
        }
        fs::create_dir(home.data().join("keys")).unwrap();
        fs::write(home.data().join("keys/signing.json"), "secret").unwrap();
        fs::write(home.data().join("keys/.half-written"), "x").unwrap();
        (home, store)
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

fn back_up(store: &Store, home: &Home, name: &str) -> Result<Backup, BackupError> {
    create::create(store, &home.data(), &home.path(name), 5, &mut |_| true)
}

fn put_back(home: &Home, name: &str, to: &str, replace: bool) -> Result<Restored, RestoreError> {
    restore::restore(&home.path(name), &home.path(to), replace, &Unlock::default(), &mut |_| true)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_backup_taken_while_commits_go_on_comes_back_as_it_was() {
    let (home, store) = Home::new();
    let mut n = 20;
    // A commit at each progress report, so that the store is never idle.
    let backup = create::create(&store, &home.data(), &home.path("b.zip"), 5, &mut |_| {
        n += 1;
        commit(&store, n);
        true
    })
    .unwrap();
    assert!(n > 30 && backup.revision >= 20 && backup.revision < store.revision().get(), "{backup:?}");
    assert_eq!((backup.left_out.len(), mode(&home.path("b.zip"))), (0, 0o600));
    assert_eq!(fs::metadata(home.path("b.zip")).unwrap().len(), backup.bytes);
    let mut last = (0, 0);
    let restored = restore::restore(
        &home.path("b.zip"),
        &home.path("new"),
        false,
        &Unlock::default(),
        &mut |progress| {
            last = (progress.done, progress.total);
            true
        },
    )
    .unwrap();
    assert!(last.0 > 0 && last.0 <= last.1, "{last:?}");
    assert_eq!((restored.revision, &restored.digest), (backup.revision, &backup.digest));
    assert_ne!(restored.store_id, store.store_id().to_string());
    let copy = open(&home.path("new"));
    assert_eq!(copy.store_id().to_string(), restored.store_id);
    assert!(copy.check(true, &mut |_| {}).unwrap().clean());
    // All attachments that its commits refer to. Those of commits made during the backup may be included too.
    assert!(copy.blobs().unwrap().len() as u64 >= backup.revision);
    let key = home.path("new/keys/signing.json");
    assert_eq!((fs::read_to_string(&key).unwrap().as_str(), mode(&key)), ("secret", 0o600));
    assert_eq!(mode(&home.path("new")), 0o700);
    assert!(!home.path("new/keys/.half-written").exists());
}

#[test]
fn nothing_is_overwritten_and_what_is_replaced_is_set_aside() {
    let (home, store) = Home::new();
    back_up(&store, &home, "b.zip").unwrap();
    assert!(matches!(back_up(&store, &home, "b.zip"), Err(BackupError::Occupied { .. })));
    assert!(matches!(put_back(&home, "b.zip", "data", false), Err(RestoreError::Occupied { .. })));
    // The store is open; the error names the process that holds it.
    let refused = put_back(&home, "b.zip", "data", true);
    assert!(matches!(refused, Err(RestoreError::Store(StoreError::Locked { .. }))), "{refused:?}");
    commit(&store, 99);
    let newer = store.state_digest();
    drop(store);
    let restored = put_back(&home, "b.zip", "data", true).unwrap();
    assert_eq!(restored.set_aside, Some(home.path("data.replaced-1")));
    assert_eq!(open(&home.data()).state_digest().to_string(), restored.digest);
    assert_eq!(open(&home.path("data.replaced-1")).state_digest(), newer);
    assert_eq!(put_back(&home, "b.zip", "data", true).unwrap().set_aside, Some(home.path("data.replaced-2")));
    // An empty folder is treated like an absent one.
    fs::create_dir(home.path("empty")).unwrap();
    assert_eq!(put_back(&home, "b.zip", "empty", false).unwrap().set_aside, None);
}

#[test]
fn whoever_cancels_finds_nothing_half_done() {
    let (home, store) = Home::new();
    for after in [0, 1, 5] {
        let mut heard = 0;
        let cancelled = create::create(&store, &home.data(), &home.path("b.zip"), 5, &mut |_| {
            heard += 1;
            heard <= after
        });
        assert!(matches!(cancelled, Err(BackupError::Cancelled)), "{cancelled:?}");
        assert_eq!(home.names(), ["data"]);
    }
    back_up(&store, &home, "b.zip").unwrap();
    for after in [0, 10, 30] {
        let mut heard = 0;
        let cancelled =
            restore::restore(&home.path("b.zip"), &home.path("new"), false, &Unlock::default(), &mut |_| {
                heard += 1;
                heard <= after
            });
        assert!(matches!(cancelled, Err(RestoreError::Cancelled)), "{cancelled:?}");
        assert_eq!(home.names(), ["b.zip", "data"]);
    }
}

#[test]
fn a_backup_with_any_byte_changed_is_refused_or_the_same() {
    let (home, store) = Home::new();
    let backup = back_up(&store, &home, "b.zip").unwrap();
    drop(store);
    let bytes = fs::read(home.path("b.zip")).unwrap();
    let mut refused = 0;
    let step = bytes.len() / 60;
    for at in (0..bytes.len()).step_by(step) {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        fs::write(home.path("changed.zip"), changed).unwrap();
        match put_back(&home, "changed.zip", "new", false) {
            // The changed byte has no meaning, such as a time in the archive.
            Ok(restored) => {
                assert_eq!(restored.digest, backup.digest, "byte {at}");
                fs::remove_dir_all(home.path("new")).unwrap();
            }
            Err(_) => refused += 1,
        }
        assert_eq!(home.names(), ["b.zip", "changed.zip", "data"], "byte {at}");
    }
    assert!(refused > 40, "{refused}");
    for length in [0, 10, bytes.len() / 2, bytes.len() - 1] {
        fs::write(home.path("changed.zip"), &bytes[..length]).unwrap();
        let error = put_back(&home, "changed.zip", "new", false).unwrap_err();
        assert!(matches!(error, RestoreError::NotABackup { .. }), "{error}");
        assert!(!home.path("new").exists());
    }
}

/// Writes an archive of these files with a correct manifest.
fn forge(
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
fn a_manifest_of_as_many_files_as_a_backup_may_hold_is_read() {
    let (name, sha256) = (format!("blobs/ab/{}", "0".repeat(62)), "0".repeat(64));
    let one = Entry { name, bytes: u64::from(u32::MAX), sha256 };
    let manifest = |files| Manifest {
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
    assert!(bytes(0) + each * MOST_FILES as u64 <= MAX_MANIFEST_BYTES, "{each} bytes each");
}

#[test]
fn hostile_archives_are_refused_before_anything_is_written() {
    let home = Home(tempfile::tempdir().unwrap());
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
        forge(&home.path("b.zip"), &[(name, "x")], 1, same);
        let error = put_back(&home, "b.zip", "new", false).unwrap_err();
        assert!(matches!(error, RestoreError::NotABackup { .. }), "{name}: {error}");
        assert_eq!(home.names(), ["b.zip"], "{name}");
    }
    let big = "0".repeat(1_000_000);
    forge(&home.path("b.zip"), &[("keys/bomb", &big)], 1, |options| {
        options.compression_method(CompressionMethod::Deflated)
    });
    let error = put_back(&home, "b.zip", "new", false).unwrap_err().to_string();
    assert!(error.contains("compressed"), "{error}");
    forge(&home.path("b.zip"), &[("keys/link", "/etc/passwd")], 1, |options| {
        options.unix_permissions(0o120_777)
    });
    let refused = put_back(&home, "b.zip", "new", false);
    // The ZIP writer may keep only the permission bits. The entry is then a plain file, and the restore fails because
    // the journal is missing.
    assert!(refused.is_err(), "{refused:?}");
    forge(&home.path("b.zip"), &[], 2, same);
    let error = put_back(&home, "b.zip", "new", false).unwrap_err();
    assert!(matches!(error, RestoreError::Newer { found: 2, known: 1, .. }), "{error}");
    forge(&home.path("b.zip"), &[("keys/a", "x")], 1, same);
    let error = put_back(&home, "b.zip", "new", false).unwrap_err();
    assert!(error.to_string().contains("journal"), "{error}");
    fs::write(home.path("b.zip"), "no archive").unwrap();
    assert!(matches!(put_back(&home, "b.zip", "new", false), Err(RestoreError::NotABackup { .. })));
    assert!(matches!(put_back(&home, "absent.zip", "new", false), Err(RestoreError::Read { .. })));
    assert_eq!(home.names(), ["b.zip"]);
}

#[test]
fn names_that_we_write_are_known() {
    let hash = "cd".repeat(31);
    for name in
        ["journal/00000001.seg", "journal/4294967295.seg", &format!("blobs/ab/{hash}"), "keys/page-token.key"]
    {
        assert!(known(name), "{name}");
    }
}

#[test]
fn a_damaged_attachment_is_left_out_and_named_and_a_damaged_journal_gives_no_backup() {
    let (home, store) = Home::new();
    let hash = store.blobs().unwrap()[3];
    let hex = satchel_pam::hash::Sha256Digest::from_bytes(hash).to_hex();
    fs::write(home.data().join("blobs").join(&hex[..2]).join(&hex[2..]), "other").unwrap();
    let backup = back_up(&store, &home, "b.zip").unwrap();
    assert_eq!(backup.left_out, [hex]);
    put_back(&home, "b.zip", "new", false).unwrap();
    let segment = home.data().join("journal/00000001.seg");
    let mut bytes = fs::read(&segment).unwrap();
    bytes[500] ^= 4;
    fs::write(segment, bytes).unwrap();
    let refused = back_up(&store, &home, "c.zip");
    assert!(matches!(refused, Err(BackupError::Store(StoreError::DamagedJournal { .. }))), "{refused:?}");
    assert!(!home.path("c.zip").exists());
}
