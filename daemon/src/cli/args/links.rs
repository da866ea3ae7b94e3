//! The options of the commands that compare and link memories.

use clap::Args;
use satchel_proto::v1::MemoryLinkKind;

use super::{Id, Paging, RelationTypeArg};

pub(super) const RELATED: &str = "\
Examples:
  satchel memories related 9c41
  satchel memories related 9c41 --depth 3 --type supports,extends
  satchel memories related 9c41 --via conversation --json";

pub(super) const DUPLICATES: &str = "\
Examples:
  satchel memories duplicates
  satchel memories duplicates --threshold 0.7
  satchel memories duplicates --json | jq '.groups[] | [.memories[].id]'";

pub(super) const CONTRADICTIONS: &str = "\
Examples:
  satchel memories contradictions
  satchel memories contradictions --settled --json";

/// `memories related`.
#[derive(Debug, Args)]
pub struct RelatedArgs {
    #[command(flatten)]
    pub id: Id,
    /// Follow links over at most this many memories, 1 to 5
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=5))]
    pub depth: u32,
    /// Follow only these links; may be repeated
    #[arg(long = "via", value_name = "LINK", value_delimiter = ',')]
    pub via: Vec<LinkArg>,
    /// Follow only relations of this type; may be repeated
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
    pub types: Vec<RelationTypeArg>,
    /// Show the memories and relations as they were at this revision of the store
    #[arg(long, value_name = "N")]
    pub revision: Option<i64>,
    #[command(flatten)]
    pub paging: Paging,
}

wire_args! {
    /// How one memory leads to another.
    LinkArg: MemoryLinkKind {
        /// Relations, in both directions
        Relation,
        /// The memory that replaced another
        SupersededBy,
        /// The same conversation
        Conversation,
    }
}

/// `memories duplicates`.
#[derive(Clone, Copy, Debug, Args)]
pub struct DuplicatesArgs {
    /// How much of their words similar memories have in common, 0.5 to 1 [default: 0.8]
    #[arg(long, value_name = "SHARE", value_parser = threshold)]
    pub threshold: Option<f64>,
    #[command(flatten)]
    pub paging: Paging,
}

/// `memories contradictions`.
#[derive(Clone, Copy, Debug, Args)]
pub struct ContradictionsArgs {
    /// Also list what is settled: one of the two is not active any more, or they were valid at different times
    #[arg(long)]
    pub settled: bool,
    #[command(flatten)]
    pub paging: Paging,
}

fn threshold(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.5..=1.0).contains(number));
    number.ok_or_else(|| "must be a number from 0.5 to 1".to_owned())
}
