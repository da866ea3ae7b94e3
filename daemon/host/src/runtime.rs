//! The parts of the host that every run of a plugin needs.

use wasmtime::Engine;

use crate::{throttle::Throttle, ticker::Ticker};

pub(crate) struct Runtime {
    pub(crate) engine: Engine,
    pub(crate) throttle: Throttle,
    pub(crate) ticker: Ticker,
}
