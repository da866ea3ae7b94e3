//! Opens a store: takes the lock, lists the journal, decides whether to trust the engine, and replays.

pub(crate) mod damage_file;
pub(crate) mod in_memory;
pub(crate) mod state;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use satchel_seal::Seal;
use state::{EngineTrust, ShutdownState, StateFile};
use uuid::Uuid;

use crate::{
    apply::{Applier, Commit},
    codec::batch,
    disk::{Disk, OsDisk},
    engine::{
        Engine, EngineError,
        folder::{EngineFolder, SledFolder},
        leaves::LeafEngine,
        sealed::SealedEngine,
    },
    error::{FSYNC, StoreError},
    journal::{
        Acknowledged, JournalContext, Position,
        frame::FrameKind,
        reader::FrameReader,
        scan::{ScanOutcome, VisitedFrame},
        segment::{self, SegmentHeader},
        segments::Segments,
        writer::{self, JournalWriter},
    },
    keys, lock,
    options::OpenOptions,
    pending_purge,
    report::{Damage, Health, OpenEvent},
    revision::Revision,
    value::{self, EngineMeta},
};

/// Commits are refused when less than this is free. The engine writes pieces of 8 MiB at any time and does not survive a failed
/// write, whereas a refused commit can be repeated when there is room.
const HEADROOM: u64 = 64 << 20;
/// A replay reports its progress each time it has processed this many bytes.
const PROGRESS_BYTES: u64 = 16 << 20;
/// The environment of a store; tests use doubles here.
pub(crate) struct StoreEnvironment {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) db: Arc<dyn EngineFolder>,
    pub(crate) segment_limit: u64,
    /// Bytes that must stay free on the disk.
    pub(crate) headroom: u64,
}

impl StoreEnvironment {
    pub(crate) fn new(dir: &Path, options: &OpenOptions) -> Self {
        let db = SledFolder::new(dir, options.cache_bytes);
        Self {
            disk: Arc::new(OsDisk),
            db: Arc::new(db),
            segment_limit: segment::SEGMENT_LIMIT,
            headroom: HEADROOM,
        }
    }
}

/// The parts of an open store.
pub(crate) struct OpenedStore {
    pub(crate) dir: PathBuf,
    pub(crate) health: Health,
    pub(crate) journal: JournalWriter,
    pub(crate) applier: Applier,
    pub(crate) reader: FrameReader,
    pub(crate) state_file: StateFile,
    /// Bytes that must stay free on the disk.
    pub(crate) headroom: u64,
    /// Whether the store was opened for reading only, with an engine in memory.
    pub(crate) read_only: bool,
    /// `None` if a store is read whose lock file cannot be created.
    pub(crate) lock: Option<fs::File>,
}

type EventSink<'a> = &'a mut dyn FnMut(OpenEvent);

pub(crate) fn open(
    dir: &Path,
    options: OpenOptions,
    environment: StoreEnvironment,
    report: EventSink<'_>,
) -> Result<OpenedStore, StoreError> {
    let StoreEnvironment { disk, db, segment_limit, headroom } = environment;
    let lock = lock::acquire(dir, db.as_ref())?;
    // Completes an erasure that was interrupted while its new store replaced the old one.
    pending_purge::finish(dir)?;
    let folder = create_layout(dir, disk.as_ref())?;
    let path = dir.join("db.state");
    let before = state::read(disk.as_ref(), &path)?;
    let (segments, journal_is_new) = match Segments::list(&disk, folder.clone(), options.seal.clone())? {
        Some(segments) => (segments, false),
        // `db.state` is first written after the beginning of the journal is durable.
        None if before.is_some() => {
            return Err(StoreError::DamagedJournal { first: missing_journal(&folder) });
        }
        None => (create_journal(&disk, folder, options.seal.clone())?, true),
    };
    segments.check_key()?;
    let mut trust =
        state::decide_trust(before.as_ref(), options.boot_id.as_deref(), db.as_ref(), journal_is_new);
    if options.rebuild {
        trust = EngineTrust::Untrusted("a rebuild was asked for".to_owned());
    }
    let store = Uuid::from_bytes(segments.context.store_id);
    let damage_record = damage_file::read(disk.as_ref(), dir)?;
    let recorded_revision = damage_record.as_ref().map_or(0, |found| found.revision);
    let known_revision = before.map_or(0, |state| state.acknowledged(store)).max(recorded_revision);
    let final_state = Mutex::new(None);
    let state_file =
        StateFile { disk: Arc::clone(&disk), db, path, store, boot: options.boot_id, final_state };
    let (applier, mut outcome) = build(&state_file, trust, &segments, known_revision, report)?;
    if outcome.damage.is_empty() && damage_record.is_some() {
        outcome.damage = scan_all(&segments, applier.meta(), recorded_revision, report)?;
    }
    if outcome.damage.is_empty() {
        if damage_record.is_some() {
            damage_file::clear(disk.as_ref(), dir)?;
        }
        if let Err(error) = state_file.db.forget_older() {
            tracing::warn!(%error, "databases that were set aside stay behind");
        }
    } else {
        damage_file::write(disk.as_ref(), dir, known_revision.max(applier.meta().revision), &outcome.damage);
    }
    let journal = open_writer(&disk, &segments, &outcome, segment_limit, report)?;
    let health = if outcome.damage.is_empty() { Health::Good } else { Health::Damaged(outcome.damage) };
    report(OpenEvent::Ready { revision: Revision::new(applier.meta().revision) });
    let reader = FrameReader::new(disk, segments.context);
    Ok(OpenedStore {
        dir: dir.to_owned(),
        health,
        journal,
        applier,
        reader,
        state_file,
        headroom,
        read_only: false,
        lock: Some(lock),
    })
}

