//! Shared parts of the tests.

pub mod generate;
pub mod guests;
pub mod histories;
pub mod operation;
pub mod packages;
pub mod raw_codec;
pub mod samples;
pub mod small_disk;
pub mod test_core;
pub mod test_daemon;
pub mod test_device;
pub mod unprivileged;
