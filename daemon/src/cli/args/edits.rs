//! Arguments of the commands that edit memories and relations.

use clap::{Args, Subcommand, ValueEnum};
use satchel_proto::v1::{DecayModel, RelationType, Visibility};

use super::{Id, MemoryFilterArgs, MemoryTypeArg, Paging};

pub(super) const ADD: &str = "\
Examples:
  satchel memories add \"Prefers metric units\" --type preference --tag units
  satchel memories add \"Twelve hives\" --custom-type hive --valid-from 2026-03-01";

pub(super) const EDIT: &str = "\
Examples:
  satchel memories edit 9c41 --content \"Fourteen hives\"
  satchel memories edit 9c41 --add-tag bees --reason counted
  satchel memories edit 9c41 --clear summary --clear valid-until
  satchel memories edit 9c41 --exportable false";

pub(super) const STATUS: &str = "\
Examples:
  satchel memories status 9c41 archived
  satchel memories status 9c41 superseded --by 71aa
  satchel memories status archived --type context --until 1y --dry-run
  satchel memories status archived --type context --until 1y --expect 12";

pub(super) const UNDO: &str = "\
Examples:
  satchel memories undo 9c41
  satchel memories undo 9c41 --to 1
  satchel memories undo --change 3f2a91bc-0000-4000-8000-000000000001";

pub(super) const REVIEW: &str = "\
Examples:
  satchel memories review
  satchel memories review --list --device assistant
  satchel memories review --approve 9c41 71aa --reason checked
  satchel memories review --reject-all --device assistant --yes";

pub(super) const RELATIONS: &str = "\
Examples:
  satchel relations list 9c41
  satchel relations add 9c41 supports 71aa";

const LIST: &str = "\
Examples:
  satchel relations list
  satchel relations list 9c41 --type supports --json";

const RELATE: &str = "\
Examples:
  satchel relations add 9c41 supports 71aa
  satchel relations add 9c41 contradicts 71aa --confidence 0.8 --reason seen";

const WITHDRAW: &str = "\
Example:
  satchel relations withdraw 5be0";

/// Why, and the fields of a memory.
#[derive(Clone, Debug, Default, Args)]
pub struct FieldArgs {
    /// PAM memory type [default for a new memory: fact]
    #[arg(long = "type", value_name = "TYPE")]
    pub memory_type: Option<MemoryTypeArg>,
    /// Name of a custom type; implies --type custom
    #[arg(long, value_name = "NAME")]
    pub custom_type: Option<String>,
    /// Short form to show in lists
    #[arg(long, value_name = "TEXT")]
    pub summary: Option<String>,
    /// Tag to set, replacing all others: lower-case letters, digits, - and _; may be repeated
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
    pub tags: Vec<String>,
    /// Time from which it is true: 2026-03-01, 2026-03-01T14:00:00Z, or 7d, 2w, 3mo ago
    #[arg(long, value_name = "TIME")]
    pub valid_from: Option<String>,
    /// Time from which it is no longer true
    #[arg(long, value_name = "TIME")]
    pub valid_until: Option<String>,
    /// How its confidence decays over time
    #[arg(long, value_name = "MODEL")]
    pub decay: Option<DecayArg>,
    /// Who may see it
    #[arg(long, value_name = "WHO")]
    pub visibility: Option<VisibilityArg>,
    /// Whether exports may include it
    #[arg(long, value_name = "true|false")]
    pub exportable: Option<bool>,
    /// Metadata entry, with a JSON or plain-text value; an empty value removes the key; may be repeated
    #[arg(long = "meta", value_name = "KEY=VALUE")]
    pub meta: Vec<String>,
    /// Reason to record in the history
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// `memories add`.
#[derive(Debug, Args)]
pub struct AddArgs {
    /// Text of the memory
    #[arg(value_name = "CONTENT")]
    pub content: String,
    #[command(flatten)]
    pub fields: FieldArgs,
}

/// `memories edit`.
#[derive(Debug, Args)]
pub struct EditArgs {
    #[command(flatten)]
    pub id: Id,
    /// New text
    #[arg(long, value_name = "TEXT")]
    pub content: Option<String>,
    #[command(flatten)]
    pub fields: FieldArgs,
    /// Tag to add; may be repeated
    #[arg(long, value_name = "TAG", value_delimiter = ',', conflicts_with = "tags")]
    pub add_tag: Vec<String>,
    /// Tag to remove; may be repeated
    #[arg(long, value_name = "TAG", value_delimiter = ',', conflicts_with = "tags")]
    pub remove_tag: Vec<String>,
    /// Field to clear; may be repeated
    #[arg(long, value_name = "FIELD")]
    pub clear: Vec<ClearableField>,
}

/// A field that can be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ClearableField {
    Summary,
    Tags,
    ValidFrom,
    ValidUntil,
    Decay,
}