/// Creates the folders and returns the journal's. The write of `db.state`, which comes next, makes their names durable.
fn create_layout(dir: &Path, disk: &dyn Disk) -> Result<PathBuf, StoreError> {
    let (journal, blobs) = (dir.join("journal"), dir.join("blobs"));
    for folder in [&journal, &blobs] {
        disk.create_folders(folder).map_err(StoreError::io("create", folder))?;
    }
    remove_unfinished_blobs(&blobs.join("tmp"))?;
    Ok(journal)
}

/// Removes the unfinished blobs that an earlier process left.
fn remove_unfinished_blobs(folder: &Path) -> Result<(), StoreError> {
    match fs::remove_dir_all(folder) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(StoreError::Io { action: "empty", path: folder.to_owned(), source })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Returns the damage for a journal that is missing completely.
pub(crate) fn missing_journal(folder: &Path) -> Damage {
    let problem = "a journal that is gone, beside a database that was built from it,";
    Damage::new(&folder.join(segment::name(1)), 0, 0, problem)
}

/// Creates the first segment of a new journal.
fn create_journal(disk: &Arc<dyn Disk>, folder: PathBuf, seal: Option<Seal>) -> Result<Segments, StoreError> {
    let context = JournalContext::new(folder.clone(), *Uuid::new_v4().as_bytes(), seal);
    let path = context.segment_path(1);
    if disk.open(&path, false).is_ok() {
        disk.remove(&path).map_err(StoreError::io("remove", &path))?;
    }
    let header = SegmentHeader {
        number: 1,
        store_id: context.store_id,
        revision: 0,
        chain: [0; 16],
        previous_length: 0,
    };
    writer::create(disk.as_ref(), &context, &header).inspect_err(|_| {
        // The next start must not build on a header that the disk may not hold.
        if let Some(problem) = writer::remove_segment(disk.as_ref(), &context, header.number) {
            tracing::warn!(%problem, "the beginning of a journal stays behind");
        }
    })?;
    Segments::list(disk, folder, context.seal)?.ok_or_else(|| StoreError::Io {
        action: "read back",
        path,
        source: io::Error::other("the segment that was just made has no header"),
    })
}

/// Reads the whole journal, because it was damaged once and a normal start reads only a part of it.
fn scan_all(
    segments: &Segments,
    meta: &EngineMeta,
    recorded_revision: u64,
    report: EventSink<'_>,
) -> Result<Vec<Damage>, StoreError> {
    let EngineMeta { position, revision, .. } = *meta;
    let revision = revision.max(recorded_revision);
    let acknowledged = Acknowledged { segment: position.segment, offset: position.offset, revision };
    let damage = segments.scan(Segments::beginning(), 0, acknowledged, &mut |_| Ok(()))?.damage;
    damage.iter().for_each(|place| report(OpenEvent::Damaged(place.clone())));
    Ok(damage)
}

/// Returns an engine that holds everything in the journal. `known_revision` is the revision that the journal had at the last clean stop.
fn build(
    state_file: &StateFile,
    trust: EngineTrust,
    segments: &Segments,
    known_revision: u64,
    report: EventSink<'_>,
) -> Result<(Applier, ScanOutcome), StoreError> {
    let (engine, meta, trusted) = prepare_engine(state_file, trust, segments, report)?;
    let after_damage = meta.position_revision < meta.revision;
    let mut applier = Applier::new(engine, meta);
    let outcome = replay(segments, &mut applier, trusted, known_revision, report)?;
    if trusted && after_damage && outcome.damage.is_empty() {
        // The engine holds what came after the damage but not what was lost, so the order of versions would be wrong.
        drop(applier);
        let reason = "the journal was damaged and is whole again".to_owned();
        return build(state_file, EngineTrust::Untrusted(reason), segments, known_revision, report);
    }
    state_file.write(ShutdownState::Open)?;
    Ok((applier, outcome))
}

/// Opens the engine if it is trusted and its meta record fits the journal; otherwise creates an empty one.
fn prepare_engine(
    state_file: &StateFile,
    trust: EngineTrust,
    segments: &Segments,
    report: EventSink<'_>,
) -> Result<(Arc<dyn Engine>, EngineMeta, bool), StoreError> {
    let reason = match trust {
        EngineTrust::Trusted => {
            state_file.write(ShutdownState::Open)?;
            match open_trusted(state_file.db.as_ref(), segments) {
                Ok((engine, meta)) => return Ok((engine, meta, true)),
                Err(reason) => Some(reason),
            }
        }
        EngineTrust::Fresh => None,
        EngineTrust::Untrusted(reason) => Some(reason),
    };
    if let Some(reason) = reason {
        report(OpenEvent::Rebuilding { reason });
    }
    // If the process is killed from here on, no engine is trusted until a rebuild is complete.
    state_file.write(ShutdownState::Suspect)?;
    state_file.db.set_aside().map_err(StoreError::io("set aside the database beside", &state_file.path))?;
    let engine = open_engine(state_file.db.as_ref(), segments)?;
    let meta = EngineMeta {
        store_id: segments.context.store_id,
        position: Segments::beginning(),
        ..EngineMeta::default()
    };
    Ok((engine, meta, false))
}

/// Opens the engine. For an encrypted store it is wrapped so that values are sealed.
fn open_engine(db: &dyn EngineFolder, segments: &Segments) -> Result<Arc<dyn Engine>, EngineError> {
    let engine = db.open()?;
    let engine = match &segments.context.seal {
        Some(seal) => Arc::new(SealedEngine::new(engine, seal.clone())),
        None => engine,
    };
    Ok(Arc::new(LeafEngine::new(engine)?))
}

fn open_trusted(db: &dyn EngineFolder, segments: &Segments) -> Result<(Arc<dyn Engine>, EngineMeta), String> {
    let engine = open_engine(db, segments).map_err(|error| format!("the database does not open: {error}"))?;
    let bytes = engine.get(keys::META).map_err(|error| format!("the database does not read: {error}"))?;
    let bytes = bytes.ok_or("the database does not say how far it is")?;
    let what = || "what the database says about itself".to_owned();
    let take = value::open(&bytes, &what).map_err(|error| error.to_string())?;
    let meta = EngineMeta::take(take).map_err(|error| format!("{} does not read: {error}", what()))?;
    if meta.store_id != segments.context.store_id {
        return Err("the database belongs to another journal".to_owned());
    }
    Ok((engine, meta))
}

/// Builds a new database to replace the one that failed, which is not used any more.
pub(crate) fn rebuild_on_disk(
    state_file: &StateFile,
    segments: &Segments,
    known_revision: u64,
) -> Result<Applier, StoreError> {
    let reason = "the disk was full under it".to_owned();
    let (applier, outcome) =
        build(state_file, EngineTrust::Untrusted(reason), segments, known_revision, &mut |_| {})?;
    StoreError::check(outcome.damage)?;
    if let Err(error) = state_file.db.forget_older() {
        tracing::warn!(%error, "databases that were set aside stay behind");
    }
    Ok(applier)
}

/// Applies everything that the engine does not have yet.
fn replay(
    segments: &Segments,
    applier: &mut Applier,
    trusted: bool,
    known_revision: u64,
    report: EventSink<'_>,
) -> Result<ScanOutcome, StoreError> {
    let EngineMeta { position, position_revision, revision, .. } = *applier.meta();
    let acknowledged = if trusted {
        Acknowledged { segment: position.segment, offset: position.offset, revision: position_revision }
    } else {
        Acknowledged { revision: known_revision, ..Acknowledged::default() }
    };
    let (from, before) = segments.start(position, position_revision);
    let total = segments.bytes_from(from);
    let mut replayed = 0;
    let mut progress = ReplayProgress { report, total, from: Revision::new(revision), reported: 0, trusted };
    let outcome = segments.scan(from, before, acknowledged, &mut |visit| {
        progress.update(visit, replayed);
        replayed += visit.header.frame_length();
        apply(applier, visit)
    })?;
    for damage in &outcome.damage {
        report(OpenEvent::Damaged(damage.clone()));
    }
    if replayed > 0 || !trusted {
        applier.flush()?;
    }
    Ok(outcome)
}

struct ReplayProgress<'a> {
    report: EventSink<'a>,
    total: u64,
    from: Revision,
    reported: u64,
    trusted: bool,
}

