//! The file of an upload: a header, then a frame for each chunk that was acknowledged.
//!
//! A frame is durable before the next one is written, so only the last frame can be incomplete after a power loss. It
//! has a checksum, and is cut off if that is wrong. In an encrypted data directory every frame is sealed.

use std::{
    fmt,
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use satchel_seal::{OVERHEAD, Seal};
use satchel_source::ReadAt;

/// Largest chunk, in bytes.
pub const MAX_CHUNK_BYTES: usize = 1 << 20;
/// Most chunks of one upload: 20 GiB in chunks of 54 KiB. Each needs 24 bytes of memory.
pub(super) const MAX_CHUNKS: usize = 400_000;
/// The first bytes, followed by whether the file is sealed.
const MAGIC: &[u8; 8] = b"SATCHUP1";
/// Bytes of the magic number and the flag.
const MAGIC_BYTES: usize = 9;
/// Bytes of a frame before its content: the length of the plain content, and the CRC-32C.
const FRAME_HEAD: usize = 8;
/// The offset that stands for the header.
const HEADER: u64 = u64::MAX;
/// Chunks that a reader of a sealed file keeps open: two threads read an import.
const CACHED_CHUNKS: usize = 4;

/// A chunk in the file.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// The offset in the upload.
    offset: u64,
    /// The position of the content in the file.
    position: u64,
    length: u32,
}

impl Frame {
    fn end(&self) -> u64 {
        self.offset + u64::from(self.length)
    }
}

/// Seals frames for their place in one upload.
#[derive(Clone, Debug)]
struct FrameSeal {
    seal: Option<Seal>,
    id: String,
}

impl FrameSeal {
    fn overhead(&self) -> usize {
        if self.seal.is_some() { OVERHEAD } else { 0 }
    }

    fn place(&self, offset: u64) -> Vec<u8> {
        [self.id.as_bytes(), &offset.to_le_bytes()].concat()
    }

    fn close(&self, offset: u64, content: &[u8]) -> io::Result<Vec<u8>> {
        match &self.seal {
            Some(seal) => seal.uploads().seal(&self.place(offset), content),
            None => Ok(content.to_vec()),
        }
    }

    fn open(&self, offset: u64, content: Vec<u8>) -> io::Result<Vec<u8>> {
        let Some(seal) = &self.seal else { return Ok(content) };
        seal.uploads().open(&self.place(offset), content).ok_or_else(damaged)
    }
}

/// The file of an upload that is being written.
pub(super) struct StagedFile {
    file: Arc<File>,
    seal: FrameSeal,
    frames: Vec<Frame>,
    /// The number of bytes that are committed.
    length: u64,
    /// The position of the next frame.
    end: u64,
}

