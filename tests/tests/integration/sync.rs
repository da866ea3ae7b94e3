//! Stores that exchange their changes come to show the same.

mod agent_memories;
mod convergence;
mod erasures;
mod exports;
mod faults;
mod forks;
mod histories;
mod kept_changes;
mod part;
mod parts;
mod payloads;
mod peer;
mod recordings;
mod revocation_histories;
mod revocations;

use self::peer::{Peer, exchange, in_step};
