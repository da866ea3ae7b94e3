//! Arguments of the commands that write, list, verify and merge bundles.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use satchel_proto::v1::ExportFormat;

use super::{
    IdOrLast, examples,
    filters::{MemoryTypeArg, Paging},
};

/// `export`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "switches of the command line")]
pub struct ExportArgs {
    /// Output path: a file ending in .zip (.zip.age if encrypted), or a folder that is empty or does not exist
    #[arg(long, short, value_name = "OUT", value_hint = ValueHint::AnyPath)]
    pub output: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value = "pam", value_name = "FORMAT")]
    pub format: ExportFormatArg,
    /// Export only memories, no conversations
    #[arg(long)]
    pub no_conversations: bool,
    /// Include attachment files; not supported by memu
    #[arg(long)]
    pub attachments: bool,
    /// Remove account ids, names of users and of imported files, provider-specific fields, and all titles, file names, tags and addresses
    /// that contain one of these or an e-mail address; message text is not changed. Not supported by memu
    #[arg(long, conflicts_with = "incremental")]
    pub strip_identifiers: bool,
    /// Encrypt for this age recipient (age1…, or "ssh-ed25519 …"); may be repeated
    #[arg(long, value_name = "RECIPIENT", conflicts_with_all = ["passphrase", "passphrase_file"])]
    pub encrypt_to: Vec<String>,
    /// Encrypt with a passphrase
    #[command(flatten)]
    pub passphrase: PassphraseArgs,
    #[command(flatten)]
    pub select: ExportFilterArgs,
    /// Export only what changed since the last full export; pam only
    #[arg(long)]
    pub incremental: bool,
    /// Full export that the incremental one is based on: its id, a prefix of it, or `last`
    #[arg(long, value_name = "EXPORT_ID", requires = "incremental")]
    pub base: Option<String>,
}

/// Selects the memories and conversations to export. All given options must match; an option that is given several times matches any of its
/// values.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Filters (a filtered export cannot be the base of an incremental one)")]
pub struct ExportFilterArgs {
    /// Only memories of this type, and no conversations; may be repeated
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',', conflicts_with = "incremental")]
    pub types: Vec<MemoryTypeArg>,
    /// Only with this tag; if repeated, with all of them
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',', conflicts_with = "incremental")]
    pub tags: Vec<String>,
    /// Only from this platform, such as chatgpt; may be repeated
    #[arg(long = "platform", value_name = "NAME", value_delimiter = ',', conflicts_with = "incremental")]
    pub platforms: Vec<String>,
    /// Only if last changed at or after this time: 2026-03-01, 2026-03, yesterday, last month, 2026-03-01T14:00:00Z, or 7d, 2w, 3mo ago
    #[arg(long, value_name = "TIME", conflicts_with = "incremental")]
    pub since: Option<String>,
    /// Only if last changed up to this time; a day, month or year is included as a whole
    #[arg(long, value_name = "TIME", conflicts_with = "incremental")]
    pub until: Option<String>,
    /// Only if started at or after this time, in the formats of --since
    #[arg(long, value_name = "TIME", conflicts_with = "incremental")]
    pub created_since: Option<String>,
    /// Only if started up to this time, in the formats of --until
    #[arg(long, value_name = "TIME", conflicts_with = "incremental")]
    pub created_until: Option<String>,
}

wire_args! {
    /// The format of an export.
    ExportFormatArg: ExportFormat {
        /// Signed Portable AI Memory 1.0 bundle
        Pam,
        /// Memory lists and conversations in the format of MemU, unsigned
        Memu,
        /// One Markdown file per conversation and per memory type, with front matter and links, unsigned
        Markdown,
    }
}

/// `exports …`.
#[derive(Debug, Subcommand)]
pub enum Exports {
    /// List exports, newest first
    #[command(after_help = examples::EXPORTS_LIST)]
    List(Paging),
    /// Show an export
    #[command(after_help = examples::EXPORTS_SHOW)]
    Show(IdOrLast),
}

/// `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Folder, ZIP (plain or encrypted), or memory-store.json
    #[arg(value_hint = ValueHint::AnyPath)]
    pub path: PathBuf,
    /// Full bundle that this incremental one is based on; it is verified too
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub base: Option<PathBuf>,
    /// Accept only this signer: z6Mk… or did:key:z6Mk…; may be repeated
    #[arg(long, value_name = "KEY")]
    pub signer: Vec<String>,
    /// Reject a bundle if its signature is missing or unsupported, or if any part is not covered by a signature
    #[arg(long)]
    pub strict: bool,
    #[command(flatten)]
    pub unlock: UnlockArgs,
}

/// `apply`.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// Folder, ZIP (plain or encrypted), or memory-store.json
    #[arg(value_hint = ValueHint::AnyPath)]
    pub path: PathBuf,
    /// Show what would change without storing anything
    #[arg(long)]
    pub dry_run: bool,
    /// Merge even if the bundle belongs to another owner
    #[arg(long)]
    pub any_owner: bool,
    /// Merge even if the base is unknown here, parts of the bundle are not valid, or no trusted key signed it; the receipt records the
    /// problems
    #[arg(long)]
    pub force: bool,
    /// Trust this key from now on, like `satchel keys trust`, and merge what it signed: z6Mk… or did:key:z6Mk…
    #[arg(long, value_name = "KEY", conflicts_with = "force")]
    pub trust: Option<String>,
    #[command(flatten)]
    pub unlock: UnlockArgs,
}

/// What opens an encrypted export. A passphrase itself is never an argument, because other users can list the arguments
/// of a process.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Encrypted exports")]
pub struct UnlockArgs {
    /// File with age identities, as written by `age-keygen`, or an ssh-ed25519 key; may be repeated
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub identity: Vec<PathBuf>,
    #[command(flatten)]
    pub passphrase: PassphraseArgs,
}

/// Where a passphrase comes from.
#[derive(Clone, Debug, Default, Args)]
pub struct PassphraseArgs {
    /// Use a passphrase: `SATCHEL_PASSPHRASE` if set, otherwise prompt for it
    #[arg(long, conflicts_with = "passphrase_file")]
    pub passphrase: bool,
    /// Read the passphrase from the first line of this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub passphrase_file: Option<PathBuf>,
}
