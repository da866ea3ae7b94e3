//! The pages of a database: those of the file, under those of the write-ahead log.

use std::{
    cell::RefCell,
    collections::HashMap,
    io::Read as _,
    ops::{Deref, Range},
    rc::Rc,
};

use super::{
    MAGIC,
    wal::{self, Log},
};
use crate::{Bundle, ErrorKind, ImportError, Reader};

/// Bytes to read at once, unless a page has more. Rows of one conversation lie near each other, but not always.
const BLOCK: usize = 16 * 1024;
/// Bytes to remember.
const MAX_KNOWN: usize = 4 * 1024 * 1024;
/// Bytes of the header, which begins the first page.
pub(super) const HEADER: usize = 100;
/// The first bytes of a journal that holds what an interrupted transaction has overwritten.
const JOURNAL_MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// How texts are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    Utf16Le,
    Utf16Be,
}

/// The pages of an open database.
pub(super) struct Pages {
    pub(super) path: String,
    pub(super) encoding: Encoding,
    page_size: usize,
    /// Bytes at the end of each page that belong to extensions.
    reserved: usize,
    /// The pages that the file has, of which the last one is possibly cut off.
    in_file: u32,
    file: Blocks,
    log: Option<(Log, Blocks)>,
}

/// The bytes of one page.
#[derive(Clone)]
pub(super) struct Page {
    block: Rc<Vec<u8>>,
    range: Range<usize>,
    pub(super) number: u32,
}

impl Deref for Page {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.block.get(self.range.clone()).unwrap_or_default()
    }
}

impl Page {
    /// Where the b-tree of the page begins.
    pub(super) fn start(&self) -> usize {
        if self.number == 1 { HEADER } else { 0 }
    }
}

impl Pages {
    pub(super) fn open(bundle: &Bundle, path: &str, max_log: u64) -> Result<Self, ImportError> {
        let malformed = |message: &str| ImportError::malformed(message).at(path);
        let file = Blocks::open(bundle, path)?;
        let mut head = file.bytes(0, HEADER)?;
        if head.get(..MAGIC.len()) != Some(MAGIC) {
            return Err(ImportError::not_this_format("it is no SQLite database").at(path));
        }
        let page_size = page_size(&head).ok_or_else(|| malformed("the header of the database is damaged"))?;
        let log = open_log(bundle, &format!("{path}-wal"), page_size, max_log)?;
        if let Some((log, blocks)) = &log
            && let Some(frame) = log.frame_of(1)
        {
            head = blocks.bytes(frame + wal::FRAME_HEADER as u64, HEADER)?;
        }
        // The tables need at least 480 bytes of a page.
        let reserved = usize::from(head.get(20).copied().unwrap_or(0));
        if page_size - reserved < 480 || head.get(19).is_none_or(|version| *version > 2) {
            return Err(malformed("the header of the database is damaged"));
        }
        let encoding = encoding(&head).ok_or_else(|| malformed("the encoding of its texts is not known"))?;
        let file = file.of_frames(0, page_size);
        let in_file = u32::try_from(file.size.div_ceil(page_size as u64)).unwrap_or(u32::MAX);
        Ok(Self { path: path.to_owned(), encoding, page_size, reserved, in_file, file, log })
    }

    /// The pages that the file has. The log may have some behind them.
    pub(super) fn in_file(&self) -> u32 {
        self.in_file
    }

    /// More bytes than all pages have.
    pub(super) fn max_bytes(&self) -> u64 {
        let in_log = self.log.as_ref().map_or(0, |(log, _)| log.len());
        (u64::from(self.in_file) + in_log as u64) * self.page_size as u64
    }

    /// The bytes of a page that tables may use.
    pub(super) fn usable(&self) -> usize {
        self.page_size - self.reserved
    }

    /// The page `number`, without what belongs to extensions.
    pub(super) fn page(&self, number: u32) -> Result<Page, ImportError> {
        let found = match &self.log {
            Some((log, blocks)) if let Some(frame) = log.frame_of(number) => {
                self.logged_page((log, blocks), frame, number)
            }
            _ if (1..=self.in_file).contains(&number) => {
                self.file.range(u64::from(number - 1) * self.page_size as u64, self.usable())
            }
            _ => {
                let message = format!("the file has no page {number}; it may be incomplete");
                return Err(ImportError::malformed(message).at(&self.path));
            }
        };
        let (block, range) = found.map_err(|error| error.at(self.locator(number)))?;
        Ok(Page { block, range, number })
    }

    fn logged_page(
        &self,
        (log, blocks): (&Log, &Blocks),
        frame: u64,
        number: u32,
    ) -> Result<Part, ImportError> {
        let (block, range) = blocks.range(frame, wal::FRAME_HEADER + self.usable())?;
        if !block.get(range.clone()).is_some_and(|frame| log.has(frame, number)) {
            let message = "the log of the database was begun anew while it was read; import it again";
            return Err(ImportError::new(ErrorKind::Io, message));
        }
        Ok((block, range.start + wal::FRAME_HEADER..range.end))
    }

    /// Where a page is, for messages: `chats.db@8192`.
    pub(super) fn locator(&self, number: u32) -> String {
        let offset = u64::from(number.saturating_sub(1)) * self.page_size as u64;
        format!("{}@{offset}", self.path)
    }

