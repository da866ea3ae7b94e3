//! The write-ahead log: the newest versions of pages, until the program moves them into the database.

use std::{
    collections::HashMap,
    io::{self, Read},
};

use crate::{ErrorKind, ImportError, Reader};

/// Bytes before the first frame.
pub(super) const HEADER: usize = 32;
/// Bytes of a frame before its page.
pub(super) const FRAME_HEADER: usize = 24;
/// The first four bytes; the last bit says that checksums are of big-endian words.
const MAGIC: u32 = 0x377f_0682;

/// Pages of a log whose places are kept in memory, about sixty bytes for each. A log with so many has 6 GB with pages of the usual size.
pub(super) const MAX_PAGES: usize = 1_500_000;

/// Where the pages of committed transactions are in the log.
pub(super) struct Log {
    /// The frame with the newest version of each page.
    frames: HashMap<u32, u64>,
    /// What each of its frames has, until it is written anew from its start.
    salts: [u8; 8],
}

impl Log {
    /// Reads the whole log. None if it has no committed transaction: SQLite ignores what a crash has left behind the last one.
    pub(super) fn read(
        mut file: Reader,
        page_size: usize,
        max_pages: usize,
    ) -> Result<Option<Self>, ImportError> {
        let mut head = [0; HEADER];
        if !fill(&mut file, &mut head)? {
            return Ok(None);
        }
        let magic = word(&head, 0);
        let mut sum = Checksum { big_endian: magic & 1 == 1, words: (0, 0) };
        sum.add(&head[..24]);
        let stated_size = word(&head, 8);
        if magic & !1 != MAGIC
            || sum.words != (word(&head, 24), word(&head, 28))
            || stated_size as usize != page_size
        {
            return Ok(None);
        }
        let mut log = Self { frames: HashMap::new(), salts: head[16..24].try_into().unwrap_or_default() };
        let (mut frame, mut offset, mut pending) =
            (vec![0; FRAME_HEADER + page_size], HEADER as u64, Vec::new());
        while fill(&mut file, &mut frame)? {
            let (frame_head, page) = frame.split_at(FRAME_HEADER);
            sum.add(&frame_head[..8]);
            sum.add(page);
            let of_this_log = frame_head[8..16] == head[16..24];
            if !of_this_log || sum.words != (word(frame_head, 16), word(frame_head, 20)) {
                break;
            }
            if log.frames.len() + pending.len() >= max_pages {
                let message = format!("the log of the database has more than {max_pages} pages");
                return Err(ImportError::new(ErrorKind::Limit, message));
            }
            pending.push((word(frame_head, 0), offset));
            offset += frame.len() as u64;
            // The last frame of a transaction has the number of pages of the database.
            if word(frame_head, 4) > 0 {
                log.frames.extend(pending.drain(..));
            }
        }
        Ok((!log.frames.is_empty()).then_some(log))
    }

    /// The offset of the frame with the newest version of a page, if the log has one.
    pub(super) fn frame_of(&self, page: u32) -> Option<u64> {
        self.frames.get(&page).copied()
    }

    /// Whether this frame is still the one that was found: a program may begin the log anew while it is read.
    pub(super) fn has(&self, frame: &[u8], page: u32) -> bool {
        word(frame, 0) == page && frame.get(8..16) == Some(&self.salts)
    }

    /// The number of pages of which it has a version.
    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }
}

/// Fills the buffer; false if the file ends before.
fn fill(file: &mut Reader, buffer: &mut [u8]) -> Result<bool, ImportError> {
    match file.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_be_bytes)
}

/// The checksum of all frames so far.
struct Checksum {
    big_endian: bool,
    words: (u32, u32),
}

impl Checksum {
    /// Adds bytes; their number is a multiple of eight.
    fn add(&mut self, bytes: &[u8]) {
        let read = if self.big_endian { u32::from_be_bytes } else { u32::from_le_bytes };
        for pair in bytes.as_chunks::<4>().0.as_chunks::<2>().0 {
            self.words.0 = self.words.0.wrapping_add(read(pair[0])).wrapping_add(self.words.1);
            self.words.1 = self.words.1.wrapping_add(read(pair[1])).wrapping_add(self.words.0);
        }
    }
}
