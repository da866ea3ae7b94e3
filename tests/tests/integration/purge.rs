//! A permanently erased record is nowhere on the disk, does not return, and leaves everything else unchanged.

mod erased_from_disk;
pub(crate) mod fixture;
mod kill;
mod recorded;
mod reimport;
mod related_records;
mod row_groups;
mod vectors;
