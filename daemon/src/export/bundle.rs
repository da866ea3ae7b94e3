//! Writes one full bundle: conversations, then the memory store that indexes them, then the signed manifest.

use std::{collections::BTreeMap, io::Write};

use satchel_pam::{
    conversation,
    embedding::{self, StorageKind},
    ids,
    sign::{self, PublicKey},
    store::{self, ExportType, IndexEntry, Integrity, Owner, StorageReference, StoreHeader, WriteError},
    time::Timestamp,
};
use satchel_store::{
    ConversationQuery, ConversationRecord, MemoryOrder, MemoryQuery, MemoryRecord, Revision, Store,
};

use super::{
    ExportError, ExportRecord, ExportRequest, Format,
    keys::Signer,
    pages,
    target::{Target, Written},
};
use crate::{
    manifest::{Filter, MANIFEST, Manifest, ManifestFile, SIGNATURE, VERSION},
    plan::{
        assemble::{Places, shown_header},
        body,
    },
};

/// Rows that are read at once.
pub(super) const PAGE: usize = 500;
/// Microseconds of a second; PAM's dates of an export have none below it.
const SECOND: i64 = 1_000_000;

pub(super) struct Job<'a> {
    pub(super) store: &'a Store,
    pub(super) request: &'a ExportRequest,
    pub(super) id: String,
    pub(super) revision: Revision,
    /// Microseconds since the Unix epoch.
    pub(super) now: i64,
    pub(super) signer: &'a Signer,
}

/// What the first look at the memories tells.
#[derive(Default)]
struct Survey {
    withheld: u64,
    /// Memories of each conversation that may leave.
    derived: BTreeMap<String, Vec<String>>,
}

/// What has been written beside the memories.
#[derive(Default)]
struct Beside {
    index: Vec<IndexEntry>,
    relations: u64,
}

