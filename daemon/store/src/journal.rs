//! The truth: segments of checksummed, hash-chained frames.

pub(crate) mod frame;
pub(crate) mod reader;
pub(crate) mod scan;
pub(crate) mod segment;
pub(crate) mod segments;
pub(crate) mod writer;

use std::path::PathBuf;

/// A place in the journal, with what the chain needs to go on from there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) segment: u32,
    pub(crate) offset: u64,
    pub(crate) chain: [u8; 16],
}

/// Where one change of one commit lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) segment: u32,
    pub(crate) offset: u64,
    pub(crate) change: u32,
}

/// A journal's folder and the id that its frames are bound to.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    pub(crate) folder: PathBuf,
    pub(crate) store_id: [u8; 16],
}

impl Home {
    pub(crate) fn segment_path(&self, number: u32) -> PathBuf {
        self.folder.join(segment::name(number))
    }
}
