//! Filters and page sizes of the list commands.

use clap::{Args, ValueEnum};
use satchel_proto::v1::{MemoryStatus, MemoryType};

/// Rows that a list shows unless it is told otherwise: a page that a person still reads.
const DEFAULT_LIMIT: u32 = 50;

/// How many rows.
#[derive(Clone, Copy, Debug, Args)]
pub struct Paging {
    /// Show at most this many
    #[arg(long, value_name = "N", default_value_t = DEFAULT_LIMIT, value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "all")]
    pub limit: u32,
    /// Show all
    #[arg(long)]
    pub all: bool,
}

impl Paging {
    /// How many rows to show; none: all.
    pub fn want(self) -> Option<usize> {
        (!self.all).then_some(self.limit as usize)
    }
}

/// Which memories. Every option that is given must hold; of one that is given several times any value may fit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Filters")]
pub struct MemorySelect {
    /// Of this type; may be repeated
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
    pub types: Vec<TypeWord>,
    /// In this state [default: active]; may be repeated
    #[arg(long = "status", value_name = "STATUS", value_delimiter = ',')]
    pub statuses: Vec<StatusWord>,
    /// From this platform, such as chatgpt; may be repeated
    #[arg(long = "platform", value_name = "NAME", value_delimiter = ',')]
    pub platforms: Vec<String>,
    /// Of this account on the platform; may be repeated
    #[arg(long = "account", value_name = "ID")]
    pub accounts: Vec<String>,
    /// With this tag; if repeated, with all of them
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
    pub tags: Vec<String>,
    /// Last changed at this time or later: 2026-03-01, 2026-03, yesterday, last month, 2026-03-01T14:00:00Z, or 7d, 2w, 3mo ago
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Last changed before this time; a day, month or year counts whole
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// First stated at this time or later, as --since
    #[arg(long, value_name = "TIME")]
    pub created_since: Option<String>,
    /// First stated before this time, as --until
    #[arg(long, value_name = "TIME")]
    pub created_until: Option<String>,
    /// That come from this conversation (its id, the first characters of it, or `last`)
    #[arg(long, value_name = "ID")]
    pub conversation: Option<String>,
    /// That hold now: without an end of their validity, or before it
    #[arg(long, conflicts_with = "expired")]
    pub valid: bool,
    /// That hold no more: the end of their validity has passed
    #[arg(long)]
    pub expired: bool,
}

/// Which conversations. Every option that is given must hold.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Filters")]
pub struct ConversationSelect {
    /// From this platform, such as chatgpt; may be repeated
    #[arg(long = "platform", value_name = "NAME", value_delimiter = ',')]
    pub platforms: Vec<String>,
    /// Of this account on the platform; may be repeated
    #[arg(long = "account", value_name = "ID")]
    pub accounts: Vec<String>,
    /// With this tag; if repeated, with all of them
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
    pub tags: Vec<String>,
    /// Last changed at this time or later: 2026-03-01, 2026-03, yesterday, last month, 2026-03-01T14:00:00Z, or 7d, 2w, 3mo ago
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Last changed before this time; a day, month or year counts whole
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Begun at this time or later, as --since
    #[arg(long, value_name = "TIME")]
    pub created_since: Option<String>,
    /// Begun before this time, as --until
    #[arg(long, value_name = "TIME")]
    pub created_until: Option<String>,
    /// With this in the title; letter case does not count
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
}

/// PAM's memory types, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TypeWord {
    Fact,
    Preference,
    Skill,
    Context,
    Relationship,
    Goal,
    Instruction,
    Identity,
    Environment,
    Project,
    Custom,
}

impl TypeWord {
    /// The type on the wire.
    pub fn to_wire(self) -> MemoryType {
        match self {
            Self::Fact => MemoryType::Fact,
            Self::Preference => MemoryType::Preference,
            Self::Skill => MemoryType::Skill,
            Self::Context => MemoryType::Context,
            Self::Relationship => MemoryType::Relationship,
            Self::Goal => MemoryType::Goal,
            Self::Instruction => MemoryType::Instruction,
            Self::Identity => MemoryType::Identity,
            Self::Environment => MemoryType::Environment,
            Self::Project => MemoryType::Project,
            Self::Custom => MemoryType::Custom,
        }
    }
}

/// PAM's memory states, as typed, and all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StatusWord {
    Active,
    Superseded,
    Deprecated,
    Retracted,
    Archived,
    All,
}

impl StatusWord {
    /// The states on the wire.
    pub fn to_wire(self) -> Vec<MemoryStatus> {
        use MemoryStatus::{Active, Archived, Deprecated, Retracted, Superseded};
        match self {
            Self::Active => vec![Active],
            Self::Superseded => vec![Superseded],
            Self::Deprecated => vec![Deprecated],
            Self::Retracted => vec![Retracted],
            Self::Archived => vec![Archived],
            Self::All => vec![Active, Superseded, Deprecated, Retracted, Archived],
        }
    }
}
