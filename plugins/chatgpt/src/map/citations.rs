//! The sources of an answer, from the lists in exports of three generations.

use std::{borrow::Cow, collections::BTreeSet};

use satchel_importer::{
    Arena, Citation,
    address::{is_uri, unsigned},
    json::{Object, Value, objects},
};

use super::markers::{self, Marker, Reference, SourceId};
use crate::raw::Metadata;

/// A citation; none without a title and a URI. An address that is no URI is left out.
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

    /// Their fields that replace markers.
    pub(crate) fn for_markers(&self) -> Vec<Reference<'a>> {
        let reference = |object: &Object<'a>| Reference {
            kind: object.text("type").unwrap_or_default(),
            matched: object.text("matched_text"),
            alt: object.text("alt"),
        };
        self.0.iter().map(reference).collect()
    }

    /// The reference with the text of a marker.
    fn matching(&self, marker: &Marker<'_>) -> Option<&Object<'a>> {
        self.0.iter().find(|reference| reference.text("matched_text") == Some(marker.text))
    }

    /// The reference at the position of a marker, among those of its type without `matched_text`.
    fn at_position(&self, marker: &Marker<'_>) -> Option<&Object<'a>> {
        let unmatched = self.0.iter().filter(|reference| reference.text("matched_text").is_none());
        let kind = |reference: &Object<'a>| reference.text("type").unwrap_or_default();
        unmatched.filter(|reference| markers::same_kind(marker.kind, kind(reference))).nth(marker.nth)
    }
}

/// Address, or title if there is no address.
type Identity<'a> = (Option<Cow<'a, str>>, Option<Cow<'a, str>>);

/// A page, and the ids under which markers cite it.
struct Page<'a> {
    ids: Vec<SourceId<'a>>,
    citation: Citation<'a>,
}

/// Collects the sources of an answer, each once: `own` citations of its content, all `citations` of `metadata`, and those of its
/// `content_references` and search results that the markers cite. If no marker cites any, takes all `content_references`.
pub(crate) fn collect<'a>(
    own: Vec<Citation<'a>>,
    metadata: &Metadata<'a>,
    references: &References<'a>,
    markers: &[Marker<'_>],
    arena: &'a Arena,
) -> Vec<Citation<'a>> {
    let mut collector = Collector::default();
    let listed = metadata.citations.map(|raw| objects(raw, arena)).unwrap_or_default();
    let listed = listed.iter().filter_map(|entry| old_citation(&entry.object("metadata", arena)));
    own.into_iter().chain(listed).for_each(|citation| collector.add(citation));
    let pages: Vec<Page<'a>> = references.0.iter().flat_map(|reference| pages(reference, arena)).collect();
    let citing = |marker: &&Marker<'_>| !marker.ids.is_empty() || references.matching(marker).is_some();
    let mut citing = markers.iter().filter(citing).peekable();
    if citing.peek().is_none() {
        collector.add_pages(pages);
        return collector.found;
    }
    let results = metadata.searches.map(|raw| search_results(raw, arena)).unwrap_or_default();
    for marker in citing {
        collector.resolve(marker, references, &pages, &results, arena);
    }
    collector.found
}

/// Collects citations, each once.
#[derive(Default)]
struct Collector<'a> {
    found: Vec<Citation<'a>>,
    seen: BTreeSet<Identity<'a>>,
}

impl<'a> Collector<'a> {
    fn add(&mut self, citation: Citation<'a>) {
        // The same page may have several titles, so the address identifies it if there is one.
        let title = if citation.url.is_some() { None } else { citation.title.clone() };
        if self.seen.insert((citation.url.clone(), title)) {
            self.found.push(citation);
        }
    }

    fn add_pages(&mut self, pages: Vec<Page<'a>>) {
        pages.into_iter().for_each(|page| self.add(page.citation));
    }

