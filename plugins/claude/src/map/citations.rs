//! Citations and images in blocks, and the summaries of a thought.

use std::{borrow::Cow, collections::BTreeSet};

use satchel_importer::{
    Arena, Attachment, AttachmentKind, Citation,
    address::{is_uri, unsigned},
    json::{Object, objects},
};

/// Citations or images of one message; the sandbox's memory must hold them. The blocks keep all.
const MAX_CITATIONS: usize = 10_000;

/// Appends the citations of a text, given as JSON text.
pub(super) fn read<'a>(raw: &'a str, citations: &mut Vec<Citation<'a>>, arena: &'a Arena) {
    let left = MAX_CITATIONS.saturating_sub(citations.len());
    let cited = |object: &Object<'a>| {
        let details = words(&object.object("details", arena), "url");
        citation(object, [details, words(object, "url")])
    };
    citations.extend(objects(raw, arena).iter().filter_map(cited).take(left));
}

/// A citation of the first of `urls` that PAM takes: a URI. The block keeps the others.
fn citation<'a, const N: usize>(object: &Object<'a>, urls: [Option<&'a str>; N]) -> Option<Citation<'a>> {
    let title = words(object, "title");
    let url = urls.into_iter().flatten().find(|url| is_uri(url));
    (title.is_some() || url.is_some()).then(|| Citation {
        title: title.map(Cow::Borrowed),
        url: url.map(unsigned),
        snippet: None,
    })
}

/// The pages and images in the results of tools.
#[derive(Default)]
pub(super) struct ResultItems<'a> {
    pages: Vec<Citation<'a>>,
    pub(super) images: Vec<Attachment<'a>>,
}

impl<'a> ResultItems<'a> {
    /// Adds the pages and images of a result, given as JSON text.
    pub(super) fn read(&mut self, raw: &'a str, arena: &'a Arena) {
        for item in objects(raw, arena) {
            match item.text("type") {
                Some("knowledge") if self.pages.len() < MAX_CITATIONS => {
                    self.pages.extend(citation(&item, [words(&item, "url")]));
                }
                Some("image") if self.images.len() < MAX_CITATIONS => self.images.extend(image(&item)),
                _ => {}
            }
        }
    }

    /// Appends the pages that no text cites yet.
    pub(super) fn append_pages(self, citations: &mut Vec<Citation<'a>>) {
        if self.pages.is_empty() {
            return;
        }
        let mut known: BTreeSet<String> =
            citations.iter().filter_map(|citation| citation.url.as_deref().map(ToOwned::to_owned)).collect();
        for page in self.pages {
            if page.url.as_deref().is_none_or(|url| known.insert(url.to_owned())) {
                citations.push(page);
            }
        }
    }
}

/// An image, whose bytes are not in the export.
fn image<'a>(item: &Object<'a>) -> Option<Attachment<'a>> {
    words(item, "file_uuid").map(|id| Attachment {
        kind: AttachmentKind::Image,
        name: words(item, "title").map(Cow::Borrowed),
        provider_id: Some(id.into()),
        ..Attachment::default()
    })
}

/// The summaries of a thought whose text is not in the export, one to a line.
pub(super) fn summaries<'a>(raw: &'a str, arena: &'a Arena) -> Option<Cow<'a, str>> {
    let objects = objects(raw, arena);
    let texts: Vec<&str> = objects.iter().filter_map(|object| words(object, "summary")).collect();
    (!texts.is_empty()).then(|| texts.join("\n").into())
}

fn words<'a>(object: &Object<'a>, key: &str) -> Option<&'a str> {
    object.text(key).filter(|text| !text.trim().is_empty())
}
