//! The import `log`: messages of the plugin, visible in debug logs only, and the message of a panic.

use crate::{bindings::satchel::importer::log as wit, run::CallState, text};

impl wit::Host for CallState {
    fn log(&mut self, level: wit::Level, text: String) -> wasmtime::Result<()> {
        let text = text::clean_owned(text);
        match level {
            wit::Level::Debug | wit::Level::Info => tracing::trace!(text, "a plugin logs"),
            wit::Level::Warn => tracing::debug!(text, "a plugin warns"),
            wit::Level::Error => {
                tracing::debug!(text, "a plugin reports an error");
                // A guest that can still log did not fail because of a refused allocation.
                self.memory.clear_denied();
                self.last_error_log = Some(text);
            }
        }
        Ok(())
    }
}
