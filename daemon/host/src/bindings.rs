//! The bindings that wasmtime generates from `sdk/wit`; only this crate's edge (`convert`, `imports`) names them.

wasmtime::component::bindgen!({
    world: "importer",
    path: "../../sdk/wit",
    imports: { default: trappable },
    with: {
        "satchel:importer/files.reader": crate::imports::Reader,
    },
});
