//! The `text` of an entry: a list of steps as JSON in a string, of which the last holds the answer, as JSON in a string.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Citation, JsonError, Leftover, Parser,
    json::{Object, Value, items, texts},
};

use super::{block, keep};

/// How deep answers are looked for in answers.
const MAX_DEPTH: usize = 3;
/// Steps of one entry that are looked into; real ones have one or two that hold an answer.
const MAX_SPOKEN: usize = 32;

/// What a `text` comes to.
#[derive(Default)]
pub(super) struct Steps<'a> {
    pub(super) query: Option<&'a str>,
    pub(super) answer: Option<Cow<'a, str>>,
    pub(super) citations: Vec<Citation<'a>>,
    /// A step that holds a report, and none was found in it.
    pub(super) report_lost: bool,
    shape: Shape<'a>,
}

/// How the `text` was written.
#[derive(Default)]
enum Shape<'a> {
    #[default]
    Nothing,
    /// Words without any form.
    Plain(&'a str),
    /// The answer's object by itself.
    Answer(Object<'a>),
    List(Vec<Value<'a>>),
    /// JSON in which no step is known.
    Other(Value<'a>),
}

/// What the object of an answer says.
#[derive(Default)]
struct Answer<'a> {
    words: Option<Cow<'a, str>>,
    citations: Vec<Citation<'a>>,
}

impl<'a> Steps<'a> {
    pub(super) fn read(value: Value<'a>, arena: &'a Arena) -> Self {
        match decoded(value, arena) {
            Value::Null => Self::default(),
            Value::Text(text) => {
                Self { answer: Some(text.into()), shape: Shape::Plain(text), ..Self::default() }
            }
            Value::Raw(raw) if raw.starts_with('{') => Self::of_answer(raw, arena),
            Value::Raw(raw) if raw.starts_with('[') => Self::of_list(items(raw, arena), arena),
            value @ Value::Raw(_) => Self { shape: Shape::Other(value), ..Self::default() },
        }
    }

    fn of_answer(raw: &'a str, arena: &'a Arena) -> Self {
        let fields = Object::parse(raw, arena);
        let Answer { words, citations } = Answer::of_object(&fields, MAX_DEPTH, arena);
        Self { answer: words, citations, shape: Shape::Answer(fields), ..Self::default() }
    }

    fn of_list(list: Vec<Value<'a>>, arena: &'a Arena) -> Self {
        let (mut it, mut reports) = (Self::default(), Vec::new());
        let steps = list.iter().filter_map(|step| step.raw()).map(|raw| Object::parse(raw, arena));
        for step in steps.filter(|step| speaks(kind(step))).take(MAX_SPOKEN) {
            let (_, content) = content(&step, arena);
            match kind(&step) {
                "INITIAL_QUERY" => it.query = it.query.or(content.text("query")),
                "FINAL" => {
                    let answer = Answer::of(content.get("answer"), MAX_DEPTH, arena);
                    if answer.words.is_some() {
                        it.answer = answer.words;
                    }
                    it.citations.extend(answer.citations);
                }
                "RESEARCH_ANSWER" => {
                    let found = report(&step, &content, arena);
                    it.report_lost |= found.is_empty();
                    reports.extend(found);
                }
                _ => {}
            }
        }
        it.add_reports(reports);
        it.shape = Shape::List(list);
        it
    }

    /// What long research found stands in a step of its own, behind the words of the answer.
    fn add_reports(&mut self, reports: Vec<Cow<'a, str>>) {
        for report in reports {
            self.answer = Some(match self.answer.take() {
                Some(answer) if answer.contains(report.as_ref()) => answer,
                Some(answer) => Cow::Owned([answer.as_ref(), "\n\n", report.as_ref()].concat()),
                None => report,
            });
        }
    }

    /// What is left when the messages say `query` and `answer`, as JSON text; none if nothing is.
    pub(super) fn left(&self, query: Option<&str>, answer: Option<&str>, arena: &'a Arena) -> Option<String> {
        let said = Said { query, answer };
        match &self.shape {
            Shape::Nothing => None,
            Shape::Plain(text) => (!said.answers(text)).then(|| Value::Text(text).json().into_owned()),
            Shape::Answer(fields) => Some(said.answer(fields, arena)).filter(|left| left != "{}"),
            Shape::Other(value) => Some(value.json().into_owned()),
            Shape::List(list) => {
                let mut looked = 0;
                let steps = list.iter().map(|step| said.step(*step, &mut looked, arena));
                let steps: Vec<Cow<'_, str>> = steps.collect();
                Some(format!("[{}]", steps.join(",")))
            }
        }
    }
}

impl<'a> Answer<'a> {
    /// The answer is words, an object, or an object as JSON in a string.
    fn of(value: Value<'a>, depth: usize, arena: &'a Arena) -> Self {
        match decoded(value, arena) {
            Value::Text(text) => Self { words: Some(text.into()), citations: Vec::new() },
            Value::Raw(raw) if depth > 0 && raw.starts_with('{') => {
                Self::of_object(&Object::parse(raw, arena), depth - 1, arena)
            }
            Value::Null | Value::Raw(_) => Self::default(),
        }
    }

    fn of_object(fields: &Object<'a>, depth: usize, arena: &'a Arena) -> Self {
        let inner = Self::of(fields.get("answer"), depth, arena);
        let (mut words, mut citations) = (inner.words, inner.citations);
        if words.is_none() {
            words = joined(fields.get("chunks"), arena).map(Cow::Owned);
        }
        if words.is_none() {
            let parts: Vec<&str> =
                structured(fields, arena).into_iter().filter_map(|(_, text)| text).collect();
            words = (!parts.is_empty()).then(|| Cow::Owned(parts.join("\n\n")));
        }
        for item in fields.items("web_results", arena) {
            block::source(item, &mut citations, arena);
        }
        Self { words, citations }
    }
}

/// The words that the messages of an entry say.
#[derive(Clone, Copy)]
struct Said<'s> {
    query: Option<&'s str>,
    answer: Option<&'s str>,
}

impl Said<'_> {
    fn answers(self, text: &str) -> bool {
        !text.is_empty() && self.answer.is_some_and(|answer| answer.contains(text))
    }

    /// A step without what is said, as JSON text; `looked` counts those that were looked into.
    fn step<'a>(self, step: Value<'a>, looked: &mut usize, arena: &'a Arena) -> Cow<'a, str> {
        let Some(raw) = step.raw().filter(|raw| raw.starts_with('{')) else { return step.json() };
        let fields = Object::parse(raw, arena);
        if !speaks(kind(&fields)) || *looked == MAX_SPOKEN {
            return raw.into();
        }
        *looked += 1;
        let (name, content) = content(&fields, arena);
        let mut left = Leftover::default();
        for (key, value) in fields.fields() {
            if key != name || value.raw().is_none_or(|raw| !raw.starts_with('{')) {
                keep(&mut left, key, value);
            } else if let Some(content) = self.content(&content, arena) {
                left.add_json(key, &content);
            }
        }
        left.into_json().unwrap_or("{}".into()).into_owned().into()
    }

    fn content<'a>(self, content: &Object<'a>, arena: &'a Arena) -> Option<String> {
        let mut left = Leftover::default();
        for (key, value) in content.fields() {
            match (key, decoded(value, arena)) {
                ("query", Value::Text(text)) if self.query == Some(text) => {}
                ("answer", Value::Text(text)) if self.answers(text) => {}
                ("answer", Value::Raw(raw)) if raw.starts_with('{') => {
                    left.add_json(key, &self.answer(&Object::parse(raw, arena), arena));
                }
                (key, _) => keep(&mut left, key, value),
            }
        }
        left.into_json().map(Cow::into_owned)
    }

    /// The object of an answer without its words.
    fn answer<'a>(self, fields: &Object<'a>, arena: &'a Arena) -> String {
        let mut left = Leftover::default();
        for (key, value) in fields.fields() {
            match (key, decoded(value, arena)) {
                ("answer", Value::Text(text)) if self.answers(text) => {}
                ("answer", Value::Raw(raw)) if raw.starts_with('{') => {
                    left.add_json(key, &self.answer(&Object::parse(raw, arena), arena));
                }
                ("chunks", Value::Raw(raw))
                    if joined(value, arena).is_some_and(|text| self.answers(&text)) =>
                {
                    if items(raw, arena).iter().any(|item| item.text().is_none()) {
                        left.add_json(key, raw);
                    }
                }
                ("structured_answer", Value::Raw(raw)) if raw.starts_with('[') => {
                    left.add_json(key, &self.structured(fields, arena));
                }
                (key, _) => keep(&mut left, key, value),
            }
        }
        left.into_json().unwrap_or("{}".into()).into_owned()
    }

    /// The parts of an answer without their words, if those are what the message says.
    fn structured<'a>(self, fields: &Object<'a>, arena: &'a Arena) -> String {
        let all = structured(fields, arena);
        let words =
            |between: &str| all.iter().filter_map(|(_, text)| *text).collect::<Vec<_>>().join(between);
        let told = self.answers(&words("\n\n")) || self.answers(&words(""));
        let part = |(part, text): &(Value<'a>, Option<&'a str>)| {
            let Some(raw) = part.raw().filter(|raw| raw.starts_with('{')) else {
                return part.json().into_owned();
            };
            let mut left = Leftover::default();
            for (key, value) in Object::parse(raw, arena).fields() {
                let repeats = match key {
                    "text" => value.text() == *text,
                    "chunks" => joined(value, arena).as_deref() == *text,
                    _ => false,
                };
                if !(told && text.is_some() && repeats) {
                    keep(&mut left, key, value);
                }
            }
            left.into_json().unwrap_or("{}".into()).into_owned()
        };
        let parts: Vec<String> = all.iter().map(part).collect();
        format!("[{}]", parts.join(","))
    }
}

