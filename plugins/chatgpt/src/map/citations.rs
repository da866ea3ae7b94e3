//! Sources of an answer, from the lists that exports of three generations carry.

use std::{borrow::Cow, collections::BTreeSet};

use satchel_importer::{
    Arena, Citation,
    address::{is_uri, unsigned},
    json::{Object, Value, objects},
};

use super::marks::{self, Mark, Reference, SourceId};
use crate::raw::Metadata;

/// A citation, if it says anything. An address that is no URI is left out.
pub(crate) fn citation<'a>(
    title: Option<&'a str>,
    url: Option<&'a str>,
    snippet: Option<&'a str>,
) -> Option<Citation<'a>> {
    let url = url.filter(|url| is_uri(url));
    if title.is_none() && url.is_none() {
        return None;
    }
    Some(Citation {
        title: title.map(Cow::Borrowed),
        url: url.map(unsigned),
        snippet: snippet.map(Cow::Borrowed),
    })
}

/// The entries of `content_references`.
pub(crate) struct References<'a>(Vec<Object<'a>>);

impl<'a> References<'a> {
    pub(crate) fn read(metadata: &Metadata<'a>, arena: &'a Arena) -> Self {
        Self(metadata.references.map(|raw| objects(raw, arena)).unwrap_or_default())
    }

    /// What marks need of them.
    pub(crate) fn for_marks(&self) -> Vec<Reference<'a>> {
        let reference = |object: &Object<'a>| Reference {
            kind: object.text("type").unwrap_or_default(),
            matched: object.text("matched_text"),
            alt: object.text("alt"),
        };
        self.0.iter().map(reference).collect()
    }

    /// The reference that repeats a mark.
    fn matching(&self, mark: &Mark<'_>) -> Option<&Object<'a>> {
        self.0.iter().find(|reference| reference.text("matched_text") == Some(mark.whole))
    }

    /// The reference at a mark's place, among those of its type that repeat no mark.
    fn at_place(&self, mark: &Mark<'_>) -> Option<&Object<'a>> {
        let unmatched = self.0.iter().filter(|reference| reference.text("matched_text").is_none());
        let kind = |reference: &Object<'a>| reference.text("type").unwrap_or_default();
        unmatched.filter(|reference| marks::same_kind(mark.kind, kind(reference))).nth(mark.nth)
    }
}

/// Address, and title where there is no address.
type Identity<'a> = (Option<Cow<'a, str>>, Option<Cow<'a, str>>);
/// A search result's name: turn, kind, index.
type Id<'a> = (u64, &'a str, u64);

/// A page, and the names under which marks cite it.
struct Page<'a> {
    ids: Vec<Id<'a>>,
    citation: Citation<'a>,
}

/// Collects citations, each once.
#[derive(Default)]
pub(crate) struct Collector<'a> {
    found: Vec<Citation<'a>>,
    seen: BTreeSet<Identity<'a>>,
}

impl<'a> Collector<'a> {
    pub(crate) fn add(&mut self, citation: Option<Citation<'a>>) {
        let Some(citation) = citation else { return };
        // Pages repeat under other titles; the address tells them apart where there is one.
        let title = if citation.url.is_some() { None } else { citation.title.clone() };
        if self.seen.insert((citation.url.clone(), title)) {
            self.found.push(citation);
        }
    }

    /// What `metadata` names: `citations`, and of `content_references` and the search results what the text's marks cite.
    /// Where there are no such marks, all of `content_references`.
    pub(crate) fn read(
        &mut self,
        metadata: &Metadata<'a>,
        references: &References<'a>,
        marks: &[Mark<'_>],
        arena: &'a Arena,
    ) {
        for entry in metadata.citations.map(|raw| objects(raw, arena)).unwrap_or_default() {
            self.add(of_2023(&entry.object("metadata", arena)));
        }
        let citing = |mark: &&Mark<'_>| !mark.ids.is_empty() || references.matching(mark).is_some();
        let citing: Vec<&Mark<'_>> = marks.iter().filter(citing).collect();
        if citing.is_empty() {
            for reference in &references.0 {
                for page in pages(reference, arena) {
                    self.add(Some(page.citation));
                }
            }
            return;
        }
        let all: Vec<Page<'a>> = references.0.iter().flat_map(|reference| pages(reference, arena)).collect();
        let searches = metadata.searches.map(|raw| results(raw, arena)).unwrap_or_default();
        for mark in citing {
            self.resolve(mark, references, &all, &searches, arena);
        }
    }

    /// By the mark itself, else by the names in it, else by its place.
    fn resolve(
        &mut self,
        mark: &Mark<'_>,
        references: &References<'a>,
        all: &[Page<'a>],
        searches: &[Page<'a>],
        arena: &'a Arena,
    ) {
        let mut named = references.matching(mark).map(|found| primary(found, arena)).unwrap_or_default();
        let mut found = !named.is_empty();
        let covered: Vec<Id<'a>> = named.iter().flat_map(|page| page.ids.clone()).collect();
        // Without names on its pages there is no telling which of the mark's names they stand for.
        let left = |id: &&SourceId<'_>| !found || (!covered.is_empty() && !covered.contains(&key(id)));
        let left: Vec<&SourceId<'_>> = mark.ids.iter().filter(left).collect();
        for page in named.drain(..) {
            self.add(Some(page.citation));
        }
        for id in left {
            let is_it = |page: &&Page<'a>| page.ids.contains(&key(id));
            if let Some(page) = all.iter().find(is_it).or_else(|| searches.iter().find(is_it)) {
                self.add(Some(page.citation.clone()));
                found = true;
            }
        }
        if !found && let Some(reference) = references.at_place(mark) {
            for page in primary(reference, arena) {
                self.add(Some(page.citation));
            }
        }
    }

    pub(crate) fn finish(self) -> Vec<Citation<'a>> {
        self.found
    }
}

fn key<'i>(id: &SourceId<'i>) -> Id<'i> {
    (u64::from(id.turn), id.kind, u64::from(id.index))
}

