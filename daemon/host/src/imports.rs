//! The functions that a plugin may call: the files of its export, its sink, accounts it found, results of earlier runs,
//! its log.

mod accounts;
mod ahead;
mod files;
mod library;
mod log;
mod memo;
mod sink;

#[expect(unreachable_pub, reason = "the generated bindings name it in their own public names")]
pub use self::library::Reader;
pub(crate) use self::library::{Failure, Library, Paths};
