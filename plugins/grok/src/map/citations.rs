//! Sources of an answer. Up to four lists of a response have the same page; it is cited once.

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
type Details<'a> = BTreeMap<&'a str, (Option<&'a str>, Option<&'a str>)>;

/// The pages that the text cites, in its order, then those that the provider lists as cited. Other search results stay in
/// the metadata.
pub(super) fn read<'a>(
    raw: &Response<'a>,
    cards: &Cards<'a>,
    in_text: &[&'a str],
    arena: &'a Arena,
) -> Vec<Citation<'a>> {
    let by_id: BTreeMap<&str, &Card<'a>> =
        cards.all.iter().filter_map(|card| Some((card.id?, card))).collect();
    let in_text = in_text.iter().filter_map(|id| by_id.get(id).copied());
    let mut pages: Vec<(&'a str, Option<&'a str>)> = Vec::new();
    pages.extend(in_text.chain(&cards.all).filter_map(|card| Some((card.url?, card.title))));
    let mut details = Details::new();
    visit_objects(raw.cited, arena, |page| {
        pages.extend(page.text("url").map(|url| (url, None)));
        add_details(&page, &mut details);
    });
    if !pages.is_empty() {
        visit_objects(raw.found, arena, |page| add_details(&page, &mut details));
        visit_objects(raw.steps, arena, |step| {
            visit_objects(step.get("web_search_results"), arena, |page| add_details(&page, &mut details));
        });
    }
    let mut seen = BTreeSet::new();
    pages.retain(|(url, _)| is_uri(url) && seen.insert(*url));
    pages.into_iter().map(|(url, title)| citation(url, title, &details)).collect()
}

fn add_details<'a>(page: &Object<'a>, details: &mut Details<'a>) {
    let Some(url) = page.text("url") else { return };
    let text = ["preview", "snippet", "description"].into_iter().find_map(|key| page.text(key));
    let (title, preview) = details.entry(url).or_default();
    *title = title.or(page.text("title"));
    *preview = preview.or(text);
}

fn citation<'a>(url: &'a str, title: Option<&'a str>, details: &Details<'a>) -> Citation<'a> {
    let (known, preview) = details.get(url).copied().unwrap_or_default();
    Citation {
        title: title.or(known).map(Cow::Borrowed),
        url: Some(unsigned(url)),
        snippet: preview.map(Cow::Borrowed),
    }
}
