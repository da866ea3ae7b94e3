use std::io::Read;

use super::*;
use crate::{
    change::SignedChange,
    fixture::{counter, key, seen, written},
};

fn digest(byte: u8) -> Sha256Digest {
    Sha256Digest::from_bytes([byte; 32])
}

fn header(number: u8) -> ChangeFileHeader {
    ChangeFileHeader {
        sender: OriginKey::new(&key(number), [number; 16]),
        receiver: "age1receiver".to_owned(),
        created_at: 1_790_000_000_000_000,
        frontier: seen(&[(1, 3), (2, 9)]),
        base: seen(&[(1, 2)]),
        wanted: vec![digest(4), digest(5)],
    }
}

/// Returns a file with these changes, and then a file of an attachment.
fn file(changes: &[SignedChange]) -> Vec<u8> {
    let mut writer = ChangeFileWriter::begin(Vec::new(), &header(7)).unwrap();
    changes.iter().for_each(|change| writer.push(change).unwrap());
    writer.push_file(digest(9), 5, &mut &b"bytes"[..]).unwrap();
    changes.iter().take(1).for_each(|change| writer.push(change).unwrap());
    writer.finish(&key(7)).unwrap()
}

#[derive(Debug, Default)]
struct Seen {
    headers: Vec<ChangeFileHeader>,
    changes: Vec<SignedChange>,
    files: Vec<(Sha256Digest, u64, Vec<u8>)>,
    /// Bytes of each file that are read.
    limit: u64,
}

impl ChangeFileVisitor for Seen {
    type Error = ChangeFileError;

    fn header(&mut self, header: &ChangeFileHeader) -> Result<(), ChangeFileError> {
        self.headers.push(header.clone());
        Ok(())
    }

    fn change(&mut self, change: SignedChange) -> Result<(), ChangeFileError> {
        self.changes.push(change);
        Ok(())
    }

    fn file(
        &mut self,
        digest: Sha256Digest,
        length: u64,
        source: &mut dyn Read,
    ) -> Result<(), ChangeFileError> {
        let mut bytes = Vec::new();
        source.take(self.limit).read_to_end(&mut bytes).unwrap();
        self.files.push((digest, length, bytes));
        Ok(())
    }
}

fn seen_in(bytes: &[u8]) -> Result<Seen, ChangeFileError> {
    let mut seen = Seen { limit: 3, ..Seen::default() };
    read(bytes, &mut seen).map(|()| seen)
}

#[test]
fn what_was_written_is_read() {
    let (_, changes) = written(7, &["one", "two"]);
    let seen = seen_in(&file(&changes)).unwrap();
    assert_eq!(seen.headers, [header(7)]);
    assert_eq!(seen.changes, [&changes[..], &changes[..1]].concat());
    assert_eq!(seen.files, [(digest(9), 5, b"byt".to_vec())]);
    let empty = ChangeFileWriter::begin(Vec::new(), &header(7)).unwrap().finish(&key(7)).unwrap();
    assert!(seen_in(&empty).unwrap().changes.is_empty());
}

#[test]
fn more_changes_than_fit_in_one_batch_are_several() {
    let (mut author, mut changes) = written(7, &[]);
    for _ in 0..9 {
        changes.push(author.append(crate::Kind(1), vec![8; 2 << 20], &Frontier::new()).unwrap());
    }
    let bytes = file(&changes);
    let seen = seen_in(&bytes).unwrap();
    assert_eq!(seen.changes.len(), 11);
    assert_eq!(seen.changes[9].change().counter, counter(10));
}

#[test]
fn a_file_that_was_cut_or_changed_anywhere_is_refused() {
    let (_, changes) = written(7, &["one"]);
    let whole = file(&changes);
    for length in 0..whole.len() {
        let error = seen_in(&whole[..length]).unwrap_err();
        assert!(matches!(error, ChangeFileError::Truncated), "{length}: {error:?}");
    }
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        assert!(seen_in(&bytes).is_err(), "byte {at}");
    }
    let error = seen_in(&[&whole[..], &[0]].concat()).unwrap_err();
    assert!(matches!(error, ChangeFileError::Trailing), "{error:?}");
}

#[test]
fn only_the_sender_can_sign() {
    let writer = ChangeFileWriter::begin(Vec::new(), &header(7)).unwrap();
    let bytes = writer.finish(&key(8)).unwrap();
    assert!(matches!(seen_in(&bytes), Err(ChangeFileError::Signature)));
}

#[test]
fn a_newer_format_is_named() {
    let mut bytes = file(&[]);
    bytes[9] = 2;
    assert!(matches!(seen_in(&bytes), Err(ChangeFileError::UnknownVersion { found: 2 })));
    let mut writer = ChangeFileWriter::begin(Vec::new(), &header(7)).unwrap();
    writer.push_file(digest(1), 0, &mut std::io::empty()).unwrap();
    let mut bytes = writer.finish(&key(7)).unwrap();
    let at = bytes.len() - 64 - 1 - 8 - 32 - 1;
    bytes[at] = 3;
    assert!(matches!(seen_in(&bytes), Err(ChangeFileError::UnknownSection { kind: 3 })));
}

#[test]
fn a_header_has_bounds() {
    let mut long = header(7);
    long.receiver = "x".repeat(MAX_RECEIVER_BYTES + 1);
    assert!(matches!(ChangeFileHeader::decode(&long.encode()), Err(HeaderError::Receiver)));
    let mut unsorted = header(7);
    unsorted.wanted.reverse();
    assert!(matches!(ChangeFileHeader::decode(&unsorted.encode()), Err(HeaderError::Wanted)));
    let mut bytes = header(7).encode();
    bytes.push(0);
    assert!(matches!(ChangeFileHeader::decode(&bytes), Err(HeaderError::Length)));
    let mut bytes = file(&[]);
    bytes[12..16].copy_from_slice(&u32::MAX.to_be_bytes());
    assert!(matches!(seen_in(&bytes), Err(ChangeFileError::Header(_))));
}