impl ReplayProgress<'_> {
    fn update(&mut self, visit: &VisitedFrame<'_>, done: u64) {
        if done == 0 && self.trusted && visit.header.kind != FrameKind::Seal {
            (self.report)(OpenEvent::Replaying { from: self.from });
        }
        if done >= self.reported + PROGRESS_BYTES {
            self.reported = done;
            (self.report)(OpenEvent::Progress { done, total: self.total });
        }
    }
}

fn apply(applier: &mut Applier, visit: &VisitedFrame<'_>) -> Result<(), StoreError> {
    let (start, gap) = (visit.start, visit.after_damage);
    let revision = match visit.header.kind {
        FrameKind::Body => return Ok(()),
        FrameKind::Seal if gap => return Ok(()),
        FrameKind::Seal => {
            applier.advance_to(visit.end);
            return Ok(());
        }
        FrameKind::Batch => Some(visit.header.revision),
        FrameKind::Note => None,
    };
    let (origin, entries) = visit.unpack().and_then(|payload| batch::decode(&payload)).map_err(|error| {
        StoreError::DamagedJournal { first: visit.damage(&format!("a frame that {error}")) }
    })?;
    let commit =
        Commit { revision, segment: start.segment, offset: start.offset, origin, entries, end: visit.end };
    applier.commit(commit, gap)
}

