#![no_main]

use satchel_plugin_librechat::LibreChat;

libfuzzer_sys::fuzz_target!(|input: &[u8]| satchel_fuzz::check::<LibreChat>(input));
