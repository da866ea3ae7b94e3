//! Folders that a daemon watches: files arrive in every way that downloads do, and each is imported once.

mod arrivals;
mod folders;
mod jobs;
mod owners;
mod play;
mod strange;
mod taken_back;
mod troubles;
