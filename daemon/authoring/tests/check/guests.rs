//! Guests: WebAssembly text, turned into components without any external tool.

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// The part that all guests share.
const FRAME: &str = include_str!("../../../../tests/guests/frame.wat");
const IMPORTER_WIT: &str = include_str!("../../../../sdk/wit/importer.wit");
/// Memory of a guest in pages of 64 KiB: 1 MiB.
const PAGES: &str = "16";
/// Imports that the shared part does not have.
const MORE_IMPORTS: &str = r#"
  (import "satchel:importer/files@1.0.0" "list-files" (func $list_files (param i32)))
  (import "satchel:importer/memo@1.0.0" "recall" (func $recall (param i32 i32 i32)))
  (import "satchel:importer/memo@1.0.0" "again" (func $again (result i32)))
  (import "satchel:importer/memo@1.0.0" "note" (func $note (param i32 i32) (result i32)))
  (memory (export "memory")"#;
/// Claims `a.json` alone, with confidence 90.
const DETECT: &str = "(func $detect (result i32)
  (i32.store8 (i32.const 216) (i32.const 90))
  (i32.store (i32.const 224) (i32.const 1))
  (i32.const 192))";
/// Returns the size of the first file.
const FIRST_SIZE: &str = "(func $first_size (result i32)
  (call $list_files (i32.const 3072))
  (i32.wrap_i64 (i64.load offset=8 (i32.load (i32.const 3072)))))";

/// A conversation with a title and two messages, as text for a guest's memory at 4096. The id of the conversation ends
/// at byte 4120.
pub(crate) const CONVERSATION: &str = r#"(data (i32.const 4096)
  "{\"conversation\":{\"id\":\"c1\",\"provider_conversation_id\":\"p1\",\"locator\":\"a.json[0]\",\"title\":\"Bread\",\"messages\":["
  "{\"id\":\"m1\",\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"Which flour?\"}},"
  "{\"id\":\"m2\",\"role\":\"assistant\",\"parent\":\"m1\",\"content\":{\"type\":\"text\",\"text\":\"Rye.\"}}]}}\n\00")
  (func $emit (drop (call $emit_json (i32.const 4096) (call $length (i32.const 4096)))))"#;

/// The export that [`good`] reads.
pub(crate) const EXPORT: &str =
    r#"[{"title": "Bread", "ask": "Which flour?", "answer": "Rye.", "mood": "hungry"}]"#;

/// Its field table.
pub(crate) const README: &str = "# Notes\n\n`notes` is `a.json`.\n\n\
    | Path | What becomes of it | Where it goes |\n|---|---|---|\n\
    | `notes[].title` | verbatim | `title` |\n\
    | `notes[].ask` | verbatim | `content` |\n\
    | `notes[].answer` | transformed by *voice* | `content` |\n\
    | `notes[].mood` | dropped: passes | nowhere |\n";

/// Returns the component of a guest of `tests/guests` or of this text, with the shared `detect` unless it has its own.
pub(crate) fn component(text: &str, detect: &str) -> Vec<u8> {
    let detect = if text.contains("(func $detect") { "" } else { detect };
    let module = FRAME
        .replacen("\n  (memory (export \"memory\")", MORE_IMPORTS, 1)
        .replace("(; pages ;)", PAGES)
        .replace("(; detect ;)", detect)
        .replace("(; guest ;)", &format!("{FIRST_SIZE}\n{text}"));
    let mut core = wat::parse_str(module).unwrap();
    let mut resolve = Resolve::default();
    let package = resolve.push_str("importer.wit", IMPORTER_WIT).unwrap();
    let world = resolve.select_world(&[package], Some("importer")).unwrap();
    embed_component_metadata(&mut core, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default().validate(true).module(&core).unwrap().encode().unwrap()
}

/// Returns a guest with this function `$run`, which may call `$emit`.
pub(crate) fn guest(run: &str) -> Vec<u8> {
    component(&format!("{CONVERSATION}\n(func $run (result i32) {run} (global.get $ok))"), DETECT)
}

/// Returns a guest that does what it should.
pub(crate) fn good() -> Vec<u8> {
    guest("(call $emit)")
}

/// Returns a guest of `tests/guests`, which claims `a.json` alone.
pub(crate) fn shared(text: &str) -> Vec<u8> {
    component(text, DETECT)
}

/// Returns a guest that claims files that do not exist, with a confidence out of range.
pub(crate) fn liar() -> Vec<u8> {
    let run = format!("{CONVERSATION}\n(func $run (result i32) (call $emit) (global.get $ok))");
    component(&run, "(func $detect (result i32) (i32.const 192))")
}
