//! Batches: runs of changes as one stream of bytes, on the wire and in files.
//!
//! Both sides have one change in memory at a time. Each change proves itself by its signature and its place in the series, so those
//! before a truncated end can be used. A file may contain several batches, one after the other.

mod reader;
mod writer;

pub use reader::{BatchError, BatchReader};
pub use writer::{BatchWriter, Pushed};

/// What a batch begins with.
const MAGIC: &[u8; 8] = b"SATCHELC";
/// The version of the encoding of batches. Changes have their own.
const VERSION: u16 = 1;
/// The bytes of the header: magic 8, version 2, zero 2.
const HEADER_BYTES: usize = 12;
/// The bytes of the end: length 0, number of changes 4, digest 32.
const END_BYTES: u64 = 40;

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::panic, reason = "tests")]
mod tests;
