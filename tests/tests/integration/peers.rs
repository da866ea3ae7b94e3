//! Daemons that exchange changes over the network come to show the same.

mod attachments;
mod change_files;
mod convergence;
mod copies;
mod erasures;
mod histories;
mod hostile;
mod network;
mod parts;
mod peer_daemon;
mod recorded_calls;
mod revocations;
mod settings;
