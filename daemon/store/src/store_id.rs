//! Gives a restored journal an id of its own. From the restore on its revisions diverge from those of the original store, and
//! must not be compared with them.

use std::{fs, path::Path, sync::Arc};

use satchel_seal::Seal;
use uuid::Uuid;

use crate::{
    disk::{Disk, OsDisk},
    error::{FSYNC, StoreError},
    journal::{
        Acknowledged, JournalContext,
        copy::JournalCopy,
        frame::{FrameFields, FrameHeader},
        segments::Segments,
    },
    report::{CheckProgress, Damage},
};

/// Rewrites the journal of the store in `dir`, which no process may have open, under a new id, and returns that id. All places
/// and payloads, sealed or not, stay the same. Every frame is checked on the way.
///
/// # Errors
/// [`StoreError::DamagedJournal`] if a byte is damaged, or if the journal does not end with a whole commit; any error of the file
/// system. The old journal stays in that case.
pub fn assign_new_store_id(
    dir: &Path,
    seal: Option<&Seal>,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<Uuid, StoreError> {
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let old = dir.join("journal");
    let segments = Segments::list(&disk, old.clone(), seal.cloned())?
        .ok_or_else(|| damaged(&old, "a journal without a whole segment"))?;
    segments.check_key()?;
    let id = Uuid::new_v4();
    let context = JournalContext::new(dir.join("journal.new"), *id.as_bytes(), None);
    disk.create_folders(&context.folder).map_err(StoreError::io("create", &context.folder))?;
    let mut copy = JournalCopy::new(Arc::clone(&disk), context, &segments);
    let total = segments.bytes_from(Segments::beginning());
    let mut done = 0;
    let outcome = segments.scan(Segments::beginning(), 0, Acknowledged::default(), &mut |visit| {
        done += visit.header.frame_length();
        progress(CheckProgress { done, total });
        let FrameHeader { kind, flags, key, revision, .. } = visit.header;
        copy.put(visit.start.segment, FrameFields { kind, flags, key, revision }, visit.payload)
    })?;
    StoreError::check(outcome.damage)?;
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
