//! The files of a journal: which ones exist, and whether they fit together.

use std::{collections::BTreeMap, io, path::PathBuf, sync::Arc};

use satchel_seal::Seal;

use super::{
    JournalContext, Position,
    segment::{self, SegmentHeader},
};
use crate::{
    disk::{Disk, DiskFile},
    error::StoreError,
    report::Damage,
};

/// The segments of a folder and their headers. No file stays open, because there may be more segments than a process may have
/// files open.
#[derive(Clone)]
pub(crate) struct Segments {
    pub(crate) context: JournalContext,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) files: BTreeMap<u32, Segment>,
}

#[derive(Clone, Copy)]
pub(super) struct Segment {
    pub(super) number: u32,
    pub(super) length: u64,
    pub(super) header: Option<SegmentHeader>,
}

impl Segments {
    /// Lists the segments. Returns `None` if there is no journal yet, or only the unfinished first file of one.
    pub(crate) fn list(
        disk: &Arc<dyn Disk>,
        folder: PathBuf,
        seal: Option<Seal>,
    ) -> Result<Option<Self>, StoreError> {
        let mut files = BTreeMap::new();
        for name in disk.names(&folder).map_err(StoreError::io("list", &folder))? {
            let Some(number) = segment::number(&name) else { continue };
            let path = folder.join(&name);
            let file = disk.open(&path, false).map_err(StoreError::io("open", &path))?;
            let length = file.length().map_err(StoreError::io("measure", &path))?;
            let header = read_header(file.as_ref(), &path)?.filter(|header| header.number == number);
            files.insert(number, Segment { number, length, header });
        }
        let Some(store_id) = files.values().find_map(|file| file.header).map(|header| header.store_id) else {
            return match files.values().next() {
                None => Ok(None),
                Some(only) if only.number == 1 && files.len() == 1 && only.length <= segment::FIRST_FRAME => {
                    Ok(None)
                }
                Some(first) => {
                    let path = folder.join(segment::name(first.number));
                    let problem = "no readable header in any segment";
                    Err(StoreError::DamagedJournal { first: Damage::new(&path, 0, first.length, problem) })
                }
            };
        };
        Ok(Some(Self { context: JournalContext::new(folder, store_id, seal), disk: Arc::clone(disk), files }))
    }

    /// Returns the number of bytes from a position to the end.
    pub(crate) fn bytes_from(&self, from: Position) -> u64 {
        let later = self.files.range(from.segment..).map(|(_, segment)| segment.length).sum::<u64>();
        later.saturating_sub(from.offset)
    }

    /// Returns the revision in a segment's header.
    pub(crate) fn revision_before(&self, number: u32) -> u64 {
        self.files.get(&number).and_then(|segment| segment.header).map_or(0, |header| header.revision)
    }

    pub(crate) fn holds(&self, number: u32) -> bool {
        self.files.contains_key(&number)
    }

    /// Returns the number of the last segment.
    pub(crate) fn last(&self) -> u32 {
        self.files.keys().next_back().copied().unwrap_or_default()
    }

    /// Returns the position of the first frame of the journal.
    pub(crate) fn beginning() -> Position {
        Position { segment: 1, offset: segment::FIRST_FRAME, chain: [0; 16] }
    }

    /// Excludes everything after `end`, where a commit may be in progress.
    pub(crate) fn clip(&mut self, end: Position) {
        self.files.split_off(&end.segment.saturating_add(1));
        if let Some(last) = self.files.get_mut(&end.segment) {
            last.length = last.length.min(end.offset);
        }
    }

    /// Returns where to begin so that everything after `position` is read, and the last revision before that. This is `position`
    /// itself or, if the journal no longer reaches so far, the beginning of its last readable segment.
    pub(crate) fn start(&self, position: Position, revision: u64) -> (Position, u64) {
        if self.files.get(&position.segment).is_some_and(|segment| segment.length >= position.offset) {
            return (position, revision);
        }
        let last = self.files.range(..=position.segment).rev().find_map(|(_, segment)| segment.header);
        last.map_or((Self::beginning(), 0), |header| {
            let start =
                Position { segment: header.number, offset: segment::FIRST_FRAME, chain: header.chain };
            (start, header.revision)
        })
    }

    pub(super) fn whole_before(&self, place: Position) -> bool {
        let header = |number: u32| {
            let header = self.files.get(&number).and_then(|segment| segment.header);
            header.filter(|header| header.store_id == self.context.store_id)
        };
        let whole = |number: u32| {
            let length = self.files.get(&number).map(|segment| segment.length);
            header(number).is_some() && length == header(number + 1).map(|next| next.previous_length)
        };
        header(place.segment).is_some() && (1..place.segment).all(whole)
    }

    pub(super) fn read_error(&self, number: u32) -> impl FnOnce(io::Error) -> StoreError {
        StoreError::io("read", self.context.segment_path(number))
    }
}

fn read_header(file: &dyn DiskFile, path: &std::path::Path) -> Result<Option<SegmentHeader>, StoreError> {
    let mut bytes = [0_u8; segment::HEADER_BYTES];
    let filled = file.read_at(0, &mut bytes).map_err(StoreError::io("read", path))?;
    SegmentHeader::parse(&bytes[..filled], path)
}
