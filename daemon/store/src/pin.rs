//! The store as of one commit, to be copied while it is in use: the journal only grows, so its beginning stays what it is.

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

/// What a backup needs to know of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// The id in all segments.
    pub store_id: Uuid,
    /// The last revision in it.
    pub revision: Revision,
    /// The digest of what it shows.
    pub digest: StateDigest,
    /// The journal up to the last commit, in order.
    pub segments: Vec<PinnedSegment>,
}

/// A segment, or the beginning of the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedSegment {
    /// Its file name.
    pub name: String,
    /// Bytes that belong to it.
    pub length: u64,
    path: PathBuf,
}

impl Store {
    /// Names what a backup copies, as of now, after reading every frame of it: a damaged journal is no backup. Commits go on
    /// meanwhile and are not in it.
    ///
    /// # Errors
    /// [`StoreError::DamagedJournal`] if it is, and what the file system refuses.
    pub fn pin(&self, progress: &mut dyn FnMut(CheckProgress)) -> Result<Pinned, StoreError> {
        if let Health::Damaged(places) = self.health()
            && let Some(first) = places.into_iter().next()
        {
            return Err(StoreError::DamagedJournal { first });
        }
        let (position, revision, digest) =
            self.while_quiet(|meta| (meta.position, meta.revision, meta.digest));
        let mut report = CheckReport::default();
        self.read_journal(position, revision, progress, &mut report)?;
        if let Some(first) = report.damage.into_iter().next() {
            return Err(StoreError::DamagedJournal { first });
        }
        let segments =
            (1..=position.segment).map(|number| self.pinned(number, position)).collect::<Result<_, _>>()?;
        Ok(Pinned { store_id: self.store_id(), revision: Revision::new(revision), digest, segments })
    }

    fn pinned(&self, number: u32, end: Position) -> Result<PinnedSegment, StoreError> {
        let path = self.reader().home().segment_path(number);
        let length = if number == end.segment {
            end.offset
        } else {
            let file = self.reader().disk().open(&path, false).map_err(StoreError::io("open", &path))?;
            file.length().map_err(StoreError::io("measure", &path))?
        };
        Ok(PinnedSegment { name: segment::name(number), length, path })
    }

    /// Reads the bytes of a segment that are pinned.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn open_pinned(&self, segment: &PinnedSegment) -> Result<BlobReader, StoreError> {
        let path = &segment.path;
        let file = self.reader().disk().open(path, false).map_err(StoreError::io("open", path))?;
        Ok(BlobReader::plain(file, segment.length))
    }

    /// Lists the blobs that stand, by the hashes of their bytes, sorted by the names of their files. After [`Store::pin`] all that the
    /// pinned commits refer to are among them.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn blobs(&self) -> Result<Vec<[u8; 32]>, StoreError> {
        blobs::list(self.dir(), self.seal())
    }
}