    /// An error in a page.
    pub(super) fn damaged(&self, number: u32, message: impl Into<String>) -> ImportError {
        ImportError::malformed(message).at(self.locator(number))
    }
}

/// The size of a page in bytes, a power of two from 512 to 65,536.
fn page_size(head: &[u8]) -> Option<usize> {
    let stated = match u16::from_be_bytes(head.get(16..18)?.try_into().ok()?) {
        1 => 65_536,
        size => usize::from(size),
    };
    (stated >= 512 && stated.is_power_of_two()).then_some(stated)
}

fn encoding(head: &[u8]) -> Option<Encoding> {
    match u32::from_be_bytes(head.get(56..60)?.try_into().ok()?) {
        // An empty database has no encoding yet.
        0 | 1 => Some(Encoding::Utf8),
        2 => Some(Encoding::Utf16Le),
        3 => Some(Encoding::Utf16Be),
        _ => None,
    }
}

/// Opens the write-ahead log, if the export has it and it is in use.
fn open_log(
    bundle: &Bundle,
    path: &str,
    page_size: usize,
    max_bytes: u64,
) -> Result<Option<(Log, Blocks)>, ImportError> {
    if bundle.entry(path).is_none_or(|entry| entry.size > max_bytes) {
        return Ok(None);
    }
    let log = Log::read(bundle.open(path)?, page_size, wal::MAX_PAGES).map_err(|error| error.at(path))?;
    let Some(log) = log else { return Ok(None) };
    let frame = wal::FRAME_HEADER + page_size;
    let blocks = Blocks::open(bundle, path)?.of_frames(wal::HEADER, frame);
    Ok(Some((log, blocks)))
}

/// Fails if the journal beside the database has what an interrupted transaction has overwritten: the file is half old and half new.
pub(super) fn refuse_interrupted(bundle: &Bundle, path: &str) -> Result<(), ImportError> {
    let journal = format!("{path}-journal");
    if bundle.entry(&journal).is_none() {
        return Ok(());
    }
    let mut head = Vec::new();
    bundle.open(&journal)?.in_chunks_of(BLOCK).take(JOURNAL_MAGIC.len() as u64).read_to_end(&mut head)?;
    if head != JOURNAL_MAGIC {
        return Ok(());
    }
    let message = format!(
        "a program was writing to the database, or was interrupted, and {journal} has what it replaced; open and quit the \
         program, and import again"
    );
    Err(ImportError::malformed(message).at(path))
}

/// A part of a block.
type Part = (Rc<Vec<u8>>, Range<usize>);

/// A file that is read in blocks, of which the last ones are remembered.
struct Blocks {
    file: RefCell<Reader>,
    size: u64,
    /// Where the first block begins.
    origin: u64,
    block: usize,
    known: RefCell<Known>,
}

#[derive(Default)]
struct Known {
    blocks: HashMap<u64, (Rc<Vec<u8>>, u64)>,
    /// Counts the uses.
    uses: u64,
}

impl Blocks {
    fn open(bundle: &Bundle, path: &str) -> Result<Self, ImportError> {
        let file = bundle.open(path)?.in_chunks_of(BLOCK);
        Ok(Self {
            size: file.size(),
            file: RefCell::new(file),
            origin: 0,
            block: BLOCK,
            known: RefCell::default(),
        })
    }

    /// Makes blocks of whole frames, of which the first one begins at `origin`.
    fn of_frames(self, origin: usize, frame: usize) -> Self {
        let block = (BLOCK / frame).max(1) * frame;
        let file = RefCell::new(self.file.into_inner().in_chunks_of(block));
        Self { file, origin: origin as u64, block, ..self }
    }

    /// The bytes at `offset`, as far as the file has them.
    fn bytes(&self, offset: u64, length: usize) -> Result<Vec<u8>, ImportError> {
        let mut file = self.file.borrow_mut();
        file.seek(offset)?;
        let mut bytes = Vec::new();
        (&mut *file).take(length as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// The block with `length` bytes at `offset`, and where in it they are.
    fn range(&self, offset: u64, length: usize) -> Result<Part, ImportError> {
        let start = offset - (offset - self.origin) % self.block as u64;
        let within = usize::try_from(offset - start).unwrap_or_default();
        let block = self.block(start)?;
        let range = within..within + length;
        if range.end > block.len() {
            return Err(ImportError::malformed("the file ends in the middle of a page"));
        }
        Ok((block, range))
    }

    fn block(&self, start: u64) -> Result<Rc<Vec<u8>>, ImportError> {
        let mut known = self.known.borrow_mut();
        known.uses += 1;
        let uses = known.uses;
        if let Some((block, used)) = known.blocks.get_mut(&start) {
            *used = uses;
            return Ok(Rc::clone(block));
        }
        let block = Rc::new(self.bytes(start, self.block)?);
        if known.blocks.len() >= MAX_KNOWN / self.block {
            let oldest = known.blocks.iter().min_by_key(|(_, (_, used))| *used).map(|(start, _)| *start);
            oldest.and_then(|start| known.blocks.remove(&start));
        }
        known.blocks.insert(start, (Rc::clone(&block), uses));
        Ok(block)
    }
}
