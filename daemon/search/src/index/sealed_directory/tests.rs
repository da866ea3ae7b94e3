use std::{fs, io::Write as _, ops::Range};

use proptest::prelude::*;
use satchel_seal::DataKey;
use tantivy::directory::TerminatingWrite as _;
use tempfile::TempDir;

use super::{
    layout::{BLOCK, HEADER, SEALED_BLOCK},
    *,
};

const NAME: &str = "5ec0ffee.idx";

fn seal(byte: u8) -> Seal {
    Seal::new(&DataKey::from_bytes(&[byte; DataKey::BYTES]))
}

fn directory(folder: &TempDir) -> SealedDirectory {
    SealedDirectory::open(folder.path(), &seal(1)).unwrap()
}

/// Bytes that differ from block to block.
fn contents(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

fn write(directory: &SealedDirectory, name: &str, bytes: &[u8]) {
    let mut writer = directory.open_write(Path::new(name)).unwrap();
    writer.write_all(bytes).unwrap();
    writer.terminate().unwrap();
}

/// Reads a file to its end.
fn read(directory: &SealedDirectory, name: &str) -> io::Result<Vec<u8>> {
    let file = directory.get_file_handle(Path::new(name)).map_err(cause)?;
    file.read_bytes(0..file.len()).map(|bytes| bytes.to_vec())
}

/// Returns why a file cannot be opened.
fn cause(error: OpenReadError) -> io::Error {
    match error {
        OpenReadError::IoError { io_error, .. } => io::Error::new(io_error.kind(), io_error.to_string()),
        error => io::Error::other(error),
    }
}

/// The file does not open, or cannot be read to its end; the error names it.
fn assert_damaged(folder: &TempDir, name: &str) {
    let error = read(&directory(folder), name).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    assert!(error.to_string().contains(name), "{error}");
    let error = cause(directory(folder).atomic_read(Path::new(name)).unwrap_err());
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
}

/// Lengths around those at which a block ends.
fn length() -> impl Strategy<Value = usize> {
    prop_oneof![
        0..200_usize,
        BLOCK - 3..BLOCK + 3,
        2 * BLOCK - 3..2 * BLOCK + 3,
        3 * BLOCK..4 * BLOCK,
        Just(BLOCK),
        Just(3 * BLOCK),
    ]
}

fn range(ends: (prop::sample::Index, prop::sample::Index), length: usize) -> Range<usize> {
    let (one, other) = (ends.0.index(length + 1), ends.1.index(length + 1));
    one.min(other)..one.max(other)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_was_written_is_read_in_any_ranges(
        length in length(),
        seed in any::<u64>(),
        pieces in prop::collection::vec(prop_oneof![0..90_usize, 8_000..9_000_usize, BLOCK - 1..BLOCK + 2], 1..5),
        ranges in prop::collection::vec(any::<(prop::sample::Index, prop::sample::Index)>(), 1..12),
        cache in prop_oneof![Just(0), Just(BLOCK), Just(8 * BLOCK), Just(CACHE_BYTES)],
    ) {
        let folder = tempfile::tempdir().unwrap();
        let directory = SealedDirectory::with_cache(folder.path(), &seal(1), cache).unwrap();
        let plain = contents(length, seed);
        let mut writer = directory.open_write(Path::new(NAME)).unwrap();
        let mut rest = plain.as_slice();
        for piece in pieces.iter().cycle().take(1_000) {
            let (now, later) = rest.split_at(rest.len().min(*piece));
            writer.write_all(now).unwrap();
            writer.flush().unwrap();
            rest = later;
        }
        writer.write_all(rest).unwrap();
        writer.terminate().unwrap();
        let file = directory.get_file_handle(Path::new(NAME)).unwrap();
        prop_assert_eq!(file.len(), length);
        for ends in ranges {
            let range = range(ends, length);
            prop_assert_eq!(&*file.read_bytes(range.clone()).unwrap(), &plain[range]);
            prop_assert!(directory.0.cache.bytes() <= cache);
        }
        prop_assert!(file.read_bytes(0..length + 1).is_err());
        prop_assert_eq!(directory.atomic_read(Path::new(NAME)).unwrap(), plain);
    }

    #[test]
    fn a_flipped_bit_is_detected_and_no_other_block_is_lost(
        length in length(), at in any::<prop::sample::Index>(), bit in 0..8_u8, ends in any::<(prop::sample::Index, prop::sample::Index)>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let plain = contents(length, 7);
        write(&directory(&folder), NAME, &plain);
        let path = folder.path().join(NAME);
        let mut sealed = fs::read(&path).unwrap();
        let at = at.index(sealed.len());
        sealed[at] ^= 1 << bit;
        fs::write(&path, sealed).unwrap();
        assert_damaged(&folder, NAME);
        if let Ok(file) = directory(&folder).get_file_handle(Path::new(NAME)) {
            let range = range(ends, length);
            let damaged = (at - HEADER) / SEALED_BLOCK * BLOCK;
            let touched = range.start < damaged + BLOCK && damaged < range.end && !range.is_empty();
            let bytes = file.read_bytes(range.clone());
            prop_assert_eq!(bytes.is_err(), touched);
            prop_assert!(bytes.is_err() || *bytes.unwrap() == plain[range]);
        }
    }

    #[test]
    fn a_file_that_was_cut_off_or_continued_does_not_open(
        length in length(), at in any::<prop::sample::Index>(), blocks in 1..4_usize, added in prop::collection::vec(any::<u8>(), 1..100),
    ) {
        let folder = tempfile::tempdir().unwrap();
        write(&directory(&folder), NAME, &contents(length, 7));
        let path = folder.path().join(NAME);
        let sealed = fs::read(&path).unwrap();
        let whole_blocks = HEADER + SEALED_BLOCK * blocks;
        let again = &sealed[HEADER..];
        for damaged in [
            &sealed[..at.index(sealed.len())],
            &sealed[..whole_blocks.min(sealed.len() - 1)],
            &[&sealed, added.as_slice()].concat(),
            &[&sealed, again].concat(),
        ] {
            fs::write(&path, damaged).unwrap();
            let error = cause(directory(&folder).get_file_handle(Path::new(NAME)).unwrap_err());
            prop_assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }
}

#[test]
fn blocks_open_only_at_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let other = "0ther.idx";
    for name in [NAME, other] {
        write(&directory(&folder), name, &contents(4 * BLOCK, 7));
    }
    let path = folder.path().join(NAME);
    let sealed = fs::read(&path).unwrap();
    let foreign = fs::read(folder.path().join(other)).unwrap();
    let block = |file: &[u8], number: usize| file[HEADER + number * SEALED_BLOCK..][..SEALED_BLOCK].to_vec();
    let file_of = |header: &[u8], blocks: [Vec<u8>; 4]| [header, &blocks.concat()].concat();
    let ours = |number| block(&sealed, number);
    for damaged in [
        file_of(&sealed[..HEADER], [ours(1), ours(0), ours(2), ours(3)]),
        file_of(&sealed[..HEADER], [ours(0), ours(0), ours(2), ours(3)]),
        file_of(&sealed[..HEADER], [ours(0), ours(1), ours(3), ours(2)]),
        file_of(&sealed[..HEADER], [block(&foreign, 0), ours(1), ours(2), ours(3)]),
        file_of(&sealed[..HEADER], [ours(0), ours(1), ours(2), block(&foreign, 3)]),
        file_of(&foreign[..HEADER], [ours(0), ours(1), ours(2), ours(3)]),
        foreign.clone(),
    ] {
        fs::write(&path, damaged).unwrap();
        assert_damaged(&folder, NAME);
    }
    fs::write(&path, &sealed).unwrap();
    assert_eq!(read(&directory(&folder), NAME).unwrap(), contents(4 * BLOCK, 7));
    fs::rename(&path, folder.path().join("renamed.idx")).unwrap();
    assert_damaged(&folder, "renamed.idx");
}

#[test]
fn another_key_opens_nothing_and_errors_name_the_block() {
    let folder = tempfile::tempdir().unwrap();
    write(&directory(&folder), NAME, &contents(2 * BLOCK, 7));
    let other = SealedDirectory::open(folder.path(), &seal(2)).unwrap();
    let error = cause(other.get_file_handle(Path::new(NAME)).unwrap_err());
    assert!(error.to_string().contains("block 1 of"), "{error}");
    let error = cause(other.atomic_read(Path::new(NAME)).unwrap_err());
    assert!(error.to_string().contains("block 0 of"), "{error}");
    assert!(directory(&folder).get_file_handle(Path::new(NAME)).is_ok());
}

#[test]
fn a_file_is_replaced_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let directory = directory(&folder);
    let meta = Path::new("meta.json");
    let missing = directory.atomic_read(meta).unwrap_err();
    assert!(matches!(missing, OpenReadError::FileDoesNotExist(_)), "{missing}");
    for length in [0, 20, BLOCK, 3 * BLOCK + 1] {
        let bytes = contents(length, length as u64);
        directory.atomic_write(meta, &bytes).unwrap();
        assert_eq!(directory.atomic_read(meta).unwrap(), bytes);
        assert_eq!(read(&directory, "meta.json").unwrap(), bytes);
    }
    let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["meta.json"], "no temporary file is left");
}

