//! A store without a database on disk: the whole database is built in memory, from the journal. This makes a store readable when
//! its disk accepts no writes.

use std::{
    io,
    path::Path,
    sync::{Arc, Mutex},
};

use uuid::Uuid;

use super::{
    EventSink, OpenedStore, StoreEnvironment, damage_file, replay,
    state::{self, StateFile},
};
use crate::{
    apply::Applier,
    engine::{leaves::LeafEngine, memory::MemoryEngine, sealed::SealedEngine},
    error::StoreError,
    journal::{reader::FrameReader, scan::ScanOutcome, segments::Segments, writer::JournalWriter},
    lock,
    options::OpenOptions,
    pending_purge,
    report::{Health, OpenEvent},
    revision::Revision,
    value::EngineMeta,
};

/// Builds an engine in memory that holds everything in the journal. `known_revision` is a revision that the journal is known to have had.
pub(crate) fn build(
    segments: &Segments,
    known_revision: u64,
    report: EventSink<'_>,
) -> Result<(Applier, ScanOutcome), StoreError> {
    let memory = Arc::new(MemoryEngine::default());
    let engine = match &segments.context.seal {
        // It blinds names with the same key as the engine on disk.
        Some(seal) => LeafEngine::new(Arc::new(SealedEngine::new(memory, seal.clone())))?,
        None => LeafEngine::new(memory)?,
    };
    let meta = EngineMeta {
        store_id: segments.context.store_id,
        position: Segments::beginning(),
        ..EngineMeta::default()
    };
    let mut applier = Applier::new(Arc::new(engine), meta);
    let outcome = replay(segments, &mut applier, false, known_revision, report)?;
    Ok((applier, outcome))
}

/// Opens the store in `dir` for reading. Nothing is written: neither the text of the lock file nor `db.state` nor a database.
pub(crate) fn open_read_only(
    dir: &Path,
    options: OpenOptions,
    environment: StoreEnvironment,
    reason: String,
    report: EventSink<'_>,
) -> Result<OpenedStore, StoreError> {
    let StoreEnvironment { disk, db, segment_limit, headroom } = environment;
    let lock = lock::lock_shared(dir)?;
    pending_purge::check_none(dir)?;
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
    let store = Uuid::from_bytes(segments.context.store_id);
    let damage_record = damage_file::read(disk.as_ref(), dir)?;
    let recorded_revision = damage_record.as_ref().map_or(0, |found| found.revision);
    let known_revision = before.map_or(0, |state| state.acknowledged(store)).max(recorded_revision);
    let (applier, outcome) = build(&segments, known_revision, report)?;
    let health =
        if outcome.damage.is_empty() { Health::ReadOnly(reason) } else { Health::Damaged(outcome.damage) };
    let end = outcome.end;
    let number = if segments.holds(end.segment) { end.segment } else { segments.last() };
    let last = segments.context.segment_path(number);
    let file = disk.open(&last, false).map_err(StoreError::io("open", &last))?;
    let mut journal =
        JournalWriter::new(Arc::clone(&disk), segments.context.clone(), file, end, segment_limit)?;
    journal.stop("the store was opened to read it".to_owned());
    report(OpenEvent::Ready { revision: Revision::new(applier.meta().revision) });
    let final_state = Mutex::new(None);
    let state_file =
        StateFile { disk: Arc::clone(&disk), db, path, store, boot: options.boot_id, final_state };
    let reader = FrameReader::new(disk, segments.context);
    let dir = dir.to_owned();
    Ok(OpenedStore { dir, health, journal, applier, reader, state_file, headroom, read_only: true, lock })
}
