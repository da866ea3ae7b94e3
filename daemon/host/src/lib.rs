//! Runs importer components in a sandbox: files of one export in, checked records out.
//!
//! [`Host`] holds the engine, [`Host::load`] turns component bytes into a [`Plugin`], and [`Plugin::run`] reads one
//! export with a wasmtime store of its own. A plugin can access the files that it was given and its sink, nothing else.
//!
//! **Invariant:** a component (one that loops, traps, floods or lies) can harm only its own run; checked by
//! `tests/tests/integration/hostile_plugins.rs`. **Invariant:** only this crate uses wasmtime and the generated bindings.

mod bindings;
mod cache;
pub mod channel;
mod collect;
mod convert;
mod emitted;
mod error;
mod host;
mod imports;
mod info;
mod inspect;
mod limits;
mod memo;
mod memory_limiter;
mod plugin;
mod run;
mod runtime;
mod sink_call;
mod stop;
mod text;
mod throttle;
mod ticker;

pub use cache::{CacheStatus, CodeCache};
pub use emitted::{Emitted, MAX_LISTED_BREACHES, RunSummary, SinkVerdict};
pub use error::{HostError, PluginError, PluginErrorKind};
pub use host::{Host, HostOptions};
pub use info::PluginInfo;
pub use inspect::MAX_COMPONENT_BYTES;
pub use limits::PluginLimits;
pub use memo::{MemoEntry, PieceMemo};
pub use plugin::{Detection, Plugin};
pub use throttle::{Throttle, WorkerThrottle};
