//! Searches and copies bytes with SIMD vectors, without `unsafe`.

use wide::u8x16;

/// Bytes of a [`Block`], one for each bit of a mask.
pub(crate) const BLOCK: usize = 64;

/// Bytes of one vector.
const LANES: usize = 16;

/// The last control character. JSON strings must escape all of them.
const LAST_CONTROL: u8 = 0x1f;

/// 64 bytes as vectors.
pub(crate) struct Block([u8x16; BLOCK / LANES]);

impl Block {
    pub(crate) fn new(bytes: &[u8; BLOCK]) -> Self {
        let (lanes, _) = bytes.as_chunks::<LANES>();
        let mut block = [u8x16::ZERO; BLOCK / LANES];
        for (vector, lane) in block.iter_mut().zip(lanes) {
            *vector = u8x16::new(*lane);
        }
        Self(block)
    }

    /// Bit `n` is set if byte `n` is `byte`.
    pub(crate) fn equal(&self, byte: u8) -> u64 {
        let wanted = u8x16::splat(byte);
        self.mask(|vector| vector.simd_eq(wanted))
    }

    /// Bit `n` is set if byte `n` is `[` or `{` (`lower` = `{`), or `]` or `}` (`lower` = `}`). The two differ only in one
    /// bit.
    pub(crate) fn equal_folded(&self, lower: u8) -> u64 {
        let (fold, wanted) = (u8x16::splat(0x20), u8x16::splat(lower));
        self.mask(|vector| (vector | fold).simd_eq(wanted))
    }

    fn mask(&self, matches: impl Fn(u8x16) -> u8x16) -> u64 {
        let [a, b, c, d] = self.0.map(|vector| u64::from(matches(vector).to_bitmask()));
        a | b << 16 | c << 32 | d << 48
    }
}

/// Index of the first `"`, `\` or control character in `bytes`, or its length.
#[inline]
pub(crate) fn plain_length(bytes: &[u8]) -> usize {
    // Most strings of an export are keys and ids, which end in the first vector: no loop for them.
    match bytes.first_chunk::<LANES>() {
        Some(lane) => match special(lane) {
            0 => LANES + plain_length_of_long(bytes.get(LANES..).unwrap_or_default()),
            mask => mask.trailing_zeros() as usize,
        },
        None => plain_length_of_tail(bytes),
    }
}

/// Like [`plain_length`], for the few bytes between two escapes: without calls, which in the sandbox are slow for them.
#[inline]
pub(crate) fn plain_length_between(bytes: &[u8]) -> usize {
    let (lanes, tail) = bytes.as_chunks::<LANES>();
    for (index, lane) in lanes.iter().enumerate() {
        let mask = special(lane);
        if mask != 0 {
            return index * LANES + mask.trailing_zeros() as usize;
        }
    }
    bytes.len() - tail.len() + plain_length_of_tail(tail)
}

#[inline(never)]
fn plain_length_of_long(bytes: &[u8]) -> usize {
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    for (index, block) in blocks.iter().enumerate() {
        let (lanes, _) = block.as_chunks::<LANES>();
        let mask = lanes.iter().rev().fold(0, |mask, lane| mask << LANES | u64::from(special(lane)));
        if mask != 0 {
            return index * BLOCK + mask.trailing_zeros() as usize;
        }
    }
    let (lanes, tail) = rest.as_chunks::<LANES>();
    for (index, lane) in lanes.iter().enumerate() {
        let mask = special(lane);
        if mask != 0 {
            return blocks.len() * BLOCK + index * LANES + mask.trailing_zeros() as usize;
        }
    }
    bytes.len() - tail.len() + plain_length_of_tail(tail)
}

fn plain_length_of_tail(tail: &[u8]) -> usize {
    let special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=LAST_CONTROL);
    tail.iter().position(special).unwrap_or(tail.len())
}

/// Bytes that [`copy_plain`] writes at once; it may write beyond the plain bytes.
pub(crate) const COPY_STEP: usize = LANES;

