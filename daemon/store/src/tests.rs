//! Behaviour of the whole store: against a model, and after crashes and damage.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]
#![expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "small numbers off rng")]

mod backup;
mod corruption;
mod crash;
mod damage;
mod disk;
mod encryption;
mod failpoints;
mod fixture;
mod formats;
mod key_check;
mod kill;
mod leaf_cache;
mod leaves;
mod lists;
mod map;
mod model;
mod modes;
mod pages;
mod pieces;
mod power;
mod purge;
mod purge_check;
mod readers;
mod sealed;
mod small_disk;
mod workload;

/// Returns the number of rounds of a fault test: `few`, multiplied by `SATCHEL_FAULT_ROUNDS` if it is set.
fn rounds(few: u64) -> u64 {
    let times = std::env::var("SATCHEL_FAULT_ROUNDS").ok().and_then(|times| times.parse::<u64>().ok());
    few * times.unwrap_or(1)
}
