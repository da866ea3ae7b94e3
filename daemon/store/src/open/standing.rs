//! A store without a database on disk: the whole database is built in memory, from the journal. This makes a store readable when
//! its disk accepts no writes.

use std::{
    fs, io,
    path::Path,
    sync::{Arc, Mutex},
};

use uuid::Uuid;

use super::{
    Ground, Report, noted, patient, replay,
    state::{self, Closing},
    taken,
};
use crate::{
    apply::Applier,
    engine::{leaves::Leaves, memory::MemoryEngine, sealed::SealedEngine},
    error::StoreError,
    journal::{reader::Reader, scan::Outcome, segments::Segments, writer::Writer},
    purge,
    report::{Health, OpenEvent},
    revision::Revision,
    store::{Inner, OpenOptions, WriteSide},
    value::Meta,
};

/// Builds an engine in memory that holds everything in the journal. `noted` is a revision that the journal is known to have had.
pub(crate) fn in_memory(
    segments: &Segments,
    noted: u64,
    report: Report<'_>,
) -> Result<(Applier, Outcome), StoreError> {
    let memory = Arc::new(MemoryEngine::default());
    let engine = match &segments.home.seal {
        // It blinds names with the same key as the engine on disk.
        Some(seal) => Leaves::new(Arc::new(SealedEngine::new(memory, seal.clone())))?,
        None => Leaves::new(memory)?,
    };
    let meta = Meta { store_id: segments.home.store_id, position: Segments::beginning(), ..Meta::default() };
    let mut applier = Applier::new(Arc::new(engine), meta);
    let outcome = replay(segments, &mut applier, false, noted, report)?;
    Ok((applier, outcome))
}

/// Opens the store in `dir` for reading. Nothing is written: neither the text of the lock file nor `db.state` nor a database.
pub(crate) fn open_to_read(
    dir: &Path,
    options: OpenOptions,
    ground: Ground,
    reason: String,
    report: Report<'_>,
) -> Result<Inner, StoreError> {
    let Ground { disk, house, roll_at, headroom } = ground;
    let lock = share(dir)?;
    purge::unfinished(dir)?;
    let path = dir.join("db.state");
    let before = state::read(disk.as_ref(), &path)?;
    let folder = dir.join("journal");
    let missing = || StoreError::Io {
        action: "read",
        path: folder.clone(),
        source: io::Error::new(io::ErrorKind::NotFound, "there is no journal, and none can be made"),
    };
    let segments = Segments::list(&disk, folder.clone(), options.seal.clone())?.ok_or_else(missing)?;
    segments.check_key()?;
    let store = Uuid::from_bytes(segments.home.store_id);
    let found_before = noted::read(disk.as_ref(), dir)?;
    let known = found_before.as_ref().map_or(0, |found| found.revision);
    let noted = before.map_or(0, |state| state.acknowledged(store)).max(known);
    let (applier, outcome) = in_memory(&segments, noted, report)?;
    let health =
        if outcome.damage.is_empty() { Health::ReadOnly(reason) } else { Health::Damaged(outcome.damage) };
    let end = outcome.end;
    let number = if segments.holds(end.segment) { end.segment } else { segments.last() };
    let last = segments.home.segment_path(number);
    let file = disk.open(&last, false).map_err(StoreError::io("open", &last))?;
    let mut journal = Writer::new(Arc::clone(&disk), segments.home.clone(), file, end, roll_at)?;
    journal.stop("the store was opened to read it".to_owned());
    report(OpenEvent::Ready { revision: Revision::new(applier.meta().revision) });
    let last = Mutex::new(None);
    let closing = Closing { disk: Arc::clone(&disk), house, path, store, boot: options.boot_id, last };
    let (engine, reader) = (applier.engine(), Reader::new(disk, segments.home));
    let writer = WriteSide::to_read(journal, applier);
    Ok(Inner::new(dir.to_owned(), health, writer, engine, reader, closing, (lock, headroom)))
}

/// Locks out writers and admits other readers. If there is no lock file because none can be created, nobody can write either.
fn share(dir: &Path) -> Result<Option<fs::File>, StoreError> {
    let path = dir.join("store.lock");
    let file = match fs::File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(StoreError::io("open", &path))?,
    };
    match patient(|| file.try_lock_shared()) {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Err(taken(dir, &file)),
        Err(fs::TryLockError::Error(source)) => Err(StoreError::Io { action: "lock", path, source }),
    }
}