impl StagedFile {
    /// Creates the file of the upload `id`. It is durable once its folder is.
    pub(super) fn create(path: &Path, id: &str, seal: Option<Seal>, header: &[u8]) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        let mut head = MAGIC.to_vec();
        head.push(u8::from(seal.is_some()));
        file.write_all_at(&head, 0)?;
        let seal = FrameSeal { seal, id: id.to_owned() };
        let mut created =
            Self { file: Arc::new(file), seal, frames: Vec::new(), length: 0, end: MAGIC_BYTES as u64 };
        created.end = created.put(HEADER, header)?;
        created.sync()?;
        Ok(created)
    }

    /// Opens the file of the upload `id`, and returns it with its header. What was not acknowledged is cut off.
    pub(super) fn open(path: &Path, id: &str, seal: Option<Seal>) -> io::Result<(Self, Vec<u8>)> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let mut head = [0; MAGIC_BYTES];
        file.read_exact_at(&mut head, 0)?;
        if head[..8] != *MAGIC || head[8] != u8::from(seal.is_some()) {
            return Err(damaged());
        }
        let seal = FrameSeal { seal, id: id.to_owned() };
        let mut opened =
            Self { file: Arc::new(file), seal, frames: Vec::new(), length: 0, end: MAGIC_BYTES as u64 };
        let frame = opened.next_frame(HEADER)?.ok_or_else(damaged)?;
        let header = opened.seal.open(HEADER, opened.content(&frame)?)?;
        opened.end = opened.frame_end(&frame);
        while opened.frames.len() < MAX_CHUNKS
            && let Some(frame) = opened.next_frame(opened.length)?
        {
            (opened.end, opened.length) = (opened.frame_end(&frame), frame.end());
            opened.frames.push(frame);
        }
        opened.drop_incomplete()?;
        Ok((opened, header))
    }

    /// Returns the number of bytes that are committed.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Returns whether no more chunks may be appended.
    pub(super) fn full(&self) -> bool {
        self.frames.len() >= MAX_CHUNKS
    }

    /// Appends a chunk. After an error the file is as before.
    pub(super) fn append(&mut self, chunk: &[u8]) -> io::Result<()> {
        let length = u32::try_from(chunk.len()).map_err(io::Error::other)?;
        let position = self.end + FRAME_HEAD as u64;
        match self.put(self.length, chunk) {
            Ok(end) => self.end = end,
            Err(error) => {
                self.file.set_len(self.end)?;
                return Err(error);
            }
        }
        self.frames.push(Frame { offset: self.length, position, length });
        self.length += u64::from(length);
        Ok(())
    }

    /// Makes everything durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Returns what is committed now, for reading.
    pub(super) fn bytes(&self) -> StagedBytes {
        let (file, seal, frames) = (Arc::clone(&self.file), self.seal.clone(), self.frames.as_slice().into());
        StagedBytes { file, seal, frames, opened: Mutex::default() }
    }

    /// Returns whether `chunk` is what is committed at `offset`.
    pub(super) fn holds(&self, offset: u64, chunk: &[u8]) -> io::Result<bool> {
        let first = self.frames.partition_point(|frame| frame.end() <= offset);
        let mut rest = chunk;
        for frame in &self.frames[first..] {
            let content = self.seal.open(frame.offset, self.content(frame)?)?;
            let skipped = usize::try_from(offset.saturating_sub(frame.offset)).map_err(io::Error::other)?;
            let committed = content.get(skipped..).unwrap_or_default();
            let length = committed.len().min(rest.len());
            if committed[..length] != rest[..length] {
                return Ok(false);
            }
            rest = &rest[length..];
            if rest.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes a frame and returns the position after it.
    fn put(&self, offset: u64, content: &[u8]) -> io::Result<u64> {
        let length = u32::try_from(content.len()).map_err(io::Error::other)?;
        let stored = self.seal.close(offset, content)?;
        let mut frame = Vec::with_capacity(FRAME_HEAD + stored.len());
        frame.extend_from_slice(&length.to_le_bytes());
        frame.extend_from_slice(&checksum(offset, &stored).to_le_bytes());
        frame.extend_from_slice(&stored);
        self.file.write_all_at(&frame, self.end)?;
        Ok(self.end + frame.len() as u64)
    }

    /// Reads the head of the frame at the end. Returns `None` if there is no complete frame.
    fn next_frame(&self, offset: u64) -> io::Result<Option<Frame>> {
        let mut length = [0; 4];
        match self.file.read_exact_at(&mut length, self.end) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let length = u32::from_le_bytes(length);
        let frame = Frame { offset, position: self.end + FRAME_HEAD as u64, length };
        let valid = (1..=MAX_CHUNK_BYTES).contains(&(length as usize));
        let complete = valid && self.frame_end(&frame) <= self.file.metadata()?.len();
        Ok(complete.then_some(frame))
    }

    fn frame_end(&self, frame: &Frame) -> u64 {
        frame.position + u64::from(frame.length) + self.seal.overhead() as u64
    }

    /// Reads the stored content of a frame.
    fn content(&self, frame: &Frame) -> io::Result<Vec<u8>> {
        read_content(&self.file, &self.seal, frame)
    }

    /// Cuts off the last frame if its checksum is wrong, and what follows it.
    fn drop_incomplete(&mut self) -> io::Result<()> {
        if let Some(last) = self.frames.last().copied() {
            let mut sum = [0; 4];
            self.file.read_exact_at(&mut sum, last.position - 4)?;
            if checksum(last.offset, &self.content(&last)?).to_le_bytes() != sum {
                self.frames.pop();
                (self.end, self.length) = (last.position - FRAME_HEAD as u64, last.offset);
            }
        }
        self.file.set_len(self.end)?;
        self.sync()
    }
}

/// The bytes of an upload, as they were when this was created.
pub(super) struct StagedBytes {
    file: Arc<File>,
    seal: FrameSeal,
    frames: Arc<[Frame]>,
    /// The chunks that were opened last, with their indexes. Guards the list only.
    opened: Mutex<Vec<(usize, Arc<Vec<u8>>)>>,
}

impl fmt::Debug for StagedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StagedBytes({} chunks)", self.frames.len())
    }
}

impl StagedBytes {
    /// Returns an opened chunk of a sealed file.
    fn opened(&self, index: usize) -> io::Result<Arc<Vec<u8>>> {
        let lock = || self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, content)) = lock().iter().find(|(known, _)| *known == index) {
            return Ok(Arc::clone(content));
        }
        let frame = &self.frames[index];
        let content = read_content(&self.file, &self.seal, frame)?;
        let content = Arc::new(self.seal.open(frame.offset, content)?);
        let mut opened = lock();
        opened.truncate(CACHED_CHUNKS - 1);
        opened.insert(0, (index, Arc::clone(&content)));
        Ok(content)
    }
}