#[test]
fn a_file_whose_writer_was_killed_does_not_open() {
    let folder = tempfile::tempdir().unwrap();
    let directory = directory(&folder);
    for (name, length) in [("a.idx", 0), ("b.idx", 10), ("c.idx", BLOCK), ("d.idx", 2 * BLOCK + 10)] {
        let mut writer = directory.open_write(Path::new(name)).unwrap();
        writer.write_all(&contents(length, 7)).unwrap();
        drop(writer);
        assert_damaged(&folder, name);
        // Its name is taken until it is removed, as the index does with files that no commit names.
        let taken = directory.open_write(Path::new(name));
        assert!(matches!(taken, Err(OpenWriteError::FileAlreadyExists(_))));
        directory.delete(Path::new(name)).unwrap();
        write(&directory, name, b"tea");
        assert_eq!(read(&directory, name).unwrap(), b"tea");
    }
}

#[test]
fn an_open_file_stays_readable_when_its_name_is_removed_or_reused() {
    let folder = tempfile::tempdir().unwrap();
    let directory = SealedDirectory::with_cache(folder.path(), &seal(1), 0).unwrap();
    let plain = contents(3 * BLOCK, 7);
    write(&directory, NAME, &plain);
    let before = directory.get_file_handle(Path::new(NAME)).unwrap();
    directory.delete(Path::new(NAME)).unwrap();
    assert!(!directory.exists(Path::new(NAME)).unwrap());
    let error = directory.delete(Path::new(NAME)).unwrap_err();
    assert!(matches!(error, DeleteError::FileDoesNotExist(_)), "{error}");
    write(&directory, NAME, b"another");
    assert_eq!(&*before.read_bytes(0..plain.len()).unwrap(), plain);
    assert_eq!(read(&directory, NAME).unwrap(), b"another");
}

