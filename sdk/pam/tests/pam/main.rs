//! What the crate promises, seen from outside.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod documents;
mod full;
mod laws;
mod merge;
mod merge_vectors;
mod privacy;
mod reading;
mod rules;
mod signatures;
mod signing;
mod slots;
mod streaming;
mod vectors;
