//! Decides whether a document may be merged: its owner, its base export, and whether it is as its producer wrote it
//! (PAM 1.0 §16.3).

use std::{cell::RefCell, io::Read as _};

use satchel_bundle::{
    manifest::{BundleSelection, MANIFEST, MAX_MANIFEST_BYTES, Manifest, VectorName},
    rotation::{self, KeyRotation},
};
use satchel_merge::evidence::ExportTime;
use satchel_pam::{
    merge::{self, Ledger},
    parse::ChecksumStatus,
    sign::{self, PublicKey, SignatureCheck},
    store::{ExportType, StoreHeader},
    time::Timestamp,
};
use satchel_source::FileSet as _;

use super::{PamRun, origin::DocumentOrigin, scan::ScannedStore};
use crate::{
    export_ledger::{self, ExportFormat, ExportRecord},
    ingest::error::IngestError,
};

/// Statements of a manifest beyond PAM.
#[derive(Debug, Default)]
pub(in crate::ingest) struct Withdrawals {
    /// Relations that were withdrawn at the origin of the export.
    pub(in crate::ingest) withdrawn: Vec<String>,
    /// Conversations that were undone there.
    pub(in crate::ingest) undone: Vec<String>,
    /// Vectors that were withdrawn there.
    pub(in crate::ingest) vectors: Vec<VectorName>,
    /// The time of these statements, in microseconds; relations created later stay.
    pub(in crate::ingest) at: i64,
}

/// Whether a document may be read.
pub(super) enum Admission {
    Fits,
    /// It breaks a rule that the user waives; holds the problem.
    LetPass(String),
    /// It may not; holds the reason.
    Refused(String),
}

impl PamRun<'_> {
    /// Decides whether the document may be read.
    pub(super) fn refused(
        &self,
        looked: &ScannedStore,
        right: &DocumentOrigin,
    ) -> Result<Admission, IngestError> {
        let failed = RefCell::new(None);
        let export = |id: &str| {
            export_ledger::find(self.store, id).unwrap_or_else(|error| {
                failed.replace(Some(error));
                None
            })
        };
        // A document based on a partial export would have gaps that nobody notices.
        let whole = |id: &str| export(id).filter(|record| record.selection.is_none());
        let kind = |id: &str| whole(id).and_then(|record| record.export_type.parse::<ExportType>().ok());
        let owner = self.apply.and_then(|apply| apply.owner.as_deref());
        let force = self.apply.is_some_and(|apply| apply.force);
        let any_owner = self.apply.is_none_or(|apply| apply.any_owner);
        let ledger = || Ledger { owner, export: &kind };
        let footing = merge::check_base(&looked.root.header, ledger(), any_owner, force);
        let strict = merge::check_base(&looked.root.header, ledger(), self.apply.is_none(), false);
        if let Some(error) = failed.into_inner() {
            return Err(error.into());
        }
        let hint = match &footing {
            Err(merge::BaseError::Owner { .. }) => "; --any-owner takes it nevertheless",
            Err(_) if self.apply.is_some() => "; --force takes it nevertheless",
            _ => "",
        };
        let unproven = || unproven(looked, right).filter(|_| self.apply.is_some() && !force);
        Ok(match (footing, strict) {
            (Err(error), _) => Admission::Refused(format!("{error}{hint}")),
            (Ok(_), strict) => match (unproven(), strict) {
                (Some(reason), _) => Admission::Refused(reason),
                (None, Err(error)) => Admission::LetPass(error.to_string()),
                (None, Ok(_)) => Admission::Fits,
            },
        })
    }

    /// Returns what the manifest withdraws, if the signer of the document signed it; otherwise the reason why it is
    /// ignored.
    pub(super) fn withdrawals(
        &self,
        header: &StoreHeader,
        right: &DocumentOrigin,
    ) -> Result<Withdrawals, String> {
        let Some(bytes) = self.beside(MANIFEST)? else { return Ok(Withdrawals::default()) };
        let manifest = Manifest::parse(&bytes)?;
        let Manifest { withdrawn_relations: withdrawn, undone_conversations: undone, export_id, .. } =
            manifest;
        let vectors = manifest.withdrawn_embeddings;
        if withdrawn.is_empty() && undone.is_empty() && vectors.is_empty() {
            return Ok(Withdrawals::default());
        }
        if header.export_type != ExportType::Incremental {
            return Err("only an incremental export takes anything back".to_owned());
        }
        if header.export_id.as_ref() != Some(&export_id) {
            return Err("it is about another export".to_owned());
        }
        let key = right.signer.as_ref().ok_or("the bundle does not hold, or nobody signed it")?;
        self.of_the_base(header, key, &manifest.rotations)?;
        let at = header.export_date.map_or(0, Timestamp::micros);
        Ok(Withdrawals { withdrawn, undone, vectors, at })
    }

    /// Checks that the key may withdraw what the base export brought: it must be the base's signer, or a later key of
    /// that signer. A valid signature alone is not enough, as anybody can sign a manifest.
    fn of_the_base(
        &self,
        header: &StoreHeader,
        key: &PublicKey,
        rotations: &[KeyRotation],
    ) -> Result<(), String> {
        let base = header.base_export_id.as_deref().unwrap_or_default();
        let base = export_ledger::find(self.store, base).map_err(|error| error.to_string())?;
        let signer = base.ok_or_else(|| "the export that it builds on is not known here".to_owned())?.signer;
        let mut keys = rotation::predecessors(rotations, key).into_iter().chain([key.clone()]);
        if keys.any(|key| key.multibase() == signer) {
            return Ok(());
        }
        Err("the export that it builds on was signed with another key".to_owned())
    }

    /// Describes the selection that the document holds, if it is not a full copy of a store.
    pub(super) fn selected(&self, header: &StoreHeader) -> Option<BundleSelection> {
        BundleSelection::of(header, self.manifest().as_ref())
    }

    fn manifest(&self) -> Option<Manifest> {
        self.beside(MANIFEST).ok().flatten().and_then(|bytes| Manifest::parse(&bytes).ok())
    }

    /// Returns the export date of the document. A partial export ranks before all others: of two versions with the same
    /// time of change, the one from which nothing was removed is shown.
    pub(super) fn exported(&self, header: &StoreHeader) -> Option<ExportTime> {
        let at = header.export_date?.micros();
        let manifest = self.manifest();
        if BundleSelection::of(header, manifest.as_ref()).is_some() {
            return None;
        }
        let own = manifest.filter(|manifest| header.export_id.as_ref() == Some(&manifest.export_id));
        let after = u64::from(header.export_type == ExportType::Incremental);
        Some(ExportTime { at, revision: own.map_or(after, |manifest| manifest.to_revision) })
    }

    fn beside(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        let path = format!("{}{name}", self.files.root);
        if !self.files.companions.contains(&path) {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        let opened =
            self.bundle.open(&path, 0).map_err(|error| format!("{path:?} cannot be read: {error}"))?;
        let read = opened.take(MAX_MANIFEST_BYTES).read_to_end(&mut bytes);
        read.map_err(|error| format!("{path:?} cannot be read: {error}"))?;
        Ok(Some(bytes))
    }
}

