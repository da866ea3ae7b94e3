#![no_main]

use satchel_plugin_jan::Jan;

libfuzzer_sys::fuzz_target!(|input: &[u8]| satchel_fuzz::check::<Jan>(input));
