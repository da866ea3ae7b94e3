//! The blocks of an entry: the answer, whole or in pieces, and the sources that were found for it.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Citation, Leftover, address,
    json::{Object, Value, items, texts},
    pam::prose,
};

use super::keep;

/// What the blocks of an entry come to.
#[derive(Default)]
pub(super) struct Blocks<'a> {
    pub(super) answer: Option<Cow<'a, str>>,
    pub(super) citations: Vec<Citation<'a>>,
    /// The question, as a step of the plan has it.
    pub(super) query: Option<&'a str>,
    /// The blocks without the words of the answer, as JSON text.
    pub(super) kept: Option<String>,
    /// Blocks have words that are neither the answer nor a part of it.
    pub(super) unread: bool,
}

/// What the use of the answer begins with.
const ANSWER: &str = "ask_text";

/// A block by its use and its words.
struct Block<'a> {
    fields: Object<'a>,
    odd: Option<Value<'a>>,
    usage: &'a str,
    words: Option<Cow<'a, str>>,
}

pub(super) fn read<'a>(raw: &'a str, arena: &'a Arena) -> Blocks<'a> {
    let blocks: Vec<Block<'a>> = items(raw, arena).into_iter().map(|item| Block::read(item, arena)).collect();
    let speaking = speaking(&blocks);
    let mut citations = Vec::new();
    let mut kept = Vec::with_capacity(blocks.len());
    for (at, block) in blocks.iter().enumerate() {
        block.cite(&mut citations, arena);
        kept.push(block.without_words(speaking.contains(&at), arena));
    }
    let mut words = speaking.iter().filter_map(|at| blocks.get(*at)?.words.clone());
    let answer = match (words.next(), words.next()) {
        (first, None) => first,
        (first, second) => {
            Some(Cow::Owned(first.into_iter().chain(second).chain(words).collect::<Vec<_>>().concat()))
        }
    };
    let answer = answer.or_else(|| workflow(&blocks, arena).map(Cow::Owned));
    let query = blocks.iter().find_map(|block| block.query(arena));
    // Pieces of the answer may say the same in other words than all of it.
    let other =
        |(at, block): &(usize, &Block<'_>)| !speaking.contains(at) && !block.usage.starts_with(ANSWER);
    let others = blocks.iter().enumerate().filter(other);
    let unread = others.filter_map(|(_, block)| block.words.as_deref()).any(|words| {
        prose::is_prose(words) && answer.as_deref().is_none_or(|answer| !answer.contains(words.trim()))
    });
    let kept = (!kept.is_empty()).then(|| format!("[{}]", kept.join(",")));
    Blocks { answer, citations, query, kept, unread }
}

/// The answer in the steps of a workflow: its items that are marked as such, else all that hold words. It stays in the blocks too.
fn workflow(blocks: &[Block<'_>], arena: &Arena) -> Option<String> {
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
    let said = if answers.is_empty() { others } else { answers };
    (!said.is_empty()).then(|| said.join("\n\n"))
}

/// Which blocks are the answer: the one that holds all of it, else those that each hold a piece, else the first with
/// words.
fn speaking(blocks: &[Block<'_>]) -> Vec<usize> {
    let places = |usage: fn(&str) -> bool| {
        let speaks = move |(at, block): (usize, &Block<'_>)| {
            (block.words.is_some() && usage(block.usage)).then_some(at)
        };
        blocks.iter().enumerate().filter_map(speaks).collect::<Vec<usize>>()
    };
    let whole = places(|usage| usage == ANSWER);
    let pieces = places(|usage| usage.starts_with("ask_text_"));
    let any = places(|_| true);
    [whole.into_iter().take(1).collect(), pieces, any.into_iter().take(1).collect()]
        .into_iter()
        .find(|found: &Vec<usize>| !found.is_empty())
        .unwrap_or_default()
}

impl<'a> Block<'a> {
    fn read(item: Value<'a>, arena: &'a Arena) -> Self {
        let raw = item.raw().filter(|raw| raw.starts_with('{'));
        let fields = raw.map(|raw| Object::parse(raw, arena)).unwrap_or_default();
        let words = words(&fields.object("markdown_block", arena), arena);
        let usage = fields.text("intended_usage").unwrap_or_default();
        Self { fields, odd: raw.is_none().then_some(item), usage, words }
    }

    /// The question, where the block is the plan that it led to.
    fn query(&self, arena: &'a Arena) -> Option<&'a str> {
        let steps = self.fields.object("plan_block", arena).objects("steps", arena);
        steps.iter().find_map(|step| step.object("initial_query_content", arena).text("query"))
    }

    /// Its JSON text; of the answer's blocks without the words, which the message says.
    fn without_words(&self, speaks: bool, arena: &'a Arena) -> String {
        if let Some(odd) = self.odd {
            return odd.json().into_owned();
        }
        let mut rest = Leftover::default();
        for (key, value) in self.fields.fields() {
            match value {
                Value::Raw(raw) if speaks && key == "markdown_block" => {
                    let mut inner = Leftover::default();
                    for (key, value) in Object::parse(raw, arena).fields() {
                        if !self.said(key, value, arena) {
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

    /// Whether a field of the markdown says what the message says.
    fn said(&self, key: &str, value: Value<'a>, arena: &'a Arena) -> bool {
        match (key, value) {
            ("answer", Value::Text(text)) => self.words.as_deref() == Some(text),
            ("chunks", Value::Raw(raw)) => {
                items(raw, arena).iter().all(|item| item.text().is_some())
                    && self.words.as_deref() == Some(&texts(raw, arena).concat())
            }
            _ => false,
        }
    }

    fn cite(&self, citations: &mut Vec<Citation<'a>>, arena: &'a Arena) {
        for (block, lists) in
            [("web_result_block", &["web_results"][..]), ("sources_mode_block", &["web_results", "rows"])]
        {
            let block = self.fields.object(block, arena);
            for item in lists.iter().flat_map(|list| block.items(list, arena)) {
                source(item, citations, arena);
            }
        }
    }
}

fn words<'a>(markdown: &Object<'a>, arena: &'a Arena) -> Option<Cow<'a, str>> {
    if let Some(answer) = markdown.text("answer") {
        return Some(Cow::Borrowed(answer));
    }
    let pieces = texts(markdown.get("chunks").raw()?, arena);
    let text = pieces.concat();
    (!text.is_empty()).then_some(Cow::Owned(text))
}

/// Adds a source unless one with its address is there; false if the item holds more than a citation has room for.
pub(super) fn source<'a>(item: Value<'a>, citations: &mut Vec<Citation<'a>>, arena: &'a Arena) -> bool {
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
