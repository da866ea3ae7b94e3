//! What happens at named places: a process that is killed there, and jobs that are held there.
//!
//! Each place is tried once here; `SATCHEL_FAULT_ROUNDS=N` tries N more of the times that a process comes to it (`make fault`).

mod changing;
mod gate;
mod hanging;
mod hashing;
mod kill;
mod scenes;
mod settling;
mod stages;
