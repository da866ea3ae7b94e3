#![no_main]

use satchel_plugin_claude::Claude;

libfuzzer_sys::fuzz_target!(|input: &[u8]| satchel_fuzz::check::<Claude>(input));
