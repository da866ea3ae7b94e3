//! The reason why a call ended early, derived from wasmtime's error and the host's state.

use wasmtime::Trap;

use super::{HOSTCALL_BYTES, State};
use crate::{
    bindings::satchel::importer::types as wit,
    error::{ErrorKind, RunError},
    text,
};

/// Part of wasmtime's message when one call passes more than the hostcall fuel allows; the type of that error is not
/// public.
const HOSTCALL_FUEL_GONE: &str = "fuel allocated for hostcalls has been exhausted";

pub(crate) fn reason(error: &wasmtime::Error, state: &State) -> RunError {
    if let Some(own) = error.downcast_ref::<RunError>() {
        return own.clone();
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow) => RunError::StackOverflow,
        Some(Trap::MemoryOutOfBounds | Trap::StringOutOfBounds | Trap::ListOutOfBounds) => {
            RunError::OutOfBounds
        }
        Some(Trap::UnreachableCodeReached) => gave_up(state),
        Some(trap) => RunError::Trap(trap.to_string()),
        None => without_trap(error, state),
    }
}

/// Returns the reason for an `unreachable` trap, by which a guest's runtime aborts: out of memory, or after a panic.
fn gave_up(state: &State) -> RunError {
    if state.memory.denied() {
        return RunError::Memory(state.memory_bytes);
    }
    match &state.last_words {
        Some(words) => RunError::Panic(words.clone()),
        None => RunError::Trap("it gave up without a word (unreachable)".to_owned()),
    }
}

fn without_trap(error: &wasmtime::Error, state: &State) -> RunError {
    let text = format!("{error:#}");
    if text.contains(HOSTCALL_FUEL_GONE) {
        RunError::TooMuchAtOnce(HOSTCALL_BYTES)
    } else if state.memory.denied() {
        // Its initial memory is already too large, so it was never instantiated.
        RunError::Memory(state.memory_bytes)
    } else {
        RunError::Trap(text::clean(&text))
    }
}

/// Converts an error that the plugin itself reported.
pub(crate) fn from_import_error(error: wit::ImportError) -> RunError {
    let wit::ImportError { kind, message, locator } = error;
    let kind = match kind {
        wit::ErrorKind::NotThisFormat => ErrorKind::NotThisFormat,
        wit::ErrorKind::UnsupportedVersion => ErrorKind::UnsupportedVersion,
        wit::ErrorKind::Malformed => ErrorKind::Malformed,
        wit::ErrorKind::Limit => ErrorKind::Limit,
        wit::ErrorKind::Io => ErrorKind::Io,
        wit::ErrorKind::Cancelled => ErrorKind::Cancelled,
        wit::ErrorKind::Internal => ErrorKind::Internal,
    };
    let message =
        if message.trim().is_empty() { "no reason given".to_owned() } else { text::cleaned(message) };
    RunError::Reported { kind, message, locator: locator.map(text::cleaned) }
}
