//! Appends frames in groups. All frames of a group are on disk before any of its commits is acknowledged.

use std::{io, sync::Arc};

use satchel_seal::NONCE;

use super::{
    JournalContext, Position,
    frame::{self, FrameBinding, FrameFields, FrameKind, HEADER_BYTES, PayloadCompressor},
    segment::{self, SegmentHeader},
};
use crate::{
    disk::{Disk, DiskFile},
    error::{FSYNC, StoreError},
    record::BodyPlace,
};

/// Bodies are collected up to this many bytes. One such frame unpacks in about 50 µs and compresses well.
const CHUNK: usize = 64 << 10;
/// Frames are written to the file in pieces of about this many bytes.
const WRITE_BYTES: usize = 1 << 20;

/// The writer at the end of the journal.
pub(crate) struct JournalWriter {
    disk: Arc<dyn Disk>,
    context: JournalContext,
    file: Arc<dyn DiskFile>,
    segment: u32,
    /// Offset in the file at which `buffer` begins.
    start: u64,
    buffer: Vec<u8>,
    chain: [u8; 16],
    /// Length of the file at the last fsync.
    synced: u64,
    segment_limit: u64,
    chunk: Vec<u8>,
    /// Number of bodies in `chunk`. Needed because the only body may be empty.
    chunk_bodies: usize,
    compressor: PayloadCompressor,
    stopped: Option<String>,
    group: Position,
}

