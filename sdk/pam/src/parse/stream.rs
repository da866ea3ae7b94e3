//! Cuts a document into the keys and values of its root and the items of its lists, each read whole, so that one of them is in
//! memory at a time. What a value holds is left to [`crate::json`]: here only quotes and brackets are looked at.

use std::io::{self, BufRead as _, BufReader, Read};

use crate::json::{JsonError, Problem, lexer::plain_length};

/// Longest value of the root and longest item of a list, in bytes.
pub const LONGEST_VALUE: usize = 64 << 20;
/// Longest key of the root, in bytes, quotes included.
const LONGEST_KEY: usize = 1 << 16;
/// Bytes that are read at once.
const CHUNK: usize = 256 << 10;
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Why a document cannot be read on.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error(transparent)]
    Json(#[from] JsonError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Where a value lies in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Bytes before it, a byte order mark not counted.
    pub(super) offset: usize,
    pub(super) length: usize,
    /// The text ends in it.
    pub(super) cut: bool,
    /// It is longer than [`LONGEST_VALUE`], and its bytes are gone.
    pub(super) gone: bool,
}

pub(super) struct Stream<R> {
    input: BufReader<R>,
    buffer: Vec<u8>,
    /// First byte of the buffer that is not consumed.
    at: usize,
    /// Bytes of the text that came before the buffer.
    before: usize,
    ended: bool,
    /// The text begins with a byte order mark.
    pub(super) marked: bool,
}

impl<R: Read> Stream<R> {
    pub(super) fn new(input: R) -> io::Result<Self> {
        let (input, buffer) = (BufReader::with_capacity(CHUNK, input), Vec::with_capacity(CHUNK));
        let mut stream = Self { input, buffer, at: 0, before: 0, ended: false, marked: false };
        while stream.buffer.len() < BYTE_ORDER_MARK.len() && !stream.ended {
            stream.fill()?;
        }
        if stream.buffer.starts_with(BYTE_ORDER_MARK) {
            stream.buffer.drain(..BYTE_ORDER_MARK.len());
            stream.marked = true;
        }
        Ok(stream)
    }

    /// Bytes of the text that were consumed.
    pub(super) fn offset(&self) -> usize {
        self.before + self.at
    }

    pub(super) fn error(&self, problem: Problem) -> Fault {
        Fault::Json(JsonError { offset: self.offset(), problem })
    }

    /// Reads more behind what is in the buffer; what was consumed makes room.
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

    /// The next byte that is no white space; none at the end of the text.
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

    /// Consumes the byte that [`Stream::peek`] showed.
    pub(super) fn step(&mut self) {
        self.at += 1;
    }

    /// The key that begins here, with its quotes; the colon behind it is consumed.
    pub(super) fn key(&mut self) -> Result<String, Fault> {
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
            if length > LONGEST_KEY {
                return Err(self.error(Problem::TooLong(LONGEST_KEY)));
            }
        }
        let quoted = self.at..=self.at + length;
        let Ok(key) = str::from_utf8(&self.buffer[quoted]) else { return Err(self.error(Problem::Utf8)) };
        let key = key.to_owned();
        self.at += length + 1;
        match self.peek()? {
            Some(b':') => self.step(),
            Some(_) => return Err(self.error(Problem::Expected("a colon"))),
            None => return Err(self.error(Problem::CutOff)),
        }
        Ok(key)
    }

    /// Goes to the end of the value that begins here: the comma or bracket behind it. [`Stream::consume`] gives its
    /// bytes.
    pub(super) fn value(&mut self) -> io::Result<Span> {
        let offset = self.offset();
        let (mut scan, mut length, mut passed) = (Scan::default(), 0, 0_usize);
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
            if passed > 0 || length > LONGEST_VALUE {
                passed += length;
                self.at += length;
                length = 0;
            }
            self.fill()?;
        }
        let gone = passed > 0 || length > LONGEST_VALUE;
        if gone {
            self.at += length;
        }
        Ok(Span { offset, length: passed + length, cut: scan.cut, gone })
    }

    /// Consumes a value, and gives its bytes.
    pub(super) fn consume(&mut self, span: Span) -> &[u8] {
        let start = self.at;
        self.pass(span);
        &self.buffer[start..self.at]
    }

    /// Consumes a value.
    pub(super) fn pass(&mut self, span: Span) {
        if !span.gone {
            self.at += span.length;
        }
    }
}

/// How far a value has been looked at.
#[derive(Default)]
struct Scan {
    depth: usize,
    quoted: bool,
    escaped: bool,
    cut: bool,
}

impl Scan {
    /// Where in `bytes`, which follow those of the calls before, the value ends; none if it goes on behind them.
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
