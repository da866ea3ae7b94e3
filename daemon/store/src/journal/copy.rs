//! A journal that is written beside another one: the same frames in the same segments, with its own headers and checksums.

use std::{path::PathBuf, sync::Arc};

use super::{
    JournalContext,
    frame::{self, FrameBinding, FrameFields, HEADER_BYTES},
    segment::{self, SegmentHeader},
    segments::Segments,
    writer,
};
use crate::{
    disk::{Disk, DiskFile},
    error::{FSYNC, StoreError},
    report::Damage,
};

/// Frames are written to the file in pieces of about this many bytes.
const WRITE_BYTES: usize = 1 << 20;

/// The new journal, as far as it is written.
pub(crate) struct JournalCopy<'a> {
    disk: Arc<dyn Disk>,
    context: JournalContext,
    /// The journal that is copied.
    old: &'a Segments,
    file: Option<Arc<dyn DiskFile>>,
    segment: u32,
    /// Offset in the file at which `buffer` begins.
    start: u64,
    buffer: Vec<u8>,
    chain: [u8; 16],
}

impl<'a> JournalCopy<'a> {
    pub(crate) fn new(disk: Arc<dyn Disk>, context: JournalContext, old: &'a Segments) -> Self {
        Self { disk, context, old, file: None, segment: 0, start: 0, buffer: Vec::new(), chain: [0; 16] }
    }

    /// Returns the offset of the next frame of a segment.
    pub(crate) fn offset(&mut self, segment: u32) -> Result<u64, StoreError> {
        while self.segment < segment {
            self.next()?;
        }
        Ok(self.start + self.buffer.len() as u64)
    }

    /// Appends a frame to a segment. The payload is written as given.
    pub(crate) fn put(
        &mut self,
        segment: u32,
        fields: FrameFields,
        payload: &[u8],
    ) -> Result<(), StoreError> {
        let offset = self.offset(segment)?;
        let at = self.buffer.len();
        self.buffer.resize(at + HEADER_BYTES, 0);
        self.buffer.extend_from_slice(payload);
        let binding = FrameBinding { store_id: self.context.store_id, segment, offset };
        let finished = frame::finish(&mut self.buffer[at..], binding, fields, self.chain);
        self.chain = finished.map_err(|error| StoreError::DamagedJournal {
            first: Damage::new(
                &self.context.segment_path(segment),
                offset,
                0,
                &format!("a frame that {error}"),
            ),
        })?;
        if self.buffer.len() >= WRITE_BYTES { self.write() } else { Ok(()) }
    }

    fn next(&mut self) -> Result<(), StoreError> {
        let previous_length = self.close()?;
        self.segment += 1;
        let header = SegmentHeader {
            number: self.segment,
            store_id: self.context.store_id,
            revision: self.old.revision_before(self.segment),
            chain: self.chain,
            previous_length,
        };
        self.file = Some(writer::create(self.disk.as_ref(), &self.context, &header)?);
        self.start = segment::FIRST_FRAME;
        Ok(())
    }

    fn write(&mut self) -> Result<(), StoreError> {
        let Some(file) = &self.file else { return Ok(()) };
        let path = self.context.segment_path(self.segment);
        file.write_at(self.start, &self.buffer).map_err(StoreError::io("write", path))?;
        self.start += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Closes the open segment and returns its length.
    fn close(&mut self) -> Result<u64, StoreError> {
        self.write()?;
        let Some(file) = self.file.take() else { return Ok(0) };
        file.sync().map_err(StoreError::io(FSYNC, self.context.segment_path(self.segment)))?;
        Ok(self.start)
    }

    /// Makes the whole journal durable, with as many segments as the old one has, and returns its folder.
    pub(crate) fn finish(mut self) -> Result<PathBuf, StoreError> {
        self.offset(self.old.last().max(1))?;
        self.close()?;
        Ok(self.context.folder)
    }
}
