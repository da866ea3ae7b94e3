//! Builds importer crates into WebAssembly components, for build scripts and for `satchel plugins build`. It needs only
//! cargo and a wasm target.

mod cargo;
mod component;
mod error;
mod toolchain;

pub use cargo::{Guests, Project, cargo};
pub use component::{check, componentize, uses_simd};
pub use error::BuildError;
pub use toolchain::Toolchain;