    /// Adds the pages of the reference with the marker's text, else those with its ids, else those at its position.
    fn resolve(
        &mut self,
        marker: &Marker<'_>,
        references: &References<'a>,
        pages: &[Page<'a>],
        results: &[Page<'a>],
        arena: &'a Arena,
    ) {
        let matching =
            references.matching(marker).map(|found| primary_pages(found, arena)).unwrap_or_default();
        let mut found = !matching.is_empty();
        let covered: Vec<SourceId<'a>> = matching.iter().flat_map(|page| page.ids.clone()).collect();
        // If the pages have no ids, they may cover any id of the marker.
        let left = |id: &&SourceId<'_>| !found || (!covered.is_empty() && !covered.contains(*id));
        let left: Vec<&SourceId<'_>> = marker.ids.iter().filter(left).collect();
        self.add_pages(matching);
        for id in left {
            let cited = |page: &&Page<'a>| page.ids.contains(id);
            if let Some(page) = pages.iter().chain(results).find(cited) {
                self.add(page.citation.clone());
                found = true;
            }
        }
        if !found && let Some(reference) = references.at_position(marker) {
            self.add_pages(primary_pages(reference, arena));
        }
    }
}

/// The pages of a reference, including its fallback items.
fn pages<'a>(reference: &Object<'a>, arena: &'a Arena) -> Vec<Page<'a>> {
    let mut found = own_pages(reference, arena);
    found.extend(listed(reference, "fallback_items", arena));
    found
}

/// The pages of a reference; its fallback items only if it has no other.
fn primary_pages<'a>(reference: &Object<'a>, arena: &'a Arena) -> Vec<Page<'a>> {
    let found = own_pages(reference, arena);
    if found.is_empty() { listed(reference, "fallback_items", arena) } else { found }
}

fn own_pages<'a>(reference: &Object<'a>, arena: &'a Arena) -> Vec<Page<'a>> {
    // Uploaded files have a name and no address; the name of an entity is no source.
    let file = reference.text("type") == Some("file") && reference.text("name").is_some();
    let own = if file || reference.text("url").is_some() { page(reference, arena) } else { None };
    own.into_iter().chain(["items", "sources"].iter().flat_map(|key| listed(reference, key, arena))).collect()
}

fn listed<'a>(reference: &Object<'a>, key: &str, arena: &'a Arena) -> Vec<Page<'a>> {
    let mut found = Vec::new();
    for item in reference.objects(key, arena) {
        found.extend(item.text("url").and_then(|_| page(&item, arena)));
        let supporting = item.objects("supporting_websites", arena);
        let supporting = supporting.iter().filter(|item| item.text("url").is_some());
        found.extend(supporting.filter_map(|item| page(item, arena)));
    }
    found
}

fn page<'a>(object: &Object<'a>, arena: &'a Arena) -> Option<Page<'a>> {
    let title = object.text("title").or(object.text("name"));
    let citation = citation(title, object.text("url"), object.text("snippet"))?;
    let ids = object.items("refs", arena).into_iter().filter_map(|item| source_id(item, arena)).collect();
    Some(Page { ids, citation })
}

/// The pages in `search_result_groups`.
fn search_results<'a>(groups: &'a str, arena: &'a Arena) -> Vec<Page<'a>> {
    let mut found = Vec::new();
    for group in objects(groups, arena) {
        for entry in group.objects("entries", arena) {
            let ids = source_id(entry.get("ref_id"), arena).into_iter().collect();
            let citation = citation(entry.text("title"), entry.text("url"), entry.text("snippet"));
            found.extend(citation.map(|citation| Page { ids, citation }));
        }
    }
    found
}

/// `{"turn_index": 0, "ref_type": "search", "ref_index": 3}` or `"turn0search3"`.
fn source_id<'a>(value: Value<'a>, arena: &'a Arena) -> Option<SourceId<'a>> {
    match value {
        Value::Null => None,
        Value::Text(text) => SourceId::parse(text),
        Value::Raw(raw) => {
            let id = Object::parse(raw, arena);
            let number = |key| id.get(key).as_u64();
            Some(SourceId {
                turn: number("turn_index")?,
                kind: id.text("ref_type")?,
                index: number("ref_index")?,
            })
        }
    }
}

/// An entry of `citations`, as exports have them since 2023.
fn old_citation<'a>(about: &Object<'a>) -> Option<Citation<'a>> {
    citation(about.text("title").or(about.text("name")), about.text("url"), about.text("text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_page_is_cited_once() {
        let mut all = Collector::default();
        let address = Some("https://example.com");
        let found = [
            citation(Some("A"), address, None),
            citation(Some("B"), address, None),
            citation(Some("A"), None, None),
            citation(None, Some("file-1"), Some("dropped")),
        ];
        found.into_iter().flatten().for_each(|citation| all.add(citation));
        assert_eq!(all.found.len(), 2);
    }
}
