//! What the tests share.

pub mod daemon;
pub mod guests;
pub mod archive;
pub mod generate;
