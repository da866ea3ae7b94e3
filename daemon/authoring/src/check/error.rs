//! The reasons why a check cannot be made.

use std::{io, path::PathBuf};

use satchel_host::PluginError;
use satchel_importer::testkit::FixtureError;
use satchel_source::SourceError;

use crate::run::LoadError;

/// The reason why a check cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The importer cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A fixture, or its `expected.json`, cannot be read or written.
    #[error(transparent)]
    Fixture(#[from] FixtureError),
    /// The input of a fixture, or the file for measuring, cannot be opened.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A fixture is larger than a fixture should be.
    #[error(
        "{path:?} has more than {limit} bytes; make a smaller fixture, and measure with the large file by --bench"
    )]
    TooLarge {
        /// Its input.
        path: PathBuf,
        /// Bytes that a fixture may have.
        limit: u64,
    },
    /// A file cannot be read.
    #[error("cannot read {path:?}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A temporary folder cannot be made.
    #[error("cannot write to the folder for temporary files")]
    Temporary {
        /// Why.
        source: io::Error,
    },
    /// The machine or the host is the reason why the importer did not run.
    #[error("the importer cannot be run here")]
    Sandbox(#[source] PluginError),
    /// The fixtures cannot be imported into a temporary store.
    #[error("the fixtures cannot be imported into a temporary store")]
    Import(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The check was cancelled.
    #[error("the check was stopped")]
    Cancelled,
}

impl CheckError {
    pub(super) fn temporary(source: io::Error) -> Self {
        Self::Temporary { source }
    }

    pub(super) fn import(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Import(error.into())
    }
}
