#![no_main]

use satchel_plugin_perplexity::Perplexity;

libfuzzer_sys::fuzz_target!(|input: &[u8]| satchel_fuzz::check::<Perplexity>(input));
