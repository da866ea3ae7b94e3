//! The checksum of a store (PAM 1.0 §15): SHA-256 over the canonical JSON array of its memories in id order.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    canonical,
    hash::Sha256Digest,
    jcs::{self, JcsError},
    memory::Memory,
};

/// Why a list of memories has no checksum.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChecksumError {
    /// A [`Builder`] got them out of order.
    #[error("memory {id:?} comes after {previous:?}; a checksum takes memories in id order")]
    Order {
        /// Id of the memory that is out of order.
        id: String,
        /// Id of the memory before it.
        previous: String,
    },
    /// A memory has a number without canonical form.
    #[error("memory {id:?} has no canonical form")]
    NotCanonical {
        /// Id of the memory.
        id: String,
        /// The reason.
        source: JcsError,
    },
}

/// Computes a checksum from memories one by one, in id order, in constant space.
#[derive(Clone, Debug)]
pub struct Builder {
    hasher: Sha256,
    previous: Option<String>,
    count: u64,
    buffer: Vec<u8>,
}

impl Builder {
    /// Starts without memories.
    #[must_use]
    pub fn new() -> Self {
        Self { hasher: Sha256::new_with_prefix(b"["), previous: None, count: 0, buffer: Vec::new() }
    }

    /// Adds the next memory in PAM normal form. Ids must ascend by code point; equal ids are allowed.
    ///
    /// # Errors
    /// If the id is less than the previous one, or the memory has no canonical form.
    pub fn push(&mut self, memory: &Memory) -> Result<(), ChecksumError> {
        if let Some(previous) = self.previous.as_ref().filter(|previous| **previous > memory.id) {
            return Err(ChecksumError::Order { id: memory.id.clone(), previous: previous.clone() });
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        let written = canonical::write_memory(&mut buffer, memory);
        if written.is_ok() {
            self.push_canonical(&buffer);
            self.previous.get_or_insert_default().clone_from(&memory.id);
        }
        self.buffer = buffer;
        written.map_err(|source| ChecksumError::NotCanonical { id: memory.id.clone(), source })
    }

    /// Adds the canonical bytes of the next memory; the caller ensures the order.
    pub(crate) fn push_canonical(&mut self, bytes: &[u8]) {
        if self.count > 0 {
            self.hasher.update(b",");
        }
        self.hasher.update(bytes);
        self.count += 1;
    }

    /// Number of memories added.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the checksum of all memories added.
    #[must_use]
    pub fn finish(mut self) -> Sha256Digest {
        self.hasher.update(b"]");
        Sha256Digest::from_bytes(self.hasher.finalize().into())
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

/// Computes the checksum of memories, given in any order, in PAM normal form.
///
/// # Errors
/// If a memory has no canonical form.
pub fn of_memories(memories: &[Memory]) -> Result<Sha256Digest, ChecksumError> {
    let mut sorted: Vec<&Memory> = memories.iter().collect();
    // A stable sort keeps the order of memories with equal ids, like the reference implementation.
    sorted.sort_by(|left, right| left.id.cmp(&right.id));
    let mut builder = Builder::new();
    sorted.into_iter().try_for_each(|memory| builder.push(memory))?;
    Ok(builder.finish())
}

/// Computes the checksum of memories as they are in a document. A memory whose `id` is not a string sorts first.
///
/// # Errors
/// If a memory has no canonical form.
pub fn of_values(memories: &[Value]) -> Result<Sha256Digest, ChecksumError> {
    let id = |memory: &Value| memory.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut sorted: Vec<(String, &Value)> = memories.iter().map(|memory| (id(memory), memory)).collect();
    sorted.sort_by(|(left, _), (right, _)| left.cmp(right));
    let mut builder = Builder::new();
    for (id, memory) in sorted {
        let bytes = jcs::to_vec(memory).map_err(|source| ChecksumError::NotCanonical { id, source })?;
        builder.push_canonical(&bytes);
    }
    Ok(builder.finish())
}
