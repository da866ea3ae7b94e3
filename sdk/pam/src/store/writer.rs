//! Writes a memory store piece by piece: an export of any size in bounded space.

use std::io::{self, Write};

use super::{IndexEntry, Integrity, MemoryStore, SignatureBlock, StoreHeader};
use crate::{
    checksum::{self, ChecksumError},
    memory::Memory,
    pretty::Root,
    relation::Relation,
};

/// The `schema` of a memory store.
pub const SCHEMA: &str = "portable-ai-memory";

/// Why a store is not written; inside an [`io::Error`] of kind `InvalidInput`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A memory has no place in the checksum: out of id order, or with a number that has no canonical form.
    #[error("no checksum over the memories")]
    Checksum(#[from] ChecksumError),
    /// A memory says of itself that it must not leave (PAM 1.0 §21.1).
    #[error("memory {0:?} is not exportable; leave it out before writing")]
    NotExportable(String),
    /// Memories come first, then relations, then index entries.
    #[error("a {0} cannot follow what was written before it")]
    Order(&'static str),
    /// Checksum or count are not those of the memories that were written.
    #[error("the integrity block is not that of the memories written")]
    Integrity,
    /// A signature needs `integrity`, `export_id` and `export_date`.
    #[error("an export without {0} cannot be signed")]
    Unsignable(&'static str),
    /// A number that JSON cannot hold.
    #[error("{0} is not a finite number")]
    NotFinite(&'static str),
}

impl From<WriteError> for io::Error {
    fn from(problem: WriteError) -> Self {
        Self::new(io::ErrorKind::InvalidInput, problem)
    }
}

/// Writes one memory store: header, memories in id order, relations, index entries, then what protects them.
///
/// Nothing is buffered: give a buffered `W`. The file ends only with [`Writer::finish`].
pub struct Writer<'h, W> {
    root: Root<W>,
    header: &'h StoreHeader,
    checksum: checksum::Builder,
    section: Section,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    Memories,
    Relations,
    Index,
}

impl<'h, W: Write> Writer<'h, W> {
    /// Writes what stands before the memories.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn new(out: W, header: &'h StoreHeader) -> io::Result<Self> {
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

    /// Writes the next memory; ids ascend by code point.
    ///
    /// # Errors
    /// If it is out of order, not exportable or not canonicalisable, or the output fails.
    pub fn memory(&mut self, memory: &Memory) -> io::Result<()> {
        if self.section > Section::Memories {
            return Err(WriteError::Order("memory").into());
        }
        if !memory.exportable() {
            return Err(WriteError::NotExportable(memory.id.clone()).into());
        }
        self.checksum.push(memory).map_err(WriteError::from)?;
        self.root.item(memory)
    }

    /// Checksum and count of the memories written so far; sign it, and give it to [`Writer::finish`].
    #[must_use]
    pub fn integrity(&self) -> Integrity {
        Integrity::new(self.checksum.clone().finish(), self.checksum.count())
    }

    /// Writes the next relation.
    ///
    /// # Errors
    /// After an index entry, or if the output fails.
    pub fn relation(&mut self, relation: &Relation) -> io::Result<()> {
        self.enter(Section::Relations, "relation")?;
        if relation.confidence.is_some_and(|confidence| !confidence.is_finite()) {
            return Err(WriteError::NotFinite("a relation's confidence").into());
        }
        self.root.item(relation)
    }

    /// Writes the next entry of the conversations' index.
    ///
    /// # Errors
    /// If the output fails.
    pub fn conversation(&mut self, entry: &IndexEntry) -> io::Result<()> {
        self.enter(Section::Index, "conversation")?;
        self.root.item(entry)
    }

    /// Writes what stands after the lists, and gives the output back, not flushed.
    ///
    /// # Errors
    /// If `integrity` is not that of the memories written, a signature lacks what it signs, or the output fails.
    pub fn finish(self, integrity: Option<&Integrity>, signature: Option<&SignatureBlock>) -> io::Result<W> {
        if integrity.is_some_and(|integrity| *integrity != self.integrity()) {
            return Err(WriteError::Integrity.into());
        }
        if signature.is_some() {
            let header = self.header;
            let missing = [
                (integrity.is_none(), "integrity"),
                (header.export_id.as_ref().is_none_or(String::is_empty), "export_id"),
                (header.export_date.is_none(), "export_date"),
            ];
            if let Some((_, name)) = missing.into_iter().find(|(missing, _)| *missing) {
                return Err(WriteError::Unsignable(name).into());
            }
        }
        self.end(integrity, signature)
    }

    fn end(mut self, integrity: Option<&Integrity>, signature: Option<&SignatureBlock>) -> io::Result<W> {
        self.enter(Section::Index, "conversation")?;
        let Self { mut root, header, .. } = self;
        root.end_list()?;
        root.optional("integrity", integrity)?;
        root.field("export_type", &header.export_type)?;
        root.optional("base_export_id", header.base_export_id.as_ref())?;
        root.optional("since", header.since.as_ref())?;
        root.optional("type_registry", header.type_registry.as_ref())?;
        root.optional("signature", signature)?;
        root.end()
    }

    /// Ends the lists before `section`, and begins it.
    fn enter(&mut self, section: Section, name: &'static str) -> io::Result<()> {
        if self.section > section {
            return Err(WriteError::Order(name).into());
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

impl MemoryStore {
    /// The document as text, with the checksum and signature that it holds, in the order that it holds.
    ///
    /// # Errors
    /// If a memory or relation holds a number that is not finite.
    pub fn to_json(&self) -> io::Result<Vec<u8>> {
        let mut writer = Writer::new(Vec::new(), &self.header)?;
        for memory in &self.memories {
            let scores =
                memory.confidence.iter().flat_map(|confidence| [confidence.initial, confidence.current]);
            if scores.flatten().any(|score| !score.is_finite()) {
                return Err(WriteError::NotFinite("a memory's confidence").into());
            }
            writer.root.item(memory)?;
        }
        self.relations.iter().try_for_each(|relation| writer.relation(relation))?;
        self.conversations_index.iter().try_for_each(|entry| writer.conversation(entry))?;
        writer.end(self.integrity.as_ref(), self.signature.as_ref())
    }
}
