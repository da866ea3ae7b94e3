//! The entries of `profile`, `event` or `mind`: a list, lines of a text, or either of them in an object.

use std::borrow::Cow;

use satchel_importer::{
    Arena, JsonError, Leftover, Parser,
    json::{Kind, Object},
};

use crate::record_type::{COLUMNS, LISTS};

/// Entries of one list. Real ones have hundreds; more would not fit into the sandbox's memory.
const MAX_ENTRIES: usize = 100_000;
const TOO_MANY: &str = "the list is longer than the limit of 100000 entries; the rest is left out";

/// One list.
#[derive(Debug, Default)]
pub(crate) struct List<'a> {
    pub(crate) form: Form,
    pub(crate) entries: Vec<Entry<'a>>,
    /// Indices that hold no entry, and why not.
    pub(crate) gaps: Vec<(usize, &'static str)>,
}

/// How the entries were given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    /// Not at all, or null.
    #[default]
    Absent,
    /// As a list.
    Array,
    /// As one text, an entry on each line.
    Joined,
    /// As a value that holds no entries.
    Invalid,
}

/// One entry.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    /// Its index in the list, or its line.
    pub(crate) index: usize,
    pub(crate) text: &'a str,
    /// The other fields of an entry that is an object.
    pub(crate) rest: Option<Cow<'a, str>>,
}

impl<'a> List<'a> {
    /// Reads the value of `key`. A value that is no list is kept in `rest`.
    pub(crate) fn read(
        key: &'a str,
        json: &mut Parser<'a>,
        rest: &mut Leftover<'a>,
    ) -> Result<Self, JsonError> {
        match json.kind()? {
            Kind::Array => Self::of_array(json),
            Kind::String => {
                let text = json.string()?;
                let list = Self::of_text(text, json.arena());
                // The entries lack blank lines and carriage returns.
                if list.form == Form::Joined && text != list.joined() {
                    rest.add_text(key, text);
                }
                Ok(list)
            }
            Kind::Object => {
                let raw = json.raw_value()?;
                let list = Self::of_object(raw, json.arena())?;
                // The object may hold more than the list.
                rest.keep(key, &mut Parser::new(raw, json.arena()))?;
                Ok(list)
            }
            Kind::Null => json.skip_value().map(|()| Self::default()),
            Kind::Bool | Kind::Number => {
                rest.keep(key, json)?;
                Ok(Self { form: Form::Invalid, ..Self::default() })
            }
        }
    }

    /// The list that a text holds as JSON, as in dumps of JSON columns; else its lines.
    fn of_text(text: &'a str, arena: &'a Arena) -> Self {
        if text.trim_start().starts_with('[') {
            let mut json = Parser::new(text, arena);
            if let (Ok(list), Ok(())) = (Self::of_array(&mut json), json.end()) {
                return list;
            }
        }
        let mut list = Self { form: Form::Joined, ..Self::default() };
        // A blank line separates paragraphs; it is not reported as a missing entry.
        for (index, line) in text.split('\n').enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let text = line.strip_suffix('\r').unwrap_or(line);
            if list.full() {
                list.gaps.push((index, TOO_MANY));
                break;
            }
            list.entries.push(Entry { index, text, rest: None });
        }
        list
    }

    /// Reads the entries from a text if there was no list.
    pub(crate) fn take_lines(&mut self, text: &'a str, arena: &'a Arena) {
        let lines = Self::of_text(text, arena);
        self.entries = lines.entries;
        if self.form == Form::Absent {
            self.form = lines.form;
        }
    }

    fn of_array(json: &mut Parser<'a>) -> Result<Self, JsonError> {
        let mut list = Self { form: Form::Array, ..Self::default() };
        json.enter_array()?;
        let mut index = 0;
        while json.item()? {
            if list.full() {
                list.gaps.push((index, TOO_MANY));
                while json.item()? {}
                break;
            }
            list.read_entry(index, json)?;
            index += 1;
        }
        Ok(list)
    }

    /// The list in an object, under one of its usual names.
    fn of_object(raw: &'a str, arena: &'a Arena) -> Result<Self, JsonError> {
        let object = Object::parse(raw, arena);
        let names = LISTS.into_iter().chain(COLUMNS).chain(["items", "content", "entries"]);
        for name in names {
            let value = object.get(name);
            if let Some(inner) = value.raw().filter(|inner| inner.starts_with('[')) {
                return Self::of_array(&mut Parser::new(inner, arena));
            }
            if let Some(text) = value.nonempty_text() {
                return Ok(Self::of_text(text, arena));
            }
        }
        Ok(Self { form: Form::Invalid, ..Self::default() })
    }

    fn read_entry(&mut self, index: usize, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let entry = match json.kind()? {
            Kind::String => Some(Entry { index, text: json.string()?, rest: None }),
            Kind::Object => Entry::of_object(index, json)?,
            Kind::Null => {
                self.gaps.push((index, "it is null"));
                return json.skip_value();
            }
            Kind::Bool | Kind::Number | Kind::Array => {
                json.skip_value()?;
                None
            }
        };
        match entry {
            Some(entry) if entry.text.trim().is_empty() => self.gaps.push((index, "it says nothing")),
            Some(entry) => self.entries.push(entry),
            None => self.gaps.push((index, "it is no text")),
        }
        Ok(())
    }

    fn full(&self) -> bool {
        self.entries.len() + self.gaps.len() >= MAX_ENTRIES
    }

    /// The entries as the API joins them.
    pub(crate) fn joined(&self) -> String {
        let texts: Vec<&str> = self.entries.iter().map(|entry| entry.text).collect();
        texts.join("\n")
    }
}

