//! What an import job is asked to do.

use std::{ffi::OsString, path::PathBuf};

use satchel_pam::sign::PublicKey;

/// The name by which users select PAM documents as a platform.
pub(super) const PAM_PLATFORM: &str = "pam";

/// Maximum number of waiting jobs that users requested; further requests are rejected.
pub(super) const WAITING: usize = 1_000;

/// A request to import one path.
#[derive(Clone, Debug)]
pub struct ImportRequest {
    /// A file or a folder.
    pub path: PathBuf,
    /// Use only the importers of this platform.
    pub provider: Option<String>,
    /// Use only the importer of this name.
    pub plugin: Option<String>,
    /// Import even if the same bytes were imported before.
    pub again: bool,
    /// Report what would happen, but store nothing.
    pub dry_run: bool,
    /// Merge PAM documents by the rules of the specification on owner and base export. Only PAM documents are read
    /// then.
    pub apply: Option<Apply>,
}

/// The checks that the user waives when they apply a PAM document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Apply {
    /// The owner of the store; `None` if the store has no owner yet.
    pub owner: Option<String>,
    /// Accept the document even if it belongs to another owner.
    pub any_owner: bool,
    /// Merge the document even if its base is unknown, if part of it fails verification, or if no trusted key signed
    /// it.
    pub force: bool,
    /// Trust this key from now on; the document must be signed by it.
    pub trust: Option<PublicKey>,
}

/// A file or folder that a watched folder submits for import.
#[derive(Clone, Debug)]
pub struct WatchedImport {
    /// The watched folder; nothing outside of it is read.
    pub root: PathBuf,
    /// The name of the file or folder in it.
    pub name: OsString,
    /// Whether it is a session to which a program appends (`satchel_source::Source::session`).
    pub session: bool,
    /// Use only the importers of these platforms; if empty, use all.
    pub providers: Vec<String>,
}