/// Whether a step of this kind holds the question or the answer.
fn speaks(kind: &str) -> bool {
    matches!(kind, "FINAL" | "INITIAL_QUERY" | "RESEARCH_ANSWER")
}

/// The kind of a step.
fn kind<'a>(step: &Object<'a>) -> &'a str {
    step.text("step_type").unwrap_or_default()
}

/// What a step holds: `content`, or a field that bears the name of its kind. Its key and its fields.
fn content<'a>(step: &Object<'a>, arena: &'a Arena) -> (&'a str, Object<'a>) {
    let named = format!("{}_content", kind(step).to_ascii_lowercase());
    let is = |key: &str| key == "content" || key == named;
    let found = step.fields().find(|(key, value)| is(key) && value.raw().is_some());
    let key = found.map_or("content", |(key, _)| key);
    (key, step.object(key, arena))
}

/// The text of a report, in the step's assets or in its content.
fn report<'a>(step: &Object<'a>, content: &Object<'a>, arena: &'a Arena) -> Vec<Cow<'a, str>> {
    let assets = step.objects("assets", arena);
    let bodies =
        assets.iter().filter_map(|asset| asset.object("research_report", arena).text("source_content"));
    let found: Vec<Cow<'a, str>> = bodies.map(Cow::Borrowed).collect();
    if found.is_empty() {
        Answer::of(content.get("answer"), 1, arena).words.into_iter().collect()
    } else {
        found
    }
}

