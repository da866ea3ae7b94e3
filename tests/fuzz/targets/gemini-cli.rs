#![no_main]

use satchel_plugin_gemini_cli::GeminiCli;

libfuzzer_sys::fuzz_target!(|input: &[u8]| satchel_fuzz::check::<GeminiCli>(input));
