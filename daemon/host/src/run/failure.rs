//! The reason why a call ended early, derived from wasmtime's error and the host's state.

use wasmtime::Trap;

use super::{CallState, HOSTCALL_BYTES};
use crate::{
    bindings::satchel::importer::types as wit,
    error::{PluginError, PluginErrorKind},
    text,
};

/// Part of wasmtime's message when one call passes more than the hostcall fuel allows; the type of that error is not
/// public.
const HOSTCALL_FUEL_GONE: &str = "fuel allocated for hostcalls has been exhausted";

pub(crate) fn reason(error: &wasmtime::Error, state: &CallState) -> PluginError {
    if let Some(plugin_error) = error.downcast_ref::<PluginError>() {
        return plugin_error.clone();
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow) => PluginError::StackOverflow,
        Some(Trap::MemoryOutOfBounds | Trap::StringOutOfBounds | Trap::ListOutOfBounds) => {
            PluginError::OutOfBounds
        }
        Some(Trap::UnreachableCodeReached) => unreachable_reason(state),
        Some(trap) => PluginError::Trap(trap.to_string()),
        None => reason_without_trap(error, state),
    }
}

/// Returns the reason for an `unreachable` trap, by which a guest's runtime aborts: out of memory, or after a panic.
fn unreachable_reason(state: &CallState) -> PluginError {
    if state.memory.denied() {
        return PluginError::Memory(state.memory_bytes);
    }
    match &state.last_error_log {
        Some(message) => PluginError::Panic(message.clone()),
        None => PluginError::Trap("it aborted without a message (unreachable)".to_owned()),
    }
}

fn reason_without_trap(error: &wasmtime::Error, state: &CallState) -> PluginError {
    let text = format!("{error:#}");
    if text.contains(HOSTCALL_FUEL_GONE) {
        PluginError::TooMuchAtOnce(HOSTCALL_BYTES)
    } else if state.memory.denied() {
        // Its initial memory is already too large, so it was never instantiated.
        PluginError::Memory(state.memory_bytes)
    } else {
        PluginError::Trap(text::clean(&text))
    }
}

/// Converts an error that the plugin itself reported.
pub(crate) fn from_import_error(error: wit::ImportError) -> PluginError {
    let wit::ImportError { kind, message, locator } = error;
    let kind = match kind {
        wit::ErrorKind::NotThisFormat => PluginErrorKind::NotThisFormat,
        wit::ErrorKind::UnsupportedVersion => PluginErrorKind::UnsupportedVersion,
        wit::ErrorKind::Malformed => PluginErrorKind::Malformed,
        wit::ErrorKind::Limit => PluginErrorKind::Limit,
        wit::ErrorKind::Io => PluginErrorKind::Io,
        wit::ErrorKind::Cancelled => PluginErrorKind::Cancelled,
        wit::ErrorKind::Internal => PluginErrorKind::Internal,
    };
    let message =
        if message.trim().is_empty() { "no reason given".to_owned() } else { text::clean_owned(message) };
    PluginError::Reported { kind, message, locator: locator.map(text::clean_owned) }
}
