//! Recognises texts that the program writes in the person's name.

/// How these texts begin: the description of the folders, what a hook adds, and the summary of a session that became too long.
const BEGINNINGS: [&str; 3] = ["<session_context>", "<hook_context>", "<state_snapshot>"];
/// How commands to the program begin.
const COMMANDS: [char; 2] = ['/', '?'];

/// Whether the program wrote a text for the model.
pub(crate) fn is_injected(text: &str) -> bool {
    let text = text.trim_start();
    BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
}

/// Whether a text is a command to the program, which says little about the session.
pub(crate) fn is_command(text: &str) -> bool {
    text.trim_start().starts_with(COMMANDS)
}
