//! Tool calls: an assistant's message to a tool, and the tool's answer below it.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Part, PartKind, ToolCall, ToolInput,
    tree::{Parent, Tree},
};

use super::content::Said;

/// The tool that writes saved memories.
pub(crate) const MEMORY: &str = "bio";
/// How its answer begins when it did; ChatGPT's own page asks for this wording.
const MEMORY_DONE: &str = "Model set context updated";
/// Tool messages between a call and an answer; more are no answers to it.
const MAX_STEPS: usize = 64;

/// Whether a recipient is a tool, and not a speaker.
pub(crate) fn is_tool(recipient: &str) -> bool {
    !matches!(recipient, "" | "all" | "user" | "assistant")
}

/// Turns the texts that were said into a call of the tool `name`; pictures stay.
pub(crate) fn call<'a>(name: &'a str, said: &mut Said<'a>, arena: &'a Arena) -> ToolCall<'a> {
    let mut input: Option<Cow<'a, str>> = None;
    let spoken = |part: &mut Part<'_>| matches!(part.kind, PartKind::Text | PartKind::Code);
    for part in said.parts.extract_if(.., spoken) {
        // A call has no place for the language of its code.
        if let Some(language) = part.language {
            said.rest.add_text("language", &language);
        }
        let Some(text) = part.text else { continue };
        match &mut input {
            Some(all) => {
                let all = all.to_mut();
                all.push('\n');
                all.push_str(&text);
            }
            None => input = Some(text),
        }
    }
    let input = input.map(|text| match text {
        Cow::Borrowed(text) => ToolInput::of_text(text, arena),
        Cow::Owned(text) => ToolInput::Text(Cow::Owned(text)),
    });
    ToolCall { id: None, name: Cow::Borrowed(name), input, output: None }
}

/// What stands at a node on the way up.
pub(crate) enum Step<'c> {
    /// An answer of a tool.
    Tool,
    /// A call: index of the message, and the tool's name.
    Call(usize, &'c str),
    /// Anything else.
    Stop,
}

/// The nodes above `node`, the nearest first.
pub(crate) fn above(node: usize, tree: &Tree<'_>) -> impl Iterator<Item = usize> {
    let parent = |at: &usize| if let Parent::Node(above) = tree.parent(*at) { Some(above) } else { None };
    std::iter::successors(parent(&node), parent)
}

/// The call that a tool's answer belongs to: the first one on the `way` back, over answers only, with its name.
pub(crate) fn call_on_the_way<'c>(
    way: impl Iterator<Item = usize>,
    step: impl Fn(usize) -> Step<'c>,
    name: Option<&str>,
) -> Option<usize> {
    for node in way.take(MAX_STEPS) {
        match step(node) {
            Step::Tool => {}
            Step::Call(call, called) => return answers(name, called).then_some(call),
            Step::Stop => return None,
        }
    }
    None
}

/// `browser` answers `browser.search`; an answer without a name answers anything.
fn answers(name: Option<&str>, called: &str) -> bool {
    let family = |tool: &str| tool.split('.').next().unwrap_or_default().to_owned();
    name.is_none_or(|name| name == called || family(name) == family(called))
}

/// Whether a tool's answer says that a memory was saved.
pub(crate) fn confirms_memory(tool: Option<&str>, answer: &str) -> bool {
    tool == Some(MEMORY) && answer.trim_start().starts_with(MEMORY_DONE)
}
