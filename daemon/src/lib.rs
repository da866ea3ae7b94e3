//! The command line of Satchel, a client of its daemon like any other.

pub mod cli;
