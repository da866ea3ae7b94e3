//! Unpacks archives inside archives to the disk, because their directory is at the end. One limit applies to the whole
//! source.

use std::{
    fs::File,
    io::{self, Seek, SeekFrom},
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    Heartbeat, Limits,
    archive::{PackedEntry, SharedFile},
    entry::{self, CancellableReader, UnpackedBytes},
};
use crate::CancelToken;

/// The inner archives of one source, in one unnamed file; clones share it.
#[derive(Clone, Default)]
pub(super) struct SpillFile {
    /// Created on first use. The lock also ensures that only one archive is written at a time.
    file: Arc<Mutex<Option<Arc<File>>>>,
    /// The number of bytes that all of them unpacked to.
    bytes: UnpackedBytes,
}

impl SpillFile {
    /// Unpacks an inner archive and appends it to those before it.
    pub(super) fn append(
        &self,
        packed: &PackedEntry,
        limits: &Limits,
        (cancel, heartbeat): (&CancelToken, &Heartbeat),
    ) -> io::Result<SharedFile> {
        let mut spill = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &*spill {
            Some(file) => Arc::clone(file),
            None => Arc::clone(spill.insert(Arc::new(tempfile::tempfile()?))),
        };
        let base = (&*file).seek(SeekFrom::End(0))?;
        let bytes = entry::open_packed(packed, limits, &self.bytes)?;
        let mut bytes = CancellableReader { bytes, cancel: cancel.clone(), heartbeat: heartbeat.clone() };
        let copied = io::copy(&mut bytes, &mut &*file);
        heartbeat.beat();
        match copied {
            Ok(length) => Ok(SharedFile::part(file, base, length)),
            Err(error) => {
                // A partially unpacked archive is useless.
                file.set_len(base)?;
                Err(error)
            }
        }
    }
}
