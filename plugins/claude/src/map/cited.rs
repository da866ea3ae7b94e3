//! Small lists inside blocks: sources of a text, summaries of a thought.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Citation,
    address::{is_uri, unsigned},
    json::{Object, objects},
};

/// Sources of one message; the block keeps all of them. The bound is one of the sandbox's memory.
const MAX_CITATIONS: usize = 10_000;

/// Appends the sources of a text, given as JSON text.
pub(super) fn read<'a>(raw: &'a str, citations: &mut Vec<Citation<'a>>, arena: &'a Arena) {
    let left = MAX_CITATIONS.saturating_sub(citations.len());
    citations.extend(objects(raw, arena).iter().filter_map(|object| citation(object, arena)).take(left));
}

fn citation<'a>(object: &Object<'a>, arena: &'a Arena) -> Option<Citation<'a>> {
    let title = words(object, "title");
    // PAM takes nothing but a URI; other texts stay in the block.
    let addresses = [words(&object.object("details", arena), "url"), words(object, "url")];
    let url = addresses.into_iter().flatten().find(|url| is_uri(url));
    (title.is_some() || url.is_some()).then(|| Citation {
        title: title.map(Cow::Borrowed),
        url: url.map(unsigned),
        snippet: None,
    })
}

/// The summaries of a thought whose words are not in the export, one to a line.
pub(super) fn summaries<'a>(raw: &'a str, arena: &'a Arena) -> Option<Cow<'a, str>> {
    let objects = objects(raw, arena);
    let texts: Vec<&str> = objects.iter().filter_map(|object| words(object, "summary")).collect();
    (!texts.is_empty()).then(|| texts.join("\n").into())
}

fn words<'a>(object: &Object<'a>, key: &str) -> Option<&'a str> {
    object.text(key).filter(|text| !text.trim().is_empty())
}
