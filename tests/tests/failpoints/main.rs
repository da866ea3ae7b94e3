//! Tests at failpoints: processes that are killed there, and jobs that are blocked there.
//!
//! Each place is tried at the first and at the last time that a process reaches it. `SATCHEL_FAULT_ROUNDS=N` adds N - 1 times
//! between them, and the places of a commit that the store's own tests try otherwise (`make fault`).

mod changing;
mod gate;
mod hanging;
mod hashing;
mod kill;
mod scenes;
mod settling;
mod stages;
