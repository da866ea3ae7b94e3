#![no_main]

use satchel_plugin_vscode_copilot::VsCodeCopilot;

libfuzzer_sys::fuzz_target!(|input: &[u8]| satchel_fuzz::check::<VsCodeCopilot>(input));
