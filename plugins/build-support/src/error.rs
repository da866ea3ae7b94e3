//! Errors of the build.

use std::{io, path::PathBuf};

/// An error of the build.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Neither the running toolchain nor Debian's can build for wasm.
    #[error(
        "no Rust toolchain on this machine builds for wasm32-unknown-unknown; run `rustup target add \
         wasm32-unknown-unknown`, or on Debian `apt-get install rustc-web cargo-web rust-web-src lld`"
    )]
    NoToolchain,
    /// A program cannot be started.
    #[error("cannot run {program:?}")]
    Start {
        /// The program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Cargo failed; its standard error has the reason.
    #[error("cargo cannot build {packages} for wasm32-unknown-unknown; its own words stand above")]
    Cargo {
        /// Package names.
        packages: String,
    },
    /// A file cannot be read.
    #[error("cannot read {path:?}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The module cannot become a component, or the component does not fit the world.
    #[error("{what}: {problem}")]
    Component {
        /// The step that failed.
        what: &'static str,
        /// The error of wit-component.
        problem: String,
    },
}