/// The pages of a reference: its own, its items, and those that would do instead.
fn pages<'a>(reference: &Object<'a>, arena: &'a Arena) -> Vec<Page<'a>> {
    let mut found = pages_in(reference, &["items", "sources"], arena);
    found.extend(listed(reference, "fallback_items", arena));
    found
}

/// The pages that a reference stands for; those that would do instead only if there is no other.
fn primary<'a>(reference: &Object<'a>, arena: &'a Arena) -> Vec<Page<'a>> {
    let found = pages_in(reference, &["items", "sources"], arena);
    if found.is_empty() { listed(reference, "fallback_items", arena) } else { found }
}

fn pages_in<'a>(reference: &Object<'a>, keys: &[&str], arena: &'a Arena) -> Vec<Page<'a>> {
    // Files that the person gave have a name and no address; an entity's name is no source.
    let file = reference.text("type") == Some("file") && reference.text("name").is_some();
    let own = if file || reference.text("url").is_some() { page(reference, arena) } else { None };
    own.into_iter().chain(keys.iter().flat_map(|key| listed(reference, key, arena))).collect()
}

fn listed<'a>(reference: &Object<'a>, key: &str, arena: &'a Arena) -> Vec<Page<'a>> {
    let mut found = Vec::new();
    for item in reference.objects(key, arena) {
        found.extend(item.text("url").and_then(|_| page(&item, arena)));
        let beside = item.objects("supporting_websites", arena);
        found.extend(
            beside.iter().filter(|item| item.text("url").is_some()).filter_map(|item| page(item, arena)),
        );
    }
    found
}

fn page<'a>(object: &Object<'a>, arena: &'a Arena) -> Option<Page<'a>> {
    let title = object.text("title").or(object.text("name"));
    let citation = citation(title, object.text("url"), object.text("snippet"))?;
    let ids = object.items("refs", arena).into_iter().filter_map(|item| id(item, arena)).collect();
    Some(Page { ids, citation })
}

/// The pages among the search results.
fn results<'a>(searches: &'a str, arena: &'a Arena) -> Vec<Page<'a>> {
    let mut found = Vec::new();
    for group in objects(searches, arena) {
        for entry in group.objects("entries", arena) {
            let ids = id(entry.get("ref_id"), arena).into_iter().collect();
            let citation = citation(entry.text("title"), entry.text("url"), entry.text("snippet"));
            found.extend(citation.map(|citation| Page { ids, citation }));
        }
    }
    found
}

/// `{"turn_index": 0, "ref_type": "search", "ref_index": 3}` or `"turn0search3"`.
fn id<'a>(value: Value<'a>, arena: &'a Arena) -> Option<Id<'a>> {
    match value {
        Value::Null => None,
        Value::Text(text) => SourceId::parse(text).map(|id| key(&id)),
        Value::Raw(raw) => {
            let id = Object::parse(raw, arena);
            Some((id.get("turn_index").as_u64()?, id.text("ref_type")?, id.get("ref_index").as_u64()?))
        }
    }
}

fn of_2023<'a>(about: &Object<'a>) -> Option<Citation<'a>> {
    citation(about.text("title").or(about.text("name")), about.text("url"), about.text("text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_page_is_cited_once() {
        let mut all = Collector::default();
        all.add(citation(Some("A"), Some("https://example.com"), None));
        all.add(citation(Some("B"), Some("https://example.com"), None));
        all.add(citation(Some("A"), None, None));
        all.add(citation(None, Some("file-1"), Some("dropped")));
        assert_eq!(all.finish().len(), 2);
    }
}
