use std::io::Read;

use sha2::{Digest, Sha256};

use super::*;
use crate::{
    change::{Change, ChangeError, SignedChange},
    fixture::{NOTE, counter, foreign, head, key, written},
    frontier::Frontier,
    limits::{MAX_BATCH_BYTES, MAX_BATCH_CHANGES, MAX_CHANGE_BYTES, MAX_INLINE_BYTES},
    payload::PayloadId,
};

fn batch(changes: &[SignedChange]) -> Vec<u8> {
    let mut writer = BatchWriter::begin(Vec::new()).unwrap();
    for change in changes {
        assert_eq!(writer.push(change).unwrap(), Pushed::Written);
    }
    writer.finish().unwrap()
}

/// The changes that can be read, and the error that ends the batch.
fn read(bytes: &[u8]) -> (Vec<SignedChange>, Option<BatchError>) {
    let mut changes = Vec::new();
    let reader = match BatchReader::open(bytes) {
        Ok(reader) => reader.unwrap(),
        Err(error) => return (changes, Some(error)),
    };
    for change in reader {
        match change {
            Ok(change) => changes.push(change),
            Err(error) => return (changes, Some(error)),
        }
    }
    (changes, None)
}

fn long_change(payload: usize) -> SignedChange {
    let (origin, previous, context) = (foreign(9), head(1).hash, Frontier::new());
    let bytes = vec![0; payload];
    let payload = PayloadId::of(&bytes);
    let change = Change { origin, counter: counter(2), previous, context, kind: NOTE, payload };
    change.sign(&key(1)).unwrap().with_payload(bytes).unwrap()
}

#[test]
fn a_batch_has_its_changes_in_order() {
    let (_, changes) = written(1, &["two", "three"]);
    let (read, error) = read(&batch(&changes));
    assert!(error.is_none(), "{error:?}");
    assert_eq!(read, changes);
}

#[test]
fn a_batch_that_is_cut_anywhere_has_a_usable_beginning() {
    let (_, changes) = written(1, &["two", "three"]);
    let bytes = batch(&changes);
    let mut ends = vec![12];
    for change in &changes {
        ends.push(ends[ends.len() - 1] + 4 + change.encode().len());
    }
    for cut in 1..bytes.len() {
        let whole = ends.iter().filter(|end| **end <= cut).count().saturating_sub(1);
        let (read, error) = read(&bytes[..cut]);
        assert_eq!(read, changes[..whole], "{cut}");
        assert!(
            matches!(error, Some(BatchError::Truncated { changes }) if changes as usize == whole),
            "{cut}: {error:?}"
        );
    }
}

#[test]
fn a_batch_with_another_byte_is_not_the_same() {
    let (_, changes) = written(1, &["two"]);
    let bytes = batch(&changes);
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        assert!(read(&flipped).1.is_some(), "{at}");
    }
}

#[test]
fn changes_that_are_dropped_from_the_end_are_missed() {
    let (_, changes) = written(1, &["two", "three"]);
    let (whole, shorter) = (batch(&changes), batch(&changes[..2]));
    let end = whole.len() - 40;
    // The other batch's changes with this batch's end.
    let joined = [&shorter[..shorter.len() - 40], &whole[end..]].concat();
    let (read, error) = read(&joined);
    assert_eq!(read, changes[..2]);
    assert!(matches!(error, Some(BatchError::Damaged)), "{error:?}");
}

#[test]
fn a_count_that_does_not_match_is_damage() {
    let mut bytes = batch(&written(1, &["two"]).1);
    let end = bytes.len() - 32;
    bytes[end - 1] = 3;
    let digest = Sha256::digest(&bytes[..end]);
    bytes[end..].copy_from_slice(&digest);
    assert!(matches!(read(&bytes), (changes, Some(BatchError::Damaged)) if changes.len() == 2));
}

#[test]
fn batches_follow_one_another() {
    let (_, changes) = written(1, &["two"]);
    let file = [batch(&changes[..1]), batch(&[]), batch(&changes[1..])].concat();
    let (mut source, mut lengths) = (&file[..], Vec::new());
    while let Some(mut reader) = BatchReader::open(source).unwrap() {
        lengths.push(reader.by_ref().map(Result::unwrap).count());
        assert!(reader.ended());
        source = reader.into_source();
    }
    assert_eq!(lengths, [1, 0, 1]);
}

#[test]
fn a_change_of_a_newer_version_does_not_stop_the_others() {
    let (_, changes) = written(1, &["two", "three"]);
    let mut bytes = batch(&changes);
    let second = 12 + 4 + changes[0].encode().len() + 4;
    bytes[second + 1] = 2;
    let mut reader = BatchReader::open(&bytes[..]).unwrap().unwrap();
    assert_eq!(reader.next().unwrap().unwrap(), changes[0]);
    let error = reader.next().unwrap();
    let Err(BatchError::Change { position: 2, source: ChangeError::UnknownVersion { .. } }) = error else {
        panic!("{error:?}");
    };
    assert_eq!(reader.next().unwrap().unwrap(), changes[2]);
    // The digest is of the bytes before this test changed one.
    assert!(matches!(reader.next(), Some(Err(BatchError::Damaged))));
    assert!(reader.next().is_none());
    assert!(!reader.ended());
}

#[test]
fn a_batch_has_changes_with_and_without_payloads() {
    let (_, mut changes) = written(1, &["two", "three"]);
    changes[1] = changes[1].clone().without_payload();
    let (read, error) = read(&batch(&changes));
    assert!(error.is_none(), "{error:?}");
    let present: Vec<_> = read.iter().map(|change| change.payload().is_some()).collect();
    assert_eq!(present, [true, false, true]);
    assert_eq!(read, changes);
}

