#![no_main]

use satchel_plugin_chatgpt::ChatGpt;

libfuzzer_sys::fuzz_target!(|input: &[u8]| satchel_fuzz::check::<ChatGpt>(input));
