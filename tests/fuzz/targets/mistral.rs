#![no_main]

use satchel_plugin_mistral::Mistral;

libfuzzer_sys::fuzz_target!(|input: &[u8]| satchel_fuzz::check::<Mistral>(input));
