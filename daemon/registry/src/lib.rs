//! The importers of a data directory: those that come with the program, and those of others that the person installed.
//!
//! [`Plugins`] is the set that imports use. An importer of somebody else arrives as a [`package`], is compiled in a
//! child process ([`compile`]), and is installed with the consent of the person ([`Review`], [`Consent`]).
//! [`Plugins::open`] reads the installed set from the folder `plugins` of the data directory.

pub mod compile;
mod files;
mod importer;
mod install;
pub mod package;
mod plugins;
mod registry;
mod retry_once;

pub use importer::{Importer, PluginLoadError};
pub use install::{Consent, InstallError, Review};
pub use plugins::{CANCEL_POLL, ImporterRow, MAX_FAILURES, Plugins, PluginsOptions};
pub use registry::{Author, Installed, InstalledState, Registry, RegistryError};
