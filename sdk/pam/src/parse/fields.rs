//! Takes the fields of one object, and reports those that the schema does not have.

use super::{path::Path, sink::Sink, values::Read};
use crate::json::tree::{Node, Object};

pub(super) struct Fields<'r, 'a> {
    object: &'r Object<'a>,
    path: &'r Path<'r>,
    pub(super) sink: &'r mut Sink,
}

impl<'r, 'a> Fields<'r, 'a> {
    /// None, with an issue, if the node is no object. `known` are all keys of the schema.
    pub(super) fn open(
        node: &'r Node<'a>,
        path: &'r Path<'r>,
        rule: &'static str,
        sink: &'r mut Sink,
        known: &[&str],
    ) -> Option<Self> {
        let Node::Object(object) = node else {
            sink.error(rule, path, format!("is {}, not an object", node.kind()));
            return None;
        };
        for (key, value) in object.entries.iter().filter(|(key, _)| !known.contains(&key.as_ref())) {
            sink.unknown(&path.key(key), "the key", value.to_value());
        }
        Some(Self { object, path, sink })
    }

    /// A field that must be there; absent or null is an issue.
    pub(super) fn required<T>(&mut self, key: &str, rule: &'static str, read: Read<T>) -> Option<T> {
        let path = self.path.key(key);
        let Some(node) = self.object.get(key) else {
            self.sink.error(rule, &path, "is missing");
            return None;
        };
        read(node, &path, rule, self.sink)
    }

    /// A field that may be absent, but not null.
    pub(super) fn optional<T>(&mut self, key: &str, rule: &'static str, read: Read<T>) -> Option<T> {
        match self.object.get(key)? {
            Node::Null => {
                self.sink.error(rule, &self.path.key(key), "is null; leave it out instead");
                None
            }
            node => read(node, &self.path.key(key), rule, self.sink),
        }
    }

    /// A field that may be absent or null, which mean the same.
    pub(super) fn nullable<T>(&mut self, key: &str, rule: &'static str, read: Read<T>) -> Option<T> {
        match self.object.get(key)? {
            Node::Null => None,
            node => read(node, &self.path.key(key), rule, self.sink),
        }
    }

    /// A field as it stands, if it is a string.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        match self.object.get(key)? {
            Node::String(text) => Some(text),
            _ => None,
        }
    }

    /// Whether the field stands there and is not null.
    pub(super) fn has(&self, key: &str) -> bool {
        self.object.get(key).is_some_and(|node| *node != Node::Null)
    }
}
