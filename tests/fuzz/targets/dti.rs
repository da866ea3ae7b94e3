#![no_main]

use satchel_plugin_dti::Dti;

libfuzzer_sys::fuzz_target!(|input: &[u8]| satchel_fuzz::check::<Dti>(input));
