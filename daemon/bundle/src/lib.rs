//! What a bundle is: the manifest that lists its files, the keys that sign it and follow each other, and how it is verified.
//!
//! **Invariant:** nothing here needs a data directory, a sandbox or a network: anybody can verify a bundle of anybody.

pub mod manifest;
pub mod rotation;
pub mod verify;
