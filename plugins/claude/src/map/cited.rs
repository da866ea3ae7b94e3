//! Small lists inside blocks: sources of a text, finds of a tool, summaries of a thought.

use std::{borrow::Cow, collections::BTreeSet};

use satchel_importer::{
    Arena, Attachment, AttachmentKind, Citation, JsonError, Parser,
    address::{is_uri, unsigned},
    json::{Kind, Object, objects},
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

/// What a tool found and showed.
#[derive(Default)]
pub(super) struct Finds<'a> {
    pages: Vec<Citation<'a>>,
    pub(super) images: Vec<Attachment<'a>>,
}

/// An item of what a tool answered.
#[derive(Default)]
struct FoundItem<'a> {
    kind: Option<&'a str>,
    title: Option<&'a str>,
    url: Option<&'a str>,
    file: Option<&'a str>,
}

impl<'a> Finds<'a> {
    /// Takes the pages and images of an answer that is more than text, given as JSON text.
    pub(super) fn read(&mut self, raw: &'a str, arena: &'a Arena) {
        let mut json = Parser::new(raw, arena);
        // The value was walked when it was taken, so there is no error.
        self.read_items(&mut json).unwrap_or_default();
    }

    fn read_items(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
        if !json.enter_array()? {
            return Ok(());
        }
        while json.item()? {
            let item = FoundItem::read(json)?;
            match item.kind {
                Some("knowledge") if self.pages.len() < MAX_CITATIONS => self.pages.extend(item.page()),
                Some("image") if self.images.len() < MAX_CITATIONS => self.images.extend(item.image()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Appends the pages that no text cites yet.
    pub(super) fn append(self, citations: &mut Vec<Citation<'a>>) {
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

impl<'a> FoundItem<'a> {
    fn read(json: &mut Parser<'a>) -> Result<Self, JsonError> {
        let mut it = Self::default();
        if !json.enter_object()? {
            return Ok(it);
        }
        while let Some(key) = json.key()? {
            let slot = match key {
                "type" => &mut it.kind,
                "title" => &mut it.title,
                "url" => &mut it.url,
                "file_uuid" => &mut it.file,
                _ => continue,
            };
            if json.kind()? == Kind::String {
                *slot = Some(json.string()?).filter(|text| !text.trim().is_empty());
            }
        }
        Ok(it)
    }

    fn page(self) -> Option<Citation<'a>> {
        let url = self.url.filter(|url| is_uri(url)).map(unsigned);
        (self.title.is_some() || url.is_some()).then(|| Citation {
            title: self.title.map(Cow::Borrowed),
            url,
            snippet: None,
        })
    }

    /// The image's bytes are not in the export.
    fn image(self) -> Option<Attachment<'a>> {
        self.file.map(|id| Attachment {
            kind: AttachmentKind::Image,
            name: self.title.map(Cow::Borrowed),
            provider_id: Some(id.into()),
            ..Attachment::default()
        })
    }
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
