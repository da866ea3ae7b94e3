//! Writes a memory store record by record, in constant space.

use std::io::{self, Write};

use super::{IndexEntry, Integrity, MemoryStore, SignatureBlock, StoreHeader};
use crate::{
    checksum::{self, ChecksumError},
    memory::Memory,
    pretty::Root,
    relation::Relation,
    sign::{self, Payload, SigningKey},
    time::Timestamp,
};

/// The `schema` of a memory store.
pub const SCHEMA: &str = "portable-ai-memory";

/// Why a store cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The output failed.
    #[error("the output cannot be written")]
    Io(#[from] io::Error),
    /// The checksum cannot include a memory, because it is out of id order or has no canonical form.
    #[error("no checksum over the memories")]
    Checksum(#[from] ChecksumError),
    /// A memory is not exportable (PAM 1.0 §21.1).
    #[error("memory {0:?} is not exportable; leave it out before writing")]
    NotExportable(String),
    /// A record is out of order: memories come first, then relations, then index entries.
    #[error("a {0} cannot follow what was written before it")]
    Order(&'static str),
    /// A signature needs `export_id` and `export_date`.
    #[error("an export without {0} cannot be signed")]
    Unsignable(&'static str),
    /// A signature cannot be older than the export that it signs (PAM 1.0 §18.3).
    #[error("the signature's date is before the export's")]
    SignedBefore,
    /// A number that JSON cannot hold.
    #[error("{0} is not a finite number")]
    NotFinite(&'static str),
}

/// The key that signs an export, and the time of the signature.
#[derive(Clone, Copy, Debug)]
pub struct Signer<'k> {
    /// The signing key.
    pub key: &'k SigningKey,
    /// Time of the signature, not before the export's date.
    pub signed_at: Timestamp,
}

/// Writes a memory store: header, memories in id order, relations, index entries, and finally checksum and signature.
///
/// The output is not buffered; pass a buffered `W`. The document is complete only after [`Writer::finish`].
pub struct Writer<W> {
    root: Root<W>,
    header: StoreHeader,
    checksum: checksum::Builder,
    section: Section,
}

/// The result of [`Writer::finish`].
#[derive(Debug)]
pub struct Written<W> {
    /// The output, not flushed.
    pub out: W,
    /// Checksum and count of the written memories.
    pub integrity: Integrity,
    /// The signature, if there was a signer.
    pub signature: Option<SignatureBlock>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    Memories,
    Relations,
    Index,
}

impl<W: Write> Writer<W> {
    /// Writes the beginning of the document.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn new(out: W, header: StoreHeader) -> Result<Self, WriteError> {
        let mut root = Root::begin(out)?;
        root.field("schema", SCHEMA)?;
        root.field("schema_version", crate::SCHEMA_VERSION)?;
        root.optional("spec_uri", header.spec_uri.as_ref())?;
        root.optional("export_id", header.export_id.as_ref())?;
        root.optional("exported_by", header.exported_by.as_ref())?;
        root.optional("export_date", header.export_date.as_ref())?;
        root.field("owner", &header.owner)?;
        root.begin_list("memories")?;
        Ok(Self { root, header, checksum: checksum::Builder::new(), section: Section::Memories })
    }

    /// Writes the next memory; ids must ascend by code point.
    ///
    /// # Errors
    /// If it is out of order, not exportable or has no canonical form, or the output fails.
    pub fn memory(&mut self, memory: &Memory) -> Result<(), WriteError> {
        if self.section > Section::Memories {
            return Err(WriteError::Order("memory"));
        }
        if !memory.exportable() {
            return Err(WriteError::NotExportable(memory.id.clone()));
        }
        self.checksum.push(memory)?;
        Ok(self.root.item(memory)?)
    }

    /// Writes the next relation.
    ///
    /// # Errors
    /// If an index entry was written already, the confidence is not finite, or the output fails.
    pub fn relation(&mut self, relation: &Relation) -> Result<(), WriteError> {
        self.enter(Section::Relations, "relation")?;
        if relation.confidence.is_some_and(|confidence| !confidence.is_finite()) {
            return Err(WriteError::NotFinite("a relation's confidence"));
        }
        Ok(self.root.item(relation)?)
    }

    /// Writes the next entry of the index of conversations.
    ///
    /// # Errors
    /// If the output fails.
    pub fn index_entry(&mut self, entry: &IndexEntry) -> Result<(), WriteError> {
        self.enter(Section::Index, "index entry")?;
        Ok(self.root.item(entry)?)
    }

    /// Writes checksum, count, the rest of the header, and the signature of `signer`.
    ///
    /// # Errors
    /// If a signer is given and the header lacks an export id or date, or its date is after the signature; if the output fails.
    pub fn finish(mut self, signer: Option<Signer<'_>>) -> Result<Written<W>, WriteError> {
        let checksum = std::mem::take(&mut self.checksum);
        let total = checksum.count();
        let integrity = Integrity::new(checksum.finish(), total);
        let signature = signer.map(|signer| sign_export(&self.header, &integrity, signer)).transpose()?;
        let out = self.end(Some(&integrity), signature.as_ref())?;
        Ok(Written { out, integrity, signature })
    }

    fn end(
        mut self,
        integrity: Option<&Integrity>,
        signature: Option<&SignatureBlock>,
    ) -> Result<W, WriteError> {
        self.enter(Section::Index, "index entry")?;
        let Self { mut root, header, .. } = self;
        root.end_list()?;
        root.optional("integrity", integrity)?;
        root.field("export_type", &header.export_type)?;
        root.optional("base_export_id", header.base_export_id.as_ref())?;
        root.optional("since", header.since.as_ref())?;
        root.optional("type_registry", header.type_registry.as_ref())?;
        root.optional("signature", signature)?;
        Ok(root.end()?)
    }

    /// Ends the lists before `section` and begins it.
    fn enter(&mut self, section: Section, name: &'static str) -> Result<(), WriteError> {
        if self.section > section {
            return Err(WriteError::Order(name));
        }
        if self.section == Section::Memories && section > Section::Memories {
            self.root.end_list()?;
            self.root.begin_list("relations")?;
            self.section = Section::Relations;
        }
        if self.section == Section::Relations && section > Section::Relations {
            self.root.end_list()?;
            self.root.begin_list("conversations_index")?;
            self.section = Section::Index;
        }
        Ok(())
    }
}

fn sign_export(
    header: &StoreHeader,
    integrity: &Integrity,
    signer: Signer<'_>,
) -> Result<SignatureBlock, WriteError> {
    let export_id = header.export_id.as_deref().filter(|id| !id.is_empty());
    let export_date = header.export_date.ok_or(WriteError::Unsignable("export_date"))?;
    if signer.signed_at.micros() < export_date.micros() {
        return Err(WriteError::SignedBefore);
    }
    let payload = Payload {
        checksum: &integrity.checksum.to_string(),
        export_id: export_id.ok_or(WriteError::Unsignable("export_id"))?,
        export_date: &export_date.to_string(),
        owner_id: &header.owner.id,
    };
    let mut block = sign::sign(signer.key, &payload, signer.signed_at);
    // If the owner has another kind of DID, the key is named by a fragment of it.
    if let Some(did) = header.owner.did.as_deref().filter(|did| !did.starts_with("did:key:")) {
        block.key_id = Some(format!("{did}#{}", block.public_key));
    }
    Ok(block)
}

impl MemoryStore {
    /// Writes the document as JSON, with its own order of records, checksum and signature.
    ///
    /// # Errors
    /// If a memory or relation has a number that is not finite.
    pub fn to_json(&self) -> Result<Vec<u8>, WriteError> {
        let mut writer = Writer::new(Vec::new(), self.header.clone())?;
        for memory in &self.memories {
            let scores =
                memory.confidence.iter().flat_map(|confidence| [confidence.initial, confidence.current]);
            if scores.flatten().any(|score| !score.is_finite()) {
                return Err(WriteError::NotFinite("a memory's confidence"));
            }
            writer.root.item(memory)?;
        }
        self.relations.iter().try_for_each(|relation| writer.relation(relation))?;
        self.conversations_index.iter().try_for_each(|entry| writer.index_entry(entry))?;
        writer.end(self.integrity.as_ref(), self.signature.as_ref())
    }
}
