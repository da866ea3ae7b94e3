//! What can be typed: commands, options, and the help that explains them.

mod examples;
mod export;
mod hand;
mod keys;
mod purge;
mod select;
mod system;
mod unlock;

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

pub use self::{
    export::{ApplyArgs, ExportArgs, ExportSelect, Exports, FormatWord, VerifyArgs},
    hand::{
        AddArgs, ClearWord, DecayWord, EditArgs, FieldArgs, RelationWord, Relations, StatusArgs,
        TakeBackArgs, VisibilityWord,
    },
    keys::{Keys, LockArgs, Locking, Signing},
    purge::PurgeArgs,
    select::{ConversationSelect, MemorySelect, Paging, StatusWord, TypeWord},
    system::{ConfigCommand, InstallArgs, ServeArgs, Service},
    unlock::{PassphraseArgs, UnlockArgs},
};

/// Keeps the memory of your conversations with AI assistants, on your own machine.
///
/// Satchel reads the exports that you download from AI assistants, keeps conversations and memories in the Portable AI
/// Memory model (PAM 1.0), answers questions about them, and writes signed bundles that anyone can check.
#[derive(Debug, Parser)]
#[command(name = "satchel", version, propagate_version = true, after_help = examples::SATCHEL, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct Global {
    /// Where everything is kept [default: `$XDG_DATA_HOME/satchel`, else `~/.local/share/satchel`]
    #[arg(long, global = true, env = "SATCHEL_DATA_DIR", hide_env_values = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub data_dir: Option<PathBuf>,
    /// The configuration file [default: satchel/satchel.toml in the configuration folder]
    #[arg(long, global = true, env = "SATCHEL_CONFIG", hide_env_values = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// A daemon elsewhere: `unix:PATH` of its socket; paths then mean files on its machine
    #[arg(long, global = true, env = "SATCHEL_SERVER", hide_env_values = true, value_name = "ADDR")]
    pub server: Option<String>,
    /// A file with the passphrase of an encrypted data directory, closed to others [env: `SATCHEL_DATA_PASSPHRASE` holds one itself]
    #[arg(long, global = true, env = "SATCHEL_DATA_PASSPHRASE_FILE", hide_env_values = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub data_passphrase_file: Option<PathBuf>,
    /// Open a data directory that belongs to another user
    #[arg(long, global = true)]
    pub allow_other_owner: bool,
    /// Print one JSON document instead of text; an error is one on stderr
    #[arg(long, global = true)]
    pub json: bool,
    /// Log more to stderr; twice: everything
    #[arg(short, long, global = true, action = ArgAction::Count, conflicts_with = "quiet")]
    pub verbose: u8,
    /// Neither progress nor hints, only results and errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Print long output at once instead of through `PAGER`, else `less`
    #[arg(long, global = true)]
    pub no_pager: bool,
    /// When to colour the output; `NO_COLOR` is respected
    #[arg(
        long,
        global = true,
        env = "SATCHEL_COLOR",
        hide_env_values = true,
        value_name = "WHEN",
        default_value = "auto"
    )]
    pub color: ColorWhen,
}

/// When output is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ColorWhen {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    Always,
    Never,
}

