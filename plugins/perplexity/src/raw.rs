//! The structures of saved threads. Any field may be absent, null or of another type.

use satchel_importer::{
    Arena, Citation, JsonError, Leftover, Parser,
    json::{Kind, Object, Value, time_of_text},
    pam::time::TimeNote,
};

mod block;
mod entry;
mod steps;
mod turn;

/// Turns of one thread; real ones have tens.
const MAX_TURNS: usize = 20_000;

/// Words of a text that could be a question or an answer.
const SENTENCE_WORDS: usize = 3;
/// Names of fields in one warning.
const MAX_CANDIDATES: usize = 8;

/// One thread.
#[derive(Debug, Default)]
pub(crate) struct Thread<'a> {
    /// The best of the provider's ids.
    pub(crate) id: Option<&'a str>,
    pub(crate) title: Option<&'a str>,
    pub(crate) created: Option<i64>,
    pub(crate) updated: Option<i64>,
    pub(crate) turns: Vec<Turn<'a>>,
    /// Indices of items that are not turns, with the reasons.
    pub(crate) invalid: Vec<(usize, &'static str)>,
    /// The key of the list; empty if the thread is a bare list.
    pub(crate) list: &'static str,
    pub(crate) rest: Leftover<'a>,
    /// Its name in addresses, in a field next to its turns.
    slug: Option<&'a str>,
    /// Its key among other threads.
    name: Option<&'a str>,
    has_turns: bool,
}

/// A question and its answer.
#[derive(Debug, Default)]
pub(crate) struct Turn<'a> {
    /// Its index in the list.
    pub(crate) index: usize,
    pub(crate) uuid: Option<&'a str>,
    pub(crate) query: Option<&'a str>,
    pub(crate) answer: Option<std::borrow::Cow<'a, str>>,
    pub(crate) model: Option<&'a str>,
    pub(crate) created: Option<i64>,
    pub(crate) updated: Option<i64>,
    pub(crate) citations: Vec<Citation<'a>>,
    /// Addresses of uploaded files.
    pub(crate) attachments: Vec<&'a str>,
    /// Its state says that it has no answer, or none yet.
    pub(crate) unanswered: bool,
    /// Fields with sentences, if no question or no answer was found.
    pub(crate) candidates: Vec<&'a str>,
    /// A field with text that was not read.
    pub(crate) unread: Option<&'static str>,
    pub(crate) rest: Leftover<'a>,
    thread: Option<&'a str>,
    slug: Option<&'a str>,
    title: Option<&'a str>,
}

impl<'a> Turn<'a> {
    /// Finds the fields with sentences, if the question or the answer is missing.
    fn set_candidates(&mut self, fields: &Object<'a>) {
        const EXCLUDED: [&str; 6] = [
            "thread_title",
            "context_title",
            "related_queries",
            "related_query_items",
            "sources",
            "attachments",
        ];
        let taken = [("query", self.query), ("query_str", self.query), ("answer", self.answer.as_deref())];
        let blank = |text: Option<&str>| text.is_none_or(|text| text.trim().is_empty());
        if !blank(self.query) && !blank(self.answer.as_deref()) {
            return;
        }
        let eligible = |key: &str| {
            !EXCLUDED.contains(&key) && !taken.iter().any(|(name, text)| *name == key && !blank(*text))
        };
        let sentence = |value: Value<'_>| {
            let text = value.text().or(value.raw()).unwrap_or_default();
            text.split('"').any(|part| part.split_whitespace().count() >= SENTENCE_WORDS)
        };
        let found = fields.fields().filter(|(key, value)| eligible(key) && sentence(*value));
        self.candidates = found.map(|(key, _)| key).take(MAX_CANDIDATES).collect();
    }
}

impl<'a> Thread<'a> {
    /// Reads one element, an object with turns or a list of them; none if it is neither. `name` is its key among others.
    pub(crate) fn read(json: &mut Parser<'a>, name: Option<&'a str>) -> Result<Option<Self>, JsonError> {
        let mut it = Self { name, ..Self::default() };
        it.read_fields(json)?;
        json.end()?;
        Ok(it.finish())
    }

    /// Reads the complete turns of an element in which the file ends; none if there is none.
    pub(crate) fn read_cut(json: &mut Parser<'a>, name: Option<&'a str>) -> Option<Self> {
        let mut it = Self { name, ..Self::default() };
        let (Ok(()) | Err(_)) = it.read_fields(json);
        it.finish().filter(|thread| !thread.turns.is_empty())
    }

    fn read_fields(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
        if self.name.is_some() && json.kind()? == Kind::Array && json.enter_array()? {
            return self.read_turns("", json);
        }
        if !json.enter_object()? {
            return Ok(());
        }
        let arena = json.arena();
        while let Some(key) = json.key()? {
            match key {
                "conversations" if self.rest.array(key, json)? => self.read_turns("conversations", json)?,
                "entries" if self.rest.array(key, json)? => self.read_turns("entries", json)?,
                // `array` kept a value that is not a list.
                "conversations" | "entries" => {}
                "slug" => self.slug = self.rest.nonempty_text(key, json)?.or(self.slug),
                "context_title" => self.title = self.rest.nonempty_text(key, json)?.or(self.title),
                "context_uuid" => self.id = self.rest.nonempty_text(key, json)?.or(self.id),
                "created_at" | "created_us" => self.created = self.rest.time(key, json)?.or(self.created),
                "updated_at" | "updated_us" => self.updated = self.rest.time(key, json)?.or(self.updated),
                "metadata" | "thread_metadata" => match Value::read(json)? {
                    Value::Raw(raw) if raw.starts_with('{') => self.read_metadata(key, raw, arena),
                    value => keep(&mut self.rest, key, value),
                },
                _ => self.rest.keep(key, json)?,
            }
        }
        Ok(())
    }

