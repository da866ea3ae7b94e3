//! Faults of the machine: a daemon's whole insides in a process that is killed at random, with writers, readers, an import, exports
//! and backups at work; and clocks that jump.
//!
//! Short here; `SATCHEL_FAULT_ROUNDS=N` makes it N times as long (`make fault`).

mod clock;
mod kill;
mod worker;

/// How many rounds a test makes.
fn rounds(few: u64) -> u64 {
    let times = std::env::var("SATCHEL_FAULT_ROUNDS").ok().and_then(|times| times.parse::<u64>().ok());
    few * times.unwrap_or(1)
}
