//! Shared parts of the tests.

pub mod archive;
pub mod daemon;
pub mod exports;
pub mod generate;
pub mod guests;
pub mod histories;
pub mod nobody;
pub mod operation;
