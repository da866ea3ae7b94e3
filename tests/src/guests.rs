//! Hostile guests: WebAssembly text from `guests/`, turned into components without any external tool.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

const FRAME: &str = include_str!("../guests/frame.wat");
const IMPORTER_WIT: &str = include_str!("../../sdk/wit/importer.wit");
/// Memory of a guest in pages of 64 KiB: 6 MiB, of which all guests but the amplifier use only the first.
const PAGES: u32 = 96;

/// Returns the component of `guests/<name>.wat`.
pub fn component(name: &str) -> Result<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests").join(name).with_extension("wat");
    let text = fs::read_to_string(&path).with_context(|| format!("no guest {name}"))?;
    component_from_wat(&text, PAGES).with_context(|| format!("guest {name}"))
}

/// Returns the component of a guest with this text and a memory of this many pages.
pub fn component_from_wat(text: &str, pages: u32) -> Result<Vec<u8>> {
    component_in_frame(FRAME, text, pages)
}

fn component_in_frame(frame: &str, text: &str, pages: u32) -> Result<Vec<u8>> {
    let detect =
        if text.contains("(func $detect") { "" } else { "(func $detect (result i32) (i32.const 192))" };
    let module = frame
        .replace("(; pages ;)", &pages.to_string())
        .replace("(; detect ;)", detect)
        .replace("(; guest ;)", text);
    let mut core = wat::parse_str(module)?;
    let mut resolve = Resolve::default();
    let package = resolve.push_str("importer.wit", IMPORTER_WIT)?;
    let world = resolve.select_world(&[package], Some("importer"))?;
    embed_component_metadata(&mut core, &resolve, world, StringEncoding::UTF8)?;
    ComponentEncoder::default().validate(true).module(&core)?.encode()
}

/// Returns the component of `guests/<name>.wat` that calls itself, its platform and its format `called`, in seven letters, with this
/// version of five.
///
/// # Panics
/// If a name or version has another length: its place in the guest's memory is fixed.
pub fn component_called(name: &str, called: &str, version: &str) -> Result<Vec<u8>> {
    assert_eq!((called.len(), version.len()), (7, 5), "{called:?} {version:?}");
    let frame = FRAME
        .replace("(data (i32.const 0x400) \"hostile\")", &format!("(data (i32.const 0x400) \"{called}\")"))
        .replace("\"1.2.3\"", &format!("\"{version}\""));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests").join(name).with_extension("wat");
    let text = fs::read_to_string(&path).with_context(|| format!("no guest {name}"))?;
    component_in_frame(&frame, &text, PAGES).with_context(|| format!("guest {name}"))
}

/// Returns an empty component that imports an instance with this name.
pub fn component_importing(import: &str) -> Result<Vec<u8>> {
    Ok(wat::parse_str(format!("(component (import \"{import}\" (instance)))"))?)
}
