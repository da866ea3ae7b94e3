//! Appends to the store's own series what happened before it began, and what imports brought.

mod erasures;
mod exports;

use std::collections::{BTreeMap, BTreeSet};

use satchel_merge::{
    causality::Dot,
    evidence::{DocumentEvidence, EditStep},
    groups,
};
use satchel_store::{Change, Cursor, Ledger, Store};
use uuid::Uuid;

use super::{Sync, SyncError, UNREADABLE};
use crate::{
    each_row,
    ingest::receipt::{ImportRecord, ImportStatus, is_machine_name},
    provenance::{
        Contribution, ContributionKind, ContributionReader, ConversationProvenance, DotPages, EvidenceItem,
        EvidenceKey, PurgedData, UndoRecord, contributed_keys, undone_imports,
    },
    series::{
        LocalSeries, NewPlace, SeriesStoreError, edit_origin,
        entries::{self, ContributionPlace},
        payload::{ContributionPayload, ImportPayload, Payload, UndoPayload, encode_keys},
    },
};

/// Changes per commit.
const BATCH: usize = 200;
/// Imports per page of the ledger.
const PAGE: usize = 500;

/// Appends all edits of the store to its new series; returns the changes that store their dots.
pub(super) fn earlier_edits(store: &Store, series: &mut LocalSeries) -> Result<Vec<Change>, SyncError> {
    let mut steps: Vec<(EvidenceKey, EditStep)> = Vec::new();
    for record in store.evidence_all() {
        let record = record?;
        if EditStep::is(&record.json)
            && let Some(EvidenceItem::Edit(step)) = EvidenceItem::decode(&record.json)?
        {
            steps.push((record.id, *step));
        }
    }
    // In the order in which they were made.
    steps.sort_by_key(|(key, step)| (step.at, *key));
    let (mut pages, mut changes) = (DotPages::open(store)?, Vec::new());
    let origin = edit_origin(series.origin());
    for (key, step) in steps {
        let counter = series.append(&Payload::EarlierEdit(step), NewPlace::Inline)?;
        let dot = Dot::new(origin, counter.get()).ok_or(UNREADABLE)?;
        changes.extend(pages.add(key, dot));
    }
    changes.extend(pages.finish());
    Ok(changes)
}

/// Appends the undos that are in effect to the new series of the store.
pub(super) fn earlier_undos(store: &Store, series: &mut LocalSeries) -> Result<(), SyncError> {
    for import in undone_imports(store)? {
        if let Some(UndoRecord { import, undone, at, .. }) = UndoRecord::load(store, import)? {
            series.append_undo(UndoPayload { import, undone, at })?;
        }
    }
    Ok(())
}

impl Sync {
    /// Appends the imports, erasures and exports to the store's own series that have ended since the last call; returns their number.
    /// Does nothing if the store has no series.
    ///
    /// # Errors
    /// When the store cannot be read or written, or its key is not known.
    pub fn record_history(&self) -> Result<u64, SyncError> {
        if entries::own(self.0.store())?.is_none() {
            return Ok(0);
        }
        Ok(self.record_imports()? + self.record_erasures()? + self.record_exports()?)
    }

    fn record_imports(&self) -> Result<u64, SyncError> {
        let store = self.0.store();
        let pending = self.unrecorded()?;
        if pending.is_empty() {
            return Ok(0);
        }
        let sources = sources_of(store, &pending)?;
        let wanted = self.new_contributions(&pending)?;
        let mut located = locate(store, &wanted)?;
        for record in &pending {
            self.record_import(record, &sources, &mut located)?;
        }
        Ok(pending.len() as u64)
    }

    /// Returns the imports that have ended and are in no series, oldest first.
    fn unrecorded(&self) -> Result<Vec<ImportRecord>, SyncError> {
        let store = self.0.store();
        let mut pending = Vec::new();
        let page =
            |after: Option<&Cursor>| Ok::<_, SyncError>(store.ledger_list(Ledger::Import, after, PAGE)?);
        each_row(page, |entry| {
            let record: ImportRecord = serde_json::from_slice(&entry.value).map_err(|_| UNREADABLE)?;
            if record.status != ImportStatus::Running && !entries::is_recorded(store, &record.id)? {
                pending.push(record);
            }
            Ok(())
        })?;
        pending.reverse();
        Ok(pending)
    }

