//! Writes one bundle: conversations, then the memory store that indexes them, then the signed manifest.

use std::{
    cell::{Cell, OnceCell},
    collections::BTreeMap,
    io::Write,
};

use satchel_pam::{
    conversation::{self, ConversationHeader},
    embedding::{self, Embedding, StorageKind},
    ids, privacy,
    sign::{self, PublicKey},
    store::{self, ExportType, IndexEntry, Integrity, Owner, StorageReference, StoreHeader, WriteError},
    time::Timestamp,
};
use satchel_store::{
    ConversationQuery, ConversationRecord, EmbeddingRecord, MemoryOrder, MemoryQuery, MemoryRecord,
    RelationRecord, Revision, Store,
};

use super::{
    ExportError, ExportRecord, ExportRequest, FULL, Format, INCREMENTAL, Progress,
    delta::Delta,
    keys::Signer,
    pages,
    target::{Target, Written},
    withheld::Texts,
};
use crate::{
    manifest::{Filter, MANIFEST, Manifest, ManifestFile, SELECTION, SIGNATURE, VERSION},
    plan::{
        assemble::{Places, shown_header},
        body,
        evidence::{Field, marks},
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
    /// The person's own DID.
    pub(super) did: Option<&'a str>,
    /// Only what changed; none: all.
    pub(super) delta: Option<Delta>,
    /// Why all, if changes were asked for.
    pub(super) reason: Option<String>,
    pub(super) told: Told<'a>,
    /// What must not leave, once something asked for it.
    pub(super) private: OnceCell<Texts>,
    /// Where the types of the person's own are written down.
    pub(super) type_registry: Option<&'a str>,
}

/// How far it is, and who hears of it.
pub(super) struct Told<'a> {
    pub(super) progress: Cell<Progress>,
    pub(super) tell: &'a dyn Fn(Progress),
}

impl Told<'_> {
    pub(super) fn on(&self, step: impl FnOnce(&mut Progress)) {
        let mut progress = self.progress.get();
        step(&mut progress);
        self.progress.set(progress);
        (self.tell)(progress);
    }
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

impl Beside {
    /// Whether a conversation was written; the index is sorted by then.
    fn has(&self, conversation: &str) -> bool {
        self.index.binary_search_by(|entry| entry.id.as_str().cmp(conversation)).is_ok()
    }
}

