#![no_main]

use satchel_plugin_snapchat::Snapchat;

libfuzzer_sys::fuzz_target!(|input: &[u8]| satchel_fuzz::check::<Snapchat>(input));
