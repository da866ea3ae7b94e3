//! Stores that earlier programs wrote can be opened, and those of later programs are refused with a message.

use std::{
    fs,
    path::{Path, PathBuf},
};

use satchel_seal::{DataKey, Seal};

use super::{
    damage::{copy, make},
    fixture::{open_real, sealed, show_all},
};
use crate::{
    Health, OpenEvent, OpenOptions, Store, StoreError,
    engine::{Changes, Engine, sled_engine::SledEngine},
    keys,
    value::SCHEMA,
};

/// Returns one folder for each format that was ever released: the files of a store, each compressed with zstd, and `digest` and
/// `revision` as the program of that time reported them.
fn fixtures() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut found: Vec<_> = fs::read_dir(all).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

fn unpack(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            unpack(&path, &to.join(path.file_name().unwrap()));
        } else if let Some(name) = path.file_name().unwrap().to_str().unwrap().strip_suffix(".zst") {
            let bytes = zstd::decode_all(fs::File::open(&path).unwrap()).unwrap();
            fs::write(to.join(name), bytes).unwrap();
        }
    }
}

#[test]
fn a_store_of_every_format_opens_with_its_recorded_state() {
    let fixtures = fixtures();
    assert!(!fixtures.is_empty());
    for fixture in fixtures {
        let recorded = |name: &str| fs::read_to_string(fixture.join(name)).unwrap().trim().to_owned();
        for rebuild in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            unpack(&fixture, dir.path());
            let sealed_with = is_sealed(&fixture).then(|| Seal::new(&DataKey::from_bytes(&[42; 32])));
            let options = OpenOptions { rebuild, seal: sealed_with, ..OpenOptions::default() };
            let mut events = Vec::new();
            let store = Store::open(dir.path(), options, &mut |event| events.push(event)).unwrap();
            let what = format!("{}, rebuild {rebuild}", fixture.display());
            assert_eq!(store.health(), Health::Good, "{what}");
            assert_eq!(store.state_digest().to_string(), recorded("digest"), "{what}");
            assert_eq!(store.revision().to_string(), recorded("revision"), "{what}");
            assert!(store.check(true, &mut |_| {}).unwrap().clean(), "{what}");
            let rebuilt = events.iter().any(|event| matches!(event, OpenEvent::Rebuilding { .. }));
            let ours = fixture.to_string_lossy().ends_with(&format!("schema-{SCHEMA}"));
            assert_eq!(rebuilt, rebuild || !ours, "{what}: {events:?}");
            assert_eq!(store.blobs().unwrap().len(), 1, "{what}");
        }
    }
}

/// Returns whether a fixture is an encrypted store, which is then sealed with the key of these tests.
fn is_sealed(fixture: &Path) -> bool {
    fixture.file_name().unwrap().to_string_lossy().starts_with("sealed")
}

/// Changes the version in a segment's header and updates the checksum.
fn set_version(segment: &Path, version: u16) {
    let mut bytes = fs::read(segment).unwrap();
    bytes[8..10].copy_from_slice(&version.to_be_bytes());
    let crc = crc32c::crc32c(&bytes[..68]);
    bytes[68..72].copy_from_slice(&crc.to_be_bytes());
    fs::write(segment, bytes).unwrap();
}

#[test]
fn a_newer_journal_is_refused_and_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path(), 71, 30);
    for segment in super::damage::files(&dir.path().join("journal")) {
        let copied = tempfile::tempdir().unwrap();
        copy(dir.path(), copied.path());
        let path = copied.path().join("journal").join(segment.file_name().unwrap());
        set_version(&path, 2);
        let before = fs::read(&path).unwrap();
        let refused = open_real(copied.path(), "next boot").map(|_| ());
        let Err(error @ StoreError::NewerFormat { found: 2, known: 1, .. }) = refused else {
            panic!("{refused:?}")
        };
        assert!(error.to_string().contains("use a newer satchel"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), before);
        assert!(!copied.path().join("db.broken-1").exists());
    }
}

