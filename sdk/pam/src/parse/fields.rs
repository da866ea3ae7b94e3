//! Reads the fields of one object and reports keys that the schema does not have.

use super::{
    path::Path,
    sink::Sink,
    values::{ValueRef, list},
};
use crate::json::tree::{Node, Object};

pub(super) struct Fields<'r> {
    object: &'r Object<'r>,
    path: &'r Path<'r>,
    pub(super) sink: &'r mut Sink,
}

impl<'r> Fields<'r> {
    /// None, with an issue, if the value is not an object. `known` lists all keys of the schema.
    pub(super) fn open(value: ValueRef<'r>, sink: &'r mut Sink, known: &[&str]) -> Option<Self> {
        let Node::Object(object) = value.node else { return value.wrong_kind("an object", sink) };
        for (key, node) in object.entries.iter().filter(|(key, _)| !known.contains(&key.as_ref())) {
            sink.unknown(&value.path.key(key), "the key", node.to_value());
        }
        Some(Self { object, path: value.path, sink })
    }

    /// Reads a required field; it is an issue if it is missing. `read` reports null like any other wrong kind.
    pub(super) fn required<T>(
        &mut self,
        key: &str,
        rule: &'static str,
        read: impl FnOnce(ValueRef<'_>, &mut Sink) -> Option<T>,
    ) -> Option<T> {
        let path = self.path.key(key);
        let Some(node) = self.object.get(key) else {
            self.sink.error(rule, &path, "is missing");
            return None;
        };
        read(ValueRef { node, path: &path, rule }, self.sink)
    }

    /// Reads a field that may be absent; null is an issue.
    pub(super) fn optional<T>(
        &mut self,
        key: &str,
        rule: &'static str,
        read: impl FnOnce(ValueRef<'_>, &mut Sink) -> Option<T>,
    ) -> Option<T> {
        let (node, path) = (self.object.get(key)?, self.path.key(key));
        if *node == Node::Null {
            self.sink.error(rule, &path, "is null; leave it out instead");
            return None;
        }
        read(ValueRef { node, path: &path, rule }, self.sink)
    }

    /// Reads a list that may be absent; null is an issue.
    pub(super) fn list<T>(
        &mut self,
        key: &str,
        rule: &'static str,
        read: impl Fn(ValueRef<'_>, &mut Sink) -> Option<T>,
    ) -> Vec<T> {
        self.optional(key, rule, |value, sink| list(value, sink, read)).unwrap_or_default()
    }

    /// Reads a field that may be absent or null, which mean the same.
    pub(super) fn nullable<T>(
        &mut self,
        key: &str,
        rule: &'static str,
        read: impl FnOnce(ValueRef<'_>, &mut Sink) -> Option<T>,
    ) -> Option<T> {
        let node = self.object.get(key).filter(|node| **node != Node::Null)?;
        read(ValueRef { node, path: &self.path.key(key), rule }, self.sink)
    }

    /// The text of a field that is a string.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.object.get(key)?.as_str()
    }

    /// Whether the field is present and not null.
    pub(super) fn has(&self, key: &str) -> bool {
        self.object.get(key).is_some_and(|node| *node != Node::Null)
    }
}