impl Job<'_> {
    pub(super) fn write(&self) -> Result<ExportRecord, ExportError> {
        let mut target = self.target()?;
        let survey = self.survey()?;
        let mut beside = Beside::default();
        if let Some(query) = self.wanted_conversations() {
            self.conversations(&query, &mut target, &survey, &mut beside)?;
        }
        self.embeddings(&mut target)?;
        let integrity = self.memory_store(&mut target, &mut beside)?;
        if self.request.attachments {
            self.attachments(&mut target, &beside)?;
        }
        let manifest = self.manifest(&mut target)?;
        let bytes = target.publish()?;
        let delta = self.delta.as_ref();
        Ok(ExportRecord {
            export_id: self.id.clone(),
            export_type: self.kind().into(),
            format: Format::Pam,
            base_export_id: delta.map(|delta| delta.base.clone()),
            since: delta.map(|delta| delta.since.to_string()),
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
            with_conversations: self.request.conversations,
            with_attachments: self.request.attachments,
            base_revision: delta.map(|delta| delta.from.get()),
            reason: self.reason.clone(),
            warnings: delta.map(|delta| delta.unsaid.warnings()).unwrap_or_default(),
            full_next: delta.is_some_and(|delta| delta.unsaid.any()),
            applied: false,
            scheduled: false,
            selection: self.request.selection.said(),
            encrypted: self.request.lock.is_some(),
        })
    }

    /// Where the export is written.
    pub(super) fn target(&self) -> Result<Target, ExportError> {
        Target::create(&self.request.output, self.request.lock.as_ref(), &self.id)
    }

    fn kind(&self) -> &'static str {
        if self.delta.is_some() { INCREMENTAL } else { FULL }
    }

    pub(super) fn date(&self) -> Timestamp {
        Timestamp::saturating(self.now - self.now.rem_euclid(SECOND))
    }

    /// Walks the memories of the revision in the order of their ids: all, or those that changed and may leave.
    pub(super) fn each_memory(
        &self,
        mut see: impl FnMut(MemoryRecord) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        if let Some(delta) = &self.delta {
            for id in &delta.memories {
                self.store.memory(id, Some(self.revision))?.map_or(Ok(()), &mut see)?;
            }
            return Ok(());
        }
        let query =
            MemoryQuery { order: MemoryOrder::IdAscending, ..self.request.selection.memories.clone() };
        pages(|after| Ok(self.store.memories(&query, after, PAGE, self.revision)?), see)
    }

    /// Where the export lies once it is published.
    pub(super) fn place(&self) -> String {
        let output = &self.request.output;
        std::fs::canonicalize(output).unwrap_or_else(|_| output.clone()).display().to_string()
    }

    fn survey(&self) -> Result<Survey, ExportError> {
        let mut survey = Survey::default();
        if let Some(delta) = &self.delta {
            survey.withheld = delta.withheld;
            for conversation in &delta.conversations {
                survey.derived.insert(conversation.clone(), self.derived(conversation)?);
            }
            return Ok(survey);
        }
        self.each_memory(|record| {
            if !self.may_leave(&record.memory)? {
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

    /// The memories of a conversation that may leave, by id.
    fn derived(&self, conversation: &str) -> Result<Vec<String>, ExportError> {
        let query = MemoryQuery {
            conversation: Some(conversation.to_owned()),
            order: MemoryOrder::CreatedAscending,
            ..MemoryQuery::default()
        };
        let mut derived = Vec::new();
        pages(
            |after| Ok(self.store.memories(&query, after, PAGE, self.revision)?),
            |record| {
                derived.extend(self.may_leave(&record.memory)?.then_some(record.memory.id));
                Ok(())
            },
        )?;
        derived.sort_unstable();
        Ok(derived)
    }

    fn conversations(
        &self,
        query: &ConversationQuery,
        target: &mut Target,
        survey: &Survey,
        beside: &mut Beside,
    ) -> Result<(), ExportError> {
        let mut write = |id: &str| {
            let Some(record) = self.store.conversation(id, Some(self.revision))? else {
                return Ok(());
            };
            let path = format!("conversations/{}.json", ids::file_name(id));
            target.file(&path, |out| self.conversation(&record, out))?;
            self.told.on(|progress| progress.conversations += 1);
            let header = self.leaving_header(shown_header(&record))?;
            let count = record.heads.len() as u64;
            beside.index.push(index_entry(header, count, path, survey.derived.get(id)));
            Ok(())
        };
        if let Some(delta) = &self.delta {
            delta.conversations.iter().try_for_each(|id| write(id))?;
        } else {
            pages(
                |after| Ok(self.store.conversations(query, after, PAGE, self.revision)?),
                |summary| write(&summary.id),
            )?;
        }
        beside.index.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(())
    }

    fn conversation(&self, record: &ConversationRecord, out: &mut dyn Write) -> Result<(), ExportError> {
        let failed = ExportError::write(&self.request.output);
        let places = Places::of(record);
        let header = self.leaving_header(shown_header(record))?;
        let mut writer = conversation::Writer::new(out, &header).map_err(&failed)?;
        for (head, body) in record.heads.iter().zip(self.store.all_bodies(record)) {
            let (_, bytes) = body?;
            let message = places
                .message(head, &bytes)
                .map_err(|_| ExportError::Unencodable { what: "a stored message" })?;
            writer.message(&self.leaving_message(message)).map_err(&failed)?;
        }
        writer.finish().map_err(&failed)?;
        Ok(())
    }

    fn embeddings(&self, target: &mut Target) -> Result<(), ExportError> {
        let failed = ExportError::write(&self.request.output);
        if !self.any_embedding()? {
            return Ok(());
        }
        target.file("embeddings.json", |out| {
            let mut writer = embedding::Writer::new(out).map_err(&failed)?;
            self.each_embedding(|record| {
                let leaves = self.leaves(&record.embedding.memory_id)? && self.fits(&record.embedding)?;
                if leaves { writer.embedding(&record.embedding).map_err(&failed) } else { Ok(()) }
            })?;
            writer.finish().map(drop).map_err(&failed)
        })?;
        Ok(())
    }

    fn any_embedding(&self) -> Result<bool, ExportError> {
        let Some(delta) = &self.delta else {
            return Ok(!self.store.embeddings(None, 1)?.items.is_empty());
        };
        for memory in &delta.embedded {
            if self.leaves(memory)? && !self.store.embeddings_of(memory)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn each_embedding(
        &self,
        mut see: impl FnMut(EmbeddingRecord) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        let Some(delta) = &self.delta else {
            return pages(|after| Ok(self.store.embeddings(after, PAGE)?), see);
        };
        for memory in &delta.embedded {
            self.store.embeddings_of(memory)?.into_iter().try_for_each(&mut see)?;
        }
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
                self.told.on(|progress| progress.memories += 1);
                if !self.may_leave(&record.memory)? {
                    return Ok(());
                }
                let memory = self.leaving(record.memory, |conversation| beside.has(conversation))?;
                writer.memory(&memory).map_err(failed)
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

    /// Whether a vector is of what its memory says: the person may have written something else since (PAM rule ).
    fn fits(&self, embedding: &Embedding) -> Result<bool, ExportError> {
        let record = self.store.memory(&embedding.memory_id, Some(self.revision))?;
        let written = record.and_then(|record| marks(&record.memory).get(&Field::Content).copied());
        Ok(written.is_none_or(|written| written <= embedding.created_at.micros()))
    }

    /// Relations that stand and whose both ends may leave.
    fn each_relation(
        &self,
        mut see: impl FnMut(&satchel_pam::relation::Relation) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        let mut show = |record: RelationRecord| {
            let leaves = !record.withdrawn
                && self.leaves(&record.relation.from)?
                && self.leaves(&record.relation.to)?;
            if leaves { see(&record.relation) } else { Ok(()) }
        };
        if let Some(delta) = &self.delta {
            for id in &delta.relations {
                self.store.relation(id, Some(self.revision))?.map_or(Ok(()), &mut show)?;
            }
            return Ok(());
        }
        pages(|after| Ok(self.store.relations(after, PAGE, self.revision)?), show)
    }

    fn header(&self) -> StoreHeader {
        // A DID of one's own may be known to belong to a name.
        let did = self.did.filter(|_| !self.request.selection.strip).map(str::to_owned);
        let mut owner = Owner {
            id: self.signer.owner.clone(),
            did: Some(did.unwrap_or_else(|| PublicKey::of(&self.signer.key).did_key())),
            created_at: Some(self.signer.owner_since),
        };
        if self.request.selection.strip {
            privacy::strip_owner(&mut owner, &self.signer.stand_in());
        }
        let name = if self.request.selection.said().is_some() { SELECTION } else { "satchel" };
        StoreHeader {
            export_id: Some(self.id.clone()),
            exported_by: Some(format!("{name}/{}", env!("CARGO_PKG_VERSION"))),
            export_date: Some(self.date()),
            export_type: if self.delta.is_some() { ExportType::Incremental } else { ExportType::Full },
            base_export_id: self.delta.as_ref().map(|delta| delta.base.clone()),
            since: self.delta.as_ref().map(|delta| delta.since),
            type_registry: self.type_registry.map(str::to_owned),
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
        let delta = self.delta.as_ref();
        let manifest = Manifest {
            version: VERSION,
            export_id: self.id.clone(),
            export_type: self.kind().into(),
            base_export_id: delta.map(|delta| delta.base.clone()),
            since: delta.map(|delta| delta.since.to_string()),
            from_revision: delta.map_or(0, |delta| delta.from.get() + 1),
            to_revision: self.revision.get(),
            withdrawn_relations: delta
                .map(|delta| delta.withdrawn_relations.iter().cloned().collect())
                .unwrap_or_default(),
            undone_conversations: delta
                .map(|delta| delta.undone_conversations.iter().cloned().collect())
                .unwrap_or_default(),
            filter: Filter {
                conversations: self.request.conversations,
                attachments: self.request.attachments,
                selection: self.request.selection.said(),
            },
            rotations: self.signer.rotations.clone(),
            files: listed(&target.files),
        };
        let bytes = manifest.to_bytes().map_err(|_| ExportError::Unencodable { what: "the manifest" })?;
        let signature = sign::sign_bytes(&self.signer.key, &bytes);
        let written = target.file(MANIFEST, |out| out.write_all(&bytes).map_err(&failed))?;
        target.file(SIGNATURE, |out| writeln!(out, "{signature}").map_err(&failed))?;
        Ok(written)
    }
}

fn index_entry(
    header: ConversationHeader,
    messages: u64,
    path: String,
    derived: Option<&Vec<String>>,
) -> IndexEntry {
    IndexEntry {
        id: header.id,
        platform: header.provider.name,
        title: header.title,
        message_count: Some(messages),
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
