//! Checks documents against the rules of PAM 1.0; each issue carries its rule's name (README, "Rules").
//!
//! [`crate::parse`] reports what only the text shows; here stands what the values show. [`bundle`] does both, over a
//! store, its conversations and its embeddings together. All checks take time in proportion to the document.

use std::io::{self, Read};

use crate::{
    conversation::Conversation,
    embedding::EmbeddingsDocument,
    issue::{Issue, Issues, Severity},
    memory::Memory,
    parse::{ChecksumReading, StoreFrame},
    sign::SignatureCheck,
    store::MemoryStore,
};

mod bundle;
mod conversation;
mod embeddings;
mod header;
mod ids;
mod index;
mod memory;
mod patterns;
mod store;
mod unicode;

pub use bundle::{BundleCheck, bundle};

/// What came of checking a bundle.
#[derive(Clone, Debug)]
pub struct Report {
    /// The root of the store, if it can be read.
    pub store: Option<StoreFrame>,
    /// How many entries the store has.
    pub counts: Counts,
    /// Everything that is wrong, of all documents; paths of files other than the store begin with their name.
    pub issues: Vec<Issue>,
    /// Which reading of the memories the checksum fits.
    pub checksum: ChecksumReading,
    /// Whether the signature holds. It says nothing of the checksum: a valid export has both.
    pub signature: SignatureCheck,
}

/// How many entries of a store can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Of `memories`.
    pub memories: u64,
    /// Of `relations`.
    pub relations: u64,
    /// Of `conversations_index`.
    pub index: u64,
}

impl Report {
    /// Whether no rule is broken; warnings are no breach.
    #[must_use]
    pub fn valid(&self) -> bool {
        self.issues.iter().all(|issue| issue.severity == Severity::Warning)
    }
}

/// Checks one memory; paths begin with `path`.
#[must_use]
pub fn memory(memory: &Memory, path: &str) -> Vec<Issue> {
    let mut issues = Issues::default();
    memory::check(memory, &|| path.to_owned(), &mut issues);
    issues.finish()
}

/// Checks a memory store on its own. Checksum and signature are of its text: see [`BundleCheck`].
#[must_use]
pub fn memory_store(store: &MemoryStore) -> Vec<Issue> {
    let mut issues = Issues::default();
    store::check(store, &mut issues);
    issues.finish()
}

/// Checks a conversation on its own.
#[must_use]
pub fn conversation(conversation: &Conversation) -> Vec<Issue> {
    let mut issues = Issues::default();
    conversation::check(conversation, "$", &mut issues);
    issues.finish()
}

/// Checks an embeddings document on its own.
#[must_use]
pub fn embeddings(document: &EmbeddingsDocument) -> Vec<Issue> {
    let mut issues = Issues::default();
    embeddings::check(document, "$", &mut issues);
    issues.finish()
}

/// Reads and checks an embeddings document on its own, which may be too long to hold.
///
/// # Errors
/// What reading the text gives.
pub fn embeddings_from(input: impl Read) -> io::Result<Vec<Issue>> {
    embeddings::read(input)
}
