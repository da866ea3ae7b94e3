//! Gives a journal that was restored an id of its own: its revisions go another way from here on, and must not be compared with
//! those of the store that it was copied from.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use uuid::Uuid;

use crate::{
    disk::{Disk, DiskFile, OsDisk},
    error::{FSYNC, StoreError},
    journal::{
        Home,
        frame::{self, Binding, HEADER},
        scan::{Acknowledged, Visit},
        segment::{self, SegmentHeader},
        segments::Segments,
        writer,
    },
    report::{CheckProgress, Damage},
};

/// Frames are handed to the file in pieces of about this many bytes.
const WRITE_AT: usize = 1 << 20;

/// Writes the journal of the store in `dir`, which no process has open, anew under a new id, and returns that. All places stay as
/// they are; every frame is checked on the way.
///
/// # Errors
/// [`StoreError::DamagedJournal`] if a byte is not as it was written, or the journal does not end with a whole commit; what the
/// file system refuses. The old journal stands then.
pub fn renew(dir: &Path, progress: &mut dyn FnMut(CheckProgress)) -> Result<Uuid, StoreError> {
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let old = dir.join("journal");
    let segments = Segments::list(&disk, old.clone())?
        .ok_or_else(|| damaged(&old, "a journal without a whole segment"))?;
    let id = Uuid::new_v4();
    let home = Home { folder: dir.join("journal.new"), store_id: *id.as_bytes() };
    disk.create_folders(&home.folder).map_err(StoreError::io("create", &home.folder))?;
    let mut copy = Copy::new(Arc::clone(&disk), home);
    let total = segments.bytes_from(Segments::beginning());
    let mut done = 0;
    let outcome = segments.scan(Segments::beginning(), 0, Acknowledged::default(), &mut |visit| {
        done += visit.header.frame_length();
        progress(CheckProgress { done, total });
        copy.frame(visit, &segments)
    })?;
    if let Some(first) = outcome.damage.into_iter().next() {
        return Err(StoreError::DamagedJournal { first });
    }
    if outcome.tail > 0 {
        return Err(damaged(&old, "an end that does not check"));
    }
    let new = copy.finish()?;
    fs::remove_dir_all(&old).map_err(StoreError::io("remove", &old))?;
    disk.rename(&new, &old).map_err(StoreError::io("rename", &new))?;
    disk.sync_folder(dir).map_err(StoreError::io(FSYNC, dir))?;
    Ok(id)
}

fn damaged(path: &Path, problem: &str) -> StoreError {
    StoreError::DamagedJournal { first: Damage::new(path, 0, 0, problem) }
}

/// The journal under its new id, as far as it is written.
struct Copy {
    disk: Arc<dyn Disk>,
    home: Home,
    file: Option<Arc<dyn DiskFile>>,
    segment: u32,
    /// Where `buffer` begins in the file.
    start: u64,
    buffer: Vec<u8>,
    chain: [u8; 16],
}

impl Copy {
    fn new(disk: Arc<dyn Disk>, home: Home) -> Self {
        Self { disk, home, file: None, segment: 0, start: 0, buffer: Vec::new(), chain: [0; 16] }
    }

    fn frame(&mut self, visit: &Visit<'_>, segments: &Segments) -> Result<(), StoreError> {
        while self.segment < visit.start.segment {
            self.next(segments)?;
        }
        let at = self.buffer.len();
        self.buffer.resize(at + HEADER, 0);
        self.buffer.extend_from_slice(visit.payload);
        let binding = Binding {
            store_id: self.home.store_id,
            segment: visit.start.segment,
            offset: visit.start.offset,
        };
        let frame = &mut self.buffer[at..];
        let (kind, flags, revision) = (visit.header.kind, visit.header.flags, visit.header.revision);
        self.chain = frame::finish(frame, binding, kind, flags, revision, self.chain).map_err(|error| {
            damaged(&self.home.segment_path(self.segment), &format!("a frame that {error}"))
        })?;
        if self.buffer.len() >= WRITE_AT {
            self.write()?;
        }
        Ok(())
    }

    fn next(&mut self, segments: &Segments) -> Result<(), StoreError> {
        let previous_length = self.close()?;
        self.segment += 1;
        let header = SegmentHeader {
            number: self.segment,
            store_id: self.home.store_id,
            revision: segments.revision_before(self.segment),
            chain: self.chain,
            previous_length,
        };
        self.file = Some(writer::create(self.disk.as_ref(), &self.home, &header)?);
        self.start = segment::HEADER;
        Ok(())
    }

    fn write(&mut self) -> Result<(), StoreError> {
        let Some(file) = &self.file else { return Ok(()) };
        let path = self.home.segment_path(self.segment);
        file.write_at(self.start, &self.buffer).map_err(StoreError::io("write", path))?;
        self.start += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Ends the segment that is open; returns its length.
    fn close(&mut self) -> Result<u64, StoreError> {
        self.write()?;
        let Some(file) = self.file.take() else { return Ok(0) };
        file.sync().map_err(StoreError::io(FSYNC, self.home.segment_path(self.segment)))?;
        Ok(self.start)
    }

    fn finish(mut self) -> Result<PathBuf, StoreError> {
        if self.segment == 0 {
            let header = SegmentHeader {
                number: 1,
                store_id: self.home.store_id,
                revision: 0,
                chain: [0; 16],
                previous_length: 0,
            };
            writer::create(self.disk.as_ref(), &self.home, &header)?;
        }
        self.close()?;
        Ok(self.home.folder)
    }
}
