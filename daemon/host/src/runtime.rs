//! What every run of a plugin needs of the host that loaded it.

use wasmtime::Engine;

use crate::{pace::Pace, ticker::Ticker};

pub(crate) struct Runtime {
    pub(crate) engine: Engine,
    pub(crate) pace: Pace,
    pub(crate) ticker: Ticker,
}
