//! From a core module to a component that fits the importer world.

use std::path::Path;

use wasmparser::{Validator, WasmFeatures};
use wit_component::ComponentEncoder;
use wit_parser::Resolve;

use crate::BuildError;

/// The component of a core module that carries its world in a custom section, as wit-bindgen writes it.
pub fn componentize(module: &[u8]) -> Result<Vec<u8>, BuildError> {
    let encode = || ComponentEncoder::default().module(module)?.validate(true).encode();
    encode().map_err(problem("the module does not become a component"))
}

/// Checks that `component` imports and exports what the world `importer` below `wit` has, and nothing else.
pub fn check(component: &[u8], wit: &Path) -> Result<(), BuildError> {
    let conforms = || {
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_dir(wit)?;
        let world = resolve.select_world(&[package], Some("importer"))?;
        wit_component::targets(&resolve, world, component, false)
    };
    conforms().map_err(problem("the component does not fit the world `importer`"))
}

/// Whether a module uses 128-bit vectors. Lost compiler flags are silent otherwise, and cost half the speed.
pub fn uses_simd(module: &[u8]) -> bool {
    let mut without = WasmFeatures::all();
    without.remove(WasmFeatures::SIMD | WasmFeatures::RELAXED_SIMD);
    Validator::new().validate_all(module).is_ok()
        && Validator::new_with_features(without).validate_all(module).is_err()
}

fn problem<E: std::fmt::Display>(what: &'static str) -> impl Fn(E) -> BuildError {
    // The alternate form prints the whole chain of causes.
    move |error| BuildError::Component { what, problem: format!("{error:#}") }
}
