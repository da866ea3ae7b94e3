//! The `text` of an entry: JSON in a string with a list of steps. The last has the answer, also as JSON in a string.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Citation, JsonError, Leftover, Parser,
    json::{Object, Value, items, texts},
};

use super::{block, keep};

/// Levels of answers inside answers that are read.
const MAX_DEPTH: usize = 3;
/// Steps with a question or an answer that are read of one entry; real entries have two or three.
const MAX_STEPS: usize = 32;

/// The contents of a `text`.
#[derive(Default)]
pub(super) struct Steps<'a> {
    pub(super) query: Option<&'a str>,
    pub(super) answer: Option<Cow<'a, str>>,
    pub(super) citations: Vec<Citation<'a>>,
    /// No report was found in a step that should have one.
    pub(super) report_missing: bool,
    form: Form<'a>,
}

/// The form of a `text`.
#[derive(Default)]
enum Form<'a> {
    #[default]
    Empty,
    /// A plain text.
    Plain(&'a str),
    /// The object of an answer.
    Answer(Object<'a>),
    List(Vec<Value<'a>>),
    /// Any other JSON.
    Other(Value<'a>),
}

/// The contents of an answer's object.
#[derive(Default)]
struct Answer<'a> {
    text: Option<Cow<'a, str>>,
    citations: Vec<Citation<'a>>,
}

impl<'a> Steps<'a> {
    pub(super) fn read(value: Value<'a>, arena: &'a Arena) -> Self {
        match decoded(value, arena) {
            Value::Null => Self::default(),
            Value::Text(text) => {
                Self { answer: Some(text.into()), form: Form::Plain(text), ..Self::default() }
            }
            Value::Raw(raw) if raw.starts_with('{') => Self::of_answer(raw, arena),
            Value::Raw(raw) if raw.starts_with('[') => Self::of_list(items(raw, arena), arena),
            value @ Value::Raw(_) => Self { form: Form::Other(value), ..Self::default() },
        }
    }

    fn of_answer(raw: &'a str, arena: &'a Arena) -> Self {
        let fields = Object::parse(raw, arena);
        let Answer { text, citations } = Answer::of_object(&fields, MAX_DEPTH, arena);
        Self { answer: text, citations, form: Form::Answer(fields), ..Self::default() }
    }

    fn of_list(list: Vec<Value<'a>>, arena: &'a Arena) -> Self {
        let (mut it, mut reports) = (Self::default(), Vec::new());
        let steps = list.iter().filter_map(|step| step.raw()).map(|raw| Object::parse(raw, arena));
        for step in steps.filter(|step| is_message(kind(step))).take(MAX_STEPS) {
            let (_, content) = content(&step, arena);
            match kind(&step) {
                "INITIAL_QUERY" => it.query = it.query.or(content.text("query")),
                "FINAL" => {
                    let answer = Answer::of(content.get("answer"), MAX_DEPTH, arena);
                    it.answer = answer.text.or(it.answer);
                    it.citations.extend(answer.citations);
                }
                "RESEARCH_ANSWER" => {
                    let found = read_reports(&step, &content, arena);
                    it.report_missing |= found.is_empty();
                    reports.extend(found);
                }
                _ => {}
            }
        }
        it.add_reports(reports);
        it.form = Form::List(list);
        it
    }

    /// Appends the reports of long research, which have steps of their own, to the answer.
    fn add_reports(&mut self, reports: Vec<Cow<'a, str>>) {
        for report in reports {
            self.answer = Some(match self.answer.take() {
                Some(answer) if answer.contains(report.as_ref()) => answer,
                Some(answer) => Cow::Owned([answer.as_ref(), "\n\n", report.as_ref()].concat()),
                None => report,
            });
        }
    }

    /// What remains without `query` and `answer`, which the messages have, as JSON text; none if nothing does.
    pub(super) fn rest(&self, query: Option<&str>, answer: Option<&str>, arena: &'a Arena) -> Option<String> {
        let emitted = Emitted { query, answer };
        match &self.form {
            Form::Empty => None,
            Form::Plain(text) => {
                (!emitted.answer_contains(text)).then(|| Value::Text(text).json().into_owned())
            }
            Form::Answer(fields) => Some(emitted.remaining_answer(fields, arena)).filter(|json| json != "{}"),
            Form::Other(value) => Some(value.json().into_owned()),
            Form::List(list) => {
                let mut count = 0;
                let steps = list.iter().map(|step| emitted.remaining_step(*step, &mut count, arena));
                let steps: Vec<Cow<'_, str>> = steps.collect();
                Some(format!("[{}]", steps.join(",")))
            }
        }
    }
}

impl<'a> Answer<'a> {
    /// Reads a text, an object, or an object as JSON in a string.
    fn of(value: Value<'a>, depth: usize, arena: &'a Arena) -> Self {
        match decoded(value, arena) {
            Value::Text(text) => Self { text: Some(text.into()), citations: Vec::new() },
            Value::Raw(raw) if depth > 0 && raw.starts_with('{') => {
                Self::of_object(&Object::parse(raw, arena), depth - 1, arena)
            }
            Value::Null | Value::Raw(_) => Self::default(),
        }
    }

    fn of_object(fields: &Object<'a>, depth: usize, arena: &'a Arena) -> Self {
        let Self { text, mut citations } = Self::of(fields.get("answer"), depth, arena);
        let chunks = || joined(fields.get("chunks"), arena);
        let parts = || {
            let parts = structured(fields, arena).into_iter().filter_map(|(_, text)| text);
            let parts: Vec<&str> = parts.collect();
            (!parts.is_empty()).then(|| parts.join("\n\n"))
        };
        let text = text.or_else(|| chunks().or_else(parts).map(Cow::Owned));
        for item in fields.items("web_results", arena) {
            block::add_source(item, &mut citations, arena);
        }
        Self { text, citations }
    }
}

/// The texts of the messages of an entry.
#[derive(Clone, Copy)]
struct Emitted<'s> {
    query: Option<&'s str>,
    answer: Option<&'s str>,
}

impl Emitted<'_> {
    fn answer_contains(self, text: &str) -> bool {
        !text.is_empty() && self.answer.is_some_and(|answer| answer.contains(text))
    }

    /// A step without the emitted texts, as JSON text; `count` is that of the steps with such texts so far.
    fn remaining_step<'a>(self, step: Value<'a>, count: &mut usize, arena: &'a Arena) -> Cow<'a, str> {
        let Some(raw) = step.raw().filter(|raw| raw.starts_with('{')) else { return step.json() };
        let fields = Object::parse(raw, arena);
        if !is_message(kind(&fields)) || *count == MAX_STEPS {
            return raw.into();
        }
        *count += 1;
        let (name, content) = content(&fields, arena);
        let mut left = Leftover::default();
        for (key, value) in fields.fields() {
            if key != name || value.raw().is_none_or(|raw| !raw.starts_with('{')) {
                keep(&mut left, key, value);
            } else if let Some(content) = self.remaining_content(&content, arena) {
                left.add_json(key, &content);
            }
        }
        left.into_json().unwrap_or("{}".into()).into_owned().into()
    }

    fn remaining_content<'a>(self, content: &Object<'a>, arena: &'a Arena) -> Option<String> {
        let mut left = Leftover::default();
        for (key, value) in content.fields() {
            match (key, decoded(value, arena)) {
                ("query", Value::Text(text)) if self.query == Some(text) => {}
                ("answer", Value::Text(text)) if self.answer_contains(text) => {}
                ("answer", Value::Raw(raw)) if raw.starts_with('{') => {
                    left.add_json(key, &self.remaining_answer(&Object::parse(raw, arena), arena));
                }
                (key, _) => keep(&mut left, key, value),
            }
        }
        left.into_json().map(Cow::into_owned)
    }

    /// The object of an answer without its text.
    fn remaining_answer<'a>(self, fields: &Object<'a>, arena: &'a Arena) -> String {
        let mut left = Leftover::default();
        for (key, value) in fields.fields() {
            match (key, decoded(value, arena)) {
                ("answer", Value::Text(text)) if self.answer_contains(text) => {}
                ("answer", Value::Raw(raw)) if raw.starts_with('{') => {
                    left.add_json(key, &self.remaining_answer(&Object::parse(raw, arena), arena));
                }
                ("chunks", Value::Raw(raw))
                    if joined(value, arena).is_some_and(|text| self.answer_contains(&text)) =>
                {
                    if items(raw, arena).iter().any(|item| item.text().is_none()) {
                        left.add_json(key, raw);
                    }
                }
                ("structured_answer", Value::Raw(raw)) if raw.starts_with('[') => {
                    left.add_json(key, &self.remaining_parts(fields, arena));
                }
                (key, _) => keep(&mut left, key, value),
            }
        }
        left.into_json().unwrap_or("{}".into()).into_owned()
    }

    /// The parts of an answer without their texts, if the message has those.
    fn remaining_parts<'a>(self, fields: &Object<'a>, arena: &'a Arena) -> String {
        let all = structured(fields, arena);
        let text =
            |separator: &str| all.iter().filter_map(|(_, text)| *text).collect::<Vec<_>>().join(separator);
        let emitted = self.answer_contains(&text("\n\n")) || self.answer_contains(&text(""));
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
                if !(emitted && text.is_some() && repeats) {
                    keep(&mut left, key, value);
                }
            }
            left.into_json().unwrap_or("{}".into()).into_owned()
        };
        let parts: Vec<String> = all.iter().map(part).collect();
        format!("[{}]", parts.join(","))
    }
}