impl ClearableField {
    /// The path of the field in an update mask.
    pub fn path(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Tags => "tags",
            Self::ValidFrom => "temporal.valid_from",
            Self::ValidUntil => "temporal.valid_until",
            Self::Decay => "confidence.decay_model",
        }
    }
}

/// `memories status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Memory and its new status (superseded, deprecated, retracted or archived), or only the status to change all matching memories
    #[arg(value_name = "ID> <STATUS", num_args = 1..=2, required = true)]
    pub words: Vec<String>,
    /// Memory that replaces it; only with superseded
    #[arg(long, value_name = "ID")]
    pub by: Option<String>,
    #[command(flatten)]
    pub select: MemoryFilterArgs,
    /// Only report how many memories match, and some of them
    #[arg(long)]
    pub dry_run: bool,
    /// Number of matches that the dry run reported; if the number is different now, nothing is changed
    #[arg(long, value_name = "N")]
    pub expect: Option<u64>,
    /// Reason to record in the history
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// `memories undo`.
#[derive(Debug, Args)]
pub struct UndoEditArgs {
    /// Memory whose last change is undone: its id, or a unique prefix of at least 4 characters
    #[arg(value_name = "ID", required_unless_present = "change")]
    pub id: Option<String>,
    /// Go back to this version, regardless of who changed it since
    #[arg(long, value_name = "N", requires = "id", value_parser = clap::value_parser!(u32).range(1..))]
    pub to: Option<u32>,
    /// Token of the change to undo, as the command that made it printed it
    #[arg(long, value_name = "TOKEN", conflicts_with_all = ["id", "to"])]
    pub change: Option<String>,
    /// Reason to record in the history
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// `memories review`.
#[derive(Clone, Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
pub struct ReviewArgs {
    /// Only memories that this device wrote: its name or id
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// List them and decide nothing
    #[arg(long)]
    pub list: bool,
    /// List those that were rejected
    #[arg(long, conflicts_with_all = ["approve", "reject", "approve_all", "reject_all"])]
    pub rejected: bool,
    /// Memories to approve: ids, or unique prefixes of at least 4 characters
    #[arg(long, value_name = "ID", num_args = 1.., value_delimiter = ',')]
    pub approve: Vec<String>,
    /// Memories to reject
    #[arg(long, value_name = "ID", num_args = 1.., value_delimiter = ',')]
    pub reject: Vec<String>,
    /// Approve all that wait
    #[arg(long, conflicts_with_all = ["approve", "reject", "list"])]
    pub approve_all: bool,
    /// Reject all that wait
    #[arg(long, conflicts_with_all = ["approve", "reject", "list", "approve_all"])]
    pub reject_all: bool,
    /// Do not ask before all are approved or rejected
    #[arg(long)]
    pub yes: bool,
    /// Reason to record
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    #[command(flatten)]
    pub paging: Paging,
}

/// `relations …`.
#[derive(Debug, Subcommand)]
pub enum Relations {
    /// List all relations, or those of one memory
    #[command(after_help = LIST)]
    List {
        /// Memory: its id, or a unique prefix of at least 4 characters
        #[arg(value_name = "ID")]
        memory: Option<String>,
        /// Only of this type; may be repeated
        #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
        types: Vec<RelationTypeArg>,
        #[command(flatten)]
        paging: Paging,
    },
    /// Add a relation between two memories
    #[command(after_help = RELATE)]
    Add {
        /// Source memory
        #[arg(value_name = "FROM")]
        from: String,
        /// Relation type; for supersedes, use `satchel memories status ID superseded --by ID`
        #[arg(value_name = "TYPE")]
        relation_type: RelationTypeArg,
        /// Target memory
        #[arg(value_name = "TO")]
        to: String,
        /// Confidence, from 0 to 1
        #[arg(long, value_name = "N")]
        confidence: Option<f64>,
        /// Reason to record in the history
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Withdraw a relation; no import adds it again
    #[command(after_help = WITHDRAW)]
    Withdraw {
        #[command(flatten)]
        id: Id,
        /// Reason to record in the history
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

wire_args! {
    /// PAM's relation types, as typed.
    #[value(rename_all = "snake_case")]
    RelationTypeArg: RelationType {
        Supports,
        Contradicts,
        Extends,
        Supersedes,
        RelatedTo,
        DerivedFrom,
    }

    /// PAM's decay models, as typed.
    #[value(rename_all = "snake_case")]
    DecayArg: DecayModel {
        /// By a constant amount per unit of time.
        TimeLinear,
        /// By a constant fraction per unit of time.
        TimeExponential,
        /// Not at all.
        None,
    }

    /// PAM's visibilities, as typed.
    VisibilityArg: Visibility {
        Private,
        Shared,
        Public,
    }
}
