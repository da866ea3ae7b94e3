#![no_main]

use satchel_plugin_lm_studio::LmStudio;

libfuzzer_sys::fuzz_target!(|input: &[u8]| satchel_fuzz::check::<LmStudio>(input));
