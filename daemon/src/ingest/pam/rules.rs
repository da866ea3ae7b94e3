//! Whether a document may be merged: whose it is, what it builds on, whether it is as its producer wrote it (PAM 1.0 §16.3).

use std::{cell::RefCell, io::Read as _};

use satchel_host::Files as _;
use satchel_pam::{
    merge::{self, Ledger},
    parse::{ChecksumReading, Remains, StoreReading},
    sign::{self, PublicKey, SignatureCheck},
    store::{ExportType, MemoryStore},
    time::Timestamp,
};

use super::{Run, standing::Right};
use crate::{
    exported::{self, ExportRecord, Format},
    ingest::IngestError,
    manifest::{MANIFEST, Manifest, Selected, VectorName},
    plan::evidence::Exported,
    rotation::{self, Rotation},
};

/// Longest manifest that is read, in bytes: one line for each file of a bundle.
const LONGEST_MANIFEST: u64 = 256 << 20;

/// What a manifest says beside PAM.
#[derive(Debug, Default)]
pub(in crate::ingest) struct Told {
    /// Relations that were withdrawn where the export was made.
    pub(in crate::ingest) withdrawn: Vec<String>,
    /// Conversations that were taken back there.
    pub(in crate::ingest) undone: Vec<String>,
    /// Vectors that were withdrawn there.
    pub(in crate::ingest) vectors: Vec<VectorName>,
    /// When that was said, in microseconds: what is drawn later stands.
    pub(in crate::ingest) at: i64,
}

/// Whether a document may be taken.
pub(super) enum Footing {
    Fits,
    /// Not by itself, but the person lets it pass; what is wrong.
    LetPass(String),
    /// Not; why.
    Refused(String),
}

impl Run<'_> {
    /// Whether the document may be taken.
    pub(super) fn refused(
        &self,
        document: &MemoryStore,
        (reading, remains): (&StoreReading, &Remains),
        right: &Right,
    ) -> Result<Footing, IngestError> {
        let failed = RefCell::new(None);
        let export = |id: &str| {
            exported::find(self.store, id).unwrap_or_else(|error| {
                failed.replace(Some(error));
                None
            })
        };
        // What builds on a selection would leave holes that nobody sees.
        let whole = |id: &str| export(id).filter(|record| record.selection.is_none());
        let kind = |id: &str| whole(id).and_then(|record| record.export_type.parse::<ExportType>().ok());
        let owner = self.apply.and_then(|apply| apply.owner.as_deref());
        let force = self.apply.is_some_and(|apply| apply.force);
        let any_owner = self.apply.is_none_or(|apply| apply.any_owner);
        let ledger = || Ledger { owner, export: &kind };
        let footing = merge::check_base(&document.header, ledger(), any_owner, force);
        let strict = merge::check_base(&document.header, ledger(), self.apply.is_none(), false);
        if let Some(error) = failed.into_inner() {
            return Err(error.into());
        }
        let hint = match &footing {
            Err(merge::BaseError::Owner { .. }) => "; --any-owner takes it nevertheless",
            Err(_) if self.apply.is_some() => "; --force takes it nevertheless",
            _ => "",
        };
        let unproven = || unproven(reading, remains, right).filter(|_| self.apply.is_some() && !force);
        Ok(match (footing, strict) {
            (Err(error), _) => Footing::Refused(format!("{error}{hint}")),
            (Ok(_), strict) => match (unproven(), strict) {
                (Some(reason), _) => Footing::Refused(reason),
                (None, Err(error)) => Footing::LetPass(error.to_string()),
                (None, Ok(_)) => Footing::Fits,
            },
        })
    }

    /// What the manifest says, if it is of the signer of the document; why it is not followed otherwise.
    pub(super) fn told(&self, document: &MemoryStore, right: &Right) -> Result<Told, String> {
        let Some(bytes) = self.beside(MANIFEST)? else { return Ok(Told::default()) };
        let manifest = Manifest::parse(&bytes)?;
        let Manifest { withdrawn_relations: withdrawn, undone_conversations: undone, export_id, .. } =
            manifest;
        let vectors = manifest.withdrawn_embeddings;
        if withdrawn.is_empty() && undone.is_empty() && vectors.is_empty() {
            return Ok(Told::default());
        }
        if document.header.export_type != ExportType::Incremental {
            return Err("only an incremental export takes anything back".to_owned());
        }
        if document.header.export_id.as_ref() != Some(&export_id) {
            return Err("it is about another export".to_owned());
        }
        let key = right.signer.as_ref().ok_or("the bundle does not hold, or nobody signed it")?;
        self.of_the_base(document, key, &manifest.rotations)?;
        let at = document.header.export_date.map_or(0, Timestamp::micros);
        Ok(Told { withdrawn, undone, vectors, at })
    }

    /// Whoever may take back what the base brought: its signer, or that signer's later key. Anybody can sign a manifest.
    fn of_the_base(
        &self,
        document: &MemoryStore,
        key: &PublicKey,
        rotations: &[Rotation],
    ) -> Result<(), String> {
        let base = document.header.base_export_id.as_deref().unwrap_or_default();
        let base = exported::find(self.store, base).map_err(|error| error.to_string())?;
        let signer = base.ok_or_else(|| "the export that it builds on is not known here".to_owned())?.signer;
        let mut keys = rotation::predecessors(rotations, key).into_iter().chain([key.clone()]);
        if keys.any(|key| key.multibase() == signer) {
            return Ok(());
        }
        Err("the export that it builds on was signed with another key".to_owned())
    }

    /// What the document says of itself, if it is no copy of a store.
    pub(super) fn selected(&self, document: &MemoryStore) -> Option<Selected> {
        Selected::of(&document.header, self.manifest().as_ref())
    }

    fn manifest(&self) -> Option<Manifest> {
        self.beside(MANIFEST).ok().flatten().and_then(|bytes| Manifest::parse(&bytes).ok())
    }

    /// When the document was exported. A selection counts before all others: of two versions that changed at once, the one from
    /// which nothing was taken is shown.
    pub(super) fn exported(&self, document: &MemoryStore) -> Option<Exported> {
        let at = document.header.export_date?.micros();
        let manifest = self.manifest();
        if Selected::of(&document.header, manifest.as_ref()).is_some() {
            return None;
        }
        let own = manifest.filter(|manifest| document.header.export_id.as_ref() == Some(&manifest.export_id));
        let after = u64::from(document.header.export_type == ExportType::Incremental);
        Some(Exported { at, revision: own.map_or(after, |manifest| manifest.to_revision) })
    }

    fn beside(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        let path = format!("{}{name}", self.files.root);
        if !self.files.beside.contains(&path) {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        let opened =
            self.bundle.open(&path, 0).map_err(|error| format!("{path:?} cannot be read: {error}"))?;
        let read = opened.take(LONGEST_MANIFEST).read_to_end(&mut bytes);
        read.map_err(|error| format!("{path:?} cannot be read: {error}"))?;
        Ok(Some(bytes))
    }
}

