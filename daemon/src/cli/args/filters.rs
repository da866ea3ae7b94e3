//! Filters and page sizes of the list commands.

use clap::{Args, ValueEnum};
use satchel_proto::v1::{ConversationGrouping, MemoryStatus, MemoryType};

/// Number of rows that a list shows by default: what a person still reads.
const DEFAULT_LIMIT: u32 = 50;

/// The number of rows to show.
#[derive(Clone, Copy, Debug, Args)]
pub struct Paging {
    /// Show at most this many entries
    #[arg(long, value_name = "N", default_value_t = DEFAULT_LIMIT, value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "all")]
    pub limit: u32,
    /// Show all entries
    #[arg(long)]
    pub all: bool,
}

impl Paging {
    /// Returns the number of rows to show; `None` for all.
    pub fn max_rows(self) -> Option<usize> {
        (!self.all).then_some(self.limit as usize)
    }
}

/// Selects memories. All given options must match; an option that is given several times matches any of its values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Filters")]
pub struct MemoryFilterArgs {
    /// Only of this type; may be repeated
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
    pub types: Vec<MemoryTypeArg>,
    /// Only with this status [default: active]; may be repeated
    #[arg(long = "status", value_name = "STATUS", value_delimiter = ',')]
    pub statuses: Vec<MemoryStatusArg>,
    /// Only from this platform, such as chatgpt; may be repeated
    #[arg(long = "platform", value_name = "NAME", value_delimiter = ',')]
    pub platforms: Vec<String>,
    /// Only of this account on the platform; may be repeated
    #[arg(long = "account", value_name = "ID")]
    pub accounts: Vec<String>,
    /// Only with this tag; if repeated, with all of them
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
    pub tags: Vec<String>,
    /// Only if last changed at or after this time: 2026-03-01, 2026-03, yesterday, last month, 2026-03-01T14:00:00Z, or 7d, 2w, 3mo ago
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Only if last changed up to this time; a day, month or year is included as a whole
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Only if first stated at or after this time, in the formats of --since
    #[arg(long, value_name = "TIME")]
    pub created_since: Option<String>,
    /// Only if first stated up to this time, in the formats of --until
    #[arg(long, value_name = "TIME")]
    pub created_until: Option<String>,
    /// Only from this conversation (its id, a prefix of it, or `last`)
    #[arg(long, value_name = "ID")]
    pub conversation: Option<String>,
    /// Only memories that are valid now, which is the default of lists
    #[arg(long, conflicts_with = "expired")]
    pub valid: bool,
    /// Only memories that are no longer valid
    #[arg(long)]
    pub expired: bool,
    /// Only memories that were valid at this time, in the formats of --since
    #[arg(long, value_name = "TIME", conflicts_with_all = ["valid", "expired"])]
    pub valid_at: Option<String>,
}

/// What a list of memories shows.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct MemoryReadArgs {
    /// Also list memories that are no longer valid
    #[arg(long, conflicts_with_all = ["valid", "expired", "valid_at"])]
    pub include_expired: bool,
    /// List the memories as they were at this revision of the store, by id
    #[arg(long, value_name = "N")]
    pub revision: Option<i64>,
}

/// Selects conversations. All given options must match.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Filters")]
pub struct ConversationFilterArgs {
    /// Only from this platform, such as chatgpt; may be repeated
    #[arg(long = "platform", value_name = "NAME", value_delimiter = ',')]
    pub platforms: Vec<String>,
    /// Only of this account on the platform; may be repeated
    #[arg(long = "account", value_name = "ID")]
    pub accounts: Vec<String>,
    /// Only with this tag; if repeated, with all of them
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
    pub tags: Vec<String>,
    /// Only if last changed at or after this time: 2026-03-01, 2026-03, yesterday, last month, 2026-03-01T14:00:00Z, or 7d, 2w, 3mo ago
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Only if last changed up to this time; a day, month or year is included as a whole
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Only if started at or after this time, in the formats of --since
    #[arg(long, value_name = "TIME")]
    pub created_since: Option<String>,
    /// Only if started up to this time, in the formats of --until
    #[arg(long, value_name = "TIME")]
    pub created_until: Option<String>,
    /// Only with this text in the title, ignoring case
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
}

wire_args! {
    /// What conversations are grouped by.
    GroupingArg: ConversationGrouping {
        Platform,
        /// The directory in which a coding agent worked
        Project,
        /// The model that answered; only answers count
        Model,
        /// The month of each message, in UTC
        Month,
    }
}

impl GroupingArg {
    /// Returns the name of the property.
    pub fn name(self) -> &'static str {
        match self {
            Self::Platform => "platform",
            Self::Project => "project",
            Self::Model => "model",
            Self::Month => "month",
        }
    }
}

wire_args! {
    /// PAM's memory types, as typed.
    MemoryTypeArg: MemoryType {
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
}

/// PAM's memory states, as typed, and all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MemoryStatusArg {
    Active,
    Superseded,
    Deprecated,
    Retracted,
    Archived,
    All,
}

impl MemoryStatusArg {
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
