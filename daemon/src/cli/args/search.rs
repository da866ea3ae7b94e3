//! The options of `search`, `context` and `browse`.

use clap::{Args, ValueEnum};
use satchel_proto::v1::SearchHitKind;

/// Hits that are shown by default: a screen.
const DEFAULT_LIMIT: u32 = 10;
/// Tokens of a context by default, as for a request that does not say.
const DEFAULT_TOKENS: u32 = 1_000;

/// `search`.
#[derive(Clone, Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct SearchArgs {
    /// What to look for; in single quotes if it has a `-` or `"`, and after `--` if it begins with a `-`
    #[arg(required_unless_present = "similar_to", value_name = "QUERY")]
    pub query: Vec<String>,
    /// Where to look
    #[arg(long = "in", value_name = "WHERE", default_value = "all")]
    pub kind: SearchKindArg,
    /// Show at most this many hits
    #[arg(long, value_name = "N", default_value_t = DEFAULT_LIMIT, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
    /// Show every message that matches, not only the best one of each conversation
    #[arg(long)]
    pub every: bool,
    /// Also find messages that the platform hides, and reasoning
    #[arg(long)]
    pub hidden: bool,
    /// Also find memories that mean something similar, by the endpoint that the configuration names in `[embeddings]`
    #[arg(long, conflicts_with = "similar_to")]
    pub meaning: bool,
    /// Find memories that mean something similar to this one, by vectors that are stored
    #[arg(long, value_name = "MEMORY")]
    pub similar_to: Option<String>,
    /// Find memories as they were at this revision of the store; messages and titles are not found then
    #[arg(long, value_name = "N", conflicts_with_all = ["meaning", "similar_to"])]
    pub revision: Option<i64>,
    /// Say how the score of each hit came about
    #[arg(long)]
    pub explain: bool,
    /// Search what the index has, even if it is behind
    #[arg(long)]
    pub no_wait: bool,
}

/// `context`.
#[derive(Clone, Debug, Args)]
pub struct ContextArgs {
    /// What it is about; in single quotes if it has a `-` or `"`, and after `--` if it begins with a `-`
    #[arg(required = true, value_name = "QUERY")]
    pub query: Vec<String>,
    /// Print at most this many tokens, by an estimate that is rarely too low
    #[arg(long, value_name = "N", default_value_t = DEFAULT_TOKENS, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub tokens: u32,
    /// Also quote passages of messages
    #[arg(long)]
    pub messages: bool,
    /// Also quote memories that mean something similar, by the endpoint that the configuration names in `[embeddings]`
    #[arg(long)]
    pub meaning: bool,
    /// Quote memories that were valid at this time, in the formats of --since; without it, now
    #[arg(long, value_name = "DATE")]
    pub at: Option<String>,
}

/// `browse`.
#[derive(Clone, Debug, Args)]
pub struct BrowseArgs {
    /// Query to start with, as for `satchel search`
    #[arg(value_name = "QUERY")]
    pub query: Vec<String>,
}

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SearchKindArg {
    All,
    Memories,
    /// Messages of conversations
    Messages,
    /// Titles of conversations
    Titles,
}

impl SearchKindArg {
    /// Returns the kinds on the wire; none means all.
    pub fn to_wire(self) -> Option<SearchHitKind> {
        match self {
            Self::All => None,
            Self::Memories => Some(SearchHitKind::Memory),
            Self::Messages => Some(SearchHitKind::Message),
            Self::Titles => Some(SearchHitKind::Title),
        }
    }
}
