#![no_main]

use satchel_plugin_goose::Goose;

libfuzzer_sys::fuzz_target!(|input: &[u8]| satchel_fuzz::check::<Goose>(input));