/// Copies the plain bytes at the front of `bytes` to `room`, which must have [`COPY_STEP`] more bytes, and returns their
/// number. It searches and copies in one pass without calls, which in the sandbox are slow for the few bytes between two
/// escapes.
#[inline]
pub(crate) fn copy_plain(bytes: &[u8], room: &mut [u8]) -> usize {
    let (lanes, tail) = bytes.as_chunks::<LANES>();
    let (pieces, _) = room.as_chunks_mut::<LANES>();
    for (index, (lane, piece)) in lanes.iter().zip(pieces).enumerate() {
        *piece = *lane;
        let mask = special(lane);
        if mask != 0 {
            return index * LANES + mask.trailing_zeros() as usize;
        }
    }
    let start = bytes.len() - tail.len();
    let plain = plain_length_of_tail(tail);
    for (to, from) in room.iter_mut().skip(start).zip(tail.iter().take(plain)) {
        *to = *from;
    }
    start + plain
}

/// Whether two texts are equal. Faster than `==` for long texts in the sandbox, where `==` compares byte by byte.
pub fn same_text(one: &str, other: &str) -> bool {
    let ((one, one_tail), (other, other_tail)) =
        (one.as_bytes().as_chunks::<LANES>(), other.as_bytes().as_chunks::<LANES>());
    let same =
        |(one, other): (&[u8; LANES], &[u8; LANES])| u128::from_le_bytes(*one) == u128::from_le_bytes(*other);
    one.len() == other.len() && one_tail == other_tail && one.iter().zip(other).all(same)
}

/// Bit `n` is set if byte `n` ends plain text.
#[inline]
fn special(lane: &[u8; LANES]) -> u32 {
    let vector = u8x16::new(*lane);
    let (quote, backslash) = (u8x16::splat(b'"'), u8x16::splat(b'\\'));
    let control = u8x16::splat(LAST_CONTROL);
    let found = vector.simd_eq(quote) | vector.simd_eq(backslash) | vector.min(control).simd_eq(vector);
    found.to_bitmask()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes() -> [u8; BLOCK] {
        std::array::from_fn(|index| u8::try_from(index * 37 % 256).unwrap_or_default())
    }

    #[test]
    fn masks_agree_with_a_loop() {
        for byte in 0..=u8::MAX {
            let mut bytes = bytes();
            bytes[usize::from(byte) % BLOCK] = byte;
            let block = Block::new(&bytes);
            let by_hand = |matches: &dyn Fn(u8) -> bool| {
                (0..BLOCK).filter(|&index| matches(bytes[index])).fold(0u64, |mask, index| mask | 1 << index)
            };
            assert_eq!(block.equal(byte), by_hand(&|other| other == byte));
            assert_eq!(block.equal_folded(b'{'), by_hand(&|other| matches!(other, b'{' | b'[')));
            assert_eq!(block.equal_folded(b'}'), by_hand(&|other| matches!(other, b'}' | b']')));
        }
    }

    #[test]
    fn texts_are_the_same_only_if_every_byte_is() {
        for length in 0..70 {
            let text = "a".repeat(length);
            assert!(same_text(&text, &text.clone()));
            assert!(!same_text(&text, &"a".repeat(length + 1)));
            for at in 0..length {
                let mut other = text.clone();
                other.replace_range(at..=at, "b");
                assert!(!same_text(&text, &other), "{at} of {length}");
            }
        }
    }

    #[test]
    fn plain_length_stops_at_a_special_byte_at_any_index() {
        for length in 0..100 {
            for special in (0..=0x1f).chain([b'"', b'\\']) {
                let mut bytes = vec![b' '; length];
                assert_eq!(plain_length(&bytes), length);
                assert_eq!(plain_length_between(&bytes), length);
                for at in 0..length {
                    bytes[at] = special;
                    assert_eq!(plain_length(&bytes), at);
                    assert_eq!(plain_length_between(&bytes), at);
                    let mut copy = vec![0; length + COPY_STEP];
                    assert_eq!(copy_plain(&bytes, &mut copy), at);
                    assert_eq!(copy.get(..at), bytes.get(..at));
                    bytes[at] = 0xff;
                }
            }
        }
    }
}
