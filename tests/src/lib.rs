//! What the tests share.

pub mod archive;
pub mod daemon;
pub mod generate;
pub mod guests;