/// The parts of `structured_answer`, each with its words.
fn structured<'a>(fields: &Object<'a>, arena: &'a Arena) -> Vec<(Value<'a>, Option<&'a str>)> {
    let words = |part: Value<'a>| part.raw().and_then(|raw| Object::parse(raw, arena).text("text"));
    fields.items("structured_answer", arena).into_iter().map(|part| (part, words(part))).collect()
}

/// The texts of a list, joined; none if that is no list or says nothing.
fn joined<'a>(list: Value<'a>, arena: &'a Arena) -> Option<String> {
    let text = texts(list.raw().filter(|raw| raw.starts_with('['))?, arena).concat();
    (!text.is_empty()).then_some(text)
}

/// A value, or what it holds as JSON in a string; an empty text is none.
fn decoded<'a>(value: Value<'a>, arena: &'a Arena) -> Value<'a> {
    let Value::Text(text) = value else { return value };
    if text.trim().is_empty() {
        return Value::Null;
    }
    let inner = text.trim_start();
    if !inner.starts_with(['{', '[']) {
        return value;
    }
    let mut json = Parser::new(inner, arena);
    let mut read = || -> Result<&'a str, JsonError> {
        let raw = json.raw_value()?;
        json.end()?;
        Ok(raw)
    };
    read().map_or(value, Value::Raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Option<String>, Option<String>, usize) {
        let arena = Arena::new();
        let steps = Steps::read(Value::Text(arena.alloc_str(text)), &arena);
        let answer = steps.answer.as_deref();
        (steps.query.map(ToOwned::to_owned), answer.map(ToOwned::to_owned), steps.citations.len())
    }

    #[test]
    fn answers_of_every_form_are_found() {
        let said = |text: &str| read(text).1;
        let yes = Some("Yes.".to_owned());
        assert_eq!(said("Yes."), yes);
        assert_eq!(said(r#"{"answer":"Yes.","chunks":["No."]}"#), yes);
        assert_eq!(said(r#"{"answer":"{\"answer\":\"Yes.\"}"}"#), yes);
        assert_eq!(said(r#"[{"step_type":"FINAL","content":{"answer":"Yes."}}]"#), yes);
        assert_eq!(said(r#"[{"step_type":"FINAL","content":{"answer":{"answer":"Yes."}}}]"#), yes);
        assert_eq!(
            said(r#"[{"step_type":"FINAL","final_content":{"answer":"{\"chunks\":[\"Y\",\"es.\"]}"}}]"#),
            yes
        );
        let parts = r#"[{"step_type":"FINAL","content":{"answer":"{\"structured_answer\":[{\"text\":\"Yes.\"},{\"text\":\"No.\"}]}"}}]"#;
        assert_eq!(said(parts).as_deref(), Some("Yes.\n\nNo."));
        let report = r#"[{"step_type":"RESEARCH_ANSWER","content":{"title":"R"},"assets":[{"research_report":{"source_content":"Body"}}]},{"step_type":"FINAL","content":{"answer":"Cover"}}]"#;
        assert_eq!(said(report).as_deref(), Some("Cover\n\nBody"));
        for none in [
            "",
            " ",
            "[]",
            "{}",
            "[1,null]",
            r#"[{"step_type":"FINAL"}]"#,
            r#"[{"step_type":"FINAL","content":{"answer":"{}"}}]"#,
        ] {
            assert_eq!(said(none), None, "{none}");
        }
        // Words that only look like JSON are words.
        assert_eq!(said("[1] is right").as_deref(), Some("[1] is right"));
    }

    #[test]
    fn the_question_is_that_of_the_first_step() {
        let text = r#"[{"step_type":"INITIAL_QUERY","content":{"query":"Q?"}},{"step_type":"FINAL","content":{"answer":"{\"answer\":\"A\",\"web_results\":[{\"name\":\"N\",\"url\":\"https://example.com/\"}]}"}}]"#;
        assert_eq!(read(text), (Some("Q?".to_owned()), Some("A".to_owned()), 1));
    }
}