impl<'a> Entry<'a> {
    /// An entry that is an object with a text; none if it has none.
    fn of_object(index: usize, json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        let object = Object::parse(json.raw_value()?, json.arena());
        let Some(name) = ["content", "text"].into_iter().find(|name| object.text(name).is_some()) else {
            return Ok(None);
        };
        let mut rest = Leftover::default();
        for (key, value) in object.fields().filter(|(key, _)| *key != name) {
            match (value.text(), value.raw()) {
                (Some(text), _) => rest.add_text(key, text),
                (None, Some(raw)) => rest.add_json(key, raw),
                (None, None) => {}
            }
        }
        Ok(object.text(name).map(|text| Self { index, text, rest: rest.into_json() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Form, Vec<String>, Vec<usize>) {
        let arena = Arena::new();
        let mut rest = Leftover::default();
        let list = List::read("profile", &mut Parser::new(text, &arena), &mut rest).expect("it is JSON");
        let texts = list.entries.iter().map(|entry| entry.text.to_owned()).collect();
        (list.form, texts, list.gaps.iter().map(|(index, _)| *index).collect())
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lists_and_lines_give_the_same_entries() {
        assert_eq!(
            read(r#"["bakes bread","lives by the sea"]"#),
            (Form::Array, texts(&["bakes bread", "lives by the sea"]), vec![])
        );
        assert_eq!(
            read(r#""bakes bread\r\n\nlives by the sea\n""#),
            (Form::Joined, texts(&["bakes bread", "lives by the sea"]), vec![])
        );
        assert_eq!(read(r#""[\"bakes bread\"]""#), (Form::Array, texts(&["bakes bread"]), vec![]));
        assert_eq!(read(r#""[sic] bakes""#), (Form::Joined, texts(&["[sic] bakes"]), vec![]));
        assert_eq!(
            read(r#"{"items":["bakes bread"],"n":1}"#),
            (Form::Array, texts(&["bakes bread"]), vec![])
        );
    }

    #[test]
    fn a_value_that_is_no_entry_is_a_gap() {
        assert_eq!(
            read(r#"[null,"a",7,"  ",{"x":1},{"text":"b","x":1}]"#),
            (Form::Array, texts(&["a", "b"]), vec![0, 2, 3, 4])
        );
        assert_eq!(read("null"), (Form::Absent, vec![], vec![]));
        assert_eq!(read("7"), (Form::Invalid, vec![], vec![]));
        assert_eq!(read(r#"{"x":1}"#), (Form::Invalid, vec![], vec![]));
    }

    #[test]
    fn entries_over_the_limit_are_a_gap() {
        let list = format!("[{}]", vec!["\"a\""; MAX_ENTRIES + 5].join(","));
        let (_, entries, gaps) = read(&list);
        assert_eq!((entries.len(), gaps), (MAX_ENTRIES, vec![MAX_ENTRIES]));
    }
}
