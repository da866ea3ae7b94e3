//! One file of the journal: its name and its header.

use std::path::Path;

use crate::{codec::Put, error::StoreError};

/// Length of the header in bytes.
pub(crate) const HEADER_BYTES: usize = 72;
/// Offset of the first frame.
pub(crate) const FIRST_FRAME: u64 = HEADER_BYTES as u64;
/// The version of segments and frames that this program writes.
pub(crate) const FORMAT: u16 = 1;
/// A segment of this many bytes accepts no further group. The size is small enough to copy and check, and large enough to keep
/// the number of segments low.
pub(crate) const SEGMENT_LIMIT: u64 = 64 << 20;
const MAGIC: &[u8; 8] = b"SATCHELJ";

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) number: u32,
    pub(crate) store_id: [u8; 16],
    pub(crate) revision: u64,
    pub(crate) chain: [u8; 16],
    pub(crate) previous_length: u64,
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.put_u16(FORMAT);
        bytes.put_u16(0);
        bytes.put_u32(self.number);
        bytes.extend_from_slice(&self.store_id);
        bytes.put_u64(self.revision);
        bytes.extend_from_slice(&self.chain);
        bytes.put_u64(self.previous_length);
        bytes.put_u32(0);
        let crc = crc32c::crc32c(&bytes);
        bytes.put_u32(crc);
        bytes
    }

    /// Reads a header. Returns `Ok(None)` if the bytes are not one.
    pub(crate) fn parse(bytes: &[u8], file: &Path) -> Result<Option<Self>, StoreError> {
        let Ok(bytes) = <&[u8; HEADER_BYTES]>::try_from(bytes) else { return Ok(None) };
        if &bytes[..8] != MAGIC {
            return Ok(None);
        }
        let crc = u32::from_be_bytes([bytes[68], bytes[69], bytes[70], bytes[71]]);
        if crc != crc32c::crc32c(&bytes[..68]) {
            return Ok(None);
        }
        let found = u16::from_be_bytes([bytes[8], bytes[9]]);
        if found > FORMAT {
            return Err(StoreError::NewerFormat { file: file.to_owned(), found, known: FORMAT });
        }
        let mut take = crate::codec::ByteReader(&bytes[12..]);
        let parsed = (|| {
            Ok::<_, crate::codec::Malformed>(Self {
                number: take.u32()?,
                store_id: take.array()?,
                revision: take.u64()?,
                chain: take.array()?,
                previous_length: take.u64()?,
            })
        })();
        Ok(parsed.ok())
    }
}

pub(crate) fn name(number: u32) -> String {
    format!("{number:08}.seg")
}

/// Returns the number in a segment's file name, or `None` for other files.
pub(crate) fn number(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(".seg")?;
    if digits.len() < 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: SegmentHeader =
        SegmentHeader { number: 7, store_id: [3; 16], revision: 12, chain: [9; 16], previous_length: 4_711 };

    #[test]
    fn a_header_round_trips_and_any_flipped_bit_is_detected() {
        let bytes = SAMPLE.encode();
        assert_eq!(SegmentHeader::parse(&bytes, Path::new("x")).ok().flatten(), Some(SAMPLE));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SegmentHeader::parse(&flipped, Path::new("x")).ok().flatten(), None, "bit {bit}");
        }
    }

    #[test]
    fn a_newer_format_is_refused() {
        let mut bytes = SAMPLE.encode();
        bytes[9] = 2;
        let crc = crc32c::crc32c(&bytes[..68]);
        bytes[68..].copy_from_slice(&crc.to_be_bytes());
        assert!(matches!(
            SegmentHeader::parse(&bytes, Path::new("x")),
            Err(StoreError::NewerFormat { found: 2, known: 1, .. })
        ));
    }

    #[test]
    fn segment_names_round_trip() {
        assert_eq!(number(&name(42)), Some(42));
        assert_eq!(number(&name(123_456_789)), Some(123_456_789));
        assert_eq!(number("00000001.seg.bak"), None);
        assert_eq!(number("1.seg"), None);
    }
}
