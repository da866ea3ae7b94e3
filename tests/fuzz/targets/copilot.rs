#![no_main]

use satchel_plugin_copilot::Copilot;

libfuzzer_sys::fuzz_target!(|input: &[u8]| satchel_fuzz::check::<Copilot>(input));