impl ReadAt for StagedBytes {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let index = self.frames.partition_point(|frame| frame.end() <= offset);
        let Some(frame) = self.frames.get(index) else { return Ok(0) };
        let skipped = offset - frame.offset;
        let left = usize::try_from(frame.end() - offset).map_err(io::Error::other)?;
        let length = left.min(buffer.len());
        if self.seal.seal.is_none() {
            self.file.read_exact_at(&mut buffer[..length], frame.position + skipped)?;
            return Ok(length);
        }
        let content = self.opened(index)?;
        let skipped = usize::try_from(skipped).map_err(io::Error::other)?;
        buffer[..length].copy_from_slice(&content[skipped..skipped + length]);
        Ok(length)
    }
}

fn read_content(file: &File, seal: &FrameSeal, frame: &Frame) -> io::Result<Vec<u8>> {
    let mut content = vec![0; frame.length as usize + seal.overhead()];
    file.read_exact_at(&mut content, frame.position)?;
    Ok(content)
}

/// Returns the CRC-32C over the offset and the stored content of a frame.
fn checksum(offset: u64, stored: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&offset.to_le_bytes()), stored)
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the file of an upload is damaged")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::fs;

    use satchel_seal::DataKey;

    use super::*;

    fn seals() -> [Option<Seal>; 2] {
        [None, Some(Seal::new(&DataKey::from_bytes(&[7; 32])))]
    }

    fn read(bytes: &StagedBytes, mut offset: u64) -> Vec<u8> {
        let (mut all, mut buffer) = (Vec::new(), [0; 7]);
        loop {
            let read = bytes.read_at(offset, &mut buffer).unwrap();
            if read == 0 {
                return all;
            }
            all.extend_from_slice(&buffer[..read]);
            offset += read as u64;
        }
    }

    #[test]
    fn a_file_that_is_cut_at_any_byte_keeps_its_complete_chunks() {
        for seal in seals() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("upload");
            let mut staged = StagedFile::create(&path, "id", seal.clone(), b"header").unwrap();
            let mut ends = vec![(staged.end, 0)];
            for chunk in [&b"the first"[..], b"2nd", b"and the last"] {
                staged.append(chunk).unwrap();
                ends.push((staged.end, staged.length));
            }
            let whole = fs::read(&path).unwrap();
            let first = usize::try_from(ends[0].0).unwrap();
            for cut in first..=whole.len() {
                fs::write(&path, &whole[..cut]).unwrap();
                let (mut opened, header) = StagedFile::open(&path, "id", seal.clone()).unwrap();
                let committed = ends.iter().rev().find(|(end, _)| *end <= cut as u64).unwrap().1;
                assert_eq!((header.as_slice(), opened.length()), (&b"header"[..], committed));
                opened
                    .append(&b"the first2ndand the last"[usize::try_from(committed).unwrap()..])
                    .unwrap_or(());
                assert!(b"the first2ndand the last".starts_with(&read(&opened.bytes(), 0)));
            }
        }
    }

    #[test]
    fn a_last_chunk_with_wrong_bytes_is_dropped() {
        for seal in seals() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("upload");
            let mut staged = StagedFile::create(&path, "id", seal.clone(), b"header").unwrap();
            staged.append(b"first").unwrap();
            staged.append(b"second").unwrap();
            let mut bytes = fs::read(&path).unwrap();
            *bytes.last_mut().unwrap() ^= 1;
            fs::write(&path, bytes).unwrap();
            assert_eq!(StagedFile::open(&path, "id", seal).unwrap().0.length(), 5);
        }
    }

    #[test]
    fn a_sealed_file_shows_nothing_and_opens_only_as_itself() {
        let [_, seal] = seals();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("upload");
        let mut staged = StagedFile::create(&path, "id", seal.clone(), b"a header").unwrap();
        staged.append(b"a secret text").unwrap();
        let raw = fs::read(&path).unwrap();
        for text in [&b"a header"[..], b"a secret text"] {
            assert!(!raw.windows(text.len()).any(|window| window == text));
        }
        assert!(StagedFile::open(&path, "another", seal).is_err());
        assert!(StagedFile::open(&path, "id", None).is_err());
    }

    #[test]
    fn chunks_are_compared_and_read_from_any_offset() {
        for seal in seals() {
            let folder = tempfile::tempdir().unwrap();
            let mut staged =
                StagedFile::create(&folder.path().join("upload"), "id", seal, b"header").unwrap();
            for chunk in [&b"one"[..], b"two", b"three"] {
                staged.append(chunk).unwrap();
            }
            for offset in 0..=11 {
                assert_eq!(read(&staged.bytes(), offset), b"onetwothree"[usize::try_from(offset).unwrap()..]);
            }
            assert!(staged.holds(1, b"netwoth").unwrap());
            assert!(!staged.holds(1, b"netwOth").unwrap());
            assert!(!staged.holds(9, b"eeee").unwrap());
        }
    }
}
