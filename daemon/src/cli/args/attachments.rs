//! Arguments of `attachments`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::{Id, IdOrLast, examples};

/// `attachments …`.
#[derive(Debug, Subcommand)]
pub enum Attachments {
    /// List the files that came with a conversation
    ///
    /// Lists the files of all branches, and whether their bytes are stored: many exports name files that they do not contain.
    #[command(after_help = examples::ATTACHMENTS_LIST)]
    List(IdOrLast),
    /// Save the files that came with a conversation into a folder
    ///
    /// Each file gets the name that it has in the conversation, without characters that are unsafe in names. No file is overwritten: if
    /// another one has the name already, a number is added. A file that is in the folder already is not saved again.
    #[command(after_help = examples::ATTACHMENTS_SAVE)]
    Save(SaveAttachments),
}

/// `attachments save`.
#[derive(Debug, Args)]
pub struct SaveAttachments {
    #[command(flatten)]
    pub id: Id,
    /// Folder to save the files in; it is created if it does not exist
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: PathBuf,
    /// Save only this file: its name, or the first 4 or more characters of its SHA-256; may be repeated
    #[arg(long, value_name = "NAME|SHA256")]
    pub only: Vec<String>,
}
