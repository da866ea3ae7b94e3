//! The functions that a plugin may call: the files of its export, its sink, accounts it found, results of earlier runs,
//! its log.

mod export_files;
mod files;
mod log;
mod memo;
mod read_ahead;
mod sink;

#[expect(unreachable_pub, reason = "the generated bindings name it in their own public names")]
pub use self::export_files::FileReader;
pub(crate) use self::export_files::{ExportFiles, PathIndex, ReadFailure};
