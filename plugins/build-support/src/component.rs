//! Turns a core module into a component and checks that against the importer world.

use std::path::Path;

use wasmparser::{Validator, WasmFeatures};
use wit_component::ComponentEncoder;
use wit_parser::Resolve;

use crate::BuildError;

/// Encodes a core module as a component. wit-bindgen has put the world into a custom section of the module.
pub fn componentize(module: &[u8]) -> Result<Vec<u8>, BuildError> {
    let encode = || ComponentEncoder::default().module(module)?.validate(true).encode();
    encode().map_err(problem("the module does not become a component"))
}

/// Checks that `component` imports and exports exactly what the world `importer` in the folder `wit` has.
pub fn check(component: &[u8], wit: &Path) -> Result<(), BuildError> {
    let conforms = || {
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_dir(wit)?;
        let world = resolve.select_world(&[package], Some("importer"))?;
        wit_component::targets(&resolve, world, component)
    };
    conforms().map_err(problem("the component does not fit the world `importer`"))
}

/// Whether a module uses 128-bit vectors. Without this check lost compiler flags, which halve the speed, stay unnoticed.
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
