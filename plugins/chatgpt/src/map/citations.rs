//! Sources of an answer, from the lists that exports of three generations carry.

use std::{borrow::Cow, collections::BTreeSet};

use satchel_importer::{
    Arena, Citation,
    address::{is_uri, unsigned},
    json::{Object, objects},
};

use super::marks::{Reference, SourceId};
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
            alt: object.text("alt").unwrap_or_default(),
        };
        self.0.iter().map(reference).collect()
    }
}

/// Address, and title where there is no address.
type Identity<'a> = (Option<Cow<'a, str>>, Option<Cow<'a, str>>);

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

    /// All that `metadata` names: `citations`, `content_references`, and the search results that the text cites.
    pub(crate) fn read(
        &mut self,
        metadata: &Metadata<'a>,
        references: &References<'a>,
        cited: &[SourceId<'_>],
        arena: &'a Arena,
    ) {
        for entry in metadata.citations.map(|raw| objects(raw, arena)).unwrap_or_default() {
            self.add(of_2023(&entry.object("metadata", arena)));
        }
        for reference in &references.0 {
            self.read_reference(reference, arena);
        }
        if let Some(searches) = metadata.searches.filter(|_| !cited.is_empty()) {
            self.read_searches(searches, cited, arena);
        }
    }

    fn read_reference(&mut self, reference: &Object<'a>, arena: &'a Arena) {
        if reference.text("url").is_some() {
            self.add(plain(reference));
        }
        for key in ["items", "fallback_items"] {
            let list = reference.objects(key, arena);
            for item in list.iter().filter(|item| item.text("url").is_some()) {
                self.add(plain(item));
            }
        }
    }

    fn read_searches(&mut self, searches: &'a str, cited: &[SourceId<'_>], arena: &'a Arena) {
        let cited: BTreeSet<(u64, &str, u64)> =
            cited.iter().map(|id| (u64::from(id.turn), id.kind, u64::from(id.index))).collect();
        for group in objects(searches, arena) {
            for entry in group.objects("entries", arena) {
                let id = entry.object("ref_id", arena);
                let id = (id.get("turn_index").as_u64(), id.text("ref_type"), id.get("ref_index").as_u64());
                if let (Some(turn), Some(kind), Some(index)) = id
                    && cited.contains(&(turn, kind, index))
                {
                    self.add(plain(&entry));
                }
            }
        }
    }

    pub(crate) fn finish(self) -> Vec<Citation<'a>> {
        self.found
    }
}

fn plain<'a>(object: &Object<'a>) -> Option<Citation<'a>> {
    citation(object.text("title"), object.text("url"), object.text("snippet"))
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
