//! JSON documents for memories, each as the exact PAM 1.0 object that an export contains.

use satchel_proto::{
    integers::unsigned,
    v1::{self, StoreHeader},
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{non_empty, timestamp};
use crate::cli::labels;

/// `memories list`.
#[derive(Debug, Serialize)]
pub(crate) struct Memories<'a> {
    pub memories: Vec<Memory<'a>>,
    /// True if there are more than `--limit`.
    pub more: bool,
    pub revision: u64,
    pub store_id: &'a str,
}

impl<'a> Memories<'a> {
    pub(crate) fn new(memories: &'a [v1::Memory], more: bool, header: &'a StoreHeader) -> Self {
        Self {
            memories: memories.iter().map(Memory::new).collect(),
            more,
            revision: unsigned(header.revision),
            store_id: &header.store_id,
        }
    }
}

/// `memories show`.
#[derive(Debug, Serialize)]
pub(crate) struct MemoryDocument<'a> {
    pub memory: Memory<'a>,
    pub version: u32,
    pub create_revision: u64,
    pub mod_revision: u64,
    /// Set if the memory comes only from an untrusted document: the key that signed it, or `unsigned`. Null
    /// if the memory is the owner's own.
    pub stranger: Option<&'a str>,
}

impl<'a> MemoryDocument<'a> {
    pub(crate) fn new(memory: &'a v1::Memory, untrusted: &'a str) -> Self {
        Self {
            stranger: non_empty(untrusted),
            memory: Memory::new(memory),
            version: unsigned(memory.version),
            create_revision: unsigned(memory.create_revision),
            mod_revision: unsigned(memory.mod_revision),
        }
    }
}

/// `memories history`.
#[derive(Debug, Serialize)]
pub(crate) struct History<'a> {
    pub id: &'a str,
    pub versions: Vec<Version<'a>>,
    pub more: bool,
}

/// One version.
#[derive(Debug, Serialize)]
pub(crate) struct Version<'a> {
    pub version: u32,
    pub revision: u64,
    pub changed_at: Option<String>,
    pub actor: &'a str,
    pub reason: Option<&'a str>,
    pub import_id: Option<&'a str>,
    pub memory: Option<Memory<'a>>,
}

impl<'a> Version<'a> {
    pub(crate) fn new(version: &'a v1::MemoryVersion) -> Self {
        let v1::MemoryVersion { version: number, revision, changed_at, actor, reason, memory, import_id } =
            version;
        Self {
            version: unsigned(*number),
            revision: unsigned(*revision),
            changed_at: timestamp(changed_at.as_ref()),
            actor,
            reason: non_empty(reason),
            import_id: non_empty(import_id),
            memory: memory.as_ref().map(Memory::new),
        }
    }
}

/// One memory.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Memory<'a> {
    /// The PAM object, byte for byte.
    Pam(&'a RawValue),
    /// The part of a memory that a response contains if the memory is too large for it; an export has all of it.
    Abridged {
        id: &'a str,
        #[serde(rename = "type")]
        memory_type: String,
        status: String,
        content: &'a str,
        content_hash: &'a str,
        abridged: bool,
    },
}

impl<'a> Memory<'a> {
    pub(crate) fn new(memory: &'a v1::Memory) -> Self {
        serde_json::from_str(&memory.pam_json).map_or_else(|_| Self::abridged(memory), Self::Pam)
    }

    fn abridged(memory: &'a v1::Memory) -> Self {
        Self::Abridged {
            id: &memory.id,
            memory_type: labels::memory_type(memory.r#type),
            status: labels::memory_status(memory.status),
            content: &memory.content,
            content_hash: &memory.content_hash,
            abridged: true,
        }
    }
}
