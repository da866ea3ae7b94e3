//! Reads PAM documents of any origin: the document, and a list of issues with JSON paths (PAM 1.0 §3, §25 and appendices).
//!
//! No input causes a panic, and a record that cannot be read does not affect the others. This module reports the
//! errors that only the text shows (kinds of values, duplicate keys, forms of timestamps); [`crate::validate`] checks the values
//! (patterns, hashes, references).

use std::{
    collections::BTreeMap,
    io::{self, Read},
};

use serde_json::Value;

use crate::{
    conversation::Conversation,
    embedding::{Embedding, EmbeddingsDocument},
    hash::Sha256Digest,
    issue::Issue,
    json::JsonError,
    memory::Memory,
    relation::Relation,
    sign::SignedFields,
    store::{IndexEntry, Integrity, MemoryStore, SignatureBlock, StoreHeader},
};

mod checksum;
mod conversation;
mod embeddings;
mod fields;
mod memory;
mod path;
mod reread;
mod root;
mod sink;
mod store;
mod stream;
mod values;

pub use sink::UNKNOWN_KEY;
pub use stream::LONGEST_VALUE;

/// Maximum nesting of objects and arrays in a document, the same as `serde_json`'s.
pub const MAX_DEPTH: usize = 128;

/// Bytes of memory that a conversation may take, because it is held as a whole: its text, and about 700 bytes for each message.
pub const LARGEST_CONVERSATION: usize = 184 << 20;

/// Reads a `memory-store.json`.
///
/// Returns the document, even with errors among the issues, if its JSON is complete, its keys are unique, and its kind and major
/// version are known. Records that cannot be read are left out, each with an issue.
#[must_use]
pub fn memory_store(bytes: &[u8]) -> (Option<MemoryStore>, Vec<Issue>) {
    let reading = store_reading(bytes);
    (reading.document, reading.issues)
}

/// Reads a conversation document, like [`memory_store`].
#[must_use]
pub fn conversation(bytes: &[u8]) -> (Option<Conversation>, Vec<Issue>) {
    // Reading from memory does not fail, but the document may be too large to hold.
    conversation_from(bytes)
        .unwrap_or_else(|error| (None, vec![Issue::error("R-25.1", "$.messages", error.to_string())]))
}

/// Reads an `embeddings.json`, like [`memory_store`].
#[must_use]
pub fn embeddings(bytes: &[u8]) -> (Option<EmbeddingsDocument>, Vec<Issue>) {
    embeddings::read(bytes)
}

/// Reads a memory store, like [`memory_store`], and returns also the facts about checksum and signature that only its text shows.
#[must_use]
pub fn store_reading(bytes: &[u8]) -> StoreReading {
    store::read(bytes, false).0
}

/// Reads as much as possible of a memory store that may be truncated or damaged, for importing.
///
/// Entries that cannot be read or have a duplicate key are left out and listed. Use [`store_reading`] to judge a document.
#[must_use]
pub fn salvage_store(bytes: &[u8]) -> (StoreReading, SalvageReport) {
    store::read(bytes, true)
}

/// Reads a memory store of any size entry by entry.
///
/// `take` gets each entry and its index in its list before it is known whether the document is valid. Memory use is one entry
/// and the ids of all memories, which the checksum needs. Returns none if [`ScanOptions::keep_going`] ended the scan.
///
/// # Errors
/// If the text cannot be read.
pub fn scan_store(
    text: &dyn TextSource,
    options: ScanOptions<'_>,
    take: &mut dyn FnMut(usize, StoreEntry),
) -> io::Result<Option<StoreScan>> {
    store::scan(text, options, take)
}

/// Reads as much as possible of a conversation document, like [`salvage_store`]; the text is not held besides the document.
///
/// # Errors
/// If the text cannot be read; [`io::ErrorKind::FileTooLarge`] beyond [`LARGEST_CONVERSATION`].
pub fn salvage_conversation_from(
    input: impl Read,
) -> io::Result<(Option<Conversation>, Vec<Issue>, SalvageReport)> {
    conversation::read(input, true)
}

/// Reads a conversation document, like [`conversation()`]; the text is not held besides the document.
///
/// # Errors
/// If the text cannot be read; [`io::ErrorKind::FileTooLarge`] beyond [`LARGEST_CONVERSATION`].
pub fn conversation_from(input: impl Read) -> io::Result<(Option<Conversation>, Vec<Issue>)> {
    conversation::read(input, false).map(|(document, issues, _)| (document, issues))
}

/// Reads an embeddings document of any size entry by entry, like [`scan_store`].
///
/// # Errors
/// If the text cannot be read.
pub fn scan_embeddings(
    input: impl Read,
    options: ScanOptions<'_>,
    take: &mut dyn FnMut(usize, Result<Embedding, UnreadableEntry>),
) -> io::Result<Option<EmbeddingsScan>> {
    embeddings::scan(input, options, take)
}

/// Reads one memory, such as an element of `memories`.
#[must_use]
pub fn memory(bytes: &[u8]) -> (Option<Memory>, Vec<Issue>) {
    memory::read_alone(bytes)
}

/// Returns the `schema` of a document without reading what follows it, so a truncated document is enough. Errors inside the values
/// of other keys do not matter.
#[must_use]
pub fn schema_of(bytes: &[u8]) -> Option<String> {
    schema_from(bytes).unwrap_or_default()
}

