//! The daemon: the gRPC services over [`satchel_core`], the socket that they are served on, and the configuration.

pub mod config;
pub mod connect;
pub mod devices;
pub mod embeddings;
pub mod grpc;
pub mod log;
pub mod peers;
mod run;
pub mod socket;
pub mod supervisor;
pub mod transfer;

pub use run::{DRAIN_TIMEOUT, Ready, RunContext, RunError, run, run_with};
