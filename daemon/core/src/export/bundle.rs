//! Writes one bundle: conversations, then the memory store that indexes them, then the signed manifest.
//!
//! Only one record at a time is held in memory. The memory that grows with a bundle is used for the ids of its
//! conversations, the names and digests of its files and, in an incremental export, the ids of what changed.

mod conversations;
mod vectors;

use std::collections::BTreeSet;

use satchel_pam::{
    privacy,
    relation::Relation,
    sign::{self, PublicKey},
    store::{self, ExportType, Integrity, Owner, StoreHeader, WriteError},
};
use satchel_store::RelationRecord;

use satchel_bundle::manifest::{
    BundleFilter, MANIFEST, Manifest, ManifestFile, PROGRAM_NAME, SELECTION_PROGRAM_NAME, SIGNATURE, VERSION,
};

use self::conversations::BundleConversations;
use super::{
    ExportError, ExportRecord, FULL, INCREMENTAL, PAGE,
    job::ExportJob,
    pages,
    record_id::RecordId,
    target::{ExportTarget, WrittenFile},
};
use crate::export_ledger::{self, DocumentInfo};

/// Counts collected while the memory store is written.
#[derive(Default)]
struct BundleCounts {
    relations: u64,
    /// Memories that must not be exported.
    withheld: u64,
}

/// Writes the bundle.
pub(super) fn write(job: &ExportJob<'_>) -> Result<ExportRecord, ExportError> {
    let mut target = job.target()?;
    let mut conversations = job.conversations(&mut target)?;
    job.embeddings(&mut target)?;
    let mut counts = BundleCounts::default();
    let integrity = job.memory_store(&mut target, &mut conversations, &mut counts)?;
    if job.request.attachments {
        job.attachments(&mut target, &conversations)?;
    }
    let manifest = job.manifest(&mut target)?;
    let bytes = target.publish()?;
    let delta = job.delta.as_ref();
    Ok(ExportRecord {
        export_type: job.kind().into(),
        base_export_id: delta.map(|delta| delta.base.clone()),
        since: delta.map(|delta| delta.since.to_string()),
        memories: integrity.total_memories,
        relations: counts.relations,
        conversations: conversations.count(),
        withheld: delta.map_or(counts.withheld, |delta| delta.withheld),
        checksum: integrity.checksum.to_string(),
        manifest_sha256: manifest.sha256.to_string(),
        signer: PublicKey::of(&job.signer.key).multibase(),
        bytes,
        base_revision: delta.map(|delta| delta.from.get()),
        reason: job.reason.clone(),
        warnings: delta.map(|delta| delta.inexpressible.warnings()).unwrap_or_default(),
        full_next: delta.is_some_and(|delta| delta.inexpressible.any()),
        ..job.record()
    })
}