    fn read_metadata(&mut self, key: &'a str, raw: &'a str, arena: &'a Arena) {
        let fields = Object::parse(raw, arena);
        let mut rest = Leftover::default();
        for (key, value) in fields.fields() {
            match (key, value) {
                ("thread_id", Value::Text(text)) if !text.is_empty() => self.id = Some(text),
                ("thread_title" | "title", Value::Text(text)) => self.title = Some(text),
                ("thread_created_at" | "created_at" | "created_us", value) => {
                    self.created = time(&mut rest, key, value).or(self.created);
                }
                ("thread_updated_at" | "updated_at" | "updated_us", value) => {
                    self.updated = time(&mut rest, key, value).or(self.updated);
                }
                (key, value) => keep(&mut rest, key, value),
            }
        }
        if self.id.is_none() {
            self.id = fields.text("thread_url").map(slug).filter(|slug| !slug.is_empty());
        }
        if let Some(rest) = rest.into_json() {
            self.rest.add_json(key, &rest);
        }
    }

    /// Reads the items of the list with the key `list`, which was entered.
    fn read_turns(&mut self, list: &'static str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        (self.list, self.turns, self.invalid, self.has_turns) = (list, Vec::new(), Vec::new(), true);
        let arena = json.arena();
        for index in 0.. {
            if !json.item()? {
                break;
            }
            if index == MAX_TURNS {
                let problem = "the list of turns is longer than the limit";
                return Err(JsonError { offset: json.offset(), problem });
            }
            match Value::read(json)? {
                Value::Null => self.invalid.push((index, "it is null")),
                Value::Raw(raw) if raw.starts_with('{') => {
                    let read = if list == "conversations" { turn::read } else { entry::read };
                    self.turns.push(read(index, &Object::parse(raw, arena), arena));
                }
                _ => self.invalid.push((index, "it is not an object")),
            }
        }
        Ok(())
    }

    /// Takes the id, slug and title of the thread from its entries, which keep only values that differ; none if it is not a
    /// thread.
    fn finish(mut self) -> Option<Self> {
        let first = |of: fn(&Turn<'a>) -> Option<&'a str>| self.turns.iter().find_map(of);
        let (thread, slug) = (first(|turn| turn.thread), first(|turn| turn.slug));
        let slug = self.slug.or(slug).or(self.name.filter(|name| !name.is_empty()));
        self.id = self.id.or(thread).or(slug).or_else(|| self.turns.first().and_then(|turn| turn.uuid));
        self.title = self.title.filter(|title| !title.trim().is_empty()).or(first(|turn| turn.title));
        for (key, name) in [("thread_url_slug", slug), ("key", self.name.filter(|_| self.name != slug))] {
            if let Some(name) = name.filter(|name| Some(*name) != self.id) {
                self.rest.add_text(key, name);
            }
        }
        for turn in &mut self.turns {
            for (key, value, known) in [
                ("context_uuid", turn.thread, self.id),
                ("thread_url_slug", turn.slug, slug),
                ("thread_title", turn.title, self.title),
            ] {
                if let Some(value) = value.filter(|value| Some(*value) != known) {
                    turn.rest.add_text(key, value);
                }
            }
        }
        self.has_turns.then_some(self)
    }
}

/// The last segment of a thread's address, which is its name.
fn slug(url: &str) -> &str {
    let path = url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    path.rsplit('/').next().unwrap_or_default()
}

/// Keeps a value unless it is null.
fn keep<'a>(rest: &mut Leftover<'a>, key: &'a str, value: Value<'a>) {
    match value {
        Value::Null => {}
        Value::Text(text) => rest.add_text(key, text),
        Value::Raw(raw) => rest.add_json(key, raw),
    }
}

/// Reads a time; one that is invalid or has no offset is also kept.
fn time<'a>(rest: &mut Leftover<'a>, key: &'a str, value: Value<'a>) -> Option<i64> {
    let found = value.text().or(value.raw()).and_then(time_of_text);
    if found.is_none_or(|(_, note)| note == Some(TimeNote::Naive)) {
        keep(rest, key, value);
    }
    found.map(|(time, _)| time)
}

#[cfg(test)]
mod tests {
    use super::slug;

    #[test]
    fn the_last_segment_of_an_address_is_the_slug() {
        for url in ["tea-abc", "/search/tea-abc/", "https://example.com/search/tea-abc?q=1#a/b"] {
            assert_eq!(slug(url), "tea-abc", "{url}");
        }
        assert_eq!(slug(""), "");
    }
}
