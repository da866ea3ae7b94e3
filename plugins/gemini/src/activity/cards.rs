//! Splits an activity page into its cards, with one card in memory at a time.

use std::{borrow::Cow, io::BufRead};

use memchr::memmem::{self, Finder};
use satchel_importer::{Bundle, ImportError, Reader, RecordKind, Sink};

use crate::html::utf8_lossy;

/// The class of the element around a card.
const CARD_CLASS: &[u8] = b"outer-cell";
/// The longest card that is read, in bytes. Longer cards are skipped.
const MAX_CARD: usize = 16 * 1024 * 1024;
/// Bytes between two reports of progress.
const PROGRESS_STEP: u64 = 1024 * 1024;
/// The longest start tag of a card, in bytes.
const MAX_TAG: usize = 1024;

/// The HTML of one card.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawCard<'p> {
    pub(crate) html: &'p str,
    /// Bytes from the start of the file, and its length there.
    pub(crate) offset: u64,
    pub(crate) length: usize,
    /// Its number in the file, from 0.
    pub(crate) number: u32,
    /// It extends to the end of the file.
    pub(crate) last: bool,
}

/// Calls `each` with the cards in the first `budget` bytes of the page `path`, until it returns false.
pub(crate) fn sample(
    bundle: &Bundle,
    path: &str,
    budget: u64,
    mut each: impl FnMut(RawCard<'_>) -> bool,
) -> Result<(), ImportError> {
    let mut window = Window::open(bundle, path, budget)?;
    while let Some(span) = window.next()? {
        if let Span::Card { offset, bytes, number, last } = span
            && !each(RawCard { html: &utf8_lossy(bytes), offset, length: bytes.len(), number, last })
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
    mut each: impl FnMut(RawCard<'_>, &mut Sink) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let mut window = Window::open(bundle, path, u64::MAX)?;
    let mut reported = 0;
    while let Some(span) = window.next()? {
        match span {
            Span::Card { offset, bytes, number, last } => {
                let html = utf8_lossy(bytes);
                if let Cow::Owned(_) = html {
                    sink.warn(&locator(path, number), "invalid UTF-8 was replaced by U+FFFD");
                }
                each(RawCard { html: &html, offset, length: bytes.len(), number, last }, sink)?;
            }
            Span::TooLong { number } => {
                let reason = format!("it is longer than {MAX_CARD} bytes");
                sink.skip(RecordKind::Message, &locator(path, number), &reason)?;
            }
        }
        if window.offset >= reported + PROGRESS_STEP {
            reported = window.offset;
            sink.progress(reported, Some(window.size))?;
        }
    }
    sink.progress(window.size, Some(window.size))
}

/// The position of a card, for receipts.
pub(crate) fn locator(path: &str, number: u32) -> String {
    format!("{path}[{number}]")
}

enum Span<'w> {
    Card { offset: u64, bytes: &'w [u8], number: u32, last: bool },
    TooLong { number: u32 },
}

/// A window over the page, from the start of a card to the last byte that was read.
struct Window {
    reader: Reader,
    class: Finder<'static>,
    size: u64,
    buffer: Vec<u8>,
    /// Bytes at the front of `buffer` that are no longer needed. The next read removes them.
    consumed: usize,
    /// Offset in the file of the first byte behind those.
    offset: u64,
    /// Bytes that may still be read.
    budget: u64,
    ended: bool,
    /// The length of the card that was returned last.
    returned: usize,
    /// The window begins with a card.
    at_card: bool,
    /// The number of the next card.
    number: u32,
}

impl Window {
    fn open(bundle: &Bundle, path: &str, budget: u64) -> Result<Self, ImportError> {
        let reader = bundle.open(path)?;
        Ok(Self {
            size: reader.size(),
            reader,
            class: Finder::new(CARD_CLASS),
            buffer: Vec::new(),
            consumed: 0,
            offset: 0,
            budget,
            ended: false,
            returned: 0,
            at_card: false,
            number: 0,
        })
    }

    fn next(&mut self) -> Result<Option<Span<'_>>, ImportError> {
        let returned = std::mem::take(&mut self.returned);
        self.consume(returned);
        if !self.at_card {
            match self.find_card(0)? {
                Some(start) => self.consume(start),
                None => return Ok(None),
            }
            self.at_card = true;
        }
        // The search begins behind the card's own tag.
        let end = self.find_card(CARD_CLASS.len() + 1)?;
        let number = self.number;
        self.number = self.number.saturating_add(1);
        let (length, last) = match end {
            Some(end) => (end, false),
            None if self.rest().len() >= MAX_CARD && !self.ended => {
                self.skip_card()?;
                return Ok(Some(Span::TooLong { number }));
            }
            None => (self.rest().len(), true),
        };
        if length == 0 {
            return Ok(None);
        }
        self.returned = length;
        self.at_card = !last;
        let bytes = self.rest().get(..length).unwrap_or_default();
        Ok(Some(Span::Card { offset: self.offset, bytes, number, last }))
    }

    /// Moves to the next card without buffering the current one.
    fn skip_card(&mut self) -> Result<(), ImportError> {
        self.consume(1);
        loop {
            if let Some(start) = self.find_buffered_card(0) {
                self.consume(start);
                return Ok(());
            }
            self.consume_all_but_a_tag();
            if !self.read_more()? {
                self.consume(usize::MAX);
                self.at_card = false;
                return Ok(());
            }
        }
    }

    /// Finds the start of the next card at or behind `from`. Reads on until there is one.
    fn find_card(&mut self, mut from: usize) -> Result<Option<usize>, ImportError> {
        loop {
            if let Some(found) = self.find_buffered_card(from) {
                return Ok(Some(found));
            }
            // Only the end is searched again: it may hold the beginning of a tag.
            from = from.max(self.rest().len().saturating_sub(MAX_TAG));
            if !self.at_card {
                from -= self.consume_all_but_a_tag().min(from);
            }
            if self.rest().len() >= MAX_CARD || !self.read_more()? {
                return Ok(None);
            }
        }
    }

    /// Finds the start tag of the next card in the buffer, at or behind `from`. The class may also occur in a text.
    fn find_buffered_card(&self, from: usize) -> Option<usize> {
        let rest = self.rest().get(from..)?;
        self.class.find_iter(rest).find_map(|at| {
            let before = rest.get(at.saturating_sub(MAX_TAG)..at)?;
            let open = memchr::memrchr(b'<', before)?;
            let tag = before.get(open..)?;
            let is_div = tag.get(1..4).is_some_and(|name| name.eq_ignore_ascii_case(b"div"));
            let is_card = is_div && memmem::find(tag, b"class").is_some() && !tag.contains(&b'>');
            is_card.then_some(from + at - before.len() + open)
        })
    }

    /// The buffered bytes that are not consumed.
    fn rest(&self) -> &[u8] {
        self.buffer.get(self.consumed..).unwrap_or_default()
    }

    fn read_more(&mut self) -> Result<bool, ImportError> {
        if self.ended {
            return Ok(false);
        }
        self.buffer.drain(..std::mem::take(&mut self.consumed));
        let chunk = self.reader.fill_buf()?;
        let count = chunk.len().min(usize::try_from(self.budget).unwrap_or(usize::MAX));
        self.buffer.extend_from_slice(chunk.get(..count).unwrap_or_default());
        self.reader.consume(count);
        self.budget -= count as u64;
        self.ended = count == 0;
        Ok(!self.ended)
    }

    fn consume_all_but_a_tag(&mut self) -> usize {
        let count = self.rest().len().saturating_sub(MAX_TAG);
        self.consume(count);
        count
    }

    fn consume(&mut self, count: usize) {
        let count = count.min(self.rest().len());
        self.consumed += count;
        self.offset += count as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(page: &str) -> Vec<(u64, String, bool)> {
        let bundle = Bundle::from_files([("p.html", page.as_bytes().to_vec())]);
        let mut found = Vec::new();
        sample(&bundle, "p.html", u64::MAX, |card| {
            found.push((card.offset, card.html.to_owned(), card.last));
            true
        })
        .expect("the page is read");
        found
    }

    #[test]
    fn a_page_is_split_into_cards() {
        let one = "<div class=\"outer-cell mdl-cell\">a &lt;div class=\"outer-cell\"&gt; outer-cell</div>\n";
        let two = "<DIV id=x class='mdl outer-cell'>b</div></div></body></html>";
        let head = "<html><style>.outer-cell{}</style><body>";
        let found = split(&format!("{head}{one}{two}"));
        let start = head.len() as u64;
        assert_eq!(found, [(start, one.to_owned(), false), (start + one.len() as u64, two.to_owned(), true)]);
        assert!(split("<html><body>no card</body></html>").is_empty());
        assert!(split("").is_empty());
    }

    #[test]
    fn cards_of_any_size_have_their_offsets() {
        let card = |size: usize| format!("<div class=\"outer-cell\">{}</div>", "x".repeat(size));
        let cards = [card(300_000), card(5), card(262_100), card(1_000_000), card(0)];
        let found = split(&format!("<body>{}", cards.concat()));
        assert_eq!(found.iter().map(|(_, html, _)| html.clone()).collect::<Vec<_>>(), cards);
        let mut at = 6;
        for (offset, html, _) in &found {
            assert_eq!(*offset, at);
            at += html.len() as u64;
        }
    }

    #[test]
    fn a_card_that_is_too_long_is_skipped() {
        let page = format!(
            "<div class=\"outer-cell\">{}</div><div class=\"outer-cell\">b</div>",
            "x".repeat(MAX_CARD)
        );
        let bundle = Bundle::from_files([("p.html", page.into_bytes())]);
        let mut sink = Sink::collecting();
        let mut found = Vec::new();
        each(&bundle, "p.html", &mut sink, |card, _| {
            found.push((card.number, card.html.to_owned()));
            Ok(())
        })
        .expect("the page is read");
        assert_eq!(found, [(1, "<div class=\"outer-cell\">b</div>".to_owned())]);
        assert_eq!(sink.into_lines().len(), 1);
    }
}
