//! Stores that exchange changes in memory, compared with plain sets of (author, counter).
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod convergence;
mod rollback;
mod store;
