//! Splits an export into its messages, without recursion.
//!
//! A recursive export nests each answer in the message that it answers, two levels of JSON for each, so a conversation of fifty turns is
//! nested more deeply than the parser reads. Each message is cut out here without the messages below it, and parsed alone.

use std::{borrow::Cow, collections::BTreeSet, ops::Range};

use satchel_importer::{Arena, JsonError};

/// Messages of one export. Real ones have hundreds; the largest must fit into the memory of the sandbox several times.
const MAX_MESSAGES: usize = 100_000;
/// Repeated keys that are named in warnings.
const MAX_REPEATED: usize = 8;
/// The lists of messages in the root. Recursive exports until April 2024 have the first.
const LISTS: [&str; 2] = ["messagesTree", "messages"];
/// The list of messages in a message.
const CHILDREN: &str = "children";

/// Whether `key` is the name of a list of messages.
pub(crate) fn is_list(key: &str) -> bool {
    key == CHILDREN || LISTS.contains(&key)
}

/// An export in parts.
#[derive(Debug, Default)]
pub(crate) struct Split<'a> {
    /// The root without its lists.
    pub(crate) root: &'a str,
    /// Whether the root has a list of messages.
    pub(crate) listed: bool,
    /// The items of all lists, each before those below it.
    pub(crate) items: Vec<Item<'a>>,
    /// Keys that an object of the root or of a message has twice.
    pub(crate) repeated: BTreeSet<&'a str>,
}

/// One item of a list of messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item<'a> {
    /// Its JSON text without the messages below it.
    pub(crate) text: &'a str,
    /// The name of its list.
    pub(crate) list: &'static str,
    /// Its number in the list.
    pub(crate) number: usize,
    /// The index of the message that contains the list.
    pub(crate) above: Option<usize>,
}

/// A container that is open at the current byte.
enum Open<'a> {
    Object {
        start: usize,
        /// The index of the item; none for the root.
        item: Option<usize>,
        keys: BTreeSet<&'a str>,
        /// The lists inside, which are left out.
        lists: Vec<Range<usize>>,
    },
    List {
        start: usize,
        name: &'static str,
        above: Option<usize>,
        length: usize,
    },
}

/// Splits the JSON text of an export. What is inside values is checked only when they are parsed.
pub(crate) fn split<'a>(text: &'a str, arena: &'a Arena) -> Result<Split<'a>, JsonError> {
    let mut splitter = Splitter { text, at: 0, arena, open: Vec::new(), split: Split::default() };
    splitter.skip_space();
    if splitter.peek() == Some(b'{') {
        splitter.enter_object(None);
        while !splitter.open.is_empty() {
            splitter.step()?;
        }
    }
    Ok(splitter.split)
}

struct Splitter<'a> {
    text: &'a str,
    at: usize,
    arena: &'a Arena,
    open: Vec<Open<'a>>,
    split: Split<'a>,
}