/// What of a document does not hold.
fn unproven(reading: &StoreReading, remains: &Remains, right: &Right) -> Option<String> {
    let problem = if remains.broken.is_some() {
        "the document breaks off before its end".to_owned()
    } else if let ChecksumReading::Mismatch { .. } | ChecksumReading::NotCanonical(_) = &reading.checksum {
        "its checksum does not fit its memories".to_owned()
    } else if let SignatureCheck::Invalid(problem) = sign::verify(&reading.signed) {
        format!("its signature is not valid: {problem}")
    } else if let Some(problem) = &right.problem {
        problem.clone()
    } else {
        return None;
    };
    Some(format!("{problem}; `satchel verify` says more, --force takes it nevertheless"))
}

/// What the ledger is to keep of a document that was merged; none without an id to know it by. The caller fills in when, where
/// and to which revision.
pub(super) fn record(document: &MemoryStore, right: &Right) -> Option<ExportRecord> {
    let header = &document.header;
    let export_id = header.export_id.clone().filter(|id| !id.is_empty())?;
    let signer = right.signer.as_ref().map(PublicKey::multibase).unwrap_or_default();
    let checksum = document.integrity.as_ref().map(|integrity| integrity.checksum.to_string());
    Some(ExportRecord {
        export_id,
        export_type: header.export_type.as_str().to_owned(),
        format: Format::Pam,
        base_export_id: header.base_export_id.clone(),
        since: header.since.map(|since| since.to_string()),
        export_date: header.export_date.map(|date| date.to_string()).unwrap_or_default(),
        memories: document.memories.len() as u64,
        relations: document.relations.len() as u64,
        conversations: document.conversations_index.len() as u64,
        checksum: checksum.unwrap_or_default(),
        signer,
        with_conversations: true,
        applied: true,
        ..ExportRecord::default()
    })
}
