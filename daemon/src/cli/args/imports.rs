//! The commands that import: watched folders, imports and their receipts.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::{IdOrLast, Paging, UnlockArgs, examples};

/// `sources …`.
#[derive(Debug, Subcommand)]
pub enum Sources {
    /// List the watched folders, with the files that are being imported, waiting, or failed
    #[command(after_help = examples::SOURCES_LIST)]
    List {
        /// Also list the files that no importer recognises, and what they appear to be
        #[arg(long, visible_alias = "unrecognized")]
        unrecognised: bool,
    },
    /// Watch a folder, from now on and after restarts
    #[command(after_help = examples::SOURCES_ADD)]
    Add(AddSourceArgs),
    /// Stop watching a folder; imported data is kept
    #[command(after_help = examples::SOURCES_REMOVE)]
    Remove(Folder),
}

/// `sources add`.
#[derive(Debug, Args)]
pub struct AddSourceArgs {
    /// Path of the folder, or of one file such as a database
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath, required_unless_present = "agents")]
    pub dir: Option<PathBuf>,
    /// Find the folders and databases in which coding agents keep their sessions, and watch those
    #[arg(long, conflicts_with = "dir")]
    pub agents: bool,
    /// Do not ask before the folders of agents are watched
    #[arg(long, short, requires = "agents")]
    pub yes: bool,
    /// Programs append to the files in it, as coding agents do: import each by itself while it grows
    #[arg(long, conflicts_with = "agents")]
    pub sessions: bool,
    /// Ignore files and folders with such a name, at any depth; * and ? are wildcards
    #[arg(long, value_name = "PATTERN", conflicts_with = "agents")]
    pub ignore: Vec<String>,
    /// How long a file must stay unchanged before it is imported, or how long to wait after a change with --sessions: 10ms
    /// to 1h [default: 3s, or 200ms with --sessions]
    #[arg(long, value_name = "TIME")]
    pub settle: Option<String>,
}

/// A folder.
#[derive(Debug, Args)]
pub struct Folder {
    /// Path of the folder or file
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub dir: PathBuf,
}

/// `import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// Files, ZIP archives or folders
    #[arg(required = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Use only the importer for this platform, such as chatgpt or claude
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// Use only the importer of this name, as `satchel plugins list` shows it
    #[arg(long, value_name = "NAME")]
    pub plugin: Option<String>,
    /// Read and count everything without storing it
    #[arg(long)]
    pub dry_run: bool,
    /// Import even if the same bytes were imported before
    #[arg(long)]
    pub again: bool,
    #[command(flatten)]
    pub unlock: UnlockArgs,
}

/// `imports …`.
#[derive(Debug, Subcommand)]
pub enum Imports {
    /// List imports, newest first
    #[command(after_help = examples::IMPORTS_LIST)]
    List(Paging),
    /// Show the receipt of an import
    #[command(after_help = examples::IMPORTS_SHOW)]
    Show(IdOrLast),
    /// List what an import skipped or warned about, with the location in the export
    #[command(after_help = examples::IMPORTS_ISSUES)]
    Issues {
        #[command(flatten)]
        id: IdOrLast,
        #[command(flatten)]
        paging: Paging,
    },
    /// Cancel a running import; records that are already stored are kept
    #[command(after_help = examples::IMPORTS_CANCEL)]
    Cancel(IdOrLast),
    /// Undo an import
    ///
    /// Memories and conversations become what they would be without that import; data from later imports is kept. Nothing is erased: the
    /// history is kept, and `satchel imports redo` reverses the undo. Importing the same file again imports it anew.
    #[command(after_help = examples::IMPORTS_UNDO)]
    Undo(UndoArgs),
    /// Redo an import that was undone
    #[command(after_help = examples::IMPORTS_REDO)]
    Redo(UndoArgs),
    /// Read again what another version of an importer has read
    ///
    /// Imports the files of earlier imports again, where they still are, with the version of the importer that is in use now. Files that
    /// are gone are listed. What this version has read already is not read again.
    #[command(after_help = examples::IMPORTS_AGAIN)]
    Again(AgainArgs),
}

/// Options of `imports again`.
#[derive(Debug, Args)]
pub struct AgainArgs {
    /// Importer, as `satchel plugins list` shows it
    #[arg(long, value_name = "NAME")]
    pub plugin: String,
    /// Read and count everything without storing it
    #[arg(long)]
    pub dry_run: bool,
}

/// Options of `imports undo` and `imports redo`.
#[derive(Debug, Args)]
pub struct UndoArgs {
    #[command(flatten)]
    pub id: IdOrLast,
    /// Show what would change without changing anything
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub yes: bool,
}
