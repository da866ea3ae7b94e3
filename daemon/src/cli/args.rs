//! The command line: commands, options, and their help.

/// Defines enums of the command line whose values have the same names in the contract.
macro_rules! wire_args {
    ($($(#[$meta:meta])* $name:ident: $wire:ident { $($(#[$doc:meta])* $variant:ident,)+ })+) => {$(
        #[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
        $(#[$meta])*
        pub enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            /// Returns the value on the wire.
            pub fn to_wire(self) -> $wire {
                match self {
                    $(Self::$variant => $wire::$variant,)+
                }
            }
        }
    )+};
}

mod attachments;
mod devices;
mod edits;
mod examples;
mod export;
mod filters;
mod imports;
mod keys;
mod links;
mod maintenance;
mod peers;
mod plugins;
mod purge;
mod records;
mod search;
mod system;

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

pub use self::{
    attachments::{Attachments, SaveAttachments},
    devices::{
        ClearableRestriction, DeviceArg, DeviceRoleArg, Devices, PairArgs, PairDeviceArgs, PolicyArgs,
        ScopeArg, SelectionArgs, ServerArg, Servers, TokenArgs,
    },
    edits::{
        AddArgs, ClearableField, DecayArg, EditArgs, FieldArgs, RelationTypeArg, Relations, ReviewArgs,
        StatusArgs, UndoEditArgs, VisibilityArg,
    },
    export::{
        ApplyArgs, ExportArgs, ExportFilterArgs, ExportFormatArg, Exports, PassphraseArgs, UnlockArgs,
        VerifyArgs,
    },
    filters::{
        ConversationFilterArgs, GroupingArg, MemoryFilterArgs, MemoryReadArgs, MemoryStatusArg,
        MemoryTypeArg, Paging,
    },
    imports::{AddSourceArgs, AgainArgs, Folder, ImportArgs, Imports, Sources, UndoArgs},
    keys::{DataKeyArgs, EncryptionCommand, Keys, SigningCommand},
    links::{ContradictionsArgs, DuplicatesArgs, LinkArg, RelatedArgs},
    maintenance::{BackupArgs, DoctorArgs, RebuildArgs, RestoreArgs},
    peers::{AddPeerArgs, PeerAttachments, Peers, SyncArgs, SyncCommand, SyncExportArgs, SyncImportArgs},
    plugins::{
        AuthorCommand, AuthorKeyArgs, BuildArgs, CompileChildArgs, InstalledCommand, KeyCommand, LanguageArg,
        NewArgs, PluginArgs, PluginInstallArgs, Plugins, RunArgs, SignArgs, TestArgs,
    },
    purge::PurgeArgs,
    records::{Conversations, Id, IdOrLast, Memories, ShowConversation},
    search::{BrowseArgs, ContextArgs, SearchArgs, SearchKindArg},
    system::{
        AgentProgram, AgentRole, ConfigCommand, InstallArgs, McpArgs, McpCommand, McpEntryArgs,
        McpInstallArgs, ServeArgs, Service,
    },
};

/// Archive your conversations with AI assistants, and what they remember about you, on your own machine.
///
/// Satchel imports the exports that you download from AI assistants, stores conversations and memories in the Portable AI Memory format
/// (PAM 1.0), lets you browse and edit them, and writes signed bundles that anyone can verify.
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
    /// Data directory [default: `$XDG_DATA_HOME/satchel`, or `~/.local/share/satchel`]
    #[arg(long, global = true, env = "SATCHEL_DATA_DIR", hide_env_values = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub data_dir: Option<PathBuf>,
    /// Configuration file [default: satchel/satchel.toml in the user's configuration folder]
    #[arg(long, global = true, env = "SATCHEL_CONFIG", hide_env_values = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Use this daemon instead of the data directory: the name of a paired one (`satchel servers list`), or `unix:PATH` with its socket; paths then refer to its machine, but files are sent to a paired daemon and fetched from it
    #[arg(long, global = true, env = "SATCHEL_SERVER", hide_env_values = true, value_name = "SERVER")]
    pub server: Option<String>,
    /// File with the passphrase of an encrypted data directory, readable only by you; alternatively, set `SATCHEL_DATA_PASSPHRASE`
    #[arg(long, global = true, env = "SATCHEL_DATA_PASSPHRASE_FILE", hide_env_values = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub data_passphrase_file: Option<PathBuf>,
    /// Allow a data directory that is owned by another user
    #[arg(long, global = true)]
    pub allow_other_owner: bool,
    /// Print a single JSON document instead of text; errors are printed as JSON on stderr
    #[arg(long, global = true)]
    pub json: bool,
    /// Log more to stderr; -vv logs everything
    #[arg(short, long, global = true, action = ArgAction::Count, conflicts_with = "quiet")]
    pub verbose: u8,
    /// Print only results and errors, no progress or hints
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Do not show long output in a pager (`PAGER`, or `less` if unset)
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
    /// Other commands connect to it through its socket in the data directory. The daemon imports files that appear in the watched folders:
    /// those in the configuration file, those given with `--watch`, and those added with `satchel sources add`. SIGTERM or Ctrl-C shuts it
    /// down gracefully; a second signal stops it immediately. SIGHUP reloads the configuration.
    #[command(after_help = examples::SERVE)]
    Serve(ServeArgs),
    /// Install the daemon as a service that starts at login
    ///
    /// Uses a systemd user unit on Linux and a launchd agent on macOS. The daemon starts at login and is restarted if it fails; with
    /// systemd it also starts on demand, when a command connects to its socket.
    #[command(subcommand, after_help = examples::SERVICE)]
    Service(Service),
    /// Check or print the configuration
    #[command(subcommand, after_help = examples::CONFIG)]
    Config(ConfigCommand),
    /// Try out Satchel with sample exports in a temporary folder
    #[command(after_help = examples::DEMO)]
    Demo,
    /// Import exports: files, ZIP archives or folders, as you downloaded them
    ///
    /// The receipt accounts for every record: found = new + updated + unchanged + skipped. Importing the same file again changes nothing.
    /// Ctrl-C cancels the import; records that are already stored are complete and are kept.
    #[command(after_help = examples::IMPORT)]
    Import(ImportArgs),
    /// List, inspect, cancel, undo, redo and repeat imports
    #[command(subcommand, after_help = examples::IMPORTS)]
    Imports(Imports),
    /// Manage the watched folders
    #[command(subcommand, after_help = examples::SOURCES)]
    Sources(Sources),
    /// List, show, add and change memories
    #[command(subcommand, after_help = examples::MEMORIES)]
    Memories(Memories),
    /// List, add and withdraw relations between memories
    #[command(subcommand, after_help = edits::RELATIONS)]
    Relations(Relations),
    /// List, show and purge conversations
    #[command(subcommand, after_help = examples::CONVERSATIONS)]
    Conversations(Conversations),
    /// Find memories, messages and conversations by their words
    ///
    /// Words are found in any form, in any language. What has all of them comes first; if that is little, what has some of them, or similar
    /// ones, follows. What can be written: `"a phrase"`, `+exact`, `-without`,
    /// `one OR other`, `begin*`, `mispeled~`, `title:word`, and filters: `platform:claude`, `role:user`, `type:fact`, `status:active`,
    /// `model:`, `tag:`, `has:attachment` (or code, link, citation, tool), `in:memories`, `conversation:ID`, `before:2025-06`,
    /// `after:2024`, `on:2025-06-15`, `after:30d`. `valid:2025-06` finds memories that were valid in that month, `expired:now` those that
    /// are not valid any more. A query with a `-` is best put in single quotes.
    #[command(after_help = examples::SEARCH)]
    Search(SearchArgs),
    /// Quote what fits a query best, as text for the prompt of a model
    ///
    /// Prints your instructions, and then the memories that fit the query, within a budget of tokens. Each is a line of JSON with its id,
    /// date and platform, below a line that says what follows; nothing that is stored can end its quotation, or pose as an instruction. Your
    /// instructions are memories of this type that you stated or approved yourself. What models inferred and agents wrote is quoted as data.
    /// The query is written as for `satchel search`.
    #[command(after_help = examples::CONTEXT)]
    Context(ContextArgs),
    /// Search and read on the whole terminal
    ///
    /// Searches while you type, in the language of `satchel search`; without a query the newest conversations are listed. Enter opens a hit
    /// where it was found, Tab marks hits, and Ctrl-E writes the marked ones to a new Markdown file. F1 shows all keys.
    #[command(after_help = examples::BROWSE)]
    Browse(BrowseArgs),
    /// Serve the archive to an agent over the Model Context Protocol, on standard input and output
    ///
    /// Programs such as coding agents start this command themselves. It answers as the device that --as names: what that device may see
    /// and change, and whether what it writes waits for review, are its permissions; `satchel devices log` lists its calls.
    #[command(after_help = examples::MCP)]
    Mcp(McpArgs),
    /// List and save the files that came with conversations
    #[command(subcommand, after_help = examples::ATTACHMENTS)]
    Attachments(Attachments),
    /// Export everything, or only what changed, as a signed PAM 1.0 bundle
    ///
    /// The output is written atomically: it appears complete or not at all. Only you can read it (mode 0600). It is not encrypted unless
    /// --encrypt-to or --passphrase is given.
    #[command(after_help = examples::EXPORT)]
    Export(ExportArgs),
    /// List and inspect exports that were made
    #[command(subcommand, after_help = examples::EXPORTS)]
    Exports(Exports),
    /// Verify a PAM bundle from anyone: schema, hashes, signature, manifest
    ///
    /// Works offline and needs no data directory. Exits with code 1 if the bundle is not valid. The report says which parts a signature
    /// covers: PAM's own signature covers the memories, Satchel's signed manifest covers every file. If a folder or ZIP contains several
    /// bundles, each is verified and listed.
    #[command(after_help = examples::VERIFY)]
    Verify(VerifyArgs),
    /// Merge a PAM bundle: a full export, or the changes since one
    ///
    /// Follows the merge rules of PAM: newer versions replace older ones, which stay in the history; retracted memories stay retracted;
    /// nothing is deleted. An incremental bundle is refused unless the export that it is based on is known here. A bundle of another owner
    /// is refused unless --any-owner is given. Applying a bundle twice changes nothing.
    ///
    /// Only bundles that are signed by your own keys, or by keys that you trust (`satchel keys trust`), change existing records. Any other
    /// bundle only adds records that are missing here; the receipt says what it would have changed. A bundle that `satchel verify` rejects
    /// is rejected here too.
    #[command(after_help = examples::APPLY)]
    Apply(ApplyArgs),
    /// Install, list and remove importers of others, and write your own
    #[command(subcommand, after_help = examples::plugins::PLUGINS)]
    Plugins(Plugins),
    /// Show what is stored, and any problems
    #[command(after_help = examples::STATUS)]
    Status,
    /// Check the integrity of the data directory
    ///
    /// Reads every frame of the journal, every record of the database and every attachment. A running daemon does this itself and keeps
    /// serving. Exits with code 1 if there are problems.
    #[command(after_help = examples::DOCTOR)]
    Doctor(DoctorArgs),
    /// Back up the data directory to a single file
    ///
    /// The backup contains everything stored up to this moment, and the key that signs your exports; the daemon keeps running. Only you can
    /// read the file (mode 0600). It is encrypted only if the data directory is.
    #[command(after_help = examples::BACKUP)]
    Backup(BackupArgs),
    /// Restore a backup into an empty data directory
    ///
    /// The whole backup is verified before anything is changed. No daemon may be running on the data directory.
    #[command(after_help = examples::RESTORE)]
    Restore(RestoreArgs),
    /// Rebuild the database from the journal
    ///
    /// The whole journal is read first. It contains everything, so nothing is lost. If the journal is damaged, the command reports what
    /// would be lost and changes nothing. The old database is set aside. No daemon may be running on the data directory.
    #[command(after_help = examples::REBUILD)]
    Rebuild(RebuildArgs),
    /// Manage signing keys, trusted keys, and the encryption of the data directory
    #[command(subcommand, after_help = examples::KEYS)]
    Keys(Keys),
    /// Pair, list, change and revoke the devices that use this daemon
    #[command(subcommand, after_help = examples::devices::DEVICES)]
    Devices(Devices),
    /// Pair this machine with a daemon on another one
    ///
    /// Stores a key for it in the data directory, which needs no store. The key of the daemon is compared with the code before anything is
    /// sent, so nobody on the network between can take its place.
    #[command(after_help = examples::devices::PAIR)]
    Pair(PairArgs),
    /// List and change the daemons that this machine is paired with
    #[command(subcommand, after_help = examples::devices::SERVERS)]
    Servers(Servers),
    /// Keep this store in step with those of your other machines
    ///
    /// Each machine imports and edits by itself, also for months without a network; in the end all hold the same, with every edit in it. No
    /// machine is the master, and there is no cloud.
    #[command(subcommand, after_help = examples::peers::PEERS)]
    Peers(Peers),
    /// Exchange changes with the peers now
    ///
    /// A running daemon does this by itself: after each change, when a connection is back, and every few minutes. Exits with code 4 if a peer
    /// could not be reached or refused something.
    #[command(after_help = examples::peers::SYNC)]
    Sync(SyncArgs),
    /// List what was edited in several stores at the same time, with different results
    ///
    /// All stores show the same value until an edit of the field settles the conflict. Nothing is lost: the history of the memory on the
    /// machine where a value was given has it.
    #[command(after_help = examples::peers::CONFLICTS)]
    Conflicts(Paging),
    /// Print a shell completion script
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// Shell to generate the script for
        shell: Shell,
    },
    /// Print the manual page
    #[command(after_help = examples::MAN)]
    Man {
        /// Write the manual pages of all commands into this folder instead
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        output: Option<PathBuf>,
    },
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
