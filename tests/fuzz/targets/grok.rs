#![no_main]

use satchel_plugin_grok::Grok;

libfuzzer_sys::fuzz_target!(|input: &[u8]| satchel_fuzz::check::<Grok>(input));
