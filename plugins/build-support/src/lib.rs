//! Builds importer crates into WebAssembly components, for build scripts: no tool but cargo and a wasm target.

mod cargo;
mod component;
mod error;
mod toolchain;

pub use cargo::Guests;
pub use component::{check, componentize, uses_simd};
pub use error::BuildError;
pub use toolchain::{TARGET, Toolchain};
