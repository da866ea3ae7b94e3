//! The Portable AI Memory 1.0 model: documents, hashes, canonical JSON, signatures, validation; see README.md.
//!
//! **Invariant:** no clock, disk, randomness or async; the crate compiles for `wasm32-unknown-unknown`.

mod canonical;
pub mod checksum;
pub mod conversation;
pub mod embedding;
pub mod hash;
pub mod ids;
#[cfg(feature = "documents")]
pub mod issue;
pub mod jcs;
pub mod json;
pub mod lifecycle;
pub mod memory;
pub mod merge;
pub mod names;
pub mod normal;
#[cfg(feature = "documents")]
pub mod parse;
mod pretty;
pub mod privacy;
pub mod prose;
pub mod raw;
pub mod record;
pub mod relation;
#[cfg(feature = "documents")]
pub mod sign;
pub mod store;
pub mod text;
pub mod time;
pub mod unread;
#[cfg(feature = "documents")]
pub mod validate;

/// The `schema_version` that the writers write.
pub const SCHEMA_VERSION: &str = "1.0";

/// Runs the examples of the README as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