    /// Returns whether an import is running here, or has ended and is in no series.
    pub(super) fn has_unrecorded(&self) -> Result<bool, SyncError> {
        let (store, mut any) = (self.0.store(), false);
        let page =
            |after: Option<&Cursor>| Ok::<_, SyncError>(store.ledger_list(Ledger::Import, after, PAGE)?);
        each_row(page, |entry| {
            any = any || !entries::is_recorded(store, &entry.id)?;
            Ok(())
        })?;
        Ok(any)
    }

    /// Returns the keys of the contributions of these imports that are in no series.
    fn new_contributions(&self, imports: &[ImportRecord]) -> Result<BTreeSet<EvidenceKey>, SyncError> {
        let (store, mut wanted) = (self.0.store(), BTreeSet::new());
        for record in imports {
            for key in contributed_keys(store, ContributionKind::Contributions, import_id(record)?)? {
                if entries::item(store, key)?.is_none() {
                    wanted.insert(key);
                }
            }
        }
        Ok(wanted)
    }

    /// Appends an import: first everything that it was the first to bring, then the import itself.
    fn record_import(
        &self,
        record: &ImportRecord,
        sources: &BTreeMap<String, Vec<String>>,
        located: &mut BTreeMap<EvidenceKey, String>,
    ) -> Result<(), SyncError> {
        let (store, import) = (self.0.store(), import_id(record)?);
        let contributions = contributed_keys(store, ContributionKind::Contributions, import)?;
        let evidence = contributed_keys(store, ContributionKind::Evidence, import)?;
        let mut own: Vec<(EvidenceKey, String)> = Vec::new();
        for key in &contributions {
            own.extend(located.remove(key).map(|entry| (*key, entry)));
        }
        // Contributions to one conversation follow each other, as they share the version that holds their texts.
        own.sort_by(|one, other| one.1.cmp(&other.1));
        for batch in own.chunks(BATCH) {
            self.append_all(batch, |series, (key, entry)| append_contribution(store, series, *key, entry))?;
        }
        for batch in evidence.chunks(BATCH) {
            self.append_all(batch, |series, key| append_evidence(store, series, *key))?;
        }
        let payload = Payload::Import(Box::new(ImportPayload {
            record: serde_json::value::to_raw_value(&without_texts(record)).map_err(|_| UNREADABLE)?,
            sources: sources.get(&record.id).cloned().unwrap_or_default(),
            contributions: encode_keys(&contributions),
            evidence: encode_keys(&evidence),
        }));
        self.append_all(&[()], |series, ()| {
            series.append(&payload, NewPlace::Inline)?;
            series.note(entries::put_recorded(&record.id));
            Ok(())
        })
    }

    /// Appends changes in one commit.
    fn append_all<T>(
        &self,
        items: &[T],
        append: impl Fn(&mut LocalSeries, &T) -> Result<(), SyncError>,
    ) -> Result<(), SyncError> {
        let _guard = self.0.lock_writes();
        let series = LocalSeries::load(self.0.store(), self.0.series_key())?;
        let mut series = series.ok_or(SyncError::NotBegun)?;
        items.iter().try_for_each(|item| append(&mut series, item))?;
        if series.is_unchanged() {
            return Ok(());
        }
        let (mut changes, applied) = series.into_changes(self.0.store())?;
        changes.extend(applied);
        Ok(self.0.commit_entries(changes)?)
    }
}

/// Appends a piece of evidence, or what erasures have left of it, unless some series has it.
fn append_evidence(store: &Store, series: &mut LocalSeries, key: EvidenceKey) -> Result<(), SyncError> {
    if entries::item(store, key)?.is_some() {
        return Ok(());
    }
    let Some(stored) = store.evidence(key)? else { return Ok(()) };
    let Some(item) = EvidenceItem::decode(&stored.json)? else { return Ok(()) };
    if item.key()? != Some(key) {
        if entries::remainder(store, key)?.is_none()
            && let Some(json) = erasures::remainder(store, &PurgedData::default(), key)?
        {
            erasures::append_remainder(series, key, json)?;
        }
        return Ok(());
    }
    // A later import of the same document may replace what is stored under the key.
    let replaceable = DocumentEvidence::is(&stored.json);
    let place = if replaceable { NewPlace::InlineItem(key) } else { NewPlace::Evidence(key) };
    series.append(&Payload::Evidence(key, stored.json), place)?;
    Ok(())
}

