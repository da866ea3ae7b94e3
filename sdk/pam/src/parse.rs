//! Reads PAM documents from anybody: what can be understood, and a list of what is wrong, with JSON paths.
//!
//! Nothing here panics on any input, and no record that can be read is lost over one that cannot. What the types can
//! show (patterns, hashes, references) is left to [`crate::validate`]; here stands what only the text shows.

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
    sign::Signed,
    store::{IndexEntry, Integrity, MemoryStore, SignatureBlock, StoreHeader},
};

mod again;
mod conversation;
mod embeddings;
mod fields;
mod memory;
mod path;
mod raw_memories;
mod root;
mod sink;
mod store;
mod stream;
mod values;

pub use sink::UNKNOWN_KEY;
pub use stream::LONGEST_VALUE;

/// Objects and arrays inside each other that a document may have; `serde_json`'s bound, so that others can read it.
pub const MAX_DEPTH: usize = 128;

/// Bytes of memory that a conversation may take, which is held whole: those of its text, and about 700 more for each message.
pub const LARGEST_CONVERSATION: usize = 184 << 20;

/// Reads a `memory-store.json`. The document is there whenever its kind and version are ours and its JSON is whole,
/// even with errors among the issues; records that cannot be read are left out, each with an issue.
#[must_use]
pub fn memory_store(bytes: &[u8]) -> (Option<MemoryStore>, Vec<Issue>) {
    let reading = store_reading(bytes);
    (reading.document, reading.issues)
}

/// Reads a conversation document; as [`memory_store`].
#[must_use]
pub fn conversation(bytes: &[u8]) -> (Option<Conversation>, Vec<Issue>) {
    in_memory(conversation_from(bytes), |issue| (None, vec![issue]))
}

/// Reads an `embeddings.json`; as [`memory_store`].
#[must_use]
pub fn embeddings(bytes: &[u8]) -> (Option<EmbeddingsDocument>, Vec<Issue>) {
    let (document, issues, _) = embeddings::read(bytes, false);
    (document, issues)
}

/// Reads a memory store, with what its text alone can tell about checksum and signature.
#[must_use]
pub fn store_reading(bytes: &[u8]) -> StoreReading {
    store::read(bytes, false, &|| true).unwrap_or_default().0
}

/// Reads what is whole of a memory store that may be cut or broken: an entry that cannot be read, or has a key twice, is
/// left out and named, and those beside it are read. For importing; a verdict is [`store_reading`]'s.
#[must_use]
pub fn salvage_store(bytes: &[u8]) -> (StoreReading, Remains) {
    store::read(bytes, true, &|| true).unwrap_or_default()
}

/// As [`salvage_store`], for who may lose interest: `wanted` is asked before each entry, and each time that an entry is hashed for the
/// checksum once more. None once it has answered false. A document of 1 GiB takes seconds, an entry some microseconds.
#[must_use]
pub fn salvage_store_while(bytes: &[u8], wanted: &dyn Fn() -> bool) -> Option<(StoreReading, Remains)> {
    store::read(bytes, true, wanted)
}

/// Reads a memory store that may be too long to hold: each entry goes to `take` with its place in its list as it comes, before it is
/// known whether the document is one of ours. Holds the entry at hand, and the ids of the memories for the checksum. None once it is
/// not wanted any more.
///
/// # Errors
/// What reading the text gives.
pub fn scan_store(
    text: &dyn Text,
    how: How<'_>,
    take: &mut dyn FnMut(usize, StoreEntry),
) -> io::Result<Option<StoreScan>> {
    store::scan(text, how, take)
}

/// Reads what is whole of a conversation document; as [`salvage_store`].
#[must_use]
pub fn salvage_conversation(bytes: &[u8]) -> (Option<Conversation>, Vec<Issue>, Remains) {
    in_memory(conversation::read(bytes, true), |issue| (None, vec![issue], Remains::default()))
}

/// As [`salvage_conversation`]; the text is not held beside the document.
///
/// # Errors
/// What reading the text gives; [`io::ErrorKind::FileTooLarge`] past [`LARGEST_CONVERSATION`].
pub fn salvage_conversation_from(
    input: impl Read,
) -> io::Result<(Option<Conversation>, Vec<Issue>, Remains)> {
    conversation::read(input, true)
}

/// As [`conversation()`]; the text is not held beside the document.
///
/// # Errors
/// What reading the text gives; [`io::ErrorKind::FileTooLarge`] past [`LARGEST_CONVERSATION`].
pub fn conversation_from(input: impl Read) -> io::Result<(Option<Conversation>, Vec<Issue>)> {
    conversation::read(input, false).map(|(document, issues, _)| (document, issues))
}

/// Reads what is whole of an embeddings document; as [`salvage_store`].
#[must_use]
pub fn salvage_embeddings(bytes: &[u8]) -> (Option<EmbeddingsDocument>, Vec<Issue>, Remains) {
    embeddings::read(bytes, true)
}

/// Reads an embeddings document entry by entry; as [`scan_store`].
///
/// # Errors
/// What reading the text gives.
pub fn scan_embeddings(
    input: impl Read,
    how: How<'_>,
    take: &mut dyn FnMut(usize, Result<Embedding, LeftOut>),
) -> io::Result<Option<EmbeddingsScan>> {
    embeddings::scan(input, how, take)
}

/// Reads one memory, such as an element of `memories`.
#[must_use]
pub fn memory(bytes: &[u8]) -> (Option<Memory>, Vec<Issue>) {
    memory::read_alone(bytes)
}

/// The `schema` of a document's root, without reading the rest; none if there is no such text. Mistakes inside the values of
/// other keys do not matter.
#[must_use]
pub fn schema_of(bytes: &[u8]) -> Option<String> {
    schema_from(bytes).unwrap_or_default()
}

