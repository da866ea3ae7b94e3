//! Sources in the results of tools, and those that the text cites.

use satchel_importer::{
    Arena, Citation, address,
    json::{Object, Value, items},
};

/// Levels of a tool's result that are searched.
const MAX_LEVELS: u32 = 8;
/// Sources of one message.
const MAX_SOURCES: usize = 1000;
/// The keys of a source's number.
const NUMBER_KEYS: [&str; 4] = ["referenceId", "id", "index", "number"];

/// The sources of one message, each with its number.
#[derive(Default)]
pub(super) struct Sources<'a>(Vec<(&'a str, Citation<'a>)>);

impl<'a> Sources<'a> {
    /// Adds the objects with a `url` anywhere in the result of a tool.
    pub(super) fn collect(&mut self, json: &'a str, arena: &'a Arena) {
        self.walk("", json, arena, 0);
    }

    /// The sources of `numbers`, in that order, each once.
    pub(super) fn cited(&self, numbers: &[Value<'_>]) -> Vec<Citation<'a>> {
        let mut cited: Vec<Citation<'a>> = Vec::new();
        for number in numbers {
            let wanted = number.text().or(number.raw());
            let found = self.0.iter().find(|(number, _)| Some(*number) == wanted);
            if let Some((_, source)) = found
                && !cited.contains(source)
            {
                cited.push(source.clone());
            }
        }
        cited
    }

    fn walk(&mut self, key: &'a str, json: &'a str, arena: &'a Arena, level: u32) {
        if level == MAX_LEVELS || self.0.len() == MAX_SOURCES {
            return;
        }
        if json.starts_with('[') {
            for item in items(json, arena).into_iter().filter_map(Value::raw) {
                self.walk("", item, arena, level + 1);
            }
        } else if json.starts_with('{') {
            let fields = Object::parse(json, arena);
            match fields.text("url").filter(|url| address::is_uri(url)) {
                Some(url) => self.0.push((number(&fields).unwrap_or(key), source(&fields, url))),
                None => {
                    for (key, value) in fields.fields().filter_map(|(key, value)| Some((key, value.raw()?))) {
                        self.walk(key, value, arena, level + 1);
                    }
                }
            }
        }
    }
}

fn number<'a>(fields: &Object<'a>) -> Option<&'a str> {
    NUMBER_KEYS.iter().map(|key| fields.get(key)).find_map(|value| value.text().or(value.raw()))
}

fn source<'a>(fields: &Object<'a>, url: &'a str) -> Citation<'a> {
    let first = |keys: [&str; 3]| keys.iter().find_map(|key| fields.text(key)).map(Into::into);
    Citation {
        title: first(["title", "name", "source"]),
        url: Some(address::unsigned(url)),
        snippet: first(["snippet", "description", "content"]),
    }
}
