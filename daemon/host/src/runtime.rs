//! The parts of the host that every run of a plugin needs.

use wasmtime::Engine;

use crate::{pace::Pace, ticker::Ticker};

pub(crate) struct Runtime {
    pub(crate) engine: Engine,
    pub(crate) pace: Pace,
    pub(crate) ticker: Ticker,
}