impl JournalWriter {
    /// Continues at the end of a segment that has just been fsynced.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        context: JournalContext,
        file: Arc<dyn DiskFile>,
        end: Position,
        segment_limit: u64,
    ) -> Result<Self, StoreError> {
        let compressor =
            PayloadCompressor::new().map_err(StoreError::io("prepare compression for", &context.folder))?;
        Ok(Self {
            disk,
            context,
            file,
            segment: end.segment,
            start: end.offset,
            buffer: Vec::with_capacity(WRITE_BYTES + (WRITE_BYTES >> 2)),
            chain: end.chain,
            synced: end.offset,
            segment_limit,
            chunk: Vec::with_capacity(CHUNK),
            chunk_bodies: 0,
            compressor,
            stopped: None,
            group: end,
        })
    }

    /// Returns the reason why nothing can be written any more, if there is one.
    pub(crate) fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    /// Refuses all further writes.
    pub(crate) fn stop(&mut self, reason: String) {
        self.stopped.get_or_insert(reason);
    }

    /// Returns the position of the next frame.
    pub(crate) fn position(&self) -> Position {
        Position { segment: self.segment, offset: self.end(), chain: self.chain }
    }

    /// Begins a group, in a new segment if this one is full. After an error in the group, call [`JournalWriter::undo`].
    pub(crate) fn begin(&mut self, revision: u64) -> Result<(), StoreError> {
        if let Some(reason) = &self.stopped {
            return Err(StoreError::Stopped { reason: reason.clone() });
        }
        if self.end() >= self.segment_limit {
            self.roll(revision)?;
        }
        self.group = self.position();
        Ok(())
    }

    /// Collects a body and returns the place that it will have.
    pub(crate) fn body(&mut self, body: &[u8], revision: u64) -> Result<BodyPlace, StoreError> {
        if self.chunk.len() + body.len() > CHUNK {
            self.flush_bodies(revision)?;
        }
        let start = u32::try_from(self.chunk.len()).unwrap_or(u32::MAX);
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        let place = BodyPlace { segment: self.segment, offset: self.end(), start, length };
        self.chunk.extend_from_slice(body);
        self.chunk_bodies += 1;
        Ok(place)
    }

    /// Writes a batch, note or seal frame after the bodies collected so far. Returns the offset of the frame.
    pub(crate) fn frame(
        &mut self,
        kind: FrameKind,
        payload: &[u8],
        revision: u64,
    ) -> Result<u64, StoreError> {
        self.flush_bodies(revision)?;
        let offset = self.end();
        self.append(kind, payload, revision)?;
        Ok(offset)
    }

    /// Makes the group durable. This is the commit point. A failed fsync stops the journal: the content of the disk is unknown,
    /// and the system may treat the bytes as written, so that the next fsync succeeds without them. So the bytes are truncated,
    /// because the next start must not build on them.
    pub(crate) fn sync(&mut self) -> Result<(), StoreError> {
        self.write_buffer()?;
        if self.synced == self.end() {
            return Ok(());
        }
        if let Err(source) = self.file.sync() {
            let path = self.context.segment_path(self.segment);
            self.stop(format!("fsync of {} failed: {source}", path.display()));
            self.start = self.synced;
            if let Err(error) = self.file.set_length(self.synced) {
                tracing::error!(path = %path.display(), %error, "bytes that the disk may not hold stay in the journal");
            }
            return Err(StoreError::io(FSYNC, path)(source));
        }
        satchel_failpoints::reached("journal synced");
        self.synced = self.end();
        Ok(())
    }

    /// Returns whether everything before a position is known to be on disk.
    pub(crate) fn durable(&self, place: Position) -> bool {
        (place.segment, place.offset) <= (self.segment, self.synced)
    }

    /// Writes all bytes to the file without waiting for the disk.
    pub(crate) fn write_buffer(&mut self) -> Result<(), StoreError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.file.write_at(self.start, &self.buffer).map_err(|source| self.io_error("write", source))?;
        satchel_failpoints::reached("journal written");
        self.start = self.end();
        self.buffer.clear();
        Ok(())
    }

    /// Undoes the group that failed, so that the next one can be tried.
    pub(crate) fn undo(&mut self) {
        self.chunk.clear();
        self.chunk_bodies = 0;
        self.buffer.clear();
        self.start = self.group.offset;
        self.chain = self.group.chain;
        if self.stopped.is_some() {
            return;
        }
        if let Err(error) = self.file.set_length(self.group.offset) {
            let path = self.context.segment_path(self.segment);
            self.stop(format!("{} cannot be cut back after an error: {error}", path.display()));
        }
    }

    /// Begins the next segment. The old one is fsynced first, because a reader accepts an unfinished end only in the last
    /// segment.
    fn roll(&mut self, revision: u64) -> Result<(), StoreError> {
        self.sync()?;
        satchel_failpoints::reached("segment full");
        let header = SegmentHeader {
            number: self.segment + 1,
            store_id: self.context.store_id,
            revision,
            chain: self.chain,
            previous_length: self.end(),
        };
        let file = create(self.disk.as_ref(), &self.context, &header).inspect_err(|error| {
            if let Some(problem) = remove_segment(self.disk.as_ref(), &self.context, header.number) {
                self.stopped.get_or_insert(format!("{error}; {problem}"));
            }
        })?;
        satchel_failpoints::reached("segment created");
        self.file = file;
        self.segment = header.number;
        self.start = segment::FIRST_FRAME;
        self.synced = segment::FIRST_FRAME;
        Ok(())
    }

    fn end(&self) -> u64 {
        self.start + self.buffer.len() as u64
    }

    fn flush_bodies(&mut self, revision: u64) -> Result<(), StoreError> {
        if self.chunk_bodies == 0 {
            return Ok(());
        }
        let chunk = std::mem::take(&mut self.chunk);
        let done = self.append(FrameKind::Body, &chunk, revision);
        self.chunk = chunk;
        self.chunk.clear();
        self.chunk_bodies = 0;
        if self.chunk.capacity() > 2 * CHUNK {
            self.chunk.shrink_to(CHUNK);
        }
        done
    }

    fn append(&mut self, kind: FrameKind, payload: &[u8], revision: u64) -> Result<(), StoreError> {
        if payload.len() > frame::MAX_PAYLOAD {
            let limit = frame::MAX_PAYLOAD as u64;
            return Err(StoreError::TooLarge {
                what: "a commit".to_owned(),
                size: payload.len() as u64,
                limit,
            });
        }
        let offset = self.end();
        let at = self.buffer.len();
        let sealed_at = at + HEADER_BYTES;
        self.buffer.resize(sealed_at + if self.context.seal.is_some() { NONCE } else { 0 }, 0);
        let mut flags = if self.synced == offset { frame::SYNCED } else { 0 };
        let packed = self.compressor.pack(payload, &mut self.buffer);
        if packed.map_err(|source| self.io_error("pack a frame for", source))? {
            flags |= frame::ZSTD;
        }
        let binding = FrameBinding { store_id: self.context.store_id, segment: self.segment, offset };
        if let Some(seal) = &self.context.seal {
            let data = frame::associated_data(kind, self.segment, offset, revision);
            let sealed = seal.frames().seal_tail(&data, &mut self.buffer, sealed_at);
            sealed.map_err(|source| self.io_error("seal a frame for", source))?;
        }
        let fields = FrameFields { kind, flags, key: self.context.key(), revision };
        self.chain = frame::finish(&mut self.buffer[at..], binding, fields, self.chain)
            .map_err(|error| self.io_error("append to", io::Error::other(error)))?;
        if self.buffer.len() >= WRITE_BYTES {
            self.write_buffer()?;
        }
        Ok(())
    }

    fn io_error(&self, action: &'static str, source: io::Error) -> StoreError {
        StoreError::io(action, self.context.segment_path(self.segment))(source)
    }
}

/// Creates a segment with its header, durable under its name.
pub(crate) fn create(
    disk: &dyn Disk,
    context: &JournalContext,
    header: &SegmentHeader,
) -> Result<Arc<dyn DiskFile>, StoreError> {
    let path = context.segment_path(header.number);
    let file = disk.create(&path).map_err(StoreError::io("create", &path))?;
    file.write_at(0, &header.encode()).map_err(StoreError::io("write", &path))?;
    satchel_failpoints::reached("segment header written");
    file.sync().map_err(StoreError::io(FSYNC, &path))?;
    satchel_failpoints::reached("segment header synced");
    disk.sync_folder(&context.folder).map_err(StoreError::io(FSYNC, &context.folder))?;
    Ok(file)
}

/// Removes a segment that could not be begun. Returns a message if that fails too.
pub(crate) fn remove_segment(disk: &dyn Disk, context: &JournalContext, number: u32) -> Option<String> {
    let path = context.segment_path(number);
    match disk.remove(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Some(format!("{} cannot be removed: {error}", path.display()))
        }
        Ok(()) | Err(_) => None,
    }
}
