//! Bindings that wasmtime generates from `sdk/wit`. Only the edge of this crate (`convert`, `imports`) names them.

wasmtime::component::bindgen!({
    world: "importer",
    path: "../../sdk/wit",
    imports: { default: trappable },
    with: {
        "satchel:importer/files.reader": crate::imports::FileReader,
    },
});