/// Everything that `satchel` does.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the daemon in the foreground
    ///
    /// Other commands find it by its socket in the data directory. It imports what lands in the watched folders: those of the
    /// configuration, of `--watch`, and of `satchel sources add`. SIGTERM and Ctrl-C stop it in order, a second one at once.
    /// SIGHUP reads the configuration again.
    #[command(after_help = examples::SERVE)]
    Serve(ServeArgs),
    /// Let the system run the daemon, from login on
    ///
    /// As a unit of systemd for your user, or an agent of launchd. The daemon starts with your session, or when a command needs
    /// it, and again when it fails.
    #[command(subcommand, after_help = examples::SERVICE)]
    Service(Service),
    /// The configuration file
    #[command(subcommand, after_help = examples::CONFIG)]
    Config(ConfigCommand),
    /// Show everything on invented sample exports, in a throw-away folder
    #[command(after_help = examples::DEMO)]
    Demo,
    /// Bring in exports: files, ZIPs or folders, as you downloaded them
    ///
    /// Every record found is accounted for: found = new + updated + unchanged + skipped. Importing the same file again
    /// changes nothing. Ctrl-C stops the import; what is stored until then is whole and stays.
    #[command(after_help = examples::IMPORT)]
    Import(ImportArgs),
    /// The history of imports
    #[command(subcommand, after_help = examples::IMPORTS)]
    Imports(Imports),
    /// The watched folders
    #[command(subcommand, after_help = examples::SOURCES)]
    Sources(Sources),
    /// Look at memories, add some, change them
    #[command(subcommand, after_help = examples::MEMORIES)]
    Memories(Memories),
    /// How memories belong together
    #[command(subcommand, after_help = hand::RELATIONS)]
    Relations(Relations),
    /// Look at conversations
    #[command(subcommand, after_help = examples::CONVERSATIONS)]
    Conversations(Conversations),
    /// Write everything, or what changed, as a signed PAM 1.0 bundle
    ///
    /// The bundle stands whole at its place or not at all. It is closed to other users (mode 0600), and plain
    /// unless --encrypt-to or --passphrase is given.
    #[command(after_help = examples::EXPORT)]
    Export(ExportArgs),
    /// The exports that were made
    #[command(subcommand, after_help = examples::EXPORTS)]
    Exports(Exports),
    /// Check a PAM bundle from anybody: schema, hashes, signature, manifest
    ///
    /// Works offline and needs no data directory. Exit code 1 when the bundle does not hold. The verdict says which parts a
    /// signature covers: PAM's own covers memories, Satchel's manifest every file. Where a folder or ZIP holds several bundles, each
    /// is checked and listed.
    #[command(after_help = examples::VERIFY)]
    Verify(VerifyArgs),
    /// Merge a PAM bundle from anybody: a full export, or the changes since one
    ///
    /// By PAM's own rules: newer versions take the place of older ones, which stay in the history; what was retracted stays so;
    /// nothing is deleted. Changes are refused unless the export that they build on is known here, and so are other people's
    /// memories. Applying twice changes nothing.
    ///
    /// Only what your own keys signed, or keys that you trust (`satchel keys trust`), is merged so. Any other bundle adds what is
    /// not here yet and changes nothing; the receipt says what it would have changed. A bundle that `satchel verify` refuses is
    /// refused here too.
    #[command(after_help = examples::APPLY)]
    Apply(ApplyArgs),
    /// The importers
    #[command(subcommand, after_help = examples::PLUGINS)]
    Plugins(Plugins),
    /// How much is stored, and whether all is well
    #[command(after_help = examples::STATUS)]
    Status,
    /// Check the data directory, byte by byte
    ///
    /// Every frame of the journal, every record of the database and every attachment is looked at; a daemon that runs goes
    /// on meanwhile. Exit code 1 when something is wrong.
    #[command(after_help = examples::DOCTOR)]
    Doctor(DoctorArgs),
    /// Write everything that is needed to start again elsewhere into one file
    ///
    /// Takes what is stored up to this moment, while the daemon goes on. The file holds everything that you stored, and the key that
    /// signs your exports; it is closed to other users (mode 0600), and encrypted only if the data directory is.
    #[command(after_help = examples::BACKUP)]
    Backup(BackupArgs),
    /// Put a backup back into an empty data directory
    ///
    /// Every byte of it is checked before anything is touched. No daemon may run on the data directory.
    #[command(after_help = examples::RESTORE)]
    Restore(RestoreArgs),
    /// Build the database again from the journal
    ///
    /// The whole journal is read first. It holds everything, so nothing is lost; if it is damaged, what would be lost is said, and
    /// nothing is changed. The old database is set aside. No daemon may run on the data directory.
    #[command(after_help = examples::REBUILD)]
    Rebuild(RebuildArgs),
    /// The keys that sign your exports, and what opens an encrypted data directory
    #[command(subcommand, after_help = examples::KEYS)]
    Keys(Keys),
    /// Print the completion script of a shell
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// Which shell
        shell: Shell,
    },
    /// Print the manual page
    #[command(after_help = examples::MAN)]
    Man {
        /// Write the pages of all commands into this folder instead
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        output: Option<PathBuf>,
    },
}