impl Job<'_> {
    pub(super) fn write(&self) -> Result<ExportRecord, ExportError> {
        let mut target = Target::create(&self.request.output, &self.id)?;
        let survey = self.survey()?;
        let mut beside = Beside::default();
        if self.request.conversations {
            self.conversations(&mut target, &survey, &mut beside)?;
        }
        self.embeddings(&mut target)?;
        let integrity = self.memory_store(&mut target, &mut beside)?;
        if self.request.attachments {
            self.attachments(&mut target, &beside)?;
        }
        let manifest = self.manifest(&mut target)?;
        let bytes = target.publish()?;
        Ok(ExportRecord {
            export_id: self.id.clone(),
            export_type: "full".into(),
            format: Format::Pam,
            base_export_id: None,
            since: None,
            export_date: self.date().to_string(),
            at_micros: self.now,
            memories: integrity.total_memories,
            relations: beside.relations,
            conversations: beside.index.len() as u64,
            withheld: survey.withheld,
            checksum: integrity.checksum.to_string(),
            manifest_sha256: manifest.sha256.to_string(),
            signer: PublicKey::of(&self.signer.key).multibase(),
            revision: self.revision.get(),
            path: self.place(),
            bytes,
        })
    }

    pub(super) fn date(&self) -> Timestamp {
        Timestamp::saturating(self.now - self.now.rem_euclid(SECOND))
    }

    /// Walks all memories of the revision in the order of their ids.
    pub(super) fn each_memory(
        &self,
        see: impl FnMut(MemoryRecord) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        let query = MemoryQuery { order: MemoryOrder::IdAscending, ..MemoryQuery::default() };
        pages(|after| Ok(self.store.memories(&query, after, PAGE, self.revision)?), see)
    }

    /// Where the export lies once it is published.
    pub(super) fn place(&self) -> String {
        let output = &self.request.output;
        std::fs::canonicalize(output).unwrap_or_else(|_| output.clone()).display().to_string()
    }

    fn survey(&self) -> Result<Survey, ExportError> {
        let mut survey = Survey::default();
        self.each_memory(|record| {
            if !record.memory.exportable() {
                survey.withheld += 1;
                return Ok(());
            }
            if let Some(conversation) = record.memory.provenance.conversation_ref {
                survey.derived.entry(conversation).or_default().push(record.memory.id);
            }
            Ok(())
        })?;
        Ok(survey)
    }

    fn conversations(
        &self,
        target: &mut Target,
        survey: &Survey,
        beside: &mut Beside,
    ) -> Result<(), ExportError> {
        let query = ConversationQuery::default();
        pages(
            |after| Ok(self.store.conversations(&query, after, PAGE, self.revision)?),
            |summary| {
                let Some(record) = self.store.conversation(&summary.id, Some(self.revision))? else {
                    return Ok(());
                };
                let path = format!("conversations/{}.json", ids::file_name(&summary.id));
                target.file(&path, |out| self.conversation(&record, out))?;
                beside.index.push(index_entry(&record, path, survey.derived.get(&summary.id)));
                Ok(())
            },
        )?;
        beside.index.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(())
    }

    fn conversation(&self, record: &ConversationRecord, out: &mut dyn Write) -> Result<(), ExportError> {
        let failed = ExportError::write(&self.request.output);
        let places = Places::of(record);
        let header = shown_header(record);
        let mut writer = conversation::Writer::new(out, &header).map_err(&failed)?;
        for (head, body) in record.heads.iter().zip(self.store.all_bodies(record)) {
            let (_, bytes) = body?;
            let message = places
                .message(head, &bytes)
                .map_err(|_| ExportError::Unencodable { what: "a stored message" })?;
            writer.message(&message).map_err(&failed)?;
        }
        writer.finish().map_err(&failed)?;
        Ok(())
    }

    fn embeddings(&self, target: &mut Target) -> Result<(), ExportError> {
        let failed = ExportError::write(&self.request.output);
        let first = self.store.embeddings(None, 1)?;
        if first.items.is_empty() {
            return Ok(());
        }
        target.file("embeddings.json", |out| {
            let mut writer = embedding::Writer::new(out).map_err(&failed)?;
            pages(
                |after| Ok(self.store.embeddings(after, PAGE)?),
                |record| {
                    let leaves = self.leaves(&record.embedding.memory_id)?;
                    if leaves { writer.embedding(&record.embedding).map_err(&failed) } else { Ok(()) }
                },
            )?;
            writer.finish().map(drop).map_err(&failed)
        })?;
        Ok(())
    }

    fn memory_store(&self, target: &mut Target, beside: &mut Beside) -> Result<Integrity, ExportError> {
        let failed = |error: WriteError| match error {
            WriteError::Io(source) => ExportError::write(&self.request.output)(source),
            _ => ExportError::Unencodable { what: "a memory" },
        };
        let mut integrity = None;
        target.file("memory-store.json", |out| {
            let mut writer = store::Writer::new(out, self.header()).map_err(failed)?;
            self.each_memory(|record| {
                if record.memory.exportable() {
                    writer.memory(&record.memory).map_err(failed)
                } else {
                    Ok(())
                }
            })?;
            self.each_relation(|relation| {
                beside.relations += 1;
                writer.relation(relation).map_err(failed)
            })?;
            beside.index.iter().try_for_each(|entry| writer.index_entry(entry).map_err(failed))?;
            let signer = store::Signer { key: &self.signer.key, signed_at: self.date() };
            integrity = Some(writer.finish(Some(signer)).map_err(failed)?.integrity);
            Ok(())
        })?;
        integrity.ok_or(ExportError::Unencodable { what: "the memory store" })
    }

    fn leaves(&self, memory: &str) -> Result<bool, ExportError> {
        Ok(self
            .store
            .memory(memory, Some(self.revision))?
            .is_some_and(|record| !record.withdrawn && record.memory.exportable()))
    }

    /// Relations that stand and whose both ends may leave.
    fn each_relation(
        &self,
        mut see: impl FnMut(&satchel_pam::relation::Relation) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        pages(
            |after| Ok(self.store.relations(after, PAGE, self.revision)?),
            |record| {
                if !record.withdrawn
                    && self.leaves(&record.relation.from)?
                    && self.leaves(&record.relation.to)?
                {
                    see(&record.relation)?;
                }
                Ok(())
            },
        )
    }

    fn header(&self) -> StoreHeader {
        let owner = Owner {
            id: self.signer.owner.clone(),
            did: Some(PublicKey::of(&self.signer.key).did_key()),
            created_at: Some(self.signer.owner_since),
        };
        StoreHeader {
            export_id: Some(self.id.clone()),
            exported_by: Some(format!("satchel/{}", env!("CARGO_PKG_VERSION"))),
            export_date: Some(self.date()),
            export_type: ExportType::Full,
            ..StoreHeader::new(owner)
        }
    }

    fn attachments(&self, target: &mut Target, beside: &Beside) -> Result<(), ExportError> {
        let failed = ExportError::write(&self.request.output);
        let mut done = std::collections::BTreeSet::new();
        for entry in &beside.index {
            let Some(record) = self.store.conversation(&entry.id, Some(self.revision))? else { continue };
            for body in self.store.all_bodies(&record) {
                let (_, bytes) = body?;
                for hash in body::attachment_hashes(&bytes) {
                    if !done.insert(hash) {
                        continue;
                    }
                    if let Some(mut blob) = self.store.blob_open(hash.as_bytes())? {
                        let path = format!("attachments/{}", hash.to_hex());
                        target.file(&path, |out| std::io::copy(&mut blob, out).map(drop).map_err(&failed))?;
                    }
                }
            }
        }
        Ok(())
    }

    fn manifest(&self, target: &mut Target) -> Result<Written, ExportError> {
        let failed = ExportError::write(&self.request.output);
        let manifest = Manifest {
            version: VERSION,
            export_id: self.id.clone(),
            export_type: "full".into(),
            base_export_id: None,
            from_revision: 0,
            to_revision: self.revision.get(),
            filter: Filter {
                conversations: self.request.conversations,
                attachments: self.request.attachments,
            },
            files: listed(&target.files),
        };
        let bytes = manifest.to_bytes().map_err(|_| ExportError::Unencodable { what: "the manifest" })?;
        let signature = sign::sign_bytes(&self.signer.key, &bytes);
        let written = target.file(MANIFEST, |out| out.write_all(&bytes).map_err(&failed))?;
        target.file(SIGNATURE, |out| writeln!(out, "{signature}").map_err(&failed))?;
        Ok(written)
    }
}

fn index_entry(record: &ConversationRecord, path: String, derived: Option<&Vec<String>>) -> IndexEntry {
    let header = shown_header(record);
    IndexEntry {
        id: header.id,
        platform: header.provider.name,
        title: header.title,
        message_count: Some(record.heads.len() as u64),
        temporal: header.temporal,
        tags: header.tags,
        derived_memories: derived.cloned().unwrap_or_default(),
        storage: Some(StorageReference {
            kind: StorageKind::File,
            reference: path,
            format: Some("json".into()),
        }),
    }
}

fn listed(written: &[Written]) -> Vec<ManifestFile> {
    let mut files: Vec<ManifestFile> = written
        .iter()
        .map(|file| ManifestFile { path: file.path.clone(), sha256: file.sha256, bytes: file.bytes })
        .collect();
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files
}
