//! Tool calls: an assistant's message to a tool, its arguments, and the tool's answer below it.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Leftover, Part, PartKind, ToolCall, ToolInput,
    json::{Object, Value},
    tree::{Parent, Tree},
};

use super::{canvas, content::MappedContent};
use crate::raw::{Content, Parts};

/// The tool that writes saved memories.
pub(crate) const MEMORY: &str = "bio";
/// Prefix of its answer if it saved one; ChatGPT's own page checks the same text.
const MEMORY_SAVED: &str = "Model set context updated";
/// Tool messages between a call and its answer.
const MAX_STEPS: usize = 64;
/// Fields of `content` that may contain the arguments.
const ARGUMENT_FIELDS: [&str; 4] = ["text", "arguments", "input", "content"];
/// The arguments of canvas calls.
const CANVAS_FIELDS: [&str; 5] = ["name", "type", "content", "updates", "comments"];

/// Whether a recipient is a tool.
pub(crate) fn is_tool(recipient: &str) -> bool {
    !matches!(recipient, "" | "all" | "user" | "assistant")
}

/// Turns the texts of `content` into a call of the tool `name`; pictures stay.
pub(crate) fn call<'a>(name: &'a str, content: &mut MappedContent<'a>, arena: &'a Arena) -> ToolCall<'a> {
    let mut input: Option<Cow<'a, str>> = None;
    let textual = |part: &mut Part<'_>| matches!(part.kind, PartKind::Text | PartKind::Code);
    for part in content.parts.extract_if(.., textual) {
        // A call has no field for the language of its code.
        if let Some(language) = part.language {
            content.rest.add_text("language", &language);
        }
        if let Some(text) = part.text {
            append_line(&mut input, text);
        }
    }
    let input = input.map(|text| match text {
        Cow::Borrowed(text) => ToolInput::of_text(text, arena),
        Cow::Owned(text) => ToolInput::Text(Cow::Owned(text)),
    });
    ToolCall { id: None, name: Cow::Borrowed(name), input, output: None }
}

/// Appends `text` as a line of its own.
pub(crate) fn append_line<'a>(all: &mut Option<Cow<'a, str>>, text: Cow<'a, str>) {
    match all {
        Some(all) => {
            let all = all.to_mut();
            all.push('\n');
            all.push_str(&text);
        }
        None => *all = Some(text),
    }
}

/// Arguments that are an object instead of its JSON text.
pub(crate) struct ObjectArguments<'a> {
    /// The object as JSON text.
    pub(crate) object: Cow<'a, str>,
    /// The content without it.
    pub(crate) content: Content<'a>,
}

/// Finds the arguments of a call of `tool` that are an object: the only part, a field, or, for the canvas, the fields of the
/// content themselves.
pub(crate) fn object_arguments<'a>(
    tool: &str,
    content: &Content<'a>,
    arena: &'a Arena,
) -> Option<ObjectArguments<'a>> {
    let arguments = |object: Cow<'a, str>, taken: &[&str]| {
        let mut fields = Object::default();
        let left = content.fields.fields().filter(|(key, _)| !taken.contains(key));
        left.for_each(|(key, value)| fields.push(key, value));
        let content = Content { kind: content.kind, parts: Parts::default(), fields };
        Some(ObjectArguments { object, content })
    };
    let mut parts = content.parts.iter();
    match (parts.next(), parts.next()) {
        (Some(Value::Raw(raw)), None) if raw.starts_with('{') => {
            let part = Object::parse(raw, arena);
            // A picture or another piece of content is no argument.
            let piece = part.text("content_type").or(part.text("asset_pointer")).is_some();
            return if piece { None } else { arguments(raw.into(), &[]) };
        }
        (None, None) => {}
        _ => return None,
    }
    let objects = ARGUMENT_FIELDS.into_iter().filter_map(|key| Some((key, content.fields.get(key).raw()?)));
    if let Some((key, raw)) = objects.into_iter().find(|(_, raw)| raw.starts_with('{')) {
        return arguments(raw.into(), &[key]);
    }
    let edited = || ["content", "updates"].iter().any(|key| content.fields.get(key) != Value::Null);
    if !canvas::is_edit(tool) || !edited() {
        return None;
    }
    let mut object = Leftover::default();
    for (key, value) in content.fields.fields().filter(|(key, _)| CANVAS_FIELDS.contains(key)) {
        object.add_json(key, &value.json());
    }
    arguments(object.into_json().unwrap_or("{}".into()), &CANVAS_FIELDS)
}

/// What a node between an answer and its call has.
pub(crate) enum Step<'c> {
    /// An answer of a tool.
    Tool,
    /// A call: index of the message, and the tool's name.
    Call(usize, &'c str),
    /// Anything else.
    Stop,
}

/// The nodes above `node`, the nearest first.
pub(crate) fn ancestors(node: usize, tree: &Tree<'_>) -> impl Iterator<Item = usize> {
    let parent = |at: &usize| if let Parent::Node(above) = tree.parent(*at) { Some(above) } else { None };
    std::iter::successors(parent(&node), parent)
}

/// Finds the call that an answer of the tool `name` belongs to: the first one on `path`, if only answers precede it.
pub(crate) fn find_call<'c>(
    path: impl Iterator<Item = usize>,
    step: impl Fn(usize) -> Step<'c>,
    name: Option<&str>,
) -> Option<usize> {
    for node in path.take(MAX_STEPS) {
        match step(node) {
            Step::Tool => {}
            Step::Call(call, called) => return answers(name, called).then_some(call),
            Step::Stop => return None,
        }
    }
    None
}

/// `browser` answers `browser.search`; an answer without a name answers any call.
fn answers(name: Option<&str>, called: &str) -> bool {
    let namespace = |tool: &str| tool.split('.').next().unwrap_or_default().to_owned();
    name.is_none_or(|name| name == called || namespace(name) == namespace(called))
}

/// Whether a tool's answer confirms that a memory was saved.
pub(crate) fn confirms_memory(tool: Option<&str>, answer: &str) -> bool {
    tool == Some(MEMORY) && answer.trim_start().starts_with(MEMORY_SAVED)
}
