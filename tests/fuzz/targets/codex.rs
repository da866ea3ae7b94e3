#![no_main]

use satchel_plugin_codex::Codex;

libfuzzer_sys::fuzz_target!(|input: &[u8]| satchel_fuzz::check::<Codex>(input));