/// Whether a step of this kind has the question or the answer.
fn is_message(kind: &str) -> bool {
    matches!(kind, "FINAL" | "INITIAL_QUERY" | "RESEARCH_ANSWER")
}

/// The kind of a step.
fn kind<'a>(step: &Object<'a>) -> &'a str {
    step.text("step_type").unwrap_or_default()
}

/// The key and the fields of a step's content: `content`, or a field named after the kind.
fn content<'a>(step: &Object<'a>, arena: &'a Arena) -> (&'a str, Object<'a>) {
    let named = format!("{}_content", kind(step).to_ascii_lowercase());
    let is = |key: &str| key == "content" || key == named;
    let found = step.fields().find(|(key, value)| is(key) && value.raw().is_some());
    let key = found.map_or("content", |(key, _)| key);
    (key, step.object(key, arena))
}

/// The reports of a step, in its assets or in its content.
fn read_reports<'a>(step: &Object<'a>, content: &Object<'a>, arena: &'a Arena) -> Vec<Cow<'a, str>> {
    let assets = step.objects("assets", arena);
    let bodies =
        assets.iter().filter_map(|asset| asset.object("research_report", arena).text("source_content"));
    let found: Vec<Cow<'a, str>> = bodies.map(Cow::Borrowed).collect();
    if found.is_empty() {
        Answer::of(content.get("answer"), 1, arena).text.into_iter().collect()
    } else {
        found
    }
}

