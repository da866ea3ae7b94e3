//! Runs importer components in a sandbox: bytes of one export in, checked records out.
//!
//! [`Host`] holds the engine, [`Host::load`] turns component bytes into a [`Plugin`], and [`Plugin::run`] reads one
//! export with a store of its own. A plugin sees the files that it was given and its sink, nothing else.
//!
//! **Invariant:** nothing that a component does (loop, trap, flood, lie) harms more than its own run; held by
//! `tests/tests/hostile.rs`. **Invariant:** wasmtime and the generated bindings are known to this crate alone.

mod bindings;
mod cache;
pub mod channel;
mod collect;
mod convert;
mod delivery;
mod emitted;
mod error;
mod host;
mod imports;
mod info;
mod inspect;
mod limits;
mod memo;
mod memory;
mod pace;
mod plugin;
mod run;
mod runtime;
mod stop;
mod text;
mod ticker;

pub use cache::{CacheUse, CodeCache};
pub use emitted::{Emitted, Summary, Verdict};
pub use error::{ErrorKind, HostError, RunError};
pub use host::{Host, HostOptions};
pub use info::PluginInfo;
pub use inspect::MAX_COMPONENT_BYTES;
pub use limits::Limits;
pub use memo::{Memo, Remembered};
pub use pace::{Pace, Stride};
pub use plugin::{Detection, Plugin};
