//! Search over memories and messages: by their words, and by their vectors.
//!
//! - [`analysis`] splits texts into words, in any script, and finds their stems.
//! - [`query`] reads what a person types into a search box.
//! - [`index`] holds the words, and answers queries. It is derived from the store, and can be removed and built anew at any time.
//! - [`context`] quotes what was found, for the prompt of a model.
//! - [`duplicates`] finds texts that say the same.
//! - [`vectors`] finds the vectors of texts that are nearest to that of a query, and [`fusion`] puts ranked lists together.

pub mod analysis;
pub mod context;
pub mod duplicates;
pub mod fusion;
pub mod index;
pub mod query;
pub mod vectors;