/// Truncates an unfinished tail and makes the journal's end durable before anything is built on it.
fn open_writer(
    disk: &Arc<dyn Disk>,
    segments: &Segments,
    outcome: &ScanOutcome,
    segment_limit: u64,
    report: EventSink<'_>,
) -> Result<JournalWriter, StoreError> {
    let context = &segments.context;
    if let Some(number) = outcome.unfinished {
        let path = context.segment_path(number);
        disk.remove(&path).map_err(StoreError::io("remove", &path))?;
        disk.sync_folder(&context.folder).map_err(StoreError::io(FSYNC, &context.folder))?;
    }
    let end: Position = outcome.end;
    // A damaged journal may end in a segment that is missing. It is not written to.
    let number = if segments.holds(end.segment) { end.segment } else { segments.last() };
    let path = context.segment_path(number);
    let file = disk.open(&path, true).map_err(StoreError::io("open", &path))?;
    if outcome.damage.is_empty() {
        if outcome.unfinished.is_none() && outcome.tail > 0 {
            file.set_length(end.offset).map_err(StoreError::io("cut", &path))?;
            satchel_failpoints::reached("tail truncated");
        }
        file.sync().map_err(StoreError::io(FSYNC, &path))?;
        // The process that created the segment may have been killed before its name was durable.
        disk.sync_folder(&context.folder).map_err(StoreError::io(FSYNC, &context.folder))?;
        if outcome.tail > 0 {
            report(OpenEvent::TailCut { bytes: outcome.tail });
        }
    }
    JournalWriter::new(Arc::clone(disk), context.clone(), file, end, segment_limit)
}
