//! The saved shapes, as lenient as they are: any field may be absent, null or of another type.

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

/// Words of a text that may be an answer.
const WORDS_OF_A_SENTENCE: usize = 3;
/// Names of fields in one warning.
const MAX_HINTS: usize = 8;

/// Reads a turn at its place.
type Read<'a> = fn(usize, &Object<'a>, &'a Arena) -> Turn<'a>;

/// One thread.
#[derive(Debug, Default)]
pub(crate) struct Thread<'a> {
    /// The provider's id of it, the best one that is there.
    pub(crate) id: Option<&'a str>,
    pub(crate) title: Option<&'a str>,
    pub(crate) created: Option<i64>,
    pub(crate) updated: Option<i64>,
    pub(crate) turns: Vec<Turn<'a>>,
    /// Places in the list that hold no turn, and what they hold.
    pub(crate) gaps: Vec<(usize, &'static str)>,
    /// The key of the list; empty: the thread is nothing but a list.
    pub(crate) list: &'static str,
    pub(crate) rest: Leftover<'a>,
    /// Its name in addresses, as it stands beside its turns.
    slug: Option<&'a str>,
    /// The key under which it stands among other threads.
    name: Option<&'a str>,
    listed: bool,
}

/// A question and its answer.
#[derive(Debug, Default)]
pub(crate) struct Turn<'a> {
    /// Its place in the list.
    pub(crate) place: usize,
    pub(crate) uuid: Option<&'a str>,
    pub(crate) query: Option<&'a str>,
    pub(crate) answer: Option<std::borrow::Cow<'a, str>>,
    pub(crate) model: Option<&'a str>,
    pub(crate) created: Option<i64>,
    pub(crate) updated: Option<i64>,
    pub(crate) citations: Vec<Citation<'a>>,
    /// Addresses of files that the person gave.
    pub(crate) attachments: Vec<&'a str>,
    /// Its state says that there is no answer, or none yet.
    pub(crate) unanswered: bool,
    /// Fields that hold sentences, if no question or no answer was found.
    pub(crate) hints: Vec<&'a str>,
    /// A field whose words were not found where they are expected.
    pub(crate) unread: Option<&'static str>,
    pub(crate) rest: Leftover<'a>,
    thread: Option<&'a str>,
    slug: Option<&'a str>,
    title: Option<&'a str>,
}

impl<'a> Turn<'a> {
    /// Notes which fields hold sentences, if question or answer was not found; what comes with the question is left aside.
    fn set_hints(&mut self, fields: &Object<'a>) {
        const ASIDE: [&str; 6] = [
            "thread_title",
            "context_title",
            "related_queries",
            "related_query_items",
            "sources",
            "attachments",
        ];
        let said = [("query", self.query), ("query_str", self.query), ("answer", self.answer.as_deref())];
        let blank = |text: Option<&str>| text.is_none_or(|text| text.trim().is_empty());
        if !blank(self.query) && !blank(self.answer.as_deref()) {
            return;
        }
        let open = |key: &str| {
            !ASIDE.contains(&key) && !said.iter().any(|(name, text)| *name == key && !blank(*text))
        };
        let sentence = |value: Value<'_>| {
            let text = value.text().or(value.raw()).unwrap_or_default();
            text.split('"').any(|part| part.split_whitespace().count() >= WORDS_OF_A_SENTENCE)
        };
        let told = fields.fields().filter(|(key, value)| open(key) && sentence(*value));
        self.hints = told.map(|(key, _)| key).take(MAX_HINTS).collect();
    }
}

impl<'a> Thread<'a> {
    /// Reads one element; none if it is no object with turns, nor a list of them. `name` is that under which it stands.
    pub(crate) fn read(json: &mut Parser<'a>, name: Option<&'a str>) -> Result<Option<Self>, JsonError> {
        let mut it = Self { name, ..Self::default() };
        it.fill(json)?;
        json.end()?;
        Ok(it.settled())
    }

    /// Reads what stands whole in an element that breaks off; none if that is no turn.
    pub(crate) fn read_head(json: &mut Parser<'a>, name: Option<&'a str>) -> Option<Self> {
        let mut it = Self { name, ..Self::default() };
        let (Ok(()) | Err(_)) = it.fill(json);
        it.settled().filter(|thread| !thread.turns.is_empty())
    }

    fn fill(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
        if self.name.is_some() && json.kind()? == Kind::Array && json.enter_array()? {
            return self.turns("", json, entry::read);
        }
        if !json.enter_object()? {
            return Ok(());
        }
        let arena = json.arena();
        while let Some(key) = json.key()? {
            match key {
                "conversations" if self.rest.array(key, json)? => {
                    self.turns("conversations", json, turn::read)?;
                }
                "entries" if self.rest.array(key, json)? => self.turns("entries", json, entry::read)?,
                // What is no list was kept.
                "conversations" | "entries" => {}
                "slug" => self.slug = self.rest.words(key, json)?.or(self.slug),
                "context_title" => self.title = self.rest.words(key, json)?.or(self.title),
                "context_uuid" => self.id = self.rest.words(key, json)?.or(self.id),
                "created_at" | "created_us" => self.created = self.rest.time(key, json)?.or(self.created),
                "updated_at" | "updated_us" => self.updated = self.rest.time(key, json)?.or(self.updated),
                "metadata" | "thread_metadata" => match Value::read(json)? {
                    Value::Raw(raw) if raw.starts_with('{') => self.metadata(key, &Object::parse(raw, arena)),
                    value => keep(&mut self.rest, key, value),
                },
                _ => self.rest.keep(key, json)?,
            }
        }
        Ok(())
    }

    fn metadata(&mut self, key: &'a str, fields: &Object<'a>) {
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

    /// Reads the items of a list that was entered.
    fn turns(&mut self, list: &'static str, json: &mut Parser<'a>, read: Read<'a>) -> Result<(), JsonError> {
        (self.list, self.turns, self.gaps, self.listed) = (list, Vec::new(), Vec::new(), true);
        let arena = json.arena();
        for place in 0.. {
            if !json.item()? {
                break;
            }
            if place == MAX_TURNS {
                let problem = "the list of turns is longer than the limit";
                return Err(JsonError { offset: json.offset(), problem });
            }
            match Value::read(json)? {
                Value::Null => self.gaps.push((place, "it is null")),
                Value::Raw(raw) if raw.starts_with('{') => {
                    self.turns.push(read(place, &Object::parse(raw, arena), arena));
                }
                _ => self.gaps.push((place, "it is not an object")),
            }
        }
        Ok(())
    }

    /// Itself, if it is a thread.
    fn settled(mut self) -> Option<Self> {
        self.settle();
        self.listed.then_some(self)
    }

    /// What entries say of their thread is the thread's; where one says something else, it keeps it.
    fn settle(&mut self) {
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
    }
}

/// The last part of a thread's address, which names it.
fn slug(url: &str) -> &str {
    let path = url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    path.rsplit('/').next().unwrap_or_default()
}

/// Keeps a value that has no place, unless it is null.
fn keep<'a>(rest: &mut Leftover<'a>, key: &'a str, value: Value<'a>) {
    match value {
        Value::Null => {}
        Value::Text(text) => rest.add_text(key, text),
        Value::Raw(raw) => rest.add_json(key, raw),
    }
}

/// Reads a time; one that is not understood in full is kept.
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
    fn addresses_end_in_the_name_of_the_thread() {
        for url in ["tea-abc", "/search/tea-abc/", "https://example.com/search/tea-abc?q=1#a/b"] {
            assert_eq!(slug(url), "tea-abc", "{url}");
        }
        assert_eq!(slug(""), "");
    }
}
