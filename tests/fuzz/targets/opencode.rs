#![no_main]

use satchel_plugin_opencode::OpenCode;

libfuzzer_sys::fuzz_target!(|input: &[u8]| satchel_fuzz::check::<OpenCode>(input));
