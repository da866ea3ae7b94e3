#![no_main]

use satchel_plugin_open_webui::OpenWebUi;

libfuzzer_sys::fuzz_target!(|input: &[u8]| satchel_fuzz::check::<OpenWebUi>(input));
