//! The changes that synchronising daemons exchange, and the rules by which a daemon accepts them. Pure: no store, network, disk,
//! clock or source of randomness.
//!
//! Each store writes its own changes as one *series*: numbered from 1, each with the hash of the change before it, each signed. Since
//! the signature stays with the change, a change may reach a store through any other store, or on a USB stick. A [`Frontier`] says
//! which changes a store holds; two of them tell what each store lacks. `FORMAT.md` describes the bytes.
//!
//! **Invariant:** of each origin, a store holds an unbroken series from counter 1, all signed with one key ([`Series::accept`];
//! `stores_converge` in `tests/simulation`).
//! **Invariant:** a value has one encoding, and only this encoding is decoded (`what_decodes_encodes_to_the_same_bytes` in
//! `tests/properties`). So a change that is passed on keeps its bytes, and its signature.

pub mod author;
pub mod batch;
pub mod change;
pub mod change_file;
pub mod continuation;
mod cursor;
#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod fixture;
pub mod frontier;
pub mod head;
pub mod limits;
pub mod origin;
pub mod payload;
pub mod proof;
pub mod series;

pub use author::{Author, AuthorError};
pub use change::{Change, ChangeError, Kind, SignedChange};
pub use continuation::{Continuation, ContinuationError};
pub use ed25519_dalek::SigningKey;
pub use frontier::{CounterRange, Difference, Frontier, FrontierError, FrontierOrder};
pub use head::{ChangeHash, Counter, Fork, Head};
pub use origin::{OriginError, OriginId, OriginKey};
pub use payload::PayloadId;
pub use proof::{ForkProof, ProofError};
pub use series::{Accepted, Held, Series, SeriesError};