impl ExportJob<'_> {
    fn kind(&self) -> &'static str {
        if self.delta.is_some() { INCREMENTAL } else { FULL }
    }

    fn memory_store(
        &self,
        target: &mut ExportTarget,
        conversations: &mut BundleConversations,
        counts: &mut BundleCounts,
    ) -> Result<Integrity, ExportError> {
        let failed = |error: WriteError| match error {
            WriteError::Io(source) => ExportError::write(&self.request.output)(source),
            _ => ExportError::Unencodable { what: "a memory" },
        };
        let mut integrity = None;
        target.file("memory-store.json", |out| {
            let mut writer = store::Writer::new(out, self.header()?).map_err(failed)?;
            self.each_memory(|record| {
                self.progress.update(|progress| progress.memories += 1)?;
                if !self.is_exportable(&record.memory)? {
                    counts.withheld += 1;
                    return Ok(());
                }
                let memory = self.redact_memory(record.memory, |id| conversations.contains(id))?;
                conversations.add_reference(&memory);
                writer.memory(&memory).map_err(failed)
            })?;
            self.each_relation(|relation| {
                counts.relations += 1;
                writer.relation(relation).map_err(failed)
            })?;
            self.each_index_entry(conversations, |entry| writer.index_entry(entry).map_err(failed))?;
            let signer = store::Signer { key: &self.signer.key, signed_at: self.date() };
            integrity = Some(writer.finish(Some(signer)).map_err(failed)?.integrity);
            Ok(())
        })?;
        integrity.ok_or(ExportError::Unencodable { what: "the memory store" })
    }

    /// Passes on each relation that is not withdrawn and whose two ends may both be exported.
    fn each_relation(
        &self,
        mut visit: impl FnMut(&Relation) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        let mut export = |record: RelationRecord| {
            let exported = !record.withdrawn
                && self.is_exported(&record.relation.from)?
                && self.is_exported(&record.relation.to)?;
            if exported { visit(&record.relation) } else { Ok(()) }
        };
        if let Some(delta) = &self.delta {
            for id in &delta.relations {
                id.with_text(|id| self.store.relation(id, Some(self.revision)))?
                    .map_or(Ok(()), &mut export)?;
            }
            return Ok(());
        }
        pages(|after| Ok(self.store.relations(after, PAGE, self.revision)?), export)
    }

    fn header(&self) -> Result<StoreHeader, ExportError> {
        let about =
            export_ledger::document_info(self.store, &self.signer.owner)?.filter(|about| about.applied);
        let DocumentInfo { owner: known, spec_uri, type_registry, applied: _ } = about.unwrap_or_default();
        // A recorded `did:key:` names a key other than the one that signs here.
        let known_did = known.did.filter(|did| !did.starts_with("did:key:"));
        // The user's own DID may be publicly linked to a name, so it is dropped when identifiers are stripped.
        let did = self.did.map(str::to_owned).or(known_did).filter(|_| !self.request.selection.strip);
        let since = self.signer.owner_since;
        let mut owner = Owner {
            id: self.signer.owner.clone(),
            did: Some(did.unwrap_or_else(|| PublicKey::of(&self.signer.key).did_key())),
            created_at: Some(known.created_at.map_or(since, |known| known.min(since))),
        };
        if self.request.selection.strip {
            privacy::strip_owner(&mut owner, &self.signer.pseudonymous_owner_id());
        }
        let name = if self.request.selection.description().is_some() {
            SELECTION_PROGRAM_NAME
        } else {
            PROGRAM_NAME
        };
        Ok(StoreHeader {
            spec_uri: spec_uri.filter(|_| !self.request.selection.strip),
            export_id: Some(self.id.clone()),
            exported_by: Some(format!("{name}/{}", env!("CARGO_PKG_VERSION"))),
            export_date: Some(self.date()),
            export_type: if self.delta.is_some() { ExportType::Incremental } else { ExportType::Full },
            base_export_id: self.delta.as_ref().map(|delta| delta.base.clone()),
            since: self.delta.as_ref().map(|delta| delta.since),
            type_registry: self.type_registry.map(str::to_owned).or(type_registry),
            ..StoreHeader::new(owner)
        })
    }

    fn manifest(&self, target: &mut ExportTarget) -> Result<WrittenFile, ExportError> {
        let failed = ExportError::write(&self.request.output);
        let delta = self.delta.as_ref();
        let mut manifest = Manifest {
            version: VERSION,
            export_id: self.id.clone(),
            export_type: self.kind().into(),
            base_export_id: delta.map(|delta| delta.base.clone()),
            since: delta.map(|delta| delta.since.to_string()),
            from_revision: delta.map_or(0, |delta| delta.from.get() + 1),
            to_revision: self.revision.get(),
            withdrawn_relations: delta.map(|delta| id_texts(&delta.withdrawn_relations)).unwrap_or_default(),
            undone_conversations: delta
                .map(|delta| id_texts(&delta.undone_conversations))
                .unwrap_or_default(),
            withdrawn_embeddings: delta
                .map(|delta| delta.withdrawn_embeddings.iter().cloned().collect())
                .unwrap_or_default(),
            filter: BundleFilter {
                conversations: self.request.conversations,
                attachments: self.request.attachments,
                selection: self.request.selection.description(),
            },
            rotations: self.signer.rotations.clone(),
            files: manifest_files(target.take_files()),
        };
        let bytes = manifest.to_bytes().map_err(|_| ExportError::Unencodable { what: "the manifest" })?;
        let signature = sign::sign_bytes(&self.signer.key, &bytes);
        let written = target.file(MANIFEST, |out| out.write_all(&bytes).map_err(&failed))?;
        target.file(SIGNATURE, |out| writeln!(out, "{signature}").map_err(&failed))?;
        Ok(written)
    }
}

fn id_texts(ids: &BTreeSet<RecordId>) -> Vec<String> {
    ids.iter().map(|id| id.with_text(str::to_owned)).collect()
}

fn manifest_files(written: Vec<WrittenFile>) -> Vec<ManifestFile> {
    let mut files: Vec<ManifestFile> = written
        .into_iter()
        .map(|WrittenFile { path, sha256, bytes }| ManifestFile { path, sha256, bytes })
        .collect();
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files
}