#[test]
fn a_wrong_payload_does_not_stop_the_others() {
    let (_, changes) = written(1, &["two", "three"]);
    let mut bytes = batch(&changes);
    let end_of_second = 12 + 4 + changes[0].encode().len() + 4 + changes[1].encode().len();
    bytes[end_of_second - 1] ^= 1;
    let mut reader = BatchReader::open(&bytes[..]).unwrap().unwrap();
    assert_eq!(reader.next().unwrap().unwrap(), changes[0]);
    let error = reader.next().unwrap();
    let Err(BatchError::Change { position: 2, source: ChangeError::WrongPayload { .. } }) = error else {
        panic!("{error:?}");
    };
    assert_eq!(reader.next().unwrap().unwrap(), changes[2]);
}

#[test]
fn other_files_and_newer_versions_are_named() {
    let bytes = batch(&[]);
    assert!(matches!(BatchReader::open(&b"PK\x03\x04 and so on"[..]), Err(BatchError::Magic)));
    let mut newer = bytes.clone();
    newer[9] = 2;
    assert!(matches!(BatchReader::open(&newer[..]), Err(BatchError::UnknownVersion { found: 2 })));
    let mut reserved = bytes;
    reserved[11] = 1;
    assert!(matches!(BatchReader::open(&reserved[..]), Err(BatchError::Damaged)));
    assert!(matches!(BatchReader::open(&b""[..]), Ok(None)));
}

#[test]
fn a_batch_is_full_at_its_limit_of_bytes_and_can_be_read() {
    let change = long_change(MAX_INLINE_BYTES);
    let mut writer = BatchWriter::begin(Vec::new()).unwrap();
    for _ in 0..5 {
        assert_eq!(writer.push(&change).unwrap(), Pushed::Written);
    }
    assert_eq!(writer.push(&change).unwrap(), Pushed::Full);
    // Exactly what is left: the limit less the header, five changes, this change without its payload, and the end.
    let rest = 16 * 1024 * 1024 - 12 - 5 * (4 + 173 + 3 * 1024 * 1024) - (4 + 173) - 40;
    assert_eq!(writer.push(&long_change(rest + 1)).unwrap(), Pushed::Full);
    assert_eq!(writer.push(&long_change(rest)).unwrap(), Pushed::Written);
    let bytes = writer.finish().unwrap();
    assert_eq!(bytes.len() as u64, MAX_BATCH_BYTES);
    let (read, error) = read(&bytes);
    assert_eq!((read.len(), error.is_none()), (6, true));
}

#[test]
fn a_batch_longer_than_its_limit_is_refused() {
    let frame = [&3_000_000_u32.to_be_bytes()[..], &vec![0; 3_000_000]].concat();
    let mut bytes = batch(&[])[..12].to_vec();
    (0..6).for_each(|_| bytes.extend_from_slice(&frame));
    let errors: Vec<_> = BatchReader::open(&bytes[..]).unwrap().unwrap().filter_map(Result::err).collect();
    assert!(matches!(errors.last(), Some(BatchError::BatchTooLarge)), "{:?}", errors.last());
    assert_eq!(errors.len(), 6);
}

#[test]
fn a_batch_is_full_at_its_limit_of_changes() {
    let change = long_change(0);
    let mut writer = BatchWriter::begin(Vec::new()).unwrap();
    for _ in 0..MAX_BATCH_CHANGES {
        assert_eq!(writer.push(&change).unwrap(), Pushed::Written);
    }
    assert_eq!(writer.push(&change).unwrap(), Pushed::Full);
    let bytes = writer.finish().unwrap();
    let (whole, error) = read(&bytes);
    assert_eq!((whole.len(), error.is_none()), (4_096, true));
    let frame = [&173_u32.to_be_bytes()[..], &change.encode()].concat();
    let more = [&bytes[..bytes.len() - 40], &frame].concat();
    assert!(matches!(read(&more).1, Some(BatchError::TooManyChanges)));
}

#[test]
fn memory_grows_with_what_arrives_not_with_what_is_claimed() {
    let claim = u32::try_from(MAX_CHANGE_BYTES).unwrap();
    let bytes = [&batch(&[])[..12], &claim.to_be_bytes(), &[0; 100]].concat();
    let mut reader = BatchReader::open(&bytes[..]).unwrap().unwrap();
    assert!(matches!(reader.next(), Some(Err(BatchError::Truncated { changes: 0 }))));
    assert!(reader.buffer_capacity() <= 1_024, "{}", reader.buffer_capacity());
    let bytes = [&batch(&[])[..12], &(claim + 1).to_be_bytes(), &[0; 100]].concat();
    let error = read(&bytes).1;
    assert!(matches!(error, Some(BatchError::ChangeTooLarge { found }) if found == claim + 1), "{error:?}");
}

#[test]
fn a_source_that_fails_is_not_a_truncated_batch() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the stick was removed"))
        }
    }
    let (_, changes) = written(1, &["two"]);
    let bytes = batch(&changes);
    for cut in [0, 5, 12, 14, 16, 30, bytes.len() - 40, bytes.len() - 1] {
        let source = bytes[..cut].chain(Failing);
        let error = match BatchReader::open(source) {
            Ok(reader) => reader.unwrap().find_map(Result::err).unwrap(),
            Err(error) => error,
        };
        assert!(matches!(error, BatchError::Read(_)), "{cut}: {error:?}");
    }
}