#[test]
fn a_database_of_another_schema_is_rebuilt() {
    for schema in [1, SCHEMA - 1, SCHEMA + 1] {
        let dir = tempfile::tempdir().unwrap();
        let model = make(dir.path(), 72, 6);
        {
            let database = SledEngine::open(&dir.path().join("db"), 1 << 20).unwrap();
            let mut meta = database.get(keys::META).unwrap().unwrap();
            // After the envelope: version u8, key id u16.
            meta[3..5].copy_from_slice(&schema.to_be_bytes());
            let mut changes = Changes::default();
            changes.put(keys::META.to_vec(), meta);
            database.apply(changes).unwrap();
            database.flush().unwrap();
        }
        fs::write(dir.path().join("db.state"), r#"{"state":"open","boot":"boot"}"#).unwrap();
        let (store, events) = open_real(dir.path(), "boot").unwrap();
        let reported = events
            .iter()
            .any(|event| matches!(event, OpenEvent::Rebuilding { reason } if reason.contains("schema")));
        assert!(reported, "{events:?}");
        assert_eq!(show_all(&store).unwrap(), model);
    }
}

#[test]
fn a_db_state_that_is_foreign_or_corrupt_is_not_trusted() {
    let dir = tempfile::tempdir().unwrap();
    let model = make(dir.path(), 73, 6);
    let path = dir.path().join("db.state");
    let state = fs::read_to_string(&path).unwrap();
    let digits = state.find("\"revision\":").unwrap() + "\"revision\":".len();
    let mut flipped = state.clone().into_bytes();
    flipped[digits] = b'9';
    for (text, believed) in [
        // Written before `db.state` had a checksum.
        (without_checksum(&state), true),
        (String::from_utf8(flipped).unwrap(), false),
        (state.replace("clean", "mended"), false),
        ("not a note".to_owned(), false),
    ] {
        let copied = tempfile::tempdir().unwrap();
        copy(dir.path(), copied.path());
        fs::write(copied.path().join("db.state"), &text).unwrap();
        let (store, events) = open_real(copied.path(), "boot").unwrap();
        let rebuilt = events.iter().any(|event| matches!(event, OpenEvent::Rebuilding { .. }));
        assert_eq!(rebuilt, !believed, "{text}: {events:?}");
        assert_eq!((store.health(), show_all(&store).unwrap()), (Health::Good, model.clone()), "{text}");
    }
}

/// Returns the `db.state` without its checksum.
fn without_checksum(state: &str) -> String {
    let at = state.rfind(",\"crc32c\":").unwrap();
    format!("{}}}\n", &state[..at])
}

/// Writes a fixture of the current format into `SATCHEL_WRITE_FIXTURE`, encrypted if the name says so. Without that variable it
/// does nothing.
#[test]
fn writes_a_fixture_on_request() {
    let Some(to) = std::env::var_os("SATCHEL_WRITE_FIXTURE").map(PathBuf::from) else { return };
    if is_sealed(&to) { sealed(|| write_fixture(&to)) } else { write_fixture(&to) }
}

fn write_fixture(to: &Path) {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path(), 74, 14);
    let (store, _) = open_real(dir.path(), "boot").unwrap();
    store.blob_put(&mut b"a picture".as_slice()).unwrap();
    store.commit(super::fixture::Model::default().batch(&mut super::fixture::TestRng(75))).unwrap();
    let (digest, revision) = (store.state_digest(), store.revision());
    store.close().unwrap();
    pack(dir.path(), to);
    fs::write(to.join("digest"), format!("{digest}\n")).unwrap();
    fs::write(to.join("revision"), format!("{revision}\n")).unwrap();
}

fn pack(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            pack(&path, &to.join(name));
        } else if name != "store.lock" {
            let packed = zstd::encode_all(fs::File::open(&path).unwrap(), 19).unwrap();
            fs::write(to.join(format!("{name}.zst")), packed).unwrap();
        }
    }
}
