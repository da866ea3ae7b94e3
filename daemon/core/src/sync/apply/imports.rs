//! Imports of other stores, with everything that they brought.

use std::collections::BTreeSet;

use satchel_store::Change;
use satchel_sync::{Counter, OriginId};
use uuid::Uuid;

use super::{Applier, Flushed, Moment, SyncError, UNREADABLE, check::evidence_item};
use crate::{
    ingest::{
        exchange::ImportMerge,
        receipt::{ImportRecord, is_machine_name},
    },
    provenance::{self, ContributionKind, EvidenceItem, EvidenceKey, contributed_keys},
    series::{
        entries,
        large::{self, Content},
        payload::{ContributionPayload, ImportPayload, Payload, decode_keys},
    },
};

/// A payload that describes an import, decoded.
pub(super) struct MergedImport {
    pub(super) record: ImportRecord,
    pub(super) contributions: Vec<EvidenceKey>,
    pub(super) evidence: Vec<EvidenceKey>,
}

/// A piece of evidence, and the key under which it is stored.
struct Piece {
    key: EvidenceKey,
    json: Vec<u8>,
    item: EvidenceItem,
}

impl MergedImport {
    /// Decodes the payload. The error says what is wrong with it.
    pub(super) fn read(import: &ImportPayload) -> Result<Self, String> {
        let mut record: ImportRecord = serde_json::from_str(import.record.get())
            .map_err(|error| format!("the receipt is invalid: {error}"))?;
        Uuid::parse_str(&record.id).map_err(|_| "the id of the import is no UUID".to_owned())?;
        record.machine = record.machine.filter(|name| is_machine_name(name));
        let keys = |digits: &str| decode_keys(digits).map_err(|error| error.to_string());
        Ok(Self { record, contributions: keys(&import.contributions)?, evidence: keys(&import.evidence)? })
    }
}

