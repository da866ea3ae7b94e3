//! Reads PAM documents from anybody: what can be understood, and a list of what is wrong, with JSON paths.
//!
//! Nothing here panics on any input, and no record that can be read is lost over one that cannot. What the types can
//! show (patterns, hashes, references) is left to [`crate::validate`]; here stands what only the text shows.

use crate::{
    conversation::Conversation, embedding::EmbeddingsDocument, hash::Sha256Digest, issue::Issue,
    json::JsonError, memory::Memory, sign::Signed, store::MemoryStore,
};

mod conversation;
mod embeddings;
mod fields;
mod memory;
mod path;
mod raw_memories;
mod root;
mod sink;
mod store;
mod values;

pub use sink::UNKNOWN_KEY;

/// Objects and arrays inside each other that a document may have; `serde_json`'s bound, so that others can read it.
pub const MAX_DEPTH: usize = 128;

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
    conversation::read(bytes)
}

/// Reads an `embeddings.json`; as [`memory_store`].
#[must_use]
pub fn embeddings(bytes: &[u8]) -> (Option<EmbeddingsDocument>, Vec<Issue>) {
    embeddings::read(bytes)
}

/// Reads a memory store, with what its text alone can tell about checksum and signature.
#[must_use]
pub fn store_reading(bytes: &[u8]) -> StoreReading {
    store::read(bytes)
}

/// Reads what is whole of a memory store that may be cut or broken: an entry that cannot be read, or has a key twice, is
/// left out and named, and those beside it are read. For importing; a verdict is [`store_reading`]'s.
#[must_use]
pub fn salvage_store(bytes: &[u8]) -> (StoreReading, Remains) {
    store::salvage(bytes, &|| true).unwrap_or_default()
}

/// As [`salvage_store`], for who may lose interest: `wanted` is asked before each entry, and each time that an entry is hashed for the
/// checksum once more. None once it has answered false. A document of 1 GiB takes seconds, an entry some microseconds.
#[must_use]
pub fn salvage_store_while(bytes: &[u8], wanted: &dyn Fn() -> bool) -> Option<(StoreReading, Remains)> {
    store::salvage(bytes, wanted)
}

/// Reads what is whole of a conversation document; as [`salvage_store`].
#[must_use]
pub fn salvage_conversation(bytes: &[u8]) -> (Option<Conversation>, Vec<Issue>, Remains) {
    conversation::salvage(bytes)
}

/// Reads what is whole of an embeddings document; as [`salvage_store`].
#[must_use]
pub fn salvage_embeddings(bytes: &[u8]) -> (Option<EmbeddingsDocument>, Vec<Issue>, Remains) {
    embeddings::salvage(bytes)
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
    root::schema_of(bytes)
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

/// An issue for a text that is no JSON of ours.
fn json_issue(problem: &JsonError) -> Issue {
    use crate::json::Problem;
    let rule = match problem.problem {
        Problem::NotANumber | Problem::NumberRange => "A-13",
        _ => "R-2.1",
    };
    Issue::error(rule, "$", problem.to_string())
}
