//! Splits a document into the keys and values of its root and the items of its lists, of which one is in memory at a time.
//!
//! Only quotes and brackets matter here; [`crate::json`] reads the values.

use std::io::{self, BufRead as _, BufReader, Read};

use super::sink::Sink;
use crate::json::{JsonError, Problem, lexer::plain_length};

/// Maximum length of a value of the root and of an item of a list, in bytes.
pub const LONGEST_VALUE: usize = 64 << 20;
/// Maximum length of a key of the root, quotes included.
const MAX_KEY_BYTES: usize = 1 << 16;
/// Size of the read buffer, in bytes.
const CHUNK: usize = 256 << 10;
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Why a document cannot be read further.
#[derive(Debug, thiserror::Error)]
pub(super) enum StreamError {
    #[error(transparent)]
    Json(#[from] JsonError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl StreamError {
    /// Adds an error in the JSON to the issues and returns it.
    ///
    /// # Errors
    /// The error of the input, if that failed.
    pub(super) fn report(self, sink: &mut Sink) -> io::Result<JsonError> {
        match self {
            Self::Json(problem) => {
                sink.push_json(&problem);
                Ok(problem)
            }
            Self::Io(error) => Err(error),
        }
    }
}

/// Position of a value in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Bytes before it, without a byte order mark.
    pub(super) offset: usize,
    pub(super) length: usize,
    /// The text ends in it.
    pub(super) cut: bool,
    /// It is longer than [`LONGEST_VALUE`], so its bytes were discarded.
    pub(super) discarded: bool,
}

pub(super) struct Stream<R> {
    input: BufReader<R>,
    buffer: Vec<u8>,
    /// Index of the first byte in the buffer that is not consumed.
    at: usize,
    /// Bytes of the text before the buffer.
    before: usize,
    ended: bool,
    /// The text begins with a byte order mark.
    pub(super) has_bom: bool,
}

impl<R: Read> Stream<R> {
    pub(super) fn new(input: R) -> io::Result<Self> {
        let (input, buffer) = (BufReader::with_capacity(CHUNK, input), Vec::with_capacity(CHUNK));
        let mut stream = Self { input, buffer, at: 0, before: 0, ended: false, has_bom: false };
        while stream.buffer.len() < BYTE_ORDER_MARK.len() && !stream.ended {
            stream.fill()?;
        }
        if stream.buffer.starts_with(BYTE_ORDER_MARK) {
            stream.buffer.drain(..BYTE_ORDER_MARK.len());
            stream.has_bom = true;
        }
        Ok(stream)
    }

    /// Bytes consumed so far.
    pub(super) fn offset(&self) -> usize {
        self.before + self.at
    }

    pub(super) fn error(&self, problem: Problem) -> StreamError {
        StreamError::Json(JsonError { offset: self.offset(), problem })
    }

    /// Drops the consumed bytes from the buffer and reads more.
    fn fill(&mut self) -> io::Result<()> {
        if self.at > 0 {
            self.buffer.drain(..self.at);
            self.before += self.at;
            self.at = 0;
        }
        let read = self.input.fill_buf()?;
        let length = read.len();
        self.buffer.extend_from_slice(read);
        self.input.consume(length);
        self.ended = length == 0;
        Ok(())
    }

    /// Skips white space and returns the next byte without consuming it; none at the end of the text.
    pub(super) fn peek(&mut self) -> io::Result<Option<u8>> {
        loop {
            while let Some(byte) = self.buffer.get(self.at) {
                if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                    return Ok(Some(*byte));
                }
                self.at += 1;
            }
            if self.ended {
                return Ok(None);
            }
            self.fill()?;
        }
    }

    /// Consumes the byte that [`Stream::peek`] returned.
    pub(super) fn advance(&mut self) {
        self.at += 1;
    }

    /// Consumes the key that starts here and the colon after it; returns it with its quotes.
    pub(super) fn key(&mut self) -> Result<String, StreamError> {
        let start = self.at;
        debug_assert!(self.buffer.get(start) == Some(&b'"'));
        let mut length = 1;
        loop {
            match self.buffer.get(self.at + length) {
                Some(b'\\') => length += 2,
                Some(b'"') => break,
                Some(_) => length += 1,
                None if self.ended => {
                    self.at = self.buffer.len();
                    return Err(self.error(Problem::CutOff));
                }
                None => self.fill()?,
            }
            if length > MAX_KEY_BYTES {
                return Err(self.error(Problem::TooLong(MAX_KEY_BYTES)));
            }
        }
        let quoted = self.at..=self.at + length;
        let Ok(key) = str::from_utf8(&self.buffer[quoted]) else { return Err(self.error(Problem::Utf8)) };
        let key = key.to_owned();
        self.at += length + 1;
        match self.peek()? {
            Some(b':') => self.advance(),
            Some(_) => return Err(self.error(Problem::Expected("a colon"))),
            None => return Err(self.error(Problem::CutOff)),
        }
        Ok(key)
    }

    /// Finds the end of the value that starts here: the comma or bracket after it. [`Stream::consume`] returns its bytes.
    pub(super) fn value(&mut self) -> io::Result<Span> {
        let offset = self.offset();
        let (mut scan, mut length, mut consumed) = (Scan::default(), 0, 0_usize);
        loop {
            let rest = &self.buffer[self.at + length..];
            if let Some(end) = scan.end(rest) {
                length += end;
                break;
            }
            length += rest.len();
            if self.ended {
                scan.cut = true;
                break;
            }
            if consumed > 0 || length > LONGEST_VALUE {
                consumed += length;
                self.at += length;
                length = 0;
            }
            self.fill()?;
        }
        let discarded = consumed > 0 || length > LONGEST_VALUE;
        if discarded {
            self.at += length;
        }
        Ok(Span { offset, length: consumed + length, cut: scan.cut, discarded })
    }

    /// Consumes a value and returns its bytes.
    pub(super) fn consume(&mut self, span: Span) -> &[u8] {
        let start = self.at;
        self.skip(span);
        &self.buffer[start..self.at]
    }

    /// Consumes a value.
    pub(super) fn skip(&mut self, span: Span) {
        if !span.discarded {
            self.at += span.length;
        }
    }
}

/// State of the search for the end of a value.
#[derive(Default)]
struct Scan {
    depth: usize,
    quoted: bool,
    escaped: bool,
    cut: bool,
}

impl Scan {
    /// Index in `bytes`, the continuation of earlier calls, at which the value ends; none if it continues after them.
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            if std::mem::take(&mut self.escaped) {
                at += 1;
            } else if self.quoted {
                at += plain_length(&bytes[at..]);
                match bytes.get(at) {
                    Some(b'"') => self.quoted = false,
                    Some(b'\\') => self.escaped = true,
                    _ => {}
                }
                at += 1;
            } else {
                match byte {
                    b'"' => self.quoted = true,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' | b',' if self.depth == 0 => return Some(at),
                    b'}' | b']' => self.depth -= 1,
                    _ => {}
                }
                at += 1;
            }
        }
        None
    }
}