/// The parts of `structured_answer`, each with its text.
fn structured<'a>(fields: &Object<'a>, arena: &'a Arena) -> Vec<(Value<'a>, Option<&'a str>)> {
    let text = |part: Value<'a>| part.raw().and_then(|raw| Object::parse(raw, arena).text("text"));
    fields.items("structured_answer", arena).into_iter().map(|part| (part, text(part))).collect()
}

/// The texts of a list, joined; none if it is not a list or has no text.
fn joined<'a>(list: Value<'a>, arena: &'a Arena) -> Option<String> {
    let text = texts(list.raw().filter(|raw| raw.starts_with('['))?, arena).concat();
    (!text.is_empty()).then_some(text)
}

/// The value of JSON in a string, else the value itself; a blank text is null.
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
        let answer = |text: &str| read(text).1;
        let yes = Some("Yes.".to_owned());
        assert_eq!(answer("Yes."), yes);
        assert_eq!(answer(r#"{"answer":"Yes.","chunks":["No."]}"#), yes);
        assert_eq!(answer(r#"{"answer":"{\"answer\":\"Yes.\"}"}"#), yes);
        assert_eq!(answer(r#"[{"step_type":"FINAL","content":{"answer":"Yes."}}]"#), yes);
        assert_eq!(answer(r#"[{"step_type":"FINAL","content":{"answer":{"answer":"Yes."}}}]"#), yes);
        assert_eq!(
            answer(r#"[{"step_type":"FINAL","final_content":{"answer":"{\"chunks\":[\"Y\",\"es.\"]}"}}]"#),
            yes
        );
        let parts = r#"[{"step_type":"FINAL","content":{"answer":"{\"structured_answer\":[{\"text\":\"Yes.\"},{\"text\":\"No.\"}]}"}}]"#;
        assert_eq!(answer(parts).as_deref(), Some("Yes.\n\nNo."));
        let report = r#"[{"step_type":"RESEARCH_ANSWER","content":{"title":"R"},"assets":[{"research_report":{"source_content":"Body"}}]},{"step_type":"FINAL","content":{"answer":"Cover"}}]"#;
        assert_eq!(answer(report).as_deref(), Some("Cover\n\nBody"));
        for none in [
            "",
            " ",
            "[]",
            "{}",
            "[1,null]",
            r#"[{"step_type":"FINAL"}]"#,
            r#"[{"step_type":"FINAL","content":{"answer":"{}"}}]"#,
        ] {
            assert_eq!(answer(none), None, "{none}");
        }
        // A text that only begins like JSON is a text.
        assert_eq!(answer("[1] is right").as_deref(), Some("[1] is right"));
    }

    #[test]
    fn the_question_is_that_of_the_first_step() {
        let text = r#"[{"step_type":"INITIAL_QUERY","content":{"query":"Q?"}},{"step_type":"FINAL","content":{"answer":"{\"answer\":\"A\",\"web_results\":[{\"name\":\"N\",\"url\":\"https://example.com/\"}]}"}}]"#;
        assert_eq!(read(text), (Some("Q?".to_owned()), Some("A".to_owned()), 1));
    }
}
