//! Machine faults: all parts of a daemon in a process that is killed at random while writers, readers, an import,
//! exports and backups run; and clocks that jump.
//!
//! The run is short here; `SATCHEL_FAULT_ROUNDS=N` makes it N times as long (`make fault`).

mod clock;
mod kill;
mod worker;

/// Returns the number of rounds of a test.
fn rounds(few: u64) -> u64 {
    let times = std::env::var("SATCHEL_FAULT_ROUNDS").ok().and_then(|times| times.parse::<u64>().ok());
    few * times.unwrap_or(1)
}