impl Splitter<'_> {
    /// Reads the next member, item or end of the innermost container.
    fn step(&mut self) -> Result<(), JsonError> {
        self.skip_space();
        let Some(next) = self.peek() else { return Err(self.error("the text ends inside a container")) };
        match (next, self.open.last()) {
            (b',', _) => self.at += 1,
            (b'"', Some(Open::Object { .. })) => self.member()?,
            (b'}', Some(Open::Object { .. })) => self.end_object(),
            (b']', Some(Open::List { .. })) => self.end_list(),
            (_, Some(Open::List { .. })) => self.item(next)?,
            _ => return Err(self.error("expected a key")),
        }
        Ok(())
    }

    fn member(&mut self) -> Result<(), JsonError> {
        let quoted = self.skip_string()?;
        let key = self.text.get(quoted).unwrap_or_default();
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.error("expected \":\""));
        }
        self.at += 1;
        self.skip_space();
        let Some(Open::Object { item, keys, .. }) = self.open.last_mut() else { return Ok(()) };
        let above = *item;
        if !keys.insert(key) && self.split.repeated.len() < MAX_REPEATED {
            self.split.repeated.insert(key);
        }
        let name = match above {
            None => LISTS.into_iter().find(|name| *name == key),
            Some(_) => (key == CHILDREN).then_some(CHILDREN),
        };
        match name.filter(|_| self.peek() == Some(b'[')) {
            Some(name) => {
                self.split.listed |= above.is_none();
                self.open.push(Open::List { start: self.at, name, above, length: 0 });
                self.at += 1;
                Ok(())
            }
            None => self.skip_value(),
        }
    }

    fn item(&mut self, first: u8) -> Result<(), JsonError> {
        let Some(Open::List { name, above, length, .. }) = self.open.last_mut() else { return Ok(()) };
        let item = Item { text: "", list: name, number: *length, above: *above };
        *length += 1;
        if self.split.items.len() == MAX_MESSAGES {
            return Err(self.error("more messages than the limit"));
        }
        self.split.items.push(item);
        let index = self.split.items.len() - 1;
        if first == b'{' {
            self.enter_object(Some(index));
            return Ok(());
        }
        let start = self.at;
        self.skip_value()?;
        let text = self.text.get(start..self.at).unwrap_or_default();
        if let Some(item) = self.split.items.get_mut(index) {
            item.text = text;
        }
        Ok(())
    }

    fn enter_object(&mut self, item: Option<usize>) {
        self.open.push(Open::Object { start: self.at, item, keys: BTreeSet::new(), lists: Vec::new() });
        self.at += 1;
    }

    fn end_object(&mut self) {
        self.at += 1;
        let Some(Open::Object { start, item, lists, .. }) = self.open.pop() else { return };
        let text = without(self.text, start..self.at, &lists);
        let text = match text {
            Cow::Borrowed(text) => text,
            Cow::Owned(text) => self.arena.alloc_str(&text),
        };
        match item.and_then(|index| self.split.items.get_mut(index)) {
            Some(item) => item.text = text,
            None => self.split.root = text,
        }
    }

    fn end_list(&mut self) {
        self.at += 1;
        let Some(Open::List { start, length, .. }) = self.open.pop() else { return };
        if let (true, Some(Open::Object { lists, .. })) = (length > 0, self.open.last_mut()) {
            lists.push(start..self.at);
        }
    }

    /// Skips a value by counting brackets.
    fn skip_value(&mut self) -> Result<(), JsonError> {
        let mut depth = 0_usize;
        loop {
            self.skip_space();
            match self.peek() {
                None => return Err(self.error("the text ends inside a value")),
                Some(b'"') => {
                    self.skip_string()?;
                }
                Some(b'{' | b'[') => {
                    depth += 1;
                    self.at += 1;
                    continue;
                }
                Some(b'}' | b']') if depth > 0 => {
                    depth -= 1;
                    self.at += 1;
                }
                Some(b',' | b':') if depth > 0 => {
                    self.at += 1;
                    continue;
                }
                Some(b'}' | b']' | b',' | b':') => return Err(self.error("expected a value")),
                Some(_) => self.skip_literal(),
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// Skips a number, `true`, `false` or `null`.
    fn skip_literal(&mut self) {
        let ends = |byte: &u8| b",:]}[{\" \n\r\t".contains(byte);
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        self.at += rest.iter().position(ends).unwrap_or(rest.len());
    }

    /// Skips a string and returns the range between its quotes.
    fn skip_string(&mut self) -> Result<Range<usize>, JsonError> {
        let start = self.at + 1;
        let mut at = start;
        loop {
            let rest = self.text.as_bytes().get(at..).unwrap_or_default();
            let Some(found) = memchr::memchr2(b'"', b'\\', rest) else {
                return Err(self.error("the text ends inside a string"));
            };
            at += found;
            if rest.get(found) == Some(&b'"') {
                self.at = at + 1;
                return Ok(start..at);
            }
            at += 2;
        }
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn error(&self, problem: &'static str) -> JsonError {
        JsonError { offset: self.at, problem }
    }
}

/// The text at `range` with an empty list in the place of each of `lists`.
fn without<'t>(text: &'t str, range: Range<usize>, lists: &[Range<usize>]) -> Cow<'t, str> {
    if lists.is_empty() {
        return Cow::Borrowed(text.get(range).unwrap_or_default());
    }
    let mut left = String::new();
    let mut from = range.start;
    for list in lists {
        left.push_str(text.get(from..list.start).unwrap_or_default());
        left.push_str("[]");
        from = list.end;
    }
    left.push_str(text.get(from..range.end).unwrap_or_default());
    Cow::Owned(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts<'a>(text: &'a str, arena: &'a Arena) -> Vec<(&'a str, Option<usize>)> {
        let split = split(text, arena).expect("it is well-formed");
        split.items.iter().map(|item| (item.text, item.above)).collect()
    }

    #[test]
    fn messages_are_cut_out_of_the_messages_above() {
        let text = r#"{"title":"a \"messages\":[","messagesTree":[{"x":{"children":[1]},"children":[ {"y":"]}"} , null ]},{"children":[]}],"n":1}"#;
        let arena = Arena::new();
        let split = split(text, &arena).expect("it is well-formed");
        assert_eq!(split.root, r#"{"title":"a \"messages\":[","messagesTree":[],"n":1}"#);
        assert_eq!(
            parts(text, &arena),
            [
                (r#"{"x":{"children":[1]},"children":[]}"#, None),
                (r#"{"y":"]}"}"#, Some(0)),
                ("null", Some(0)),
                (r#"{"children":[]}"#, None)
            ]
        );
    }

    #[test]
    fn nesting_has_no_limit() {
        let depth = 50_000;
        let text = [
            "{\"messages\":[".to_owned(),
            "{\"children\":[".repeat(depth),
            "]}".repeat(depth),
            "]}".to_owned(),
        ];
        let arena = Arena::new();
        assert_eq!(parts(&text.concat(), &arena).len(), depth);
    }

    #[test]
    fn broken_texts_are_errors() {
        let arena = Arena::new();
        for text in [
            "{",
            "{\"messages\":[",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":\"b",
            "{1:2}",
            "{\"messages\":[}]}",
            "{\"a\":[1",
            "{\"a\\",
        ] {
            assert!(split(text, &arena).is_err(), "{text}");
        }
        assert!(!split("[]", &arena).expect("it is no export").listed);
    }

    #[test]
    fn repeated_keys_are_noted() {
        let arena = Arena::new();
        let split = split(r#"{"a":1,"messages":[{"b":1,"b":2}],"messages":[{}]}"#, &arena)
            .expect("it is well-formed");
        assert_eq!(split.repeated.into_iter().collect::<Vec<_>>(), ["b", "messages"]);
        assert_eq!(split.items.len(), 2);
    }
}