/// `sources …`.
#[derive(Debug, Subcommand)]
pub enum Sources {
    /// List the watched folders, what is read, what waits and why, and what failed
    #[command(after_help = examples::SOURCES_LIST)]
    List {
        /// Name the files that no importer knows, each with what it seems to be
        #[arg(long, visible_alias = "unrecognized")]
        unrecognised: bool,
    },
    /// Watch one more folder, from now on and after every start
    #[command(after_help = examples::SOURCES_ADD)]
    Add(Folder),
    /// Watch a folder no more; what was imported from it stays
    #[command(after_help = examples::SOURCES_REMOVE)]
    Remove(Folder),
}

/// A folder.
#[derive(Debug, Args)]
pub struct Folder {
    /// The folder
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
}

/// `import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// Files, ZIPs or folders
    #[arg(required = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Only the importer of this platform, such as chatgpt or claude
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// Read and count everything, store nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Import again although the same bytes were imported before
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
    /// Show the receipt of one import
    #[command(after_help = examples::IMPORTS_SHOW)]
    Show(IdOrLast),
    /// List what an import skipped or found odd, each with its place in the export
    #[command(after_help = examples::IMPORTS_ISSUES)]
    Issues {
        #[command(flatten)]
        id: IdOrLast,
        #[command(flatten)]
        paging: Paging,
    },
    /// Stop an import that runs; what is stored until then is whole and stays
    #[command(after_help = examples::IMPORTS_CANCEL)]
    Cancel(IdOrLast),
    /// Take back what an import brought
    ///
    /// Memories and conversations become what they would be without that import; what later imports brought stays. Nothing
    /// is erased: history stays, and `imports redo` brings it all back. Importing the same file again also imports it anew.
    #[command(after_help = examples::IMPORTS_UNDO)]
    Undo(UndoArgs),
    /// Bring back what was undone
    #[command(after_help = examples::IMPORTS_REDO)]
    Redo(UndoArgs),
}

/// Options of `imports undo` and `imports redo`.
#[derive(Debug, Args)]
pub struct UndoArgs {
    #[command(flatten)]
    pub id: IdOrLast,
    /// Say what would change, change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
}

/// `memories …`.
#[derive(Debug, Subcommand)]
pub enum Memories {
    /// List memories, the last changed first
    #[command(after_help = examples::MEMORIES_LIST)]
    List {
        #[command(flatten)]
        select: MemorySelect,
        #[command(flatten)]
        paging: Paging,
    },
    /// Show one memory with where it comes from
    #[command(after_help = examples::MEMORIES_SHOW)]
    Show(Id),
    /// Show every version of a memory, newest first
    #[command(after_help = examples::MEMORIES_HISTORY)]
    History {
        #[command(flatten)]
        id: Id,
        #[command(flatten)]
        paging: Paging,
    },
    /// Add a memory
    ///
    /// One that says the same is found, not added twice.
    #[command(after_help = hand::ADD)]
    Add(AddArgs),
    /// Change what a memory says
    ///
    /// What you change stays, whatever you import later; the rest still follows the exports. Earlier versions stay in the history.
    #[command(after_help = hand::EDIT)]
    Edit(EditArgs),
    /// Deprecate, retract or archive a memory, or say what replaced it; or all that fit the filters
    ///
    /// An active memory may become any of them; a superseded one archived; a deprecated one retracted or archived. Retracted and
    /// archived are final, and no import brings a retracted memory back; `memories undo` does. Without ID the filters choose, and
    /// --expect wants the count that --dry-run gave.
    #[command(after_help = hand::STATUS)]
    Status(StatusArgs),
    /// Take back what you changed: the last change of a memory, one that is named, or back to an earlier version
    #[command(after_help = hand::UNDO)]
    Undo(TakeBackArgs),
    /// Erase a memory for good, with every version and all that was said of it
    ///
    /// Everything that is stored is written anew without it, and the old files are overwritten: that needs room for the data a second
    /// time, and no daemon may run. Its id, the hash of what it said, and who erased it when stay; no import brings it back. Memories
    /// that say the same go with it. What lies elsewhere is not touched: exports and backups that you made, and the files you imported.
    #[command(after_help = purge::MEMORY)]
    Purge(PurgeArgs),
}