/// Appends a contribution to the entry of the provenance, unless some series has it.
fn append_contribution(
    store: &Store,
    series: &mut LocalSeries,
    key: EvidenceKey,
    entry: &str,
) -> Result<(), SyncError> {
    if entries::item(store, key)?.is_some() {
        return Ok(());
    }
    let provenance = ConversationProvenance::load(store, entry, None)?;
    let Some(part) = provenance.contributions.iter().find(|part| part.key() == Some(key)) else {
        return Ok(());
    };
    let place = contribution_place(store, entry, &provenance, part)?;
    let payload = Payload::Contribution(Box::new(contribution_payload(store, entry, part, place.clone())?));
    match series.append(&payload, NewPlace::Contribution(key, Box::new(place))) {
        Err(error @ SeriesStoreError::TooLarge(_)) => {
            tracing::warn!(conversation = entry, %error, "a conversation stays in this store");
            Ok(())
        }
        outcome => Ok(outcome.map(drop)?),
    }
}

/// Returns where a contribution is, and what is sent with it.
fn contribution_place(
    store: &Store,
    entry: &str,
    provenance: &ConversationProvenance,
    part: &Contribution,
) -> Result<ContributionPlace, SyncError> {
    let shown = part.conversation.iter().chain(&provenance.shown).map(String::as_str).chain([entry]);
    let mut header = None;
    for id in shown {
        header = store.conversation(id, None)?.map(|stored| stored.header);
        if header.is_some() {
            break;
        }
    }
    let header = header.ok_or(UNREADABLE)?;
    let platform = header.provider.name;
    let conversation = if provenance.consists_of_rows() {
        let (report, nodes) = ContributionReader::new(store).read(entry, part)?;
        groups::conversation_id(&platform, report.account.as_deref(), &nodes)
    } else {
        entry.to_owned()
    };
    let import = header.import_metadata.unwrap_or_default();
    Ok(ContributionPlace { entry: entry.to_owned(), conversation, platform, import })
}

/// Returns a contribution as other stores get it. It is the same each time, so that it has the digest that was signed. `entry` is
/// where it is now.
pub(super) fn contribution_payload(
    store: &Store,
    entry: &str,
    part: &Contribution,
    place: ContributionPlace,
) -> Result<ContributionPayload, SyncError> {
    let ContributionPlace { conversation, platform, import, .. } = place;
    let (report, nodes) = ContributionReader::new(store).read(entry, part)?;
    let nodes = ContributionPayload::encode_nodes(nodes).map_err(|_| UNREADABLE)?;
    let untrusted = part.untrusted.clone();
    Ok(ContributionPayload { conversation, platform, import, untrusted, report, nodes })
}

/// Returns the entries of the provenance that the contributions with these keys belong to.
fn locate(store: &Store, wanted: &BTreeSet<EvidenceKey>) -> Result<BTreeMap<EvidenceKey, String>, SyncError> {
    let mut located = BTreeMap::new();
    if wanted.is_empty() {
        return Ok(located);
    }
    each_row(
        |after| ConversationProvenance::page(store, after).map_err(SyncError::from),
        |(entry, provenance)| {
            for key in provenance.contributions.iter().filter_map(Contribution::key) {
                if wanted.contains(&key) {
                    located.insert(key, entry.clone());
                }
            }
            Ok(())
        },
    )?;
    Ok(located)
}

/// Returns the identities of the sources of imports, by import.
fn sources_of(store: &Store, imports: &[ImportRecord]) -> Result<BTreeMap<String, Vec<String>>, SyncError> {
    let ids: BTreeSet<&str> = imports.iter().map(|record| record.id.as_str()).collect();
    let mut sources: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let page = |after: Option<&Cursor>| Ok::<_, SyncError>(store.ledger_list(Ledger::Source, after, PAGE)?);
    each_row(page, |entry| {
        if let Ok(import) = String::from_utf8(entry.value)
            && ids.contains(import.as_str())
        {
            sources.entry(import).or_default().push(entry.id);
        }
        Ok(())
    })?;
    Ok(sources)
}

/// Returns a receipt without the lists that may quote what was imported. They stay in the store that made the import, where an erasure
/// finds them.
fn without_texts(record: &ImportRecord) -> ImportRecord {
    ImportRecord {
        machine: record.machine.clone().or_else(machine_name),
        files: Vec::new(),
        reason: None,
        skipped: Vec::new(),
        warnings: Vec::new(),
        differences: Vec::new(),
        ..record.clone()
    }
}

/// Returns the name of this machine.
fn machine_name() -> Option<String> {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Some(name).filter(|name| is_machine_name(name))
}

fn import_id(record: &ImportRecord) -> Result<Uuid, SyncError> {
    Uuid::parse_str(&record.id).map_err(|_| UNREADABLE)
}
