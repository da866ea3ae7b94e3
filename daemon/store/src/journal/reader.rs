//! Reads single frames by their place.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    JournalContext,
    frame::{self, FrameBinding, FrameHeader, FrameKind, HEADER_BYTES},
};
use crate::{
    disk::{Disk, DiskFile},
    error::StoreError,
    report::Damage,
};

/// Segments that are kept open for readers: enough for a page whose rows are spread, and far below the limit on open files.
const MAX_OPEN_FILES: usize = 32;

/// Opens segments on demand and reads frames from them.
pub(crate) struct FrameReader {
    disk: Arc<dyn Disk>,
    context: JournalContext,
    /// Guards the open files.
    files: Mutex<BTreeMap<u32, Arc<dyn DiskFile>>>,
    /// The first frame that was found damaged.
    first_damage: Mutex<Option<Damage>>,
}

/// A frame with a valid checksum.
pub(crate) struct Frame {
    pub(crate) header: FrameHeader,
    pub(crate) payload: Vec<u8>,
}

impl FrameReader {
    pub(crate) fn new(disk: Arc<dyn Disk>, context: JournalContext) -> Self {
        Self { disk, context, files: Mutex::new(BTreeMap::new()), first_damage: Mutex::new(None) }
    }

    pub(crate) fn context(&self) -> &JournalContext {
        &self.context
    }

    pub(crate) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// Returns the first damage that a read found.
    pub(crate) fn first_damage(&self) -> Option<Damage> {
        self.first_damage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads and unpacks the frame at a place that a record refers to. The frame must be of one of `kinds`.
    pub(crate) fn frame(
        &self,
        segment: u32,
        offset: u64,
        kinds: &[FrameKind],
        what: &str,
    ) -> Result<Frame, StoreError> {
        let frame = self.load_frame(segment, offset, kinds, what);
        if let Err(StoreError::DamagedRecord { damage, .. }) = &frame {
            let mut first_damage = self.first_damage.lock().unwrap_or_else(PoisonError::into_inner);
            first_damage.get_or_insert_with(|| damage.clone());
        }
        frame
    }

    fn load_frame(
        &self,
        segment: u32,
        offset: u64,
        kinds: &[FrameKind],
        what: &str,
    ) -> Result<Frame, StoreError> {
        let file = self.file(segment)?;
        let damaged = |length: u64, problem: &str, revisions| StoreError::DamagedRecord {
            what: what.to_owned(),
            damage: Damage {
                file: self.context.segment_path(segment),
                offset,
                length,
                revisions,
                problem: problem.to_owned(),
            },
        };
        let read = StoreError::io("read", self.context.segment_path(segment));
        let binding = FrameBinding { store_id: self.context.store_id, segment, offset };
        let loaded = file.length().and_then(|end| load(file.as_ref(), binding, end)).map_err(read)?;
        let Some(RawFrame { header, payload, .. }) = loaded else {
            return Err(damaged(0, "a frame that does not check", Vec::new()));
        };
        if !kinds.contains(&header.kind) {
            return Err(damaged(header.frame_length(), "a frame of another kind", Vec::new()));
        }
        let revision = header.revision;
        let payload = self.context.unpack(&header, segment, offset, payload).map_err(|error| {
            damaged(header.frame_length(), &format!("a frame that {error}"), vec![revision..=revision])
        })?;
        Ok(Frame { header, payload })
    }

    fn file(&self, segment: u32) -> Result<Arc<dyn DiskFile>, StoreError> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = files.get(&segment) {
            return Ok(Arc::clone(file));
        }
        let path = self.context.segment_path(segment);
        let file = self.disk.open(&path, false).map_err(StoreError::io("open", path))?;
        if files.len() >= MAX_OPEN_FILES {
            files.pop_first();
        }
        files.insert(segment, Arc::clone(&file));
        Ok(file)
    }
}

/// A frame with a valid checksum, whose payload is not unpacked.
pub(crate) struct RawFrame {
    pub(crate) header: FrameHeader,
    pub(crate) payload: Vec<u8>,
    /// The bytes of the header.
    head: [u8; HEADER_BYTES],
}

impl RawFrame {
    /// Returns the link of the hash chain for the next frame. Only a scan needs it, and to hash a frame takes as long as to
    /// unpack it.
    pub(crate) fn hash(&self) -> [u8; 16] {
        frame::hash(&[&self.head, &self.payload])
    }
}

/// Reads the frame at `binding.offset`, which must end by `end`. Returns `None` if there is no valid frame. The length is checked
/// before anything is allocated.
pub(crate) fn load(
    file: &dyn DiskFile,
    binding: FrameBinding,
    end: u64,
) -> std::io::Result<Option<RawFrame>> {
    let mut head = [0_u8; HEADER_BYTES];
    if binding.offset.saturating_add(HEADER_BYTES as u64) > end
        || file.read_at(binding.offset, &mut head)? < HEADER_BYTES
    {
        return Ok(None);
    }
    let Some(header) = FrameHeader::parse(&head) else { return Ok(None) };
    if binding.offset.saturating_add(header.frame_length()) > end {
        return Ok(None);
    }
    let mut payload = vec![0; header.length as usize];
    if file.read_at(binding.offset + HEADER_BYTES as u64, &mut payload)? < payload.len() {
        return Ok(None);
    }
    let crc = crc32c::crc32c_append(frame::checksum(binding, &head[8..]), &payload);
    if crc != header.crc {
        return Ok(None);
    }
    Ok(Some(RawFrame { header, payload, head }))
}
