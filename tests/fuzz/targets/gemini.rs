#![no_main]

use satchel_plugin_gemini::Gemini;

libfuzzer_sys::fuzz_target!(|input: &[u8]| satchel_fuzz::check::<Gemini>(input));
