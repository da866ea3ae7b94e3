//! Recognises texts that Codex puts into the user's messages: instructions, the environment, notifications.

/// Tags around a whole text that Codex adds.
const TAGS: [&str; 14] = [
    "agent_message_board_notification",
    "agents_instructions",
    "codex_internal_context",
    "environment_context",
    "goal_context",
    "hook_prompt",
    "multiagent_context",
    "recommended_plugins",
    "skill",
    "subagent_notification",
    "turn_aborted",
    "user_action",
    "user_instructions",
    SHELL,
];
/// The tag of a command that the user ran in Codex.
const SHELL: &str = "user_shell_command";
/// Tags of texts from other programs begin like this.
const EXTERNAL: &str = "external_";
/// Instructions from files in the project, and how they end.
const AGENTS: (&str, &str) = ("# agents.md instructions", "</instructions>");
/// Beginnings of warnings to the model, which have no end marker.
const WARNINGS: [&str; 3] = [
    "warning: apply_patch was requested via ",
    "warning: the maximum number of unified exec processes",
    "warning: your account was flagged",
];
/// How a message with the state of an editor begins.
const EDITOR: [&str; 3] = [
    "# Context from my IDE setup:",
    "# Files mentioned by the user:",
    "# Applications mentioned by the user:",
];
/// The headings before the person's own text in a message with the state of an editor.
const REQUESTS: [&str; 2] = ["## My request for Codex:", "## My request:"];

/// Whether the whole text was added by Codex. Both ends are compared: a person may quote one of the tags.
pub(crate) fn is_injected(text: &str) -> bool {
    let text = text.trim();
    if starts_with(text, AGENTS.0) {
        return ends_with(text, AGENTS.1);
    }
    WARNINGS.iter().any(|warning| starts_with(text, warning)) || tag(text).is_some_and(is_own_tag)
}

/// Whether the text is a command that the user ran, with its result.
pub(crate) fn is_shell_command(text: &str) -> bool {
    tag(text.trim()).is_some_and(|tag| tag.eq_ignore_ascii_case(SHELL))
}

/// Whether the text only marks the place of an image.
pub(crate) fn is_image_marker(text: &str) -> bool {
    let text = text.trim();
    text == "</image>"
        || text == "<image>"
        || (text.starts_with("<image name=") && text.find('>') == text.len().checked_sub(1))
}

/// The person's own text in a message that begins with the state of an editor.
pub(crate) fn request(text: &str) -> &str {
    if !EDITOR.iter().any(|heading| text.trim_start().starts_with(heading)) {
        return text;
    }
    REQUESTS.iter().find_map(|heading| text.split_once(heading)).map_or(text, |(_, request)| request)
}

fn is_own_tag(tag: &str) -> bool {
    starts_with(tag, EXTERNAL) || TAGS.iter().any(|own| tag.eq_ignore_ascii_case(own))
}

/// The name of the tag that begins and ends the text.
fn tag(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('<')?;
    let name = inside.get(..inside.find(['>', ' ', '\n'])?)?;
    let end = text.strip_suffix('>')?;
    let end = end.get(end.rfind("</")? + 2..)?;
    (!name.is_empty() && name.eq_ignore_ascii_case(end)).then_some(name)
}

fn starts_with(text: &str, start: &str) -> bool {
    text.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start))
}

fn ends_with(text: &str, end: &str) -> bool {
    let at = text.len().checked_sub(end.len());
    at.and_then(|at| text.get(at..)).is_some_and(|tail| tail.eq_ignore_ascii_case(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_texts_of_codex_are_recognised() {
        for text in [
            "<environment_context>\n  <cwd>/home/ana</cwd>\n</environment_context>",
            " <ENVIRONMENT_CONTEXT>x</environment_context>\n",
            "# AGENTS.md instructions for /home/ana\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>",
            "<hook_prompt hook_run_id=\"1\">x</hook_prompt>",
            "<external_mail>x</external_mail>",
            "Warning: apply_patch was requested via exec_command.",
        ] {
            assert!(is_injected(text), "{text}");
        }
    }

    #[test]
    fn a_person_may_quote_a_tag() {
        for text in [
            "<environment_context> is in every session, why?",
            "What is </environment_context>",
            "# AGENTS.md instructions are ignored, why?",
            "<b>bold</b>",
            "<instructions>Be brief.</instructions>",
            "<>",
            "<",
            "",
        ] {
            assert!(!is_injected(text), "{text}");
        }
    }

    #[test]
    fn markers_of_images_and_commands_are_recognised() {
        assert!(is_image_marker("<image>") && is_image_marker("<image name=[Image #1]>"));
        assert!(!is_image_marker("<image name=[Image #1]> is blurred") && !is_image_marker("image"));
        assert!(is_shell_command("<user_shell_command>\n<command>ls</command>\n</user_shell_command>"));
        assert_eq!(request("# Context from my IDE setup:\n\n## My request for Codex:\nfix it"), "\nfix it");
        let quoted = "What is ## My request: for?";
        assert_eq!(request(quoted), quoted, "it does not begin with the state of an editor");
    }
}
