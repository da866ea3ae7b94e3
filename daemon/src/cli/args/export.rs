//! What can be typed to write, list, check and merge bundles.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::{
    IdOrLast, examples,
    select::{Paging, TypeWord},
    unlock::{PassphraseArgs, UnlockArgs},
};

/// `export`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "switches of the command line")]
pub struct ExportArgs {
    /// A name ending in .zip, or in .zip.age if it is encrypted, or a folder that is empty or absent
    #[arg(long, short, value_name = "OUT", value_hint = ValueHint::AnyPath)]
    pub output: PathBuf,
    /// In whose shapes
    #[arg(long, value_enum, default_value = "pam", value_name = "FORMAT")]
    pub format: FormatWord,
    /// Memories only
    #[arg(long)]
    pub no_conversations: bool,
    /// With the bytes of attachments; not in memu
    #[arg(long)]
    pub attachments: bool,
    /// Without account ids, names of users and of imported files, what only the provider's own fields say, and titles, file names, tags
    /// and addresses with one of these or an e-mail address in them; what was said stays as it was said. Not in memu
    #[arg(long, conflicts_with = "incremental")]
    pub strip_identifiers: bool,
    /// Encrypt it to this age recipient (age1…, or "ssh-ed25519 …"); may be repeated
    #[arg(long, value_name = "RECIPIENT", conflicts_with_all = ["passphrase", "passphrase_file"])]
    pub encrypt_to: Vec<String>,
    /// Encrypt it by a passphrase: `SATCHEL_PASSPHRASE` if it is set, else it is asked for
    #[command(flatten)]
    pub passphrase: PassphraseArgs,
    #[command(flatten)]
    pub select: ExportSelect,
    /// Only what changed since the last full export, which it adds to; of pam only
    #[arg(long)]
    pub incremental: bool,
    /// The full export to add to: its id, the first characters of it, or `last`
    #[arg(long, value_name = "EXPORT_ID", requires = "incremental")]
    pub base: Option<String>,
}

/// Which memories and conversations are exported. Every option that is given must hold; of one that is given several times any
/// value may fit.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Filters (an export with one is a selection: nothing can be built on it)")]
pub struct ExportSelect {
    /// Memories of this type only, and no conversations; may be repeated
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',', conflicts_with = "incremental")]
    pub types: Vec<TypeWord>,
    /// With this tag; if repeated, with all of them
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',', conflicts_with = "incremental")]
    pub tags: Vec<String>,
    /// From this platform, such as chatgpt; may be repeated
    #[arg(long = "platform", value_name = "NAME", value_delimiter = ',', conflicts_with = "incremental")]
    pub platforms: Vec<String>,
    /// Last changed at this time or later: 2026-03-01, 2026-03, yesterday, last month, 2026-03-01T14:00:00Z, or 7d, 2w, 3mo ago
    #[arg(long, value_name = "TIME", conflicts_with = "incremental")]
    pub since: Option<String>,
    /// Last changed before this time; a day, month or year counts whole
    #[arg(long, value_name = "TIME", conflicts_with = "incremental")]
    pub until: Option<String>,
    /// Begun at this time or later, as --since
    #[arg(long, value_name = "TIME", conflicts_with = "incremental")]
    pub created_since: Option<String>,
    /// Begun before this time, as --until
    #[arg(long, value_name = "TIME", conflicts_with = "incremental")]
    pub created_until: Option<String>,
}

/// In whose shapes an export is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatWord {
    /// A signed bundle of Portable AI Memory 1.0
    Pam,
    /// The lists and conversations of MemU, unsigned
    Memu,
    /// A readable file for each conversation and each type of memory, with front matter and links, unsigned
    Markdown,
}

/// `exports …`.
#[derive(Debug, Subcommand)]
pub enum Exports {
    /// List exports, newest first
    #[command(after_help = examples::EXPORTS_LIST)]
    List(Paging),
    /// Show one export
    #[command(after_help = examples::EXPORTS_SHOW)]
    Show(IdOrLast),
}

/// `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// A folder, a ZIP, plain or encrypted, or a memory-store.json
    #[arg(value_hint = ValueHint::AnyPath)]
    pub path: PathBuf,
    /// The full bundle that this incremental one adds to; it is checked too
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub base: Option<PathBuf>,
    /// Accept only this signer: z6Mk… or did:key:z6Mk…; may be given several times
    #[arg(long, value_name = "KEY")]
    pub signer: Vec<String>,
    /// Refuse a bundle whose signature is absent or of an unknown kind, or of which any part is covered by no signature
    #[arg(long)]
    pub strict: bool,
    #[command(flatten)]
    pub unlock: UnlockArgs,
}

/// `apply`.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// A folder, a ZIP, plain or encrypted, or a memory-store.json
    #[arg(value_hint = ValueHint::AnyPath)]
    pub path: PathBuf,
    /// Show what would change, store nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Take it although it is somebody else's
    #[arg(long)]
    pub any_owner: bool,
    /// Merge it although its base is not known here, something of it does not hold, or nobody signed it whom you trust; the
    /// receipt keeps what was wrong
    #[arg(long)]
    pub force: bool,
    /// Trust this key from now on, as `satchel keys trust` does, and merge what it signed: z6Mk… or did:key:z6Mk…
    #[arg(long, value_name = "KEY", conflicts_with = "force")]
    pub trust: Option<String>,
    #[command(flatten)]
    pub unlock: UnlockArgs,
}
