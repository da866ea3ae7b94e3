#![no_main]

use satchel_plugin_claude_code::ClaudeCode;

libfuzzer_sys::fuzz_target!(|input: &[u8]| satchel_fuzz::check::<ClaudeCode>(input));
