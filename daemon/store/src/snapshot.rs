//! A view of the store as of one commit, which can be copied while the store is in use: the journal only grows, so its beginning
//! does not change.

use std::path::PathBuf;

use uuid::Uuid;

use crate::{
    blob::BlobReader,
    check::blobs,
    error::StoreError,
    journal::{Position, segment},
    report::{CheckProgress, CheckReport, Health, StateDigest},
    revision::Revision,
    store::Store,
};

/// The data that a backup needs about a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSnapshot {
    /// The id in all segments.
    pub store_id: Uuid,
    /// The last revision that is included.
    pub revision: Revision,
    /// The digest of the shown records.
    pub digest: StateDigest,
    /// The journal up to the last commit, in order.
    pub segments: Vec<SnapshotSegment>,
}

/// A segment, or the beginning of the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotSegment {
    /// Its file name.
    pub name: String,
    /// The number of bytes that are included.
    pub length: u64,
    path: PathBuf,
}

impl Store {
    /// Returns what a backup copies, as of now, after reading every frame of it, because a damaged journal must not be backed up.
    /// Commits continue meanwhile and are not included.
    ///
    /// # Errors
    /// [`StoreError::DamagedJournal`] if the journal is damaged; any error of the file system.
    pub fn snapshot(&self, progress: &mut dyn FnMut(CheckProgress)) -> Result<StoreSnapshot, StoreError> {
        if let Health::Damaged(places) = self.health()
            && let Some(first) = places.into_iter().next()
        {
            return Err(StoreError::DamagedJournal { first });
        }
        let (position, revision, digest) = self.with_meta(|meta| (meta.position, meta.revision, meta.digest));
        let mut report = CheckReport::default();
        self.read_journal(position, revision, progress, &mut report)?;
        StoreError::check(report.damage)?;
        let segments = (1..=position.segment)
            .map(|number| self.snapshot_segment(number, position))
            .collect::<Result<_, _>>()?;
        Ok(StoreSnapshot { store_id: self.store_id(), revision: Revision::new(revision), digest, segments })
    }

    fn snapshot_segment(&self, number: u32, end: Position) -> Result<SnapshotSegment, StoreError> {
        let path = self.reader().context().segment_path(number);
        let length = if number == end.segment {
            end.offset
        } else {
            let file = self.reader().disk().open(&path, false).map_err(StoreError::io("open", &path))?;
            file.length().map_err(StoreError::io("measure", &path))?
        };
        Ok(SnapshotSegment { name: segment::name(number), length, path })
    }

    /// Opens the pinned bytes of a segment.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn open_snapshot_segment(&self, segment: &SnapshotSegment) -> Result<BlobReader, StoreError> {
        let path = &segment.path;
        let file = self.reader().disk().open(path, false).map_err(StoreError::io("open", path))?;
        Ok(BlobReader::plain(file, segment.length))
    }

    /// Lists the existing blobs by the hash of their bytes, sorted by the names of their files. After [`Store::snapshot`] these
    /// include all blobs that the pinned commits refer to.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn blobs(&self) -> Result<Vec<[u8; 32]>, StoreError> {
        blobs::list(self.dir(), self.seal())
    }
}