#[test]
fn readers_share_decrypted_blocks_within_the_bound() {
    let folder = tempfile::tempdir().unwrap();
    let directory = SealedDirectory::with_cache(folder.path(), &seal(1), 8 * BLOCK).unwrap();
    let plain = contents(40 * BLOCK, 7);
    write(&directory, NAME, &plain);
    let (one, other) =
        (directory.get_file_handle(Path::new(NAME)), directory.clone().get_file_handle(Path::new(NAME)));
    let (one, other) = (one.unwrap(), other.unwrap());
    let first = one.read_bytes(10..20).unwrap();
    assert_eq!(first.as_ptr(), other.read_bytes(10..20).unwrap().as_ptr(), "decrypted once, not copied");
    // A read of the whole file leaves the block there; reads of parts replace it.
    assert_eq!(&*one.read_bytes(0..plain.len()).unwrap(), plain);
    assert_eq!(first.as_ptr(), one.read_bytes(10..20).unwrap().as_ptr());
    for block in 1..40 {
        one.read_bytes(block * BLOCK - 5..block * BLOCK + 5).unwrap();
        assert!(directory.0.cache.bytes() <= 8 * BLOCK);
    }
    assert_eq!(directory.0.cache.bytes(), 8 * BLOCK);
    assert_ne!(first.as_ptr(), one.read_bytes(10..20).unwrap().as_ptr());
    assert_eq!(&*first, &plain[10..20], "dropped blocks stay while they are read");
    drop((one, other));
    assert_eq!(directory.0.cache.bytes(), 0);
}
