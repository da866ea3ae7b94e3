//! The blocks of an entry: the answer, whole or in parts, and its sources.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Citation, Leftover, address,
    json::{Object, Value, items, texts},
    pam::prose,
};

use super::keep;

/// The contents of the blocks of an entry.
#[derive(Default)]
pub(super) struct Blocks<'a> {
    pub(super) answer: Option<Cow<'a, str>>,
    pub(super) citations: Vec<Citation<'a>>,
    /// The question in a step of the plan.
    pub(super) query: Option<&'a str>,
    /// The blocks without the text of the answer, as JSON text.
    pub(super) remaining: Option<String>,
    /// Blocks have texts that are neither the answer nor a part of it.
    pub(super) unread: bool,
}

/// The prefix of `intended_usage` of the answer.
const ANSWER: &str = "ask_text";

/// One block.
struct Block<'a> {
    fields: Object<'a>,
    /// The item, if it is not an object.
    invalid: Option<Value<'a>>,
    usage: &'a str,
    text: Option<Cow<'a, str>>,
}

pub(super) fn read<'a>(raw: &'a str, arena: &'a Arena) -> Blocks<'a> {
    let blocks: Vec<Block<'a>> = items(raw, arena).into_iter().map(|item| Block::read(item, arena)).collect();
    let answers = answer_blocks(&blocks);
    let mut citations = Vec::new();
    let mut remaining = Vec::with_capacity(blocks.len());
    for (at, block) in blocks.iter().enumerate() {
        block.add_sources(&mut citations, arena);
        remaining.push(block.remaining_json(answers.contains(&at), arena));
    }
    let parts: Vec<&Cow<'a, str>> = answers.iter().filter_map(|at| blocks.get(*at)?.text.as_ref()).collect();
    let answer = match parts.as_slice() {
        [] => workflow_answer(&blocks, arena).map(Cow::Owned),
        [whole] => Some((*whole).clone()),
        parts => Some(parts.iter().map(AsRef::as_ref).collect::<Vec<&str>>().concat().into()),
    };
    let query = blocks.iter().find_map(|block| block.query(arena));
    // Partial answers can differ from the whole one.
    let other = |(at, block): &(usize, &Block<'_>)| !answers.contains(at) && !block.usage.starts_with(ANSWER);
    let others = blocks.iter().enumerate().filter(other);
    let unread = others.filter_map(|(_, block)| block.text.as_deref()).any(|text| {
        prose::is_prose(text) && answer.as_deref().is_none_or(|answer| !answer.contains(text.trim()))
    });
    let remaining = (!remaining.is_empty()).then(|| format!("[{}]", remaining.join(",")));
    Blocks { answer, citations, query, remaining, unread }
}

/// The answer in the steps of a workflow: the items marked as such, else all with text. The blocks keep it too.
fn workflow_answer(blocks: &[Block<'_>], arena: &Arena) -> Option<String> {
    let (mut answers, mut others) = (Vec::new(), Vec::new());
    for block in blocks {
        for step in block.fields.object("workflow_block", arena).objects("steps", arena) {
            for item in step.objects("items", arena) {
                let payload = item.object("payload", arena).object("text_payload", arena);
                let chunks = || texts(payload.get("chunks").raw().unwrap_or_default(), arena).concat();
                let text = payload.text("text").map_or_else(chunks, ToOwned::to_owned);
                if text.trim().is_empty() {
                    continue;
                }
                let answer = payload.text("variant").is_some_and(|kind| kind.eq_ignore_ascii_case("answer"));
                if answer { &mut answers } else { &mut others }.push(text);
            }
        }
    }
    let texts = if answers.is_empty() { others } else { answers };
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// The indices of the blocks of the answer: the one with all of it, else those with its parts, else the first with text.
fn answer_blocks(blocks: &[Block<'_>]) -> Vec<usize> {
    let with_text = || blocks.iter().enumerate().filter(|(_, block)| block.text.is_some());
    let index = |(at, _): (usize, &Block<'_>)| at;
    if let Some((whole, _)) = with_text().find(|(_, block)| block.usage == ANSWER) {
        return vec![whole];
    }
    let parts = with_text().filter(|(_, block)| block.usage.starts_with("ask_text_"));
    let parts: Vec<usize> = parts.map(index).collect();
    if parts.is_empty() { with_text().map(index).take(1).collect() } else { parts }
}

impl<'a> Block<'a> {
    fn read(item: Value<'a>, arena: &'a Arena) -> Self {
        let raw = item.raw().filter(|raw| raw.starts_with('{'));
        let fields = raw.map(|raw| Object::parse(raw, arena)).unwrap_or_default();
        let text = markdown_text(&fields.object("markdown_block", arena), arena);
        let usage = fields.text("intended_usage").unwrap_or_default();
        Self { fields, invalid: raw.is_none().then_some(item), usage, text }
    }

    /// The question, if the block is the plan for it.
    fn query(&self, arena: &'a Arena) -> Option<&'a str> {
        let steps = self.fields.object("plan_block", arena).objects("steps", arena);
        steps.iter().find_map(|step| step.object("initial_query_content", arena).text("query"))
    }

    /// Its JSON text; a block of the answer without the text, which the message has.
    fn remaining_json(&self, is_answer: bool, arena: &'a Arena) -> String {
        if let Some(invalid) = self.invalid {
            return invalid.json().into_owned();
        }
        let mut rest = Leftover::default();
        for (key, value) in self.fields.fields() {
            match value {
                Value::Raw(raw) if is_answer && key == "markdown_block" => {
                    let mut inner = Leftover::default();
                    for (key, value) in Object::parse(raw, arena).fields() {
                        if !self.is_text(key, value, arena) {
                            keep(&mut inner, key, value);
                        }
                    }
                    if let Some(inner) = inner.into_json() {
                        rest.add_json(key, &inner);
                    }
                }
                value => keep(&mut rest, key, value),
            }
        }
        rest.into_json().unwrap_or("{}".into()).into_owned()
    }

    /// Whether a field of the markdown has only the block's text.
    fn is_text(&self, key: &str, value: Value<'a>, arena: &'a Arena) -> bool {
        match (key, value) {
            ("answer", Value::Text(text)) => self.text.as_deref() == Some(text),
            ("chunks", Value::Raw(raw)) => {
                items(raw, arena).iter().all(|item| item.text().is_some())
                    && self.text.as_deref() == Some(&texts(raw, arena).concat())
            }
            _ => false,
        }
    }

    fn add_sources(&self, citations: &mut Vec<Citation<'a>>, arena: &'a Arena) {
        for (block, lists) in
            [("web_result_block", &["web_results"][..]), ("sources_mode_block", &["web_results", "rows"])]
        {
            let block = self.fields.object(block, arena);
            for item in lists.iter().flat_map(|list| block.items(list, arena)) {
                add_source(item, citations, arena);
            }
        }
    }
}

fn markdown_text<'a>(markdown: &Object<'a>, arena: &'a Arena) -> Option<Cow<'a, str>> {
    if let Some(answer) = markdown.text("answer") {
        return Some(Cow::Borrowed(answer));
    }
    let text = texts(markdown.get("chunks").raw()?, arena).concat();
    (!text.is_empty()).then_some(Cow::Owned(text))
}

/// Adds a source unless another has its address; false if the citations lack something of the item.
pub(super) fn add_source<'a>(item: Value<'a>, citations: &mut Vec<Citation<'a>>, arena: &'a Arena) -> bool {
    let Some(raw) = item.raw().filter(|raw| raw.starts_with('{')) else { return false };
    let fields = Object::parse(raw, arena);
    let address = fields.text("url");
    let url = address.filter(|url| address::is_uri(url)).map(address::unsigned);
    let title = fields.text("title").or_else(|| fields.text("name"));
    let citation =
        Citation { title: title.map(Cow::Borrowed), url, snippet: fields.text("snippet").map(Cow::Borrowed) };
    if citation == Citation::default() {
        return false;
    }
    let known = fields.fields().all(|(key, value)| {
        value == Value::Null || (matches!(key, "url" | "title" | "snippet") && value.text().is_some())
    });
    let mapped = citation.url.is_some() == address.is_some();
    let repeated = citation.url.is_some() && citations.iter().any(|other| other.url == citation.url);
    if !repeated {
        citations.push(citation);
    }
    known && mapped && !repeated
}
