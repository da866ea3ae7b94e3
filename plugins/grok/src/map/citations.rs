//! Sources of an answer. The same page stands in up to four lists of a response; it is cited once.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use satchel_importer::{
    Arena, Citation,
    address::{is_uri, unsigned},
    json::Object,
};

use super::cards::{Card, Cards};
use crate::raw::{Response, visit_objects};

/// Title and preview of a page.
type Facts<'a> = BTreeMap<&'a str, (Option<&'a str>, Option<&'a str>)>;

/// The pages that the text cites, in its order, then those that the provider lists as cited. Pages that were only found
/// stay in the metadata.
pub(super) fn read<'a>(
    raw: &Response<'a>,
    cards: &Cards<'a>,
    shown: &[&'a str],
    arena: &'a Arena,
) -> Vec<Citation<'a>> {
    let by_id: BTreeMap<&str, &Card<'a>> =
        cards.all.iter().filter_map(|card| Some((card.id?, card))).collect();
    let in_text = shown.iter().filter_map(|id| by_id.get(id).copied());
    let mut pages: Vec<(&'a str, Option<&'a str>)> = Vec::new();
    pages.extend(in_text.chain(&cards.all).filter_map(|card| Some((card.url?, card.title))));
    let mut facts = Facts::new();
    visit_objects(raw.cited, arena, |page| {
        pages.extend(page.text("url").map(|url| (url, None)));
        note(&page, &mut facts);
    });
    if !pages.is_empty() {
        visit_objects(raw.found, arena, |page| note(&page, &mut facts));
        visit_objects(raw.steps, arena, |step| {
            visit_objects(step.get("web_search_results"), arena, |page| note(&page, &mut facts));
        });
    }
    let mut seen = BTreeSet::new();
    pages.retain(|(url, _)| is_uri(url) && seen.insert(*url));
    pages.into_iter().map(|(url, title)| citation(url, title, &facts)).collect()
}

fn note<'a>(page: &Object<'a>, facts: &mut Facts<'a>) {
    let Some(url) = page.text("url") else { return };
    let said = ["preview", "snippet", "description"].into_iter().find_map(|key| page.text(key));
    let (title, preview) = facts.entry(url).or_default();
    *title = title.or(page.text("title"));
    *preview = preview.or(said);
}

fn citation<'a>(url: &'a str, title: Option<&'a str>, facts: &Facts<'a>) -> Citation<'a> {
    let (known, preview) = facts.get(url).copied().unwrap_or_default();
    Citation {
        title: title.or(known).map(Cow::Borrowed),
        url: Some(unsigned(url)),
        snippet: preview.map(Cow::Borrowed),
    }
}
