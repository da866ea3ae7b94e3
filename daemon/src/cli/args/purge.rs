//! Arguments of the `purge` commands.

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

/// What to erase, and the confirmation.
#[derive(Clone, Debug, Args)]
pub struct PurgeArgs {
    #[command(flatten)]
    pub id: Id,
    /// List what would be erased without erasing it
    #[arg(long, conflicts_with = "confirm")]
    pub dry_run: bool,
    /// Full id, to confirm without a prompt
    #[arg(long, value_name = "ID")]
    pub confirm: Option<String>,
    /// Does not replace --confirm: erasing always requires the full id
    #[arg(long, hide = true)]
    pub yes: bool,
}
