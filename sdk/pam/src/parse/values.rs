//! Reads single values; says what else stood there.

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

/// How a value of type `T` is read at a place; none if it cannot be, with an issue.
pub(super) type Read<T> = fn(&Node<'_>, &Path<'_>, &'static str, &mut Sink) -> Option<T>;

fn wrong<T>(
    node: &Node<'_>,
    wanted: &str,
    path: &Path<'_>,
    rule: &'static str,
    sink: &mut Sink,
) -> Option<T> {
    sink.error(rule, path, format!("is {}, not {wanted}", node.kind()));
    None
}

pub(super) fn text(node: &Node<'_>, path: &Path<'_>, rule: &'static str, sink: &mut Sink) -> Option<String> {
    match node {
        Node::String(text) => Some(text.clone().into_owned()),
        other => wrong(other, "a string", path, rule, sink),
    }
}

pub(super) fn boolean(node: &Node<'_>, path: &Path<'_>, rule: &'static str, sink: &mut Sink) -> Option<bool> {
    match node {
        Node::Bool(value) => Some(*value),
        other => wrong(other, "true or false", path, rule, sink),
    }
}

pub(super) fn number(node: &Node<'_>, path: &Path<'_>, rule: &'static str, sink: &mut Sink) -> Option<f64> {
    match node {
        Node::Number(text) => text.parse().ok(),
        other => wrong(other, "a number", path, rule, sink),
    }
}

/// A whole number of at least 0; `3.0` is one.
pub(super) fn count(node: &Node<'_>, path: &Path<'_>, rule: &'static str, sink: &mut Sink) -> Option<u64> {
    let Node::Number(text) = node else { return wrong(node, "a whole number", path, rule, sink) };
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
    sink.error(rule, path, format!("is {}, not a whole number of at least 0", cut(text)));
    None
}

pub(super) fn small_count(
    node: &Node<'_>,
    path: &Path<'_>,
    rule: &'static str,
    sink: &mut Sink,
) -> Option<u32> {
    let count = count(node, path, rule, sink)?;
    u32::try_from(count).map_err(|_| sink.error(rule, path, format!("is {count}, more than 4294967295"))).ok()
}

pub(super) fn time(
    node: &Node<'_>,
    path: &Path<'_>,
    rule: &'static str,
    sink: &mut Sink,
) -> Option<Timestamp> {
    let text = match node {
        Node::String(text) => text,
        Node::Number(text) => {
            sink.error("A-28", path, "is a number, not a date-time string");
            return text.parse().ok().and_then(|number| from_number(number).ok());
        }
        other => return wrong(other, "a date-time string", path, rule, sink),
    };
    match Timestamp::parse_noting(text) {
        Ok((time, difference)) => {
            match difference {
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

pub(super) fn digest(
    node: &Node<'_>,
    path: &Path<'_>,
    rule: &'static str,
    sink: &mut Sink,
) -> Option<Sha256Digest> {
    let text = text(node, path, rule, sink)?;
    Sha256Digest::parse(&text)
        .map_err(|problem| sink.error(rule, path, format!("{} {problem}", quote(&text))))
        .ok()
}

/// One of a closed set of names; another one is unknown, not wrong.
pub(super) fn name<T: FromStr>(
    node: &Node<'_>,
    path: &Path<'_>,
    rule: &'static str,
    sink: &mut Sink,
) -> Option<T> {
    let Node::String(text) = node else { return wrong(node, "a string", path, rule, sink) };
    let found = text.parse().ok();
    if found.is_none() {
        sink.unknown(path, &format!("the value {}", quote(text)), Value::String(text.clone().into_owned()));
    }
    found
}

pub(super) fn map(
    node: &Node<'_>,
    path: &Path<'_>,
    rule: &'static str,
    sink: &mut Sink,
) -> Option<Map<String, Value>> {
    match node {
        Node::Object(object) => Some(object.to_map()),
        other => wrong(other, "an object", path, rule, sink),
    }
}

pub(super) fn raw(
    node: &Node<'_>,
    path: &Path<'_>,
    rule: &'static str,
    sink: &mut Sink,
) -> Option<RawObject> {
    let Node::Object(object) = node else { return wrong(node, "an object", path, rule, sink) };
    if object.entries.is_empty() {
        return None;
    }
    RawObject::parse(object.text.to_owned())
        .map_err(|problem| sink.error(rule, path, problem.to_string()))
        .ok()
}

pub(super) fn tool_input(
    node: &Node<'_>,
    path: &Path<'_>,
    rule: &'static str,
    sink: &mut Sink,
) -> Option<ToolInput> {
    match node {
        Node::String(text) => Some(ToolInput::Text(text.clone().into_owned())),
        Node::Object(object) => RawObject::parse(object.text.to_owned())
            .map(ToolInput::Object)
            .map_err(|problem| sink.error(rule, path, problem.to_string()))
            .ok(),
        other => wrong(other, "an object or a string", path, rule, sink),
    }
}

/// A list; items that cannot be read are left out, each with an issue.
pub(super) fn list<T>(
    node: &Node<'_>,
    path: &Path<'_>,
    rule: &'static str,
    sink: &mut Sink,
    read: Read<T>,
) -> Option<Vec<T>> {
    let Node::Array(items) = node else { return wrong(node, "a list", path, rule, sink) };
    let items = items.iter().enumerate();
    Some(items.filter_map(|(index, item)| read(item, &path.index(index), rule, sink)).collect())
}

pub(super) fn texts(
    node: &Node<'_>,
    path: &Path<'_>,
    rule: &'static str,
    sink: &mut Sink,
) -> Option<Vec<String>> {
    list(node, path, rule, sink, text)
}

pub(super) fn numbers(
    node: &Node<'_>,
    path: &Path<'_>,
    rule: &'static str,
    sink: &mut Sink,
) -> Option<Vec<f64>> {
    list(node, path, rule, sink, number)
}

/// Enough of a number to find it.
fn cut(text: &str) -> &str {
    text.get(..40).unwrap_or(text)
}
