#![no_main]

use satchel_plugin_memu::MemU;

libfuzzer_sys::fuzz_target!(|input: &[u8]| satchel_fuzz::check::<MemU>(input));
