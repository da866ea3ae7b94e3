//! Tests at failpoints: processes that are killed there, and jobs that are blocked there.
//!
//! Each failpoint is tried at the first and at the last time that a process reaches it. `SATCHEL_FAULT_ROUNDS=N` adds N - 1 times
//! between them, and the failpoints of a commit that the store's own tests try otherwise (`make fault`).

mod bulk_edit;
mod cancel_stages;
mod cancel_while_deriving;
mod gate;
mod hashing;
mod kill;
mod unresponsive_source;
mod workload;
