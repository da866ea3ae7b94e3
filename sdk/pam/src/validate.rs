//! Checks documents against the rules of PAM 1.0; each issue carries its rule's name (README, "Rules").
//!
//! [`crate::parse`] reports what only the text shows; here stands what the values show. [`bundle`] does both, over a
//! store, its conversations and its embeddings together. All checks take time in proportion to the document.

use crate::{
    conversation::Conversation,
    embedding::EmbeddingsDocument,
    issue::{Issue, Issues, Severity},
    memory::Memory,
    parse::ChecksumReading,
    sign::SignatureCheck,
    store::MemoryStore,
};

mod bundle;
mod conversation;
mod embeddings;
mod header;
mod index;
mod memory;
mod patterns;
mod store;
mod unicode;

pub use bundle::{BundleCheck, bundle};

/// What came of checking a bundle.
#[derive(Clone, Debug)]
pub struct Report {
    /// The store, if it can be read.
    pub store: Option<MemoryStore>,
    /// Everything that is wrong, of all documents; paths of files other than the store begin with their name.
    pub issues: Vec<Issue>,
    /// Which reading of the memories the checksum fits.
    pub checksum: ChecksumReading,
    /// Whether the signature holds. It says nothing of the checksum: a valid export has both.
    pub signature: SignatureCheck,
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