impl Applier<'_> {
    /// Merges an import with everything it brought, and writes `done` together with its receipt.
    pub(super) fn import(
        &mut self,
        import: ImportPayload,
        moment: &Moment,
        mut done: Vec<Change>,
    ) -> Result<Flushed, SyncError> {
        let merged = MergedImport::read(&import).map_err(|_| UNREADABLE)?;
        done.push(entries::put_recorded(&merged.record.id));
        if entries::is_recorded(self.store, &merged.record.id)? {
            // A copy of this store has it in a series of its own.
            self.inner.commit_entries(done)?;
            return Ok(Flushed::Done);
        }
        let outcome = self.merge(merged, import.sources, moment, done);
        let flushed = self.blocked_if_refused(outcome, moment)?;
        self.applied.imports += u64::from(flushed == Flushed::Done);
        Ok(flushed)
    }

    /// Merges what is here of an import. What is not is merged when it comes.
    pub(super) fn merge(
        &mut self,
        import: MergedImport,
        sources: Vec<String>,
        moment: &Moment,
        mut done: Vec<Change>,
    ) -> Result<(), SyncError> {
        let MergedImport { record, contributions, evidence } = import;
        let id = Uuid::parse_str(&record.id).map_err(|_| UNREADABLE)?;
        // From now on, what it brings stays if another import of the same is undone.
        self.inner.commit_entries(vec![provenance::put_merging(Some(id))])?;
        let (mut merge, mut lacking) = (ImportMerge::begin(self.inner, &record, self.cancel)?, 0);
        for key in contributions {
            match self.contribution(key)? {
                Some(contribution) => merge.add_contribution(contribution)?,
                None => lacking += 1,
            }
        }
        for key in evidence {
            match self.evidence(key)? {
                Some(Piece { key, json, item }) => merge.add_evidence(key, &json, &item)?,
                None => lacking += 1,
            }
        }
        self.applied.missing += lacking;
        done.extend(self.note_lacking(id, moment, lacking > 0)?);
        done.push(provenance::put_merging(None));
        merge.finish(record, sources, done)?;
        // It may have been undone before it came.
        self.follow(id, true)
    }

    /// Returns the change of the ledger that says whether pieces of an import are not here, if that is new.
    fn note_lacking(&self, id: Uuid, moment: &Moment, lacks: bool) -> Result<Option<Change>, SyncError> {
        let mut lacking = entries::lacking(self.store)?;
        let before = lacking.len();
        lacking.retain(|(import, ..)| *import != id);
        if lacks {
            lacking.push((id, moment.origin, moment.counter));
        }
        let changed = lacks || lacking.len() < before;
        Ok(if changed { Some(entries::put_lacking(&lacking)?) } else { None })
    }

    /// Merges the pieces of earlier imports that have come since.
    pub(super) fn complete_imports(&mut self) -> Result<(), SyncError> {
        if !std::mem::take(&mut self.pieces_came) {
            return Ok(());
        }
        for (id, origin, counter) in entries::lacking(self.store)? {
            self.check_cancelled()?;
            let stored = entries::change(self.store, origin, counter)?.ok_or(UNREADABLE)?;
            let Content::Present(kind, content) = large::content(self.store, &stored.change)? else {
                continue;
            };
            let Ok(Some(Payload::Import(import))) = Payload::decode(kind, &content) else { continue };
            let all = MergedImport::read(&import).map_err(|_| UNREADABLE)?;
            if self.has_news(id, &all)? {
                let moment =
                    Moment::of(origin, counter, &satchel_sync::Frontier::new(), &self.continuations)?;
                self.merge(all, import.sources, &moment, Vec::new())?;
            }
        }
        Ok(())
    }

    /// Returns whether a piece is here now that the import has not brought yet.
    fn has_news(&self, id: Uuid, import: &MergedImport) -> Result<bool, SyncError> {
        let known = self.brought(ContributionKind::Contributions, id)?;
        for key in import.contributions.iter().filter(|key| !known.contains(*key)) {
            if self.contribution(*key)?.is_some() {
                return Ok(true);
            }
        }
        let known = self.brought(ContributionKind::Evidence, id)?;
        for key in import.evidence.iter().filter(|key| !known.contains(*key)) {
            if self.evidence(*key)?.is_some_and(|piece| !known.contains(&piece.key)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn brought(&self, kind: ContributionKind, import: Uuid) -> Result<BTreeSet<EvidenceKey>, SyncError> {
        Ok(contributed_keys(self.store, kind, import)?.into_iter().collect())
    }

    /// Returns the contribution with this key, which a change of some series has.
    fn contribution(&self, key: EvidenceKey) -> Result<Option<ContributionPayload>, SyncError> {
        Ok(match self.item(key)? {
            Some(Payload::Contribution(contribution)) => Some(*contribution),
            _ => None,
        })
    }

    /// Returns the piece of evidence with this key, or what an erasure left of it, and the key under which that is stored.
    fn evidence(&self, key: EvidenceKey) -> Result<Option<Piece>, SyncError> {
        let (key, json) = match self.item(key)? {
            Some(Payload::Evidence(key, json)) => (key, json),
            _ => match self.payload(entries::remainder(self.store, key)?)? {
                Some(Payload::Remainder(_, json)) => {
                    let item = EvidenceItem::decode(&json)?;
                    let key = item.map(|item| item.key()).transpose()?.flatten().ok_or(UNREADABLE)?;
                    (key, json)
                }
                _ => return Ok(None),
            },
        };
        let item = evidence_item(key, &json).map_err(|_| UNREADABLE)?;
        Ok(item.map(|item| Piece { key, json, item }))
    }

    fn item(&self, key: EvidenceKey) -> Result<Option<Payload>, SyncError> {
        self.payload(entries::item(self.store, key)?)
    }

    fn payload(&self, of: Option<(OriginId, Counter)>) -> Result<Option<Payload>, SyncError> {
        let Some((origin, counter)) = of else { return Ok(None) };
        let change = crate::sync::outgoing::change_at(self.store, origin, counter)?;
        match large::content(self.store, &change)? {
            Content::Present(kind, content) => Payload::decode(kind, &content).map_err(|_| UNREADABLE),
            Content::Absent | Content::Invalid(_) => Ok(None),
        }
    }
}
