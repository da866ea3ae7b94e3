//! Reads one card of an activity page as a row.
//!
//! A card has a header cell (the product), a body cell (title, files, time, then the answer), a cell at the right
//! (pictures) and a caption cell (product, conversations, why the card exists). The lines of the body are separated by
//! `<br>`, or are a heading and paragraphs. In both forms, the first line that is a time separates prompt and answer.

use std::rc::Rc;

use satchel_importer::same_text;

use super::row::ReadMode;
use crate::html::{EventFilter, walk_filtered};

mod builder;
mod caption;
mod line;

use builder::{Card, CardBuilder, Cell, Step};
use caption::Caption;

/// The longest prefix or suffix of a card that is cached, in bytes. Usual ones have some hundred.
const MAX_CACHED: usize = 8 * 1024;

/// Reads the HTML of one card.
pub(crate) fn read(html: &str, mode: ReadMode) -> Card {
    CardReader::new(mode).read(html)
}

/// Reads one card after another. The HTML around the body is mostly identical in all cards, so the result of the card
/// before is cached.
pub(crate) struct CardReader {
    mode: ReadMode,
    prefix: Option<Prefix>,
    suffix: Option<Suffix>,
}

/// The HTML before the body of a card, and its content.
struct Prefix {
    html: String,
    cells: Vec<Cell>,
    header: String,
}

/// The HTML behind the body of a card, and its content.
struct Suffix {
    html: String,
    /// The cells that are open where it begins and where it ends.
    cells_before: Vec<Cell>,
    cells_after: Vec<Cell>,
    caption: Rc<Caption>,
}

impl CardReader {
    pub(crate) fn new(mode: ReadMode) -> Self {
        Self { mode, prefix: None, suffix: None }
    }

    /// Reads the HTML of one card.
    pub(crate) fn read(&mut self, html: &str) -> Card {
        let (mut builder, start) = self.begin(html);
        let Self { prefix, suffix, .. } = self;
        let (mut new_suffix, mut cached) = (None, None);
        walk_filtered(html.get(start..).unwrap_or_default(), |event, behind| {
            let step = builder.take(event);
            let Some((before, after)) = behind.and_then(|at| html.split_at_checked(start + at)) else {
                return builder.filter();
            };
            match step {
                Step::BodyBegins if builder.has_header_only() && before.len() <= MAX_CACHED => {
                    let (cells, header) = (builder.cells.clone(), builder.header.clone());
                    *prefix = Some(Prefix { html: before.to_owned(), cells, header });
                }
                Step::BodyEnds if builder.has_no_caption() => match suffix {
                    Some(suffix)
                        if suffix.cells_before == builder.cells && same_text(after, &suffix.html) =>
                    {
                        cached = Some(Rc::clone(&suffix.caption));
                        builder.cells.clone_from(&suffix.cells_after);
                        return EventFilter::Stop;
                    }
                    _ => new_suffix = Some(NewSuffix::new(after, &builder)),
                },
                Step::BodyBegins | Step::BodyEnds | Step::Inside => {}
            }
            builder.filter()
        });
        let caption = cached.unwrap_or_else(|| Rc::new(builder.finish_caption()));
        if let Some(new) = new_suffix.filter(|new| new.holds_caption_only(&builder)) {
            self.suffix = Some(Suffix {
                html: new.html.to_owned(),
                cells_before: new.cells_before,
                cells_after: builder.cells.clone(),
                caption: Rc::clone(&caption),
            });
        }
        builder.finish(&caption)
    }

    /// A builder, and the offset from which on it needs the HTML.
    fn begin(&self, html: &str) -> (CardBuilder, usize) {
        let mut builder = CardBuilder::new(self.mode, html.len());
        let same =
            |prefix: &&Prefix| html.get(..prefix.html.len()).is_some_and(|own| same_text(own, &prefix.html));
        let Some(prefix) = self.prefix.as_ref().filter(same) else { return (builder, 0) };
        builder.resume(&prefix.cells, &prefix.header);
        (builder, prefix.html.len())
    }
}

/// The HTML behind a body that is not cached, and the builder's state before it.
struct NewSuffix<'h> {
    html: &'h str,
    cells_before: Vec<Cell>,
    header_length: usize,
    pictures: usize,
}

impl<'h> NewSuffix<'h> {
    fn new(html: &'h str, builder: &CardBuilder) -> Self {
        let (header_length, pictures) = (builder.header.len(), builder.pictures.len());
        Self { html, cells_before: builder.cells.clone(), header_length, pictures }
    }

    /// Whether it is short enough to be cached and holds neither pictures nor another header.
    fn holds_caption_only(&self, builder: &CardBuilder) -> bool {
        self.html.len() <= MAX_CACHED
            && self.header_length == builder.header.len()
            && self.pictures == builder.pictures.len()
    }
}

#[cfg(test)]
mod tests;
