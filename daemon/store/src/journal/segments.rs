//! The files of a journal: which ones exist, and whether they fit together.

use std::{collections::BTreeMap, io, path::PathBuf, sync::Arc};

use satchel_seal::{DataKey, KEY_ID, Seal};

use super::{
    Home, Position,
    frame::{Binding, Header},
    reader::{Loaded, load},
    scan::Acknowledged,
    segment::{self, SegmentHeader},
};
use crate::{
    disk::{Disk, DiskFile},
    error::StoreError,
    report::Damage,
};

/// Frames at the beginning of each segment that are tried with a key before it counts as the wrong one.
const FRAMES_TRIED: usize = 4;

/// The segments of a folder and their headers. No file stays open, because there may be more segments than a process may have
/// files open.
#[derive(Clone)]
pub(crate) struct Segments {
    pub(crate) home: Home,
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
                Some(only) if only.number == 1 && files.len() == 1 && only.length <= segment::HEADER => {
                    Ok(None)
                }
                Some(first) => {
                    let path = folder.join(segment::name(first.number));
                    let problem = "no readable header in any segment";
                    Err(StoreError::DamagedJournal { first: Damage::new(&path, 0, first.length, problem) })
                }
            };
        };
        Ok(Some(Self { home: Home { folder, store_id, seal }, disk: Arc::clone(disk), files }))
    }

    /// Checks that the journal is sealed with the given key or, without a key, that it is plain. This happens before anything is
    /// changed. One frame that opens is enough, because the others may be damaged.
    pub(crate) fn check_key(&self) -> Result<(), StoreError> {
        let (mut refused, mut read) = (Ok(()), false);
        for segment in self.files.values() {
            let mut offset = segment::HEADER;
            for _ in 0..FRAMES_TRIED {
                let Some(Loaded { header, payload, .. }) = self.look(*segment, offset)? else { break };
                read = true;
                refused = self.check_frame(&header, segment.number, offset, payload);
                if refused.is_ok() {
                    return Ok(());
                }
                offset += header.frame_length();
            }
        }
        if read { refused } else { self.check_key_of_any() }
    }

    /// Does the same as [`Segments::check_key`] if no segment has a readable beginning, using any frame that can be read, sealed
    /// or plain.
    fn check_key_of_any(&self) -> Result<(), StoreError> {
        let mut other = self.clone();
        // A scan accepts only frames of the journal's own kind, sealed or plain; it does not check that the key opens them.
        other.home.seal = match &self.home.seal {
            Some(_) => None,
            None => Some(Seal::new(&DataKey::from_bytes(&[0; 32]))),
        };
        match self.check_frames(self)? {
            Some(told) => told,
            None => self.check_frames(&other)?.unwrap_or(Ok(())),
        }
    }

    /// Returns what the frames of `segments` show about the key of `self`, or `None` if there are no frames.
    fn check_frames(&self, segments: &Self) -> Result<Option<Result<(), StoreError>>, StoreError> {
        let mut told = None;
        // This marks everything as acknowledged, so that all of it is searched.
        let all = Acknowledged { segment: u32::MAX, ..Acknowledged::default() };
        segments.scan(Self::beginning(), 0, all, &mut |visit| {
            if !matches!(told, Some(Ok(()))) {
                let (start, payload) = (visit.start, visit.payload.to_vec());
                told = Some(self.check_frame(&visit.header, start.segment, start.offset, payload));
            }
            Ok(())
        })?;
        Ok(told)
    }

    fn look(&self, segment: Segment, offset: u64) -> Result<Option<Loaded>, StoreError> {
        let path = self.home.segment_path(segment.number);
        let file = self.disk.open(&path, false).map_err(StoreError::io("open", &path))?;
        let binding = Binding { store_id: self.home.store_id, segment: segment.number, offset };
        load(file.as_ref(), binding, segment.length).map_err(self.refused(segment.number))
    }

    fn check_frame(
        &self,
        header: &Header,
        segment: u32,
        offset: u64,
        payload: Vec<u8>,
    ) -> Result<(), StoreError> {
        let folder = self.home.folder.clone();
        match (header.key, &self.home.seal) {
            (0, None) => Ok(()),
            (0, Some(_)) => Err(StoreError::NotEncrypted { folder }),
            (KEY_ID, None) => Err(StoreError::NoKey { folder }),
            (KEY_ID, Some(_)) => match self.home.open(header, segment, offset, payload) {
                Ok(_) => Ok(()),
                Err(_) => Err(StoreError::WrongKey { folder }),
            },
            (key, _) => {
                Err(StoreError::Sealed { place: self.home.segment_path(segment).display().to_string(), key })
            }
        }
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
        Position { segment: 1, offset: segment::HEADER, chain: [0; 16] }
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
            let start = Position { segment: header.number, offset: segment::HEADER, chain: header.chain };
            (start, header.revision)
        })
    }

    pub(super) fn whole_before(&self, place: Position) -> bool {
        let header = |number: u32| {
            let header = self.files.get(&number).and_then(|segment| segment.header);
            header.filter(|header| header.store_id == self.home.store_id)
        };
        let whole = |number: u32| {
            let length = self.files.get(&number).map(|segment| segment.length);
            header(number).is_some() && length == header(number + 1).map(|next| next.previous_length)
        };
        header(place.segment).is_some() && (1..place.segment).all(whole)
    }

    pub(super) fn refused(&self, number: u32) -> impl FnOnce(io::Error) -> StoreError {
        StoreError::io("read", self.home.segment_path(number))
    }
}

fn read_header(file: &dyn DiskFile, path: &std::path::Path) -> Result<Option<SegmentHeader>, StoreError> {
    let mut bytes = [0_u8; segment::HEADER_BYTES];
    let filled = file.read_at(0, &mut bytes).map_err(StoreError::io("read", path))?;
    SegmentHeader::parse(&bytes[..filled], path)
}