/// Returns what fails verification in a document.
fn unproven(looked: &ScannedStore, right: &DocumentOrigin) -> Option<String> {
    let problem = if looked.scan.broken.is_some() {
        "the document breaks off before its end".to_owned()
    } else if let ChecksumStatus::Mismatch { .. } | ChecksumStatus::NotCanonical(_) = &looked.scan.checksum {
        "its checksum does not fit its memories".to_owned()
    } else if let SignatureCheck::Invalid(problem) = sign::verify(&looked.scan.signed) {
        format!("its signature is not valid: {problem}")
    } else if let Some(problem) = &right.problem {
        problem.clone()
    } else {
        return None;
    };
    Some(format!("{problem}; `satchel verify` says more, --force takes it nevertheless"))
}

/// Returns the ledger entry for a merged document; `None` if it has no export id. The caller fills in time, path and
/// revision.
pub(super) fn record(looked: &ScannedStore, right: &DocumentOrigin) -> Option<ExportRecord> {
    let header = &looked.root.header;
    let export_id = header.export_id.clone().filter(|id| !id.is_empty())?;
    let signer = right.signer.as_ref().map(PublicKey::multibase).unwrap_or_default();
    let checksum = looked.root.integrity.as_ref().map(|integrity| integrity.checksum.to_string());
    Some(ExportRecord {
        export_id,
        export_type: header.export_type.as_str().to_owned(),
        format: ExportFormat::Pam,
        base_export_id: header.base_export_id.clone(),
        since: header.since.map(|since| since.to_string()),
        export_date: header.export_date.map(|date| date.to_string()).unwrap_or_default(),
        memories: looked.readable.memories,
        relations: looked.readable.relations,
        conversations: looked.readable.conversations,
        checksum: checksum.unwrap_or_default(),
        signer,
        with_conversations: true,
        applied: true,
        ..ExportRecord::default()
    })
}
