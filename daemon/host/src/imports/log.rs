//! The import `log`: messages of the plugin, visible in debug logs only, and the message of a panic.

use crate::{bindings::satchel::importer::log as wit, run::State, text};

impl wit::Host for State {
    fn log(&mut self, level: wit::Level, text: String) -> wasmtime::Result<()> {
        let text = text::cleaned(text);
        match level {
            wit::Level::Debug | wit::Level::Info => tracing::trace!(text, "a plugin notes"),
            wit::Level::Warn => tracing::debug!(text, "a plugin warns"),
            wit::Level::Error => {
                tracing::debug!(text, "a plugin reports an error");
                // A guest that can still log did not fail because of a refused allocation.
                self.memory.forgive();
                self.last_words = Some(text);
            }
        }
        Ok(())
    }
}