/// As [`schema_of`], for a text that may be too long to hold.
///
/// # Errors
/// What reading the text gives.
pub fn schema_from(input: impl Read) -> io::Result<Option<String>> {
    root::schema_of(input)
}

/// The text of a document, which may be too long to hold.
pub trait Text {
    /// Reads it from its first byte on.
    ///
    /// # Errors
    /// What the source of the text gives.
    fn reader(&self) -> io::Result<Box<dyn Read + '_>>;

    /// `length` bytes from `offset` on; none where they can only be had by reading all that comes before them.
    ///
    /// # Errors
    /// What the source of the text gives.
    fn part(&self, offset: u64, length: usize) -> io::Result<Option<Vec<u8>>>;
}

impl Text for &[u8] {
    fn reader(&self) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(*self))
    }

    fn part(&self, offset: u64, length: usize) -> io::Result<Option<Vec<u8>>> {
        let start = usize::try_from(offset).ok();
        Ok(start.and_then(|start| self.get(start..start + length)).map(<[u8]>::to_vec))
    }
}

/// How a document is read entry by entry.
#[derive(Clone, Copy)]
pub struct How<'a> {
    /// Whether what is whole is read although something else is broken, as [`salvage_store`] does.
    pub salvage: bool,
    /// Asked before each entry whether anybody still wants it.
    pub wanted: &'a dyn Fn() -> bool,
}

/// An entry of a list of a memory store.
#[derive(Clone, Debug)]
pub enum StoreEntry {
    /// Of `memories`.
    Memory(Box<Memory>),
    /// Of `relations`.
    Relation(Relation),
    /// Of `conversations_index`.
    Conversation(IndexEntry),
    /// Of any, and it cannot be read.
    LeftOut(LeftOut),
}

/// A memory store without its lists.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreFrame {
    /// The version of PAM.
    pub schema_version: String,
    /// What the export says of itself.
    pub header: StoreHeader,
    /// Checksum and count.
    pub integrity: Option<Integrity>,
    /// The signature.
    pub signature: Option<SignatureBlock>,
    /// What a later minor version added, by path.
    pub unknown: BTreeMap<String, Value>,
}

/// What a memory store says beside its entries.
#[derive(Clone, Debug, Default)]
pub struct StoreScan {
    /// None: not JSON, not a memory store, of a major version that we do not know, or with a key twice.
    pub frame: Option<StoreFrame>,
    /// What is wrong with the text.
    pub issues: Vec<Issue>,
    /// The strings that a signature is about, as they stand.
    pub signed: Signed,
    /// How the declared checksum fits the memories.
    pub checksum: ChecksumReading,
    /// Entries of `memories`, readable or not.
    pub count: u64,
    /// Where the text ends early, or goes on as no JSON; only where what is whole is read in spite of it.
    pub broken: Option<JsonError>,
}

/// What an embeddings document says beside its entries.
#[derive(Clone, Debug, Default)]
pub struct EmbeddingsScan {
    /// The version of PAM; none as in [`StoreScan::frame`].
    pub schema_version: Option<String>,
    /// What is wrong with the text.
    pub issues: Vec<Issue>,
    /// What a later minor version added, by path.
    pub unknown: BTreeMap<String, Value>,
    /// As in [`StoreScan`].
    pub broken: Option<JsonError>,
}

/// A memory store and what its text tells.
#[derive(Clone, Debug, Default)]
pub struct StoreReading {
    /// None: not JSON, not a memory store, or of a major version that we do not know.
    pub document: Option<MemoryStore>,
    /// What is wrong with the text.
    pub issues: Vec<Issue>,
    /// The strings that a signature is about, as they stand.
    pub signed: Signed,
    /// How the declared checksum fits the memories.
    pub checksum: ChecksumReading,
    /// Entries of `memories`, readable or not.
    pub count: u64,
}

/// What a document holds that could not be read.
#[derive(Clone, Debug, Default)]
pub struct Remains {
    /// Entries of its lists, in the order of the document.
    pub left_out: Vec<LeftOut>,
    /// Where the text ends early, or goes on as no JSON; what comes after is not known.
    pub broken: Option<JsonError>,
}

/// An entry that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The list: `memories`, `relations`, `conversations_index`, `messages` or `embeddings`.
    pub list: &'static str,
    /// Its place in it, from 0.
    pub index: usize,
    /// What is wrong, with JSON paths.
    pub reason: String,
}

impl LeftOut {
    /// The JSON path of the entry.
    #[must_use]
    pub fn path(&self) -> String {
        format!("$.{}[{}]", self.list, self.index)
    }
}

/// Which reading of `memories` the declared checksum fits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ChecksumReading {
    /// None is declared.
    #[default]
    Absent,
    /// The array as written: what the specification says.
    Spec,
    /// The array in the official SDK's normal form: what its `validate` computes.
    SdkNormalForm,
    /// Neither.
    Mismatch {
        /// Over the array as written.
        computed: Sha256Digest,
    },
    /// There is no canonical form, so no checksum can be right; why.
    NotCanonical(String),
}

/// Of a text that is in memory nothing fails to be read; it may be too large to be held once more.
fn in_memory<T>(read: io::Result<T>, refused: impl FnOnce(Issue) -> T) -> T {
    read.unwrap_or_else(|error| refused(Issue::error("R-25.1", "$.messages", error.to_string())))
}

/// An issue for a text that is no JSON of ours.
fn json_issue(problem: &JsonError) -> Issue {
    use crate::json::Problem;
    let rule = match problem.problem {
        Problem::NotANumber | Problem::NumberRange => "A-13",
        _ => "R-2.1",
    };
    Issue::error(rule, "$", problem.to_string())
}
