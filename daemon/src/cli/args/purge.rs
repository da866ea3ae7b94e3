//! What can be typed to erase content for good.

use clap::Args;

use super::Id;

pub(super) const MEMORY: &str = "\
Examples:
  satchel memories purge 9c41 --dry-run
  satchel memories purge 9c41
  satchel memories purge 9c41 --confirm 9c4100aa-0000-5000-8000-000000000000";

pub(super) const CONVERSATION: &str = "\
Examples:
  satchel conversations purge 51d0 --dry-run
  satchel conversations purge 51d0 --keep-memories
  satchel conversations purge 51d0 --confirm 51d0b2aa-0000-5000-8000-000000000000";

/// What is erased, and that it is meant.
#[derive(Clone, Debug, Args)]
pub struct PurgeArgs {
    #[command(flatten)]
    pub id: Id,
    /// List what would be erased, and erase nothing
    #[arg(long, conflicts_with = "confirm")]
    pub dry_run: bool,
    /// The whole id once more, instead of typing it when asked
    #[arg(long, value_name = "ID")]
    pub confirm: Option<String>,
    /// Does not replace the id: what is erased for good asks for it
    #[arg(long, hide = true)]
    pub yes: bool,
}
