//! A file as a stream of bytes with one byte of foresight, chunk by chunk.

use super::{malformed, scan::Scan};
use crate::{error::ErrorKind, imports::Failure, limits::KIB};

/// Bytes of one read; the fastest size measured.
const CHUNK: usize = 64 * KIB;
/// Bytes of a key that a pointer may have to be compared with.
const MAX_KEY: usize = 64 * KIB;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Where chunks come from; an empty one is the end.
pub(super) trait Source {
    fn chunk(&mut self, len: usize) -> Result<Vec<u8>, Failure>;
}

pub(super) struct Input {
    chunk: Vec<u8>,
    at: usize,
    /// Offset of the chunk in the file.
    base: u64,
}

impl Input {
    pub(super) fn new() -> Self {
        Self { chunk: Vec::new(), at: 0, base: 0 }
    }

    /// Offset of the next byte in the file.
    pub(super) fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    pub(super) fn skip_byte_order_mark(&mut self, source: &mut dyn Source) -> Result<(), Failure> {
        self.rest(source)?;
        if self.chunk.starts_with(BYTE_ORDER_MARK) {
            self.at = BYTE_ORDER_MARK.len();
        }
        Ok(())
    }

    /// The next byte that is not white space; it stays.
    pub(super) fn peek_value(&mut self, source: &mut dyn Source) -> Result<Option<u8>, Failure> {
        loop {
            let rest = self.rest(source)?;
            let spaces = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
            let next = rest.get(spaces).copied();
            let ended = rest.is_empty();
            self.at += spaces;
            if next.is_some() || ended {
                return Ok(next);
            }
        }
    }

    /// Goes past the byte that was seen last.
    pub(super) fn bump(&mut self) {
        self.at += 1;
    }

    /// Goes past one value, copying it into a buffer that may take so many bytes.
    pub(super) fn value(
        &mut self,
        source: &mut dyn Source,
        mut out: Option<(&mut Vec<u8>, usize)>,
    ) -> Result<(), Failure> {
        let mut scan = Scan::default();
        loop {
            let rest = self.rest(source)?;
            if rest.is_empty() {
                return if scan.may_end() { Ok(()) } else { Err(malformed("the file ends inside a value")) };
            }
            let end = scan.feed(rest);
            let taken = end.unwrap_or(rest.len());
            if let Some((out, limit)) = &mut out {
                if taken > limit.saturating_sub(out.len()) {
                    let message =
                        format!("the value that ends after this place is longer than {limit} bytes");
                    return Err(Failure { kind: ErrorKind::Limit, message, locator: None });
                }
                out.extend_from_slice(rest.get(..taken).unwrap_or_default());
            }
            self.at += taken;
            if end.is_some() {
                return if taken == 0 && !scan.began() {
                    Err(malformed("there is no value here"))
                } else {
                    Ok(())
                };
            }
        }
    }

    /// A key of an object, without its escapes.
    pub(super) fn key(&mut self, source: &mut dyn Source) -> Result<String, Failure> {
        let mut raw = Vec::new();
        self.value(source, Some((&mut raw, MAX_KEY)))?;
        serde_json::from_slice(&raw).map_err(|_| malformed("a key of this object is no string"))
    }

    /// Unread bytes; empty at the end of the file only.
    fn rest(&mut self, source: &mut dyn Source) -> Result<&[u8], Failure> {
        if self.at >= self.chunk.len() {
            self.base += self.chunk.len() as u64;
            // Dropped first, so that two chunks are never held.
            self.chunk = Vec::new();
            self.at = 0;
            self.chunk = source.chunk(CHUNK)?;
        }
        Ok(self.chunk.get(self.at..).unwrap_or_default())
    }
}