/// `conversations …`.
#[derive(Debug, Subcommand)]
pub enum Conversations {
    /// List conversations, the last changed first
    #[command(after_help = examples::CONVERSATIONS_LIST)]
    List {
        #[command(flatten)]
        select: ConversationSelect,
        #[command(flatten)]
        paging: Paging,
    },
    /// Show a conversation as it was last seen, one branch of it, or its tree
    #[command(after_help = examples::CONVERSATIONS_SHOW)]
    Show(ShowConversation),
    /// Erase a conversation for good, with its attachments and the memories that came of it
    ///
    /// As `satchel memories purge`: everything that is stored is written anew without it. Attachments that other conversations have
    /// too stay.
    #[command(after_help = purge::CONVERSATION)]
    Purge {
        #[command(flatten)]
        purge: PurgeArgs,
        /// Keep the memories that came of it
        #[arg(long)]
        keep_memories: bool,
    },
}

/// `conversations show`.
#[derive(Debug, Args)]
pub struct ShowConversation {
    #[command(flatten)]
    pub id: IdOrLast,
    /// The branch that goes through this message, to its newest end
    #[arg(long, value_name = "MESSAGE", conflicts_with = "tree")]
    pub branch: Option<String>,
    /// One line for each message, with all branches
    #[arg(long)]
    pub tree: bool,
    /// Unfold thoughts and the output of tools
    #[arg(long)]
    pub full: bool,
    /// With messages that the platform does not show
    #[arg(long)]
    pub hidden: bool,
}

/// `doctor`.
#[derive(Clone, Copy, Debug, Args)]
pub struct DoctorArgs {
    /// Mend what can be mended without loss: a database that differs from its journal is built again, and what nothing needs
    /// any more is removed; no daemon may run
    #[arg(long)]
    pub repair: bool,
}

/// `rebuild`.
#[derive(Clone, Copy, Debug, Args)]
pub struct RebuildArgs {
    /// Build from a damaged journal too; the database that shows more is kept beside the new one
    #[arg(long)]
    pub accept_loss: bool,
    /// Put the database back that was kept then
    #[arg(long, conflicts_with = "accept_loss")]
    pub put_back: bool,
}

/// `backup`.
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// A file that is not there yet
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
}

/// `restore`.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// A file that `satchel backup` wrote
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Set the data directory that is there aside, under its name and `.replaced-1`
    #[arg(long)]
    pub replace: bool,
    /// Open an encrypted backup with the recovery phrase, asked for at the terminal or read from standard input, because the key is
    /// lost
    #[arg(long)]
    pub recovery: bool,
}

/// `plugins …`.
#[derive(Debug, Subcommand)]
pub enum Plugins {
    /// List the importers
    #[command(after_help = examples::PLUGINS_LIST)]
    List,
}

/// The id of one record.
#[derive(Clone, Debug, Args)]
pub struct Id {
    /// The id, or its first characters (4 or more) where they fit one only
    #[arg(value_name = "ID")]
    pub id: String,
}

/// The id of an import, an export or a conversation, of which one is the newest.
#[derive(Clone, Debug, Args)]
pub struct IdOrLast {
    /// The id, or its first characters (4 or more) where they fit one only
    #[arg(value_name = "ID", required_unless_present = "last")]
    pub id: Option<String>,
    /// The newest one instead of an id
    #[arg(long, conflicts_with = "id")]
    pub last: bool,
}

impl IdOrLast {
    /// The id that was typed; none: the newest one.
    pub fn given(&self) -> Option<&str> {
        self.id.as_deref().filter(|_| !self.last)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
