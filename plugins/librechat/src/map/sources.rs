//! Sources of an answer: pages and documents that a tool of the model searched.

use std::{borrow::Cow, collections::BTreeSet};

use satchel_importer::{
    Arena, Citation, JsonError, Parser,
    address::{is_uri, unsigned},
    json::{Object, Value},
};

use super::object::Parts;

/// Sources of one message that become citations; the metadata keeps all of them.
const MAX_CITATIONS: usize = 1_000;
/// The lists of a web search that have pages which an answer can cite.
const PAGES: [&str; 4] = ["organic", "topStories", "news", "references"];

/// The sources of one message, each page once.
#[derive(Debug, Default)]
pub(super) struct Citations<'a> {
    pub(super) list: Vec<Citation<'a>>,
    /// The pages in the list.
    pages: BTreeSet<Cow<'a, str>>,
}

impl<'a> Citations<'a> {
    /// Adds the sources in a file that has the results of a search.
    pub(super) fn read(&mut self, file: &Parts<'a>, arena: &'a Arena) {
        let results =
            |key: &str| file.get(key).raw().map(|raw| Object::parse(raw, arena)).unwrap_or_default();
        let web = results("web_search");
        for list in PAGES {
            self.add_all(web.get(list), of_page, arena);
        }
        self.add_all(results("file_search").get("sources"), of_document, arena);
    }

    /// Adds the items of a list until there are enough. The list may have a million.
    fn add_all(
        &mut self,
        list: Value<'a>,
        of: impl Fn(&Object<'a>) -> Option<Citation<'a>>,
        arena: &'a Arena,
    ) {
        let Some(raw) = list.raw().filter(|raw| raw.starts_with('[')) else { return };
        let mut json = Parser::new(raw, arena);
        let mut read = || -> Result<(), JsonError> {
            json.enter_array()?;
            while !self.is_full() && json.item()? {
                self.add(Value::read(&mut json)?.raw().and_then(|item| of(&Object::parse(item, arena))));
            }
            Ok(())
        };
        // The list was checked when it was read.
        read().unwrap_or_default();
    }

    /// Adds a source, unless it is a page that is in the list.
    pub(super) fn add(&mut self, found: Option<Citation<'a>>) {
        let Some(found) = found.filter(|_| !self.is_full()) else { return };
        if found.url.clone().is_none_or(|url| self.pages.insert(url)) {
            self.list.push(found);
        }
    }

    fn is_full(&self) -> bool {
        self.list.len() >= MAX_CITATIONS
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
