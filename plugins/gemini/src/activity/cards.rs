//! Cuts an activity page into its cards, with one card in memory at a time.

use std::{borrow::Cow, io::BufRead};

use memchr::memmem;
use satchel_importer::{Bundle, ImportError, RecordKind, Sink};

use crate::html::text;

/// The class of the element around a card.
const MARK: &[u8] = b"outer-cell";
/// The longest card that is read, in bytes; a longer one is reported as a skip.
const LONGEST: usize = 16 * 1024 * 1024;
/// Progress is reported each time so many bytes were read.
const PROGRESS_STEP: u64 = 1024 * 1024;
/// A start tag is not longer than this, in bytes.
const LONGEST_TAG: usize = 1024;

/// One card.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'p> {
    pub(crate) html: &'p str,
    /// Bytes from the start of the file, and its length there.
    pub(crate) offset: u64,
    pub(crate) length: usize,
    /// Its number in the file, from 0.
    pub(crate) number: u32,
    /// Nothing follows in the file.
    pub(crate) last: bool,
}

/// Calls `each` with the cards of the page `path` among its first `budget` bytes, until it answers false.
pub(crate) fn sample(
    bundle: &Bundle,
    path: &str,
    budget: u64,
    mut each: impl FnMut(Piece<'_>) -> bool,
) -> Result<(), ImportError> {
    let mut window = Window::open(bundle, path, budget)?;
    while let Some(span) = window.next()? {
        if let Span::Card { offset, bytes, number, last } = span
            && !each(Piece { html: &text(bytes), offset, length: bytes.len(), number, last })
        {
            break;
        }
    }
    Ok(())
}

/// Calls `each` with every card of the page `path`.
pub(crate) fn each(
    bundle: &Bundle,
    path: &str,
    sink: &mut Sink,
    mut each: impl FnMut(Piece<'_>, &mut Sink) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let mut window = Window::open(bundle, path, u64::MAX)?;
    let mut reported = 0;
    while let Some(span) = window.next()? {
        match span {
            Span::Card { offset, bytes, number, last } => {
                let html = text(bytes);
                if let Cow::Owned(_) = html {
                    sink.warn(&locator(path, number), "invalid UTF-8 was replaced by U+FFFD");
                }
                each(Piece { html: &html, offset, length: bytes.len(), number, last }, sink)?;
            }
            Span::TooLong { number } => {
                let reason = format!("it is longer than {LONGEST} bytes");
                sink.skip(RecordKind::Message, &locator(path, number), &reason)?;
            }
        }
        if window.base >= reported + PROGRESS_STEP {
            reported = window.base;
            sink.progress(reported, Some(window.size))?;
        }
    }
    sink.progress(window.size, Some(window.size))
}

/// Where a card stands, for receipts.
pub(crate) fn locator(path: &str, number: u32) -> String {
    format!("{path}[{number}]")
}

enum Span<'w> {
    Card { offset: u64, bytes: &'w [u8], number: u32, last: bool },
    TooLong { number: u32 },
}

/// A window over the page: from the start of a card to as far as was read.
struct Window {
    reader: satchel_importer::Reader,
    mark: memmem::Finder<'static>,
    size: u64,
    buffer: Vec<u8>,
    /// Bytes at the front of `buffer` that are done with; they go when more is read.
    done: usize,
    /// Offset in the file of the first byte behind those.
    base: u64,
    budget: u64,
    ended: bool,
    /// Bytes of `buffer` that were given last.
    given: usize,
    /// The buffer begins with a card.
    inside: bool,
    number: u32,
}

impl Window {
    fn open(bundle: &Bundle, path: &str, budget: u64) -> Result<Self, ImportError> {
        let reader = bundle.open(path)?;
        let size = reader.size();
        Ok(Self {
            reader,
            mark: memmem::Finder::new(MARK),
            size,
            buffer: Vec::new(),
            done: 0,
            base: 0,
            budget,
            ended: false,
            given: 0,
            inside: false,
            number: 0,
        })
    }

    fn next(&mut self) -> Result<Option<Span<'_>>, ImportError> {
        let given = std::mem::take(&mut self.given);
        self.drop_front(given);
        if !self.inside {
            match self.find(0)? {
                Some(start) => self.drop_front(start),
                None => return Ok(None),
            }
            self.inside = true;
        }
        // Behind the card's own tag.
        let end = self.find(LONGEST_TAG.min(MARK.len() + 1))?;
        let number = self.number;
        self.number = self.number.saturating_add(1);
        let (length, last) = match end {
            Some(end) => (end, false),
            None if self.rest().len() >= LONGEST && !self.ended => {
                self.pass_over()?;
                return Ok(Some(Span::TooLong { number }));
            }
            None => (self.rest().len(), true),
        };
        if length == 0 {
            return Ok(None);
        }
        self.given = length;
        self.inside = !last;
        let bytes = self.rest().get(..length).unwrap_or_default();
        Ok(Some(Span::Card { offset: self.base, bytes, number, last }))
    }

    /// Goes on to the next card, keeping little of what is between.
    fn pass_over(&mut self) -> Result<(), ImportError> {
        self.drop_front(1);
        loop {
            if let Some(start) = mark(&self.mark, self.rest(), 0) {
                self.drop_front(start);
                return Ok(());
            }
            let done = self.rest().len().saturating_sub(LONGEST_TAG);
            self.drop_front(done);
            if !self.more()? {
                self.drop_front(usize::MAX);
                self.inside = false;
                return Ok(());
            }
        }
    }

    /// Where the next card begins, not before `from`; reads as far as it must.
    fn find(&mut self, from: usize) -> Result<Option<usize>, ImportError> {
        let mut from = from;
        loop {
            if let Some(found) = mark(&self.mark, self.rest(), from) {
                return Ok(Some(found));
            }
            // What was searched is not searched again, but for a tag that may go on.
            from = from.max(self.rest().len().saturating_sub(LONGEST_TAG));
            if !self.inside {
                let done = self.rest().len().saturating_sub(LONGEST_TAG);
                self.drop_front(done);
                from -= done.min(from);
            }
            if self.rest().len() >= LONGEST || !self.more()? {
                return Ok(None);
            }
        }
    }

    /// What was read and is not done with.
    fn rest(&self) -> &[u8] {
        self.buffer.get(self.done..).unwrap_or_default()
    }

    fn more(&mut self) -> Result<bool, ImportError> {
        if self.ended {
            return Ok(false);
        }
        self.buffer.drain(..std::mem::take(&mut self.done));
        let chunk = self.reader.fill_buf()?;
        let count = chunk.len().min(usize::try_from(self.budget).unwrap_or(usize::MAX));
        self.buffer.extend_from_slice(chunk.get(..count).unwrap_or_default());
        self.reader.consume(count);
        self.budget -= count as u64;
        self.ended = count == 0;
        Ok(!self.ended)
    }

    fn drop_front(&mut self, count: usize) {
        let count = count.min(self.rest().len());
        self.done += count;
        self.base += count as u64;
    }
}

/// Where the tag begins that carries the next mark, not before `from`: text that speaks of it has no bracket.
fn mark(mark: &memmem::Finder<'_>, bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    mark.find_iter(rest).find_map(|at| {
        let before = rest.get(at.saturating_sub(LONGEST_TAG)..at)?;
        let open = memchr::memrchr(b'<', before)?;
        let tag = before.get(open..)?;
        let is_div = tag.get(1..4).is_some_and(|name| name.eq_ignore_ascii_case(b"div"));
        let whole = is_div && memmem::find(tag, b"class").is_some() && !tag.contains(&b'>');
        whole.then_some(from + at - before.len() + open)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(page: &str) -> Vec<(u64, String, bool)> {
        let bundle = Bundle::from_files([("p.html", page.as_bytes().to_vec())]);
        let mut found = Vec::new();
        sample(&bundle, "p.html", u64::MAX, |piece| {
            found.push((piece.offset, piece.html.to_owned(), piece.last));
            true
        })
        .expect("the page is read");
        found
    }

    #[test]
    fn a_page_falls_into_cards() {
        let one = "<div class=\"outer-cell mdl-cell\">a &lt;div class=\"outer-cell\"&gt; outer-cell</div>\n";
        let two = "<DIV id=x class='mdl outer-cell'>b</div></div></body></html>";
        let head = "<html><style>.outer-cell{}</style><body>";
        let found = cut(&format!("{head}{one}{two}"));
        let start = head.len() as u64;
        assert_eq!(found, [(start, one.to_owned(), false), (start + one.len() as u64, two.to_owned(), true)]);
        assert!(cut("<html><body>no card</body></html>").is_empty());
        assert!(cut("").is_empty());
    }

    #[test]
    fn cards_of_any_size_keep_their_places() {
        let card = |size: usize| format!("<div class=\"outer-cell\">{}</div>", "x".repeat(size));
        let cards = [card(300_000), card(5), card(262_100), card(1_000_000), card(0)];
        let found = cut(&format!("<body>{}", cards.concat()));
        assert_eq!(found.iter().map(|(_, html, _)| html.clone()).collect::<Vec<_>>(), cards);
        let mut at = 6;
        for (offset, html, _) in &found {
            assert_eq!(*offset, at);
            at += html.len() as u64;
        }
    }

    #[test]
    fn a_card_that_is_too_long_is_passed_over() {
        let page = format!(
            "<div class=\"outer-cell\">{}</div><div class=\"outer-cell\">b</div>",
            "x".repeat(LONGEST)
        );
        let bundle = Bundle::from_files([("p.html", page.into_bytes())]);
        let mut sink = Sink::collecting();
        let mut found = Vec::new();
        each(&bundle, "p.html", &mut sink, |piece, _| {
            found.push((piece.number, piece.html.to_owned()));
            Ok(())
        })
        .expect("the page is read");
        assert_eq!(found, [(1, "<div class=\"outer-cell\">b</div>".to_owned())]);
        assert_eq!(sink.into_lines().len(), 1);
    }
}
