//! Builds importer crates into WebAssembly components, for build scripts. It needs only cargo and a wasm target.

mod cargo;
mod component;
mod error;
mod toolchain;

pub use cargo::Guests;
pub use component::{check, componentize, uses_simd};
pub use error::BuildError;
