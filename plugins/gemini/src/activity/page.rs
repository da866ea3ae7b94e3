//! One card of an activity page as a row.
//!
//! A card has a header cell (the product), a body cell (what was done, files, the time, then the answer), a cell at the
//! right (pictures) and a caption cell (product, conversations, why it is there). In the body lines are parted by `<br>`,
//! or they are a heading and paragraphs; whichever, the first line that is a time parts the prompt from the answer.

use std::rc::Rc;

use satchel_importer::same_text;

use super::row::{Depth, Row};
use crate::html::{Next, walk_on};

mod caption;
mod line;
mod reader;

use caption::Caption;
use reader::{Cell, Reader, Step};

/// The longest beginning or end of a card that is remembered, in bytes. Usual ones have some hundred.
const LONGEST_REPEATED: usize = 8 * 1024;

/// What a card comes to.
#[derive(Debug)]
pub(crate) struct Card<'a> {
    pub(crate) row: Row<'a>,
    /// All that was opened was closed.
    pub(crate) whole: bool,
    /// It has a line that is a time, in a form that is understood.
    pub(crate) dated: bool,
}

/// Reads the HTML of one card.
pub(crate) fn read(html: &str, depth: Depth) -> Card<'static> {
    Cards::new(depth).read(html)
}

/// Reads cards one after the other. What is around their bodies is mostly the same in all of them, to the byte; it is
/// not read again where it is that of the card before.
pub(crate) struct Cards {
    depth: Depth,
    head: Option<Head>,
    tail: Option<Tail>,
}

/// What a card begins with, up to its body, and what that comes to.
struct Head {
    html: String,
    cells: Vec<Cell>,
    header: String,
}

/// What stands behind a body to the end of the card, inside of which cells it begins and ends, and what it comes to.
struct Tail {
    html: String,
    outside: Vec<Cell>,
    left: Vec<Cell>,
    caption: Rc<Caption>,
}

impl Cards {
    pub(crate) fn new(depth: Depth) -> Self {
        Self { depth, head: None, tail: None }
    }

    /// Reads the HTML of one card.
    pub(crate) fn read(&mut self, html: &str) -> Card<'static> {
        let (mut reader, start) = self.begin(html);
        let Self { head, tail, .. } = self;
        let (mut open_end, mut known) = (None, None);
        walk_on(html.get(start..).unwrap_or_default(), |event, behind| {
            let step = reader.take(event);
            let Some((before, after)) = behind.and_then(|at| html.split_at_checked(start + at)) else {
                return reader.next();
            };
            match step {
                Step::BodyBegins if reader.is_fresh() && before.len() <= LONGEST_REPEATED => {
                    *head = Some(Head::of(before, &reader));
                }
                Step::BodyEnds if reader.has_no_caption() => match tail {
                    Some(tail) if tail.is(after, &reader) => {
                        known = Some(Rc::clone(&tail.caption));
                        reader.cells.clone_from(&tail.left);
                        return Next::Nothing;
                    }
                    _ => open_end = Some(End::of(after, &reader)),
                },
                Step::BodyBegins | Step::BodyEnds | Step::Inside => {}
            }
            reader.next()
        });
        let caption = known.unwrap_or_else(|| Rc::new(reader.caption()));
        if let Some(end) = open_end.filter(|end| end.says_nothing_else(&reader)) {
            self.tail = Some(end.remember(&reader, &caption));
        }
        reader.finish(&caption)
    }

    /// A reader, and from where on it is to read.
    fn begin(&self, html: &str) -> (Reader, usize) {
        let mut reader = Reader::new(self.depth, html.len());
        let same = |head: &&Head| html.get(..head.html.len()).is_some_and(|own| same_text(own, &head.html));
        let Some(head) = self.head.as_ref().filter(same) else { return (reader, 0) };
        reader.resume(&head.cells, &head.header);
        (reader, head.html.len())
    }
}

impl Head {
    fn of(html: &str, reader: &Reader) -> Self {
        Self { html: html.to_owned(), cells: reader.cells.clone(), header: reader.header.clone() }
    }
}

impl Tail {
    fn is(&self, html: &str, reader: &Reader) -> bool {
        same_text(html, &self.html) && self.outside == reader.cells
    }
}

/// The end of a card that is not known yet: what is behind the body, and what had been read before.
struct End<'h> {
    html: &'h str,
    outside: Vec<Cell>,
    header: usize,
    pictures: usize,
}

impl<'h> End<'h> {
    fn of(html: &'h str, reader: &Reader) -> Self {
        let (header, pictures) = (reader.header.len(), reader.pictures.len());
        Self { html, outside: reader.cells.clone(), header, pictures }
    }

    /// Whether it holds a caption at most, and no picture and no further header.
    fn says_nothing_else(&self, reader: &Reader) -> bool {
        self.html.len() <= LONGEST_REPEATED
            && self.header == reader.header.len()
            && self.pictures == reader.pictures.len()
    }

    fn remember(self, reader: &Reader, caption: &Rc<Caption>) -> Tail {
        let Self { html, outside, .. } = self;
        Tail { html: html.to_owned(), outside, left: reader.cells.clone(), caption: Rc::clone(caption) }
    }
}

#[cfg(test)]
mod tests;
