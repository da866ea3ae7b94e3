//! The command line: a client of the daemon that renders what it answers.

pub mod args;
pub mod error;
pub mod exit;
mod look;
mod out;
mod page;
mod table;
mod text;
mod time;
mod words;
mod conversations;
