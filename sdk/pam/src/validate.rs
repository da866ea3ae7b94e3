//! Validates documents against the rules of PAM 1.0; each issue names its rule (README, "Rules").
//!
//! [`crate::parse`] reports errors that only the text shows; this module checks the values. [`bundle`] does both for a
//! store, its conversations and its embeddings. All checks take linear time.

use std::io::{self, Read};

use crate::{
    conversation::Conversation,
    embedding::EmbeddingsDocument,
    issue::{Issue, Issues, Severity},
    memory::Memory,
    parse::{ChecksumStatus, StoreRoot},
    sign::SignatureCheck,
    store::MemoryStore,
};

mod bundle;
mod conversation;
mod embeddings;
mod header;
mod ids;
mod memory;
mod patterns;
mod store;
mod unicode;

pub use bundle::{BundleCheck, bundle};

/// The result of checking a bundle.
#[derive(Clone, Debug)]
pub struct Report {
    /// Root of the store, if it can be read.
    pub store: Option<StoreRoot>,

    pub counts: Counts,
    /// Issues of all documents. Paths in files other than the store begin with the file name.
    pub issues: Vec<Issue>,
    /// Whether the declared checksum matches the memories.
    pub checksum: ChecksumStatus,
    /// Whether the signature is valid. It does not imply that the checksum matches.
    pub signature: SignatureCheck,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Entries of `memories`.
    pub memories: u64,
    /// Entries of `relations`.
    pub relations: u64,
    /// Entries of `conversations_index`.
    pub index: u64,
}

impl Report {
    /// Whether there are no errors; warnings do not count.
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

/// Checks a memory store alone. Checksum and signature need its text; see [`BundleCheck`].
#[must_use]
pub fn memory_store(store: &MemoryStore) -> Vec<Issue> {
    let mut issues = Issues::default();
    store::check(store, &mut issues);
    issues.finish()
}

/// Checks a conversation alone.
#[must_use]
pub fn conversation(conversation: &Conversation) -> Vec<Issue> {
    let mut issues = Issues::default();
    conversation::check(conversation, "$", &mut issues);
    issues.finish()
}

/// Checks an embeddings document alone.
#[must_use]
pub fn embeddings(document: &EmbeddingsDocument) -> Vec<Issue> {
    let mut issues = Issues::default();
    embeddings::check(document, "$", &mut issues);
    issues.finish()
}

/// Reads and checks an embeddings document of any size alone.
///
/// # Errors
/// If the text cannot be read.
pub fn embeddings_from(input: impl Read) -> io::Result<Vec<Issue>> {
    embeddings::read(input)
}
