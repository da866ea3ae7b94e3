//! Gives a restored journal an id of its own. From the restore on its revisions diverge from those of the original store, and
//! must not be compared with them.

use std::{fs, path::Path, sync::Arc};

use satchel_seal::Seal;
use uuid::Uuid;

use crate::{
    disk::{Disk, OsDisk},
    error::{FSYNC, StoreError},
    journal::{
        Home,
        copy::Copy,
        frame::{Header, Label},
        scan::Acknowledged,
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
pub fn renew(
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
    let home = Home { folder: dir.join("journal.new"), store_id: *id.as_bytes(), seal: None };
    disk.create_folders(&home.folder).map_err(StoreError::io("create", &home.folder))?;
    let mut copy = Copy::new(Arc::clone(&disk), home, &segments);
    let total = segments.bytes_from(Segments::beginning());
    let mut done = 0;
    let outcome = segments.scan(Segments::beginning(), 0, Acknowledged::default(), &mut |visit| {
        done += visit.header.frame_length();
        progress(CheckProgress { done, total });
        let Header { kind, flags, key, revision, .. } = visit.header;
        copy.put(visit.start.segment, Label { kind, flags, key, revision }, visit.payload)
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
