//! Sources of an answer: pages and documents that a tool of the model searched.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Citation,
    address::{is_uri, unsigned},
    json::Object,
};

use super::object::Parts;

/// Sources of one message that become citations; the metadata keeps all of them.
const MAX_CITATIONS: usize = 1_000;
/// The lists of a web search that have pages which an answer can cite.
const PAGES: [&str; 4] = ["organic", "topStories", "news", "references"];

/// Adds the citations of a file that has the results of a search.
pub(super) fn read<'a>(file: &Parts<'a>, citations: &mut Vec<Citation<'a>>, arena: &'a Arena) {
    let results = |key: &str| file.get(key).raw().map(|raw| Object::parse(raw, arena)).unwrap_or_default();
    let web = results("web_search");
    let pages = PAGES.iter().flat_map(|list| web.objects(list, arena));
    let documents = results("file_search").objects("sources", arena);
    for found in pages.filter_map(|page| of_page(&page)).chain(documents.iter().filter_map(of_document)) {
        // The references repeat pages that were found.
        let repeated = found.url.is_some() && citations.iter().any(|other| other.url == found.url);
        if !repeated && citations.len() < MAX_CITATIONS {
            citations.push(found);
        }
    }
}

fn of_page<'a>(page: &Object<'a>) -> Option<Citation<'a>> {
    let address = page.text("link").or_else(|| page.text("url"));
    let url = address.filter(|url| url.starts_with("http") && is_uri(url)).map(unsigned);
    citation(page.text("title"), url, page.text("snippet"))
}

fn of_document<'a>(document: &Object<'a>) -> Option<Citation<'a>> {
    citation(document.text("fileName"), None, document.text("content"))
}

/// The citation with what is known of a source; none if nothing is.
pub(super) fn citation<'a>(
    title: Option<&'a str>,
    url: Option<Cow<'a, str>>,
    snippet: Option<&'a str>,
) -> Option<Citation<'a>> {
    let known = title.is_some() || url.is_some() || snippet.is_some();
    known.then(|| Citation { title: title.map(Cow::Borrowed), url, snippet: snippet.map(Cow::Borrowed) })
}
