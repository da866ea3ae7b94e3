//! Reads and writes the small binary elements of frames and engine values.

pub(crate) mod batch;
pub(crate) mod heads;

use uuid::Uuid;

/// An error for bytes that do not follow the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Malformed(pub(crate) &'static str);

/// Appends values to a buffer.
pub(crate) trait Put {
    fn put_u8(&mut self, value: u8);
    fn put_u16(&mut self, value: u16);
    fn put_u32(&mut self, value: u32);
    fn put_u64(&mut self, value: u64);
    /// Appends an unsigned LEB128.
    fn put_varint(&mut self, value: u64);
    /// Appends a zigzag-encoded varint, used for differences.
    fn put_signed(&mut self, value: i64);
    /// Appends the length and the bytes.
    fn put_bytes(&mut self, value: &[u8]);
    /// Appends 0 and the UUID's bytes if the text is a canonical UUID, otherwise its length + 1 and the text.
    fn put_id(&mut self, id: &str);
}

impl Put for Vec<u8> {
    fn put_u8(&mut self, value: u8) {
        self.push(value);
    }

    fn put_u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.push(value.to_le_bytes()[0]);
    }

    fn put_signed(&mut self, value: i64) {
        self.put_varint((value.cast_unsigned() << 1) ^ (value >> 63).cast_unsigned());
    }

    fn put_bytes(&mut self, value: &[u8]) {
        self.put_varint(value.len() as u64);
        self.extend_from_slice(value);
    }

    fn put_id(&mut self, id: &str) {
        if let Some(bytes) = canonical_uuid(id) {
            self.push(0);
            self.extend_from_slice(&bytes);
        } else {
            self.put_varint(id.len() as u64 + 1);
            self.extend_from_slice(id.as_bytes());
        }
    }
}

/// Takes values from the front of a slice.
#[derive(Clone, Copy)]
pub(crate) struct ByteReader<'a>(pub(crate) &'a [u8]);

impl<'a> ByteReader<'a> {
    pub(crate) fn raw(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (head, tail) = self.0.split_at_checked(count).ok_or(Malformed("ends too early"))?;
        self.0 = tail;
        Ok(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, tail) = self.0.split_first_chunk().ok_or(Malformed("ends too early"))?;
        self.0 = tail;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    pub(crate) fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed("has a number over 64 bits"))
    }

    pub(crate) fn signed(&mut self) -> Result<i64, Malformed> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -((value & 1).cast_signed()))
    }

    /// Takes a varint that is a count or a length.
    pub(crate) fn size(&mut self) -> Result<usize, Malformed> {
        usize::try_from(self.varint()?).map_err(|_| Malformed("has a size over the address space"))
    }

    /// Takes a varint that fits into 32 bits.
    pub(crate) fn varint32(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.varint()?).map_err(|_| Malformed("has a number over 32 bits"))
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.size()?;
        self.raw(length)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Malformed> {
        str::from_utf8(self.bytes()?).map_err(|_| Malformed("has text that is not UTF-8"))
    }

    pub(crate) fn id(&mut self) -> Result<String, Malformed> {
        let length = self.size()?;
        if length == 0 {
            return Ok(Uuid::from_bytes(self.array()?).to_string());
        }
        let bytes = self.raw(length - 1)?;
        Ok(str::from_utf8(bytes).map_err(|_| Malformed("has an id that is not UTF-8"))?.to_owned())
    }

    pub(crate) fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed("has bytes after its end")) }
    }
}

/// Returns the bytes of a UUID in canonical text form: 36 characters, lower case.
pub(crate) fn canonical_uuid(id: &str) -> Option<[u8; 16]> {
    let text = id.as_bytes();
    if text.len() != 36 {
        return None;
    }
    let mut bytes = [0_u8; 16];
    let mut nibbles = 0;
    for (index, &character) in text.iter().enumerate() {
        if matches!(index, 8 | 13 | 18 | 23) {
            if character != b'-' {
                return None;
            }
            continue;
        }
        let value = match character {
            b'0'..=b'9' => character - b'0',
            b'a'..=b'f' => character - b'a' + 10,
            _ => return None,
        };
        bytes[nibbles / 2] |= if nibbles % 2 == 0 { value << 4 } else { value };
        nibbles += 1;
    }
    Some(bytes)
}

/// Returns the bytes as lower-case hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        write!(text, "{byte:02x}").unwrap_or_default();
        text
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn values_round_trip(a in any::<u64>(), b in any::<i64>(), c in proptest::collection::vec(any::<u8>(), 0..40), id in "[a-z0-9-]{0,40}") {
            let mut bytes = Vec::new();
            bytes.put_varint(a);
            bytes.put_signed(b);
            bytes.put_bytes(&c);
            bytes.put_id(&id);
            let uuid = Uuid::from_u128(u128::from(a)).to_string();
            bytes.put_id(&uuid);
            let mut take = ByteReader(&bytes);
            prop_assert_eq!(take.varint(), Ok(a));
            prop_assert_eq!(take.signed(), Ok(b));
            prop_assert_eq!(take.bytes(), Ok(c.as_slice()));
            prop_assert_eq!(take.id(), Ok(id));
            prop_assert_eq!(take.id(), Ok(uuid));
            prop_assert_eq!(take.end(), Ok(()));
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            for method in 0..6 {
                let mut take = ByteReader(&bytes);
                for _ in 0..8 {
                    let done = match method {
                        0 => take.varint().is_err(),
                        1 => take.signed().is_err(),
                        2 => take.bytes().is_err(),
                        3 => take.text().is_err(),
                        4 => take.id().is_err(),
                        _ => take.u64().is_err(),
                    };
                    if done {
                        break;
                    }
                }
            }
        }
    }

    #[test]
    fn only_canonical_text_is_a_uuid() {
        assert!(canonical_uuid("67e55044-10b1-426f-9247-bb680e5fe0c8").is_some());
        assert!(canonical_uuid("67E55044-10B1-426F-9247-BB680E5FE0C8").is_none());
        assert!(canonical_uuid("67e5504410b1426f9247bb680e5fe0c8").is_none());
        assert!(canonical_uuid("").is_none());
    }
}
