//! Finds where a JSON value ends, 64 bytes at a time.

use crate::simd::{BLOCK, Block};

/// A scan of one value that can be continued with more bytes. It counts brackets and does not match them: the parser
/// finds errors inside the value.
#[derive(Debug)]
pub(super) struct Scan {
    kind: Kind,
    /// Bytes that were scanned and not forgotten.
    at: usize,
    /// Open arrays and objects.
    depth: u64,
    /// All ones inside a string.
    string: u64,
    /// 1 if the next byte is escaped.
    escaped: u64,
}

const EVEN: u64 = 0x5555_5555_5555_5555;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Container,
    String,
    Literal,
}

impl Scan {
    /// A scan of the value that begins with `first`.
    pub(super) fn new(first: u8) -> Self {
        let (kind, at) = match first {
            b'{' | b'[' => (Kind::Container, 0),
            b'"' => (Kind::String, 1),
            _ => (Kind::Literal, 0),
        };
        Self { kind, at, depth: 0, string: 0, escaped: 0 }
    }

    /// The length of the value at the front of `bytes`, if it ends there. `last` says that no more bytes come.
    /// Call it again with the same bytes and more behind them.
    pub(super) fn end(&mut self, bytes: &[u8], last: bool) -> Option<usize> {
        match self.kind {
            Kind::Container => self.end_of_container(bytes, last),
            Kind::String => self.end_of_string(bytes),
            Kind::Literal => self.end_of_literal(bytes, last),
        }
    }

    /// How many bytes were scanned; the caller may drop them and must then leave them out of the next call.
    pub(super) fn forget(&mut self) -> usize {
        std::mem::take(&mut self.at)
    }

    fn end_of_container(&mut self, bytes: &[u8], last: bool) -> Option<usize> {
        let rest = bytes.get(self.at..).unwrap_or_default();
        let (blocks, tail) = rest.as_chunks::<BLOCK>();
        for block in blocks {
            if let Some(end) = self.block(block) {
                return Some(self.at + end);
            }
            self.at += BLOCK;
        }
        if last && !tail.is_empty() {
            // White space changes no state.
            let mut padded = [b' '; BLOCK];
            padded.get_mut(..tail.len())?.copy_from_slice(tail);
            let end = self.block(&padded).map(|end| self.at + end);
            self.at += tail.len();
            return end;
        }
        None
    }

    /// The end of the value inside this block.
    #[inline]
    fn block(&mut self, bytes: &[u8; BLOCK]) -> Option<usize> {
        let block = Block::new(bytes);
        let backslashes = block.equal(b'\\');
        let escaped =
            if backslashes == 0 { std::mem::take(&mut self.escaped) } else { self.escapes(backslashes) };
        let inside = prefix_xor(block.equal(b'"') & !escaped) ^ self.string;
        // The sign bit, spread: whether the block ends inside a string.
        self.string = if inside >> (BLOCK - 1) == 1 { u64::MAX } else { 0 };
        let openers = block.equal_folded(b'{') & !inside;
        let closers = block.equal_folded(b'}') & !inside;
        let closed = u64::from(closers.count_ones());
        if self.depth > closed {
            self.depth += u64::from(openers.count_ones());
            self.depth -= closed;
            return None;
        }
        self.walk(openers, closers)
    }

    /// Counts bracket by bracket in a block where the value may end.
    fn walk(&mut self, openers: u64, closers: u64) -> Option<usize> {
        let mut left = openers | closers;
        while left != 0 {
            let bit = left.trailing_zeros();
            left &= left - 1;
            if openers >> bit & 1 == 1 {
                self.depth += 1;
                continue;
            }
            self.depth = self.depth.saturating_sub(1);
            if self.depth == 0 {
                return Some(bit as usize + 1);
            }
        }
        None
    }

    /// The bytes behind an odd number of backslashes, as bits. By the carry of an addition, runs that begin at an odd bit
    /// end on the other parity than runs that begin at an even one.
    fn escapes(&mut self, backslashes: u64) -> u64 {
        let backslashes = backslashes & !self.escaped;
        let behind = backslashes << 1 | self.escaped;
        let odd_starts = backslashes & !EVEN & !behind;
        let (runs, carried) = odd_starts.overflowing_add(backslashes);
        self.escaped = u64::from(carried);
        (EVEN ^ (runs << 1)) & behind
    }

    fn end_of_string(&mut self, bytes: &[u8]) -> Option<usize> {
        while let Some(byte) = bytes.get(self.at) {
            self.at += 1;
            match byte {
                _ if self.escaped == 1 => self.escaped = 0,
                b'\\' => self.escaped = 1,
                b'"' => return Some(self.at),
                _ => {}
            }
        }
        None
    }

    fn end_of_literal(&mut self, bytes: &[u8], last: bool) -> Option<usize> {
        let over = |byte: &u8| matches!(byte, b',' | b']' | b'}' | b':' | b' ' | b'\n' | b'\r' | b'\t');
        let rest = bytes.get(self.at..).unwrap_or_default();
        if let Some(length) = rest.iter().position(over) {
            return Some(self.at + length);
        }
        self.at = bytes.len();
        last.then_some(bytes.len())
    }
}

/// Bit `n` is the parity of bits 0 to `n`. For a mask of quotes: whether byte `n` is inside a string.
#[inline]
fn prefix_xor(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}
