//! Reads single values and reports values of another kind.

use std::str::FromStr;

use serde_json::{Map, Value};

use super::{path::Path, sink::Sink};
use crate::{
    conversation::ToolInput,
    hash::Sha256Digest,
    issue::quote,
    jcs::MAX_INTEGER,
    json::tree::Node,
    raw::RawObject,
    time::{TimeNote, Timestamp, from_number},
};

/// A value of a document, its path, and the rule that an issue with it names.
///
/// Functions that read one return none, and report an issue, if the value cannot be read.
#[derive(Clone, Copy)]
pub(super) struct ValueRef<'v> {
    pub(super) node: &'v Node<'v>,
    pub(super) path: &'v Path<'v>,
    pub(super) rule: &'static str,
}

impl ValueRef<'_> {
    pub(super) fn wrong_kind<T>(self, wanted: &str, sink: &mut Sink) -> Option<T> {
        self.error(format!("is {}, not {wanted}", self.node.kind()), sink)
    }

    fn error<T>(self, message: String, sink: &mut Sink) -> Option<T> {
        sink.error(self.rule, self.path, message);
        None
    }
}

pub(super) fn text(value: ValueRef<'_>, sink: &mut Sink) -> Option<String> {
    match value.node {
        Node::String(text) => Some(text.clone().into_owned()),
        _ => value.wrong_kind("a string", sink),
    }
}

pub(super) fn boolean(value: ValueRef<'_>, sink: &mut Sink) -> Option<bool> {
    match value.node {
        Node::Bool(value) => Some(*value),
        _ => value.wrong_kind("true or false", sink),
    }
}

pub(super) fn number(value: ValueRef<'_>, sink: &mut Sink) -> Option<f64> {
    match value.node {
        Node::Number(text) => text.parse().ok(),
        _ => value.wrong_kind("a number", sink),
    }
}

/// Reads a whole number of at least 0; `3.0` is one.
pub(super) fn count(value: ValueRef<'_>, sink: &mut Sink) -> Option<u64> {
    let Node::Number(text) = value.node else { return value.wrong_kind("a whole number", sink) };
    if let Ok(count) = text.parse() {
        return Some(count);
    }
    let float: f64 = text.parse().unwrap_or(-1.0);
    #[expect(clippy::cast_precision_loss, reason = "2^53 - 1 is exact in a double")]
    let limit = MAX_INTEGER as f64;
    if float.fract() == 0.0 && (0.0..=limit).contains(&float) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole, and within 0 to 2^53"
        )]
        return Some(float as u64);
    }
    let text = text.get(..40).unwrap_or(text);
    value.error(format!("is {text}, not a whole number of at least 0"), sink)
}

pub(super) fn small_count(value: ValueRef<'_>, sink: &mut Sink) -> Option<u32> {
    let count = count(value, sink)?;
    u32::try_from(count).ok().or_else(|| value.error(format!("is {count}, more than 4294967295"), sink))
}

pub(super) fn time(value: ValueRef<'_>, sink: &mut Sink) -> Option<Timestamp> {
    let path = value.path;
    let text = match value.node {
        Node::String(text) => text,
        Node::Number(text) => {
            sink.error("A-28", path, "is a number, not a date-time string");
            return text.parse().ok().and_then(|number| from_number(number).ok());
        }
        _ => return value.wrong_kind("a date-time string", sink),
    };
    match Timestamp::parse_noting(text) {
        Ok((time, note)) => {
            match note {
                Some(TimeNote::Naive) => {
                    sink.warning("A-15", path, format!("{} has no offset; UTC is assumed", quote(text)));
                }
                Some(TimeNote::Lenient) => {
                    sink.warning("A-14", path, format!("{} is not RFC 3339; read as {time}", quote(text)));
                }
                None => {}
            }
            Some(time)
        }
        Err(problem) => {
            sink.error("A-28", path, format!("{} {problem}", quote(text)));
            None
        }
    }
}

pub(super) fn digest(value: ValueRef<'_>, sink: &mut Sink) -> Option<Sha256Digest> {
    let text = text(value, sink)?;
    match Sha256Digest::parse(&text) {
        Ok(digest) => Some(digest),
        Err(problem) => value.error(format!("{} {problem}", quote(&text)), sink),
    }
}

/// Reads one of a closed set of names; another name is reported as unknown.
pub(super) fn name<T: FromStr>(value: ValueRef<'_>, sink: &mut Sink) -> Option<T> {
    let Node::String(text) = value.node else { return value.wrong_kind("a string", sink) };
    let found = text.parse().ok();
    if found.is_none() {
        let what = format!("the value {}", quote(text));
        sink.unknown(value.path, &what, Value::String(text.clone().into_owned()));
    }
    found
}

pub(super) fn map(value: ValueRef<'_>, sink: &mut Sink) -> Option<Map<String, Value>> {
    match value.node {
        Node::Object(object) => Some(object.to_map()),
        _ => value.wrong_kind("an object", sink),
    }
}

/// Reads an object as its text; none without an issue if it is empty.
pub(super) fn raw(value: ValueRef<'_>, sink: &mut Sink) -> Option<RawObject> {
    let Node::Object(object) = value.node else { return value.wrong_kind("an object", sink) };
    if object.entries.is_empty() { None } else { raw_object(value, object.text, sink) }
}

pub(super) fn tool_input(value: ValueRef<'_>, sink: &mut Sink) -> Option<ToolInput> {
    match value.node {
        Node::String(text) => Some(ToolInput::Text(text.clone().into_owned())),
        Node::Object(object) => raw_object(value, object.text, sink).map(ToolInput::Object),
        _ => value.wrong_kind("an object or a string", sink),
    }
}

fn raw_object(value: ValueRef<'_>, text: &str, sink: &mut Sink) -> Option<RawObject> {
    match RawObject::parse(text.to_owned()) {
        Ok(object) => Some(object),
        Err(problem) => value.error(problem.to_string(), sink),
    }
}

/// Reads a list; items that cannot be read are left out, each with an issue.
pub(super) fn list<T>(
    value: ValueRef<'_>,
    sink: &mut Sink,
    read: impl Fn(ValueRef<'_>, &mut Sink) -> Option<T>,
) -> Option<Vec<T>> {
    let Node::Array(items) = value.node else { return value.wrong_kind("a list", sink) };
    let mut item =
        |(index, node)| read(ValueRef { node, path: &value.path.index(index), rule: value.rule }, sink);
    Some(items.iter().enumerate().filter_map(&mut item).collect())
}
