//! Arguments of a tool call that stand as an object where usually their JSON text stands.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Leftover,
    json::{Object, Value},
};

use super::canvas;
use crate::raw::{Content, Part, Parts};

/// Fields of `content` that may hold the arguments.
const HOLDERS: [&str; 4] = ["text", "arguments", "input", "content"];
/// The arguments of the canvas's calls.
const OF_CANVAS: [&str; 5] = ["name", "type", "content", "updates", "comments"];

/// Arguments that stand as an object.
pub(super) struct Given<'a> {
    /// The object as JSON text.
    pub(super) object: Cow<'a, str>,
    /// The content without them.
    pub(super) content: Content<'a>,
}

/// The arguments of a call of `tool`, if they stand as an object: in the only part, in a field, or, for the canvas, as the fields
/// of the content themselves.
pub(super) fn given<'a>(tool: &str, content: &Content<'a>, arena: &'a Arena) -> Option<Given<'a>> {
    let kind = content.kind;
    let fields = |taken: &[&str]| {
        let mut left = Object::default();
        content
            .fields
            .fields()
            .filter(|(key, _)| !taken.contains(key))
            .for_each(|(key, value)| left.push(key, value));
        left
    };
    let mut parts = content.parts.iter();
    match (parts.next(), parts.next()) {
        (Some(Part::Raw(raw)), None) if raw.starts_with('{') => {
            let part = Object::parse(raw, arena);
            // A picture or another piece of content is what is said, no argument.
            let piece = part.text("content_type").or(part.text("asset_pointer")).is_some();
            let content = Content { kind, parts: Parts::default(), fields: fields(&[]) };
            return (!piece).then_some(Given { object: raw.into(), content });
        }
        (None, None) => {}
        _ => return None,
    }
    let objects = HOLDERS.into_iter().filter_map(|key| Some((key, content.fields.get(key).raw()?)));
    if let Some((key, raw)) = objects.into_iter().find(|(_, raw)| raw.starts_with('{')) {
        return Some(Given {
            object: raw.into(),
            content: Content { kind, parts: Parts::default(), fields: fields(&[key]) },
        });
    }
    let own = canvas::writes(tool)
        && ["content", "updates"].iter().any(|key| content.fields.get(key) != Value::Null);
    own.then(|| {
        let mut object = Leftover::default();
        for (key, value) in content.fields.fields().filter(|(key, _)| OF_CANVAS.contains(key)) {
            object.add_json(key, &value.json());
        }
        let object = object.into_json().unwrap_or("{}".into());
        Given { object, content: Content { kind, parts: Parts::default(), fields: fields(&OF_CANVAS) } }
    })
}
