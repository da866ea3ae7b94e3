//! What can be typed to change memories and relations by hand.

use clap::{Args, Subcommand, ValueEnum};
use satchel_proto::v1::{DecayModel, RelationType, Visibility};

use super::{Id, MemorySelect, Paging, TypeWord};

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
    /// One of PAM's types [default of a new memory: fact]
    #[arg(long = "type", value_name = "TYPE")]
    pub memory_type: Option<TypeWord>,
    /// A type of your own; the type is custom then
    #[arg(long, value_name = "NAME")]
    pub custom_type: Option<String>,
    /// A short form for lists
    #[arg(long, value_name = "TEXT")]
    pub summary: Option<String>,
    /// A tag: lower-case letters, digits, - and _; may be repeated; these and no others
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
    pub tags: Vec<String>,
    /// Since when it is true: 2026-03-01, 2026-03-01T14:00:00Z, or 7d, 2w, 3mo ago
    #[arg(long, value_name = "TIME")]
    pub valid_from: Option<String>,
    /// Until when it is true; it is not any more at that time
    #[arg(long, value_name = "TIME")]
    pub valid_until: Option<String>,
    /// How its confidence fades
    #[arg(long, value_name = "MODEL")]
    pub decay: Option<DecayWord>,
    /// Who may see it
    #[arg(long, value_name = "WHO")]
    pub visibility: Option<VisibilityWord>,
    /// Whether it may leave in an export
    #[arg(long, value_name = "true|false")]
    pub exportable: Option<bool>,
    /// A key of its metadata, with JSON or a plain text; an empty value takes the key away; may be repeated
    #[arg(long = "meta", value_name = "KEY=VALUE")]
    pub meta: Vec<String>,
    /// Why; stands in the history
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// `memories add`.
#[derive(Debug, Args)]
pub struct AddArgs {
    /// What is to be remembered
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
    /// What it says from now on
    #[arg(long, value_name = "TEXT")]
    pub content: Option<String>,
    #[command(flatten)]
    pub fields: FieldArgs,
    /// One more tag; may be repeated
    #[arg(long, value_name = "TAG", value_delimiter = ',', conflicts_with = "tags")]
    pub add_tag: Vec<String>,
    /// One tag less; may be repeated
    #[arg(long, value_name = "TAG", value_delimiter = ',', conflicts_with = "tags")]
    pub remove_tag: Vec<String>,
    /// Leave a field empty from now on; may be repeated
    #[arg(long, value_name = "FIELD")]
    pub clear: Vec<ClearWord>,
}

/// A field that can be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ClearWord {
    Summary,
    Tags,
    ValidFrom,
    ValidUntil,
    Decay,
}

impl ClearWord {
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
    /// A memory and its new status: superseded, deprecated, retracted or archived; or the status alone, for all that fit
    #[arg(value_name = "ID> <STATUS", num_args = 1..=2, required = true)]
    pub words: Vec<String>,
    /// What took its place; with superseded
    #[arg(long, value_name = "ID")]
    pub by: Option<String>,
    #[command(flatten)]
    pub select: MemorySelect,
    /// Only say how many fit, and some of them
    #[arg(long)]
    pub dry_run: bool,
    /// How many a dry run counted; if another number fits now, nothing is changed
    #[arg(long, value_name = "N")]
    pub expect: Option<u64>,
    /// Why; stands in the history
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// `memories undo`.
#[derive(Debug, Args)]
pub struct TakeBackArgs {
    /// The memory whose last change is taken back: its id, or the first characters (4 or more)
    #[arg(value_name = "ID", required_unless_present = "change")]
    pub id: Option<String>,
    /// Back to what this version said, whoever changed it since
    #[arg(long, value_name = "N", requires = "id", value_parser = clap::value_parser!(u32).range(1..))]
    pub to: Option<u32>,
    /// The change that is taken back, all of it; each change says its own
    #[arg(long, value_name = "TOKEN", conflicts_with_all = ["id", "to"])]
    pub change: Option<String>,
    /// Why; stands in the history
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// `relations …`.
#[derive(Debug, Subcommand)]
pub enum Relations {
    /// List relations: all, or those of one memory
    #[command(after_help = LIST)]
    List {
        /// A memory: its id, or the first characters (4 or more)
        #[arg(value_name = "ID")]
        memory: Option<String>,
        /// Of this type; may be repeated
        #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
        types: Vec<RelationWord>,
        #[command(flatten)]
        paging: Paging,
    },
    /// Say what one memory is to another
    #[command(after_help = RELATE)]
    Add {
        /// The one
        #[arg(value_name = "FROM")]
        from: String,
        /// What it is; supersedes is said by `memories status ID superseded --by ID`
        #[arg(value_name = "TYPE")]
        relation_type: RelationWord,
        /// The other
        #[arg(value_name = "TO")]
        to: String,
        /// How sure, 0 to 1
        #[arg(long, value_name = "N")]
        confidence: Option<f64>,
        /// Why; stands in the history
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Take a relation back; no import draws it again
    #[command(after_help = WITHDRAW)]
    Withdraw {
        #[command(flatten)]
        id: Id,
        /// Why; stands in the history
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

/// PAM's relation types, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum RelationWord {
    Supports,
    Contradicts,
    Extends,
    Supersedes,
    RelatedTo,
    DerivedFrom,
}

impl RelationWord {
    /// The type on the wire.
    pub fn to_wire(self) -> RelationType {
        match self {
            Self::Supports => RelationType::Supports,
            Self::Contradicts => RelationType::Contradicts,
            Self::Extends => RelationType::Extends,
            Self::Supersedes => RelationType::Supersedes,
            Self::RelatedTo => RelationType::RelatedTo,
            Self::DerivedFrom => RelationType::DerivedFrom,
        }
    }
}

/// PAM's ways to fade, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum DecayWord {
    /// By the same amount in the same time.
    TimeLinear,
    /// By the same share in the same time.
    TimeExponential,
    /// Not at all.
    None,
}

impl DecayWord {
    /// The model on the wire.
    pub fn to_wire(self) -> DecayModel {
        match self {
            Self::TimeLinear => DecayModel::TimeLinear,
            Self::TimeExponential => DecayModel::TimeExponential,
            Self::None => DecayModel::None,
        }
    }
}

/// PAM's visibilities, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum VisibilityWord {
    Private,
    Shared,
    Public,
}

impl VisibilityWord {
    /// The visibility on the wire.
    pub fn to_wire(self) -> Visibility {
        match self {
            Self::Private => Visibility::Private,
            Self::Shared => Visibility::Shared,
            Self::Public => Visibility::Public,
        }
    }
}
