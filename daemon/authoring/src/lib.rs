//! What the author of an importer uses.
//!
//! [`new`] writes a project outside this repository, [`build`] makes a package of it, [`keys`] signs that. The functions
//! return values and report progress through callbacks; the command line prints.

mod atomic;
pub mod build;
pub mod check;
mod embedded;
pub mod keys;
pub mod language;
pub mod new;
pub mod project;
pub mod run;
