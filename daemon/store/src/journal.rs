//! The source of truth: segments of checksummed, hash-chained frames.

pub(crate) mod copy;
pub(crate) mod frame;
mod key_check;
pub(crate) mod reader;
pub(crate) mod rewrite;
pub(crate) mod scan;
pub(crate) mod segment;
pub(crate) mod segments;
pub(crate) mod writer;

use std::{path::PathBuf, sync::Arc};

use satchel_seal::{KEY_ID, Seal};

use self::frame::FrameHeader;
use crate::{codec::Malformed, decompress::Decompressors};

/// A position in the journal, with the hash that is needed to continue the chain from there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) segment: u32,
    pub(crate) offset: u64,
    pub(crate) chain: [u8; 16],
}

/// The place of one change of one commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChangeLocation {
    pub(crate) segment: u32,
    pub(crate) offset: u64,
    pub(crate) change: u32,
}

/// The commits that are known to have been acknowledged. A trusted engine provides all fields, the `db.state` of a clean stop
/// only the revision.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acknowledged {
    pub(crate) segment: u32,
    pub(crate) offset: u64,
    pub(crate) revision: u64,
}

/// A journal's folder, the store id that its frames are bound to, and its seal.
#[derive(Clone, Debug)]
pub(crate) struct JournalContext {
    pub(crate) folder: PathBuf,
    pub(crate) store_id: [u8; 16],
    pub(crate) seal: Option<Seal>,
    decompressors: Arc<Decompressors>,
}

impl JournalContext {
    pub(crate) fn new(folder: PathBuf, store_id: [u8; 16], seal: Option<Seal>) -> Self {
        Self { folder, store_id, seal, decompressors: Arc::default() }
    }

    /// Returns the key id of all frames.
    pub(crate) fn key(&self) -> u16 {
        if self.seal.is_some() { KEY_ID } else { 0 }
    }

    /// Opens and unpacks the payload of the frame that begins at `offset` of a segment.
    pub(crate) fn unpack(
        &self,
        header: &FrameHeader,
        segment: u32,
        offset: u64,
        payload: Vec<u8>,
    ) -> Result<Vec<u8>, Malformed> {
        frame::unpack(header, self.open(header, segment, offset, payload)?, &self.decompressors)
    }

    /// Opens a payload. The result may still be compressed.
    pub(crate) fn open(
        &self,
        header: &FrameHeader,
        segment: u32,
        offset: u64,
        payload: Vec<u8>,
    ) -> Result<Vec<u8>, Malformed> {
        if header.key != self.key() {
            return Err(Malformed("is not sealed as the journal is"));
        }
        let Some(seal) = &self.seal else { return Ok(payload) };
        let data = frame::associated_data(header.kind, segment, offset, header.revision);
        seal.frames().open(&data, payload).ok_or(Malformed("does not open with the data key"))
    }

    pub(crate) fn segment_path(&self, number: u32) -> PathBuf {
        self.folder.join(segment::name(number))
    }
}
