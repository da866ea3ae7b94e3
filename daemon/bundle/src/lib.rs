//! The bundle format: the manifest that lists its files, the keys that sign it and succeed each other, and the
//! verification.
//!
//! **Invariant:** nothing here needs a data directory, a sandbox or a network. Anybody can verify anybody's bundle.

pub mod manifest;
pub mod rotation;
pub mod verify;
