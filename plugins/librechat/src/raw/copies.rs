//! Messages that an export has more than once: what a copy says beyond the first one.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::{
    Arena, JsonError, Leftover, Parser,
    json::{Object, Value},
};

use super::{Message, Node};

/// The key in the metadata for the fields of copies that say something else than the first message.
const COPIES: &str = "copies";
/// Fields that only say where a message is.
const PLACES: [&str; 3] = ["children", "depth", "siblingIndex"];
/// Names of fields that a warning has.
const MAX_NAMES: usize = 8;

/// The copies of all messages of an export.
#[derive(Debug, Default)]
pub(super) struct Copies<'a> {
    /// By the index of the first message.
    of_nodes: BTreeMap<usize, Known<'a>>,
    /// Fields that differ.
    pub(super) differing: BTreeSet<&'a str>,
}

/// What is known of a message that has copies.
#[derive(Debug, Default)]
struct Known<'a> {
    /// The fields of the first one, and those that only copies have.
    fields: BTreeMap<&'a str, Value<'a>>,
    /// For each copy that differs, an object with the fields that do.
    others: BTreeSet<String>,
}

impl<'a> Copies<'a> {
    /// Adds the fields of a copy that the message at `at` lacks to it. `first` and `copy` are the JSON texts of both, and `above` is the
    /// message that contains the copy.
    pub(super) fn add(
        &mut self,
        (at, node): (usize, &mut Node<'a>),
        (first, copy): (&'a str, &'a str),
        above: Option<&'a str>,
        arena: &'a Arena,
    ) -> Result<(), JsonError> {
        let fields = || Object::parse(first, arena).fields().collect();
        let known = self.of_nodes.entry(at).or_insert_with(|| Known { fields: fields(), ..Known::default() });
        let (mut missing, mut other) = (Leftover::default(), Leftover::default());
        for (key, value) in Object::parse(copy, arena).fields() {
            if known.lacks(key, value) {
                missing.add_json(key, &value.json());
                known.fields.insert(key, value);
            } else if known.differs(key, value) {
                other.add_json(key, &value.json());
                if self.differing.len() < MAX_NAMES {
                    self.differing.insert(key);
                }
            }
        }
        known.others.extend(other.into_json().map(String::from));
        if let (Some(json), Some(message)) = (missing.into_json(), &mut node.message) {
            message.read_fields(&mut Parser::new(arena.alloc_str(&json), arena))?;
        }
        if node.parent.is_none() && node.message.as_ref().is_some_and(|message| !message.first) {
            node.link(above, arena);
        }
        Ok(())
    }

    /// Keeps what copies say otherwise in the metadata of the first message.
    pub(super) fn keep(&self, nodes: &mut [Node<'a>]) {
        for (at, known) in &self.of_nodes {
            let message = nodes.get_mut(*at).and_then(|node| node.message.as_mut());
            if let Some(message) = message.filter(|_| !known.others.is_empty()) {
                let others: Vec<&str> = known.others.iter().map(String::as_str).collect();
                message.rest.add_json(COPIES, &format!("[{}]", others.join(",")));
            }
        }
    }
}

impl<'a> Known<'a> {
    fn get(&self, key: &str) -> Value<'a> {
        self.fields.get(key).copied().unwrap_or_default()
    }

    fn lacks(&self, key: &str, value: Value<'_>) -> bool {
        !PLACES.contains(&key) && !is_empty(value) && is_empty(self.get(key))
    }

    fn differs(&self, key: &str, value: Value<'_>) -> bool {
        !PLACES.contains(&key) && !is_empty(value) && !same(self.get(key), value)
    }
}

fn is_empty(value: Value<'_>) -> bool {
    matches!(value, Value::Null | Value::Text("") | Value::Raw("{}" | "[]"))
}

/// Whether the other message has the same id, the same author and the same words.
pub(super) fn says_the_same(one: &Message<'_>, other: &Message<'_>) -> bool {
    one.by_user == other.by_user && same(one.text, other.text) && same(one.content, other.content)
}

/// Whether two values are the same. A nested message is indented differently.
fn same(one: Value<'_>, other: Value<'_>) -> bool {
    match (one, other) {
        (Value::Raw(one), Value::Raw(other)) => tokens(one).eq(tokens(other)),
        _ => one == other,
    }
}

/// The bytes of a JSON text without the white space between its tokens.
fn tokens(json: &str) -> impl Iterator<Item = u8> {
    let (mut quoted, mut escaped) = (false, false);
    json.bytes().filter(move |byte| {
        let inside = quoted;
        quoted ^= *byte == b'"' && !escaped;
        escaped = inside && *byte == b'\\' && !escaped;
        inside || !byte.is_ascii_whitespace()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_counts_inside_texts_only() {
        let is_same = |one, other| same(Value::Raw(one), Value::Raw(other));
        assert!(is_same("[1, {\"a\":\n\"b c\"}]", "[1,{\"a\":\"b c\"}]"));
        assert!(!is_same("[\"b c\"]", "[\"bc\"]"));
        assert!(!is_same(r#"["\" c"]"#, r#"["\"c"]"#));
        assert!(!same(Value::Text("1"), Value::Raw("1")));
    }
}