/// Returns the `schema` of a document of any size, like [`schema_of`].
///
/// # Errors
/// If the text cannot be read.
pub fn schema_from(input: impl Read) -> io::Result<Option<String>> {
    root::schema_of(input)
}

/// The text of a document of any size.
pub trait TextSource {
    /// Opens the text at its first byte.
    ///
    /// # Errors
    /// If the text cannot be opened.
    fn reader(&self) -> io::Result<Box<dyn Read + '_>>;

    /// Reads `length` bytes from `offset` on; none if the source can only be read sequentially.
    ///
    /// # Errors
    /// If the text cannot be read.
    fn read_at(&self, offset: u64, length: usize) -> io::Result<Option<Vec<u8>>>;
}

impl TextSource for &[u8] {
    fn reader(&self) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(*self))
    }

    fn read_at(&self, offset: u64, length: usize) -> io::Result<Option<Vec<u8>>> {
        let start = usize::try_from(offset).ok();
        Ok(start.and_then(|start| self.get(start..start + length)).map(<[u8]>::to_vec))
    }
}

/// How a document is read entry by entry.
#[derive(Clone, Copy)]
pub struct ScanOptions<'a> {
    /// Whether to read as much as possible of a damaged document, as [`salvage_store`] does.
    pub salvage: bool,
    /// Asked before each entry, and each time that a memory is read again for the checksum; false ends the scan.
    pub keep_going: &'a dyn Fn() -> bool,
}

/// An entry of a list of a memory store.
#[derive(Clone, Debug)]
pub enum StoreEntry {
    /// An entry of `memories`.
    Memory(Box<Memory>),
    /// An entry of `relations`.
    Relation(Relation),
    /// An entry of `conversations_index`.
    Conversation(IndexEntry),
    /// An entry of any list that cannot be read.
    Unreadable(UnreadableEntry),
}

/// A memory store without its lists.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreRoot {
    /// `major.minor`, the version of PAM.
    pub schema_version: String,
    /// Owner and description of the export.
    pub header: StoreHeader,
    /// Checksum and count of the memories.
    pub integrity: Option<Integrity>,
    /// The signature.
    pub signature: Option<SignatureBlock>,
    /// Fields that a later minor version added, by JSON path.
    pub unknown: BTreeMap<String, Value>,
}

/// The result of [`scan_store`].
#[derive(Clone, Debug, Default)]
pub struct StoreScan {
    /// None if the text is not JSON or not a memory store, has an unknown major version or a duplicate key.
    pub root: Option<StoreRoot>,
    /// Everything that is wrong with the text.
    pub issues: Vec<Issue>,
    /// The strings that a signature covers, as written.
    pub signed: SignedFields,
    /// Whether the declared checksum matches the memories.
    pub checksum: ChecksumStatus,
    /// Number of entries in `memories`, readable or not.
    pub count: u64,
    /// Where the text ends too early or stops being JSON; set only when salvaging.
    pub broken: Option<JsonError>,
}

/// The result of [`scan_embeddings`].
#[derive(Clone, Debug, Default)]
pub struct EmbeddingsScan {
    /// `major.minor`, the version of PAM; none in the cases of [`StoreScan::root`].
    pub schema_version: Option<String>,
    /// Everything that is wrong with the text.
    pub issues: Vec<Issue>,
    /// Fields that a later minor version added, by JSON path.
    pub unknown: BTreeMap<String, Value>,
    /// Where the text ends too early or stops being JSON; set only when salvaging.
    pub broken: Option<JsonError>,
}

/// A memory store and the facts that only its text shows.
#[derive(Clone, Debug, Default)]
pub struct StoreReading {
    /// None if the text is not JSON or not a memory store, has an unknown major version or a duplicate key.
    pub document: Option<MemoryStore>,
    /// Everything that is wrong with the text.
    pub issues: Vec<Issue>,
    /// The strings that a signature covers, as written.
    pub signed: SignedFields,
    /// Whether the declared checksum matches the memories.
    pub checksum: ChecksumStatus,
    /// Number of entries in `memories`, readable or not.
    pub count: u64,
}

/// The parts of a document that could not be read.
#[derive(Clone, Debug, Default)]
pub struct SalvageReport {
    /// Entries of its lists, in the order of the document.
    pub unreadable: Vec<UnreadableEntry>,
    /// Where the text ends too early or stops being JSON; what follows is not read.
    pub broken: Option<JsonError>,
}

/// An entry that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableEntry {
    /// The list: `memories`, `relations`, `conversations_index`, `messages` or `embeddings`.
    pub list: &'static str,
    /// Index in the list, from 0.
    pub index: usize,
    /// What is wrong, with JSON paths.
    pub reason: String,
}

impl UnreadableEntry {
    /// The JSON path of the entry.
    #[must_use]
    pub fn path(&self) -> String {
        format!("$.{}[{}]", self.list, self.index)
    }
}

/// Whether the declared checksum matches the memories (§15), and in which form of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ChecksumStatus {
    /// No checksum is declared.
    #[default]
    Absent,
    /// It matches the array as written, as the specification says.
    Spec,
    /// It matches the array in the official SDK's normal form, over which the SDK's `validate` computes it.
    SdkNormalForm,
    /// It matches neither.
    Mismatch {
        /// The checksum over the array as written.
        computed: Sha256Digest,
    },
    /// The memories have no canonical form, so no checksum can match; the reason.
    NotCanonical(String),
}
