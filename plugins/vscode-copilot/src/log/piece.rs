//! A part of a file, by its place.

use std::io::{BufRead as _, Read as _};

use satchel_importer::{Arena, Bundle, Element, ImportError, Reader, text};

/// Bytes that are read and dropped rather than sought over.
const MAX_AHEAD: usize = 1024 * 1024;

/// A part of a file that is read again later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Bytes of the file.
    File {
        /// From the start of the file.
        offset: u64,
        /// In bytes.
        length: usize,
    },
    /// The text itself.
    Owned(Box<str>),
}

impl Piece {
    /// Length in bytes.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::File { length, .. } => *length,
            Self::Owned(text) => text.len(),
        }
    }

    /// Bytes that are kept in memory.
    pub(super) fn owned(&self) -> usize {
        match self {
            Self::File { .. } => 0,
            Self::Owned(text) => text.len(),
        }
    }
}

/// An element that is being read.
#[derive(Clone, Copy)]
pub(super) struct Place<'e> {
    pub(super) element: &'e Element<'e>,
    /// Its place, from the start of the file.
    offset: u64,
    /// Whether its text is that of the file. Invalid UTF-8 was replaced by U+FFFD, which has another length, so that places behind it are wrong.
    exact: bool,
}

impl<'e> Place<'e> {
    /// `start` is the place in the file from which elements are counted.
    pub(super) fn new(
        bundle: &Bundle,
        path: &str,
        start: u64,
        element: &'e Element<'e>,
    ) -> Result<Self, ImportError> {
        let offset = start + element.offset();
        let suspicious = element.text().contains(char::REPLACEMENT_CHARACTER);
        let exact = !suspicious || is_in_file(bundle, path, offset, element.text())?;
        Ok(Self { element, offset, exact })
    }

    /// The whole element.
    pub(super) fn whole(&self) -> Piece {
        let text = self.element.text();
        self.piece(text, 0, text.len())
    }

    /// The part of the file with `text`, from `start` in the element.
    pub(super) fn piece(&self, text: &str, start: usize, length: usize) -> Piece {
        if self.exact {
            Piece::File { offset: self.offset + start as u64, length }
        } else {
            Piece::Owned(text.into())
        }
    }
}

/// Whether the file has exactly this text at this place.
fn is_in_file(bundle: &Bundle, path: &str, offset: u64, text: &str) -> Result<bool, ImportError> {
    let mut reader = bundle.open(path)?;
    reader.seek(offset)?;
    let mut text = text.as_bytes();
    while !text.is_empty() {
        let bytes = reader.fill_buf()?;
        let length = bytes.len().min(text.len());
        let (own, rest) = text.split_at(length);
        if length == 0 || bytes.get(..length) != Some(own) {
            return Ok(false);
        }
        reader.consume(length);
        text = rest;
    }
    Ok(true)
}

/// Where the first line ends, behind its line break.
pub(super) fn first_line_end(bundle: &Bundle, path: &str) -> Result<u64, ImportError> {
    let mut reader = bundle.open(path)?;
    loop {
        let bytes = reader.fill_buf()?;
        let (length, ended) = match bytes.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (bytes.len(), bytes.is_empty()),
        };
        reader.consume(length);
        if ended {
            return Ok(reader.position());
        }
    }
}

/// The file from which pieces are read.
pub(crate) struct Source {
    reader: Reader,
}

impl Source {
    pub(crate) fn open(bundle: &Bundle, path: &str) -> Result<Self, ImportError> {
        Ok(Self { reader: bundle.open(path)? })
    }

    /// The text of a piece.
    pub(super) fn text<'a>(&mut self, piece: &Piece, arena: &'a Arena) -> Result<&'a str, ImportError> {
        match piece {
            Piece::Owned(text) => Ok(arena.alloc_str(text)),
            Piece::File { offset, length } => {
                let mut bytes = vec![0; *length];
                self.go_to(*offset)?;
                self.reader.read_exact(&mut bytes)?;
                Ok(arena.alloc_str(&text::of_utf8(&bytes)))
            }
        }
    }

    /// Goes to a place. To seek would drop what was read ahead, and most pieces follow each other.
    fn go_to(&mut self, offset: u64) -> Result<(), ImportError> {
        let ahead = offset.checked_sub(self.reader.position());
        let Some(mut ahead) =
            ahead.and_then(|ahead| usize::try_from(ahead).ok()).filter(|ahead| *ahead < MAX_AHEAD)
        else {
            return self.reader.seek(offset);
        };
        while ahead > 0 {
            let length = self.reader.fill_buf()?.len().min(ahead);
            if length == 0 {
                return self.reader.seek(offset);
            }
            self.reader.consume(length);
            ahead -= length;
        }
        Ok(())
    }
}
