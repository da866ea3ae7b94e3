#![no_main]

use satchel_plugin_deepseek::DeepSeek;

libfuzzer_sys::fuzz_target!(|input: &[u8]| satchel_fuzz::check::<DeepSeek>(input));
