//! The daemon of Satchel: watches, imports, keeps, answers, exports.
//!
//! Floors, from the bottom: [`clock`], [`config`], [`schedule`], [`envelope`], `plugins`, [`intake`], [`plan`], [`lineage`],
//! [`manifest`], [`rotation`] and [`exported`] · [`vault`], which opens an encrypted store · [`ingest`], [`export`], [`verify`],
//! [`backup`], [`examine`] and [`leftovers`], which do not know each other · [`watch`], which feeds [`ingest`] · [`grpc`] ·
//! `run` and [`serve`], which only wire · [`connect`] and `cli`, a client like any other. Beside them, what ties a process to
//! its surroundings: [`log`] and
//! [`supervisor`].

pub mod backup;
pub mod cli;
pub mod clock;
pub mod config;
pub mod connect;
pub mod conversation_record;
pub mod data_dir;
pub mod examine;
pub mod export;
pub mod exported;
pub mod grpc;
pub mod ingest;
mod key_checksum;
pub mod leftovers;
pub mod lineage;
pub mod log;
mod plain_file;
pub mod plugins;
mod reading;
mod run;
pub mod schedule;
pub mod serve;
pub mod signed;
pub mod supervisor;
pub mod trust;
pub mod vault;
pub mod watch;

pub(crate) use satchel_source::{chain, listed};

pub use run::{DRAIN, Outside, Ready, RunError, run, run_under};

/// Makes the folder that a file is to lie in, and those above it, closed to others. What is there stays as it is.
pub(crate) fn make_parents(file: &std::path::Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    match file.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent),
        None => Ok(()),
    }
}

/// Returns the known word of which `word` is likely a mistyped form.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    /// One edit in so many characters still makes the same word.
    const NEAR: usize = 3;
    let distance = |known: &str| strsim::damerau_levenshtein(word, known);
    let nearest = known.iter().copied().min_by_key(|known| distance(known))?;
    (distance(nearest) <= nearest.chars().count().div_ceil(NEAR)).then_some(nearest)
}
