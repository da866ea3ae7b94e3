//! Streams the elements of a JSON array, of JSON Lines, or a single object, with one element in memory at a time.

use std::{borrow::Cow, io::BufRead};

use crate::{
    Arena, Bundle, ErrorKind, ImportError, Parser, Reader, RecordKind, Sink, json::RepeatedKeys, text,
};

mod further;
mod lists;
mod scan;
mod stream;
mod walk;

pub use lists::{JsonLists, ListsOutcome};
use walk::{Found, Layout, Walk};

/// The longest element that is parsed, in bytes; a longer one is reported as a skip. It must fit several times into a
/// guest's 128 MiB.
pub const ELEMENT_LIMIT: usize = 64 * 1024 * 1024;

/// Bytes between two reports of progress.
const PROGRESS_STEP: u64 = 1024 * 1024;

/// A list of JSON values in a file.
///
/// The root of the file may be an array (or several in sequence), an object with the array at [`JsonArray::pointer`], a
/// single value (one element), or JSON Lines (one element for each).
#[derive(Clone, Copy, Debug)]
pub struct JsonArray<'p> {
    path: &'p str,
    pointer: &'p str,
    kind: RecordKind,
    limit: usize,
    start: Option<u64>,
    layout: Layout,
}

/// The result of a walk over the elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalkOutcome {
    /// Number of elements, including skipped ones.
    pub elements: u64,
    /// Offset in bytes at which the file is truncated or stops being JSON. It was reported as a skip.
    pub cut: Option<u64>,
}

/// What [`JsonArray::survey_all`] finds.
#[derive(Clone, Copy)]
pub enum Surveyed<'a> {
    /// An element.
    Element(Element<'a>),
    /// An element that is longer than the limit. It has no text.
    TooLong(Element<'a>),
}

/// How far a walk has come, in bytes.
struct Progress {
    reported: u64,
    total: u64,
}

/// One element; valid during one call of a closure.
#[derive(Clone, Copy)]
pub struct Element<'a> {
    text: &'a str,
    arena: &'a Arena,
    repeated: &'a RepeatedKeys,
    path: &'a str,
    key: Option<&'a str>,
    index: u64,
    offset: u64,
    whole: bool,
}

impl<'a> Element<'a> {
    /// Its JSON text.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// A parser at its first byte. The walk warns of repeated keys in the objects that it reads.
    pub fn parser(&self) -> Parser<'a> {
        Parser::reporting(self.text, self.arena, self.repeated)
    }

    /// Whether [`Element::parser`] has read an object that repeats a key. The last value counts.
    pub fn repeats_keys(&self) -> bool {
        !self.repeated.is_empty()
    }

    /// Calls `read` to emit the records of the element, unless an earlier run has emitted them: see
    /// [`Sink::remembering`]. An element with repeated keys is never remembered, so that each run warns of them.
    pub fn remembering(
        &self,
        sink: &mut Sink,
        holds: impl FnOnce(&[u8]) -> bool,
        read: impl FnOnce(&mut Sink) -> Result<Option<Vec<u8>>, ImportError>,
    ) -> Result<(), ImportError> {
        sink.remembering(self.text.as_bytes(), holds, |sink| {
            let note = read(sink)?;
            Ok(note.filter(|_| self.repeated.is_empty()))
        })
    }

    /// The arena for decoded strings; it is reset before the next element.
    pub fn arena(&self) -> &'a Arena {
        self.arena
    }

    /// Its index in the list, from 0.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// Its offset in bytes from the start of the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether it is whole; the last element of [`JsonArray::sample`] may be truncated.
    pub fn whole(&self) -> bool {
        self.whole
    }

    /// The name of the member, if the elements are the members of an object ([`JsonArray::members`]).
    pub fn key(&self) -> Option<&'a str> {
        self.key
    }

    /// Its place for receipts: `conversations.json[17]`, or `threads.json.its-name` for a member.
    pub fn locator(&self) -> String {
        locator(self.path, self.key, self.index)
    }
}

impl<'p> JsonArray<'p> {
    /// The elements of the root of the file `path`.
    pub fn new(path: &'p str) -> Self {
        Self {
            path,
            pointer: "",
            kind: RecordKind::Conversation,
            limit: ELEMENT_LIMIT,
            start: None,
            layout: Layout::Any,
        }
    }

    /// The array is at this RFC 6901 pointer, which has object members only: `/conversations`.
    #[must_use]
    pub fn pointer(self, pointer: &'p str) -> Self {
        Self { pointer, ..self }
    }

    /// The array begins at `offset`, in bytes, inside a file of another format, such as a script in a page. What follows
    /// it is not read. Offsets of elements count from there.
    #[must_use]
    pub fn embedded_at(self, offset: u64) -> Self {
        Self { start: Some(offset), ..self }
    }

    /// The elements are the members of an object, such as `{"<id>": {…}, …}`. Any other value has no elements.
    #[must_use]
    pub fn members(self) -> Self {
        Self { layout: Layout::Members, ..self }
    }

    /// The file is JSON Lines, whatever its first lines look like. Without this, a file is JSON Lines if its first line is a whole object
    /// and another object follows.
    #[must_use]
    pub fn lines(self) -> Self {
        Self { layout: Layout::Lines, ..self }
    }

    /// The kind of record that a skipped element counts as; a conversation by default.
    #[must_use]
    pub fn kind(self, kind: RecordKind) -> Self {
        Self { kind, ..self }
    }

    /// The longest element that is parsed, in bytes; [`ELEMENT_LIMIT`] by default. A longer one is reported as skipped.
    #[must_use]
    pub fn limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Calls `each` with every element.
    ///
    /// If `each` returns [`ErrorKind::Malformed`], that element is reported as skipped and the walk continues. So do all
    /// checks before you emit. A truncated file gives its whole elements and then a skip with the offset. An element
    /// with invalid UTF-8 is read with U+FFFD in its place, and there is a warning. There is one too for an element in
    /// which an object repeats a key; the last value counts.
    ///
    /// # Errors
    /// [`ErrorKind::NotThisFormat`] if [`JsonArray::pointer`] leads to nothing, and every other error that `each`
    /// returns.
    pub fn each(
        &self,
        bundle: &Bundle,
        sink: &mut Sink,
        each: impl FnMut(Element<'_>, &mut Sink) -> Result<(), ImportError>,
    ) -> Result<WalkOutcome, ImportError> {
        let mut reader = self.open(bundle)?;
        let mut progress = Progress { reported: 0, total: reader.size() };
        let mut outcome = WalkOutcome::default();
        let mut walk = self.walk(&mut reader);
        self.each_of(&mut walk, self.path, &mut outcome, &mut progress, sink, each)?;
        sink.progress(progress.total, Some(progress.total))?;
        Ok(outcome)
    }

    /// Calls `look` with the elements among the first `bytes` bytes until it returns false; for `detect`. The last
    /// element may be truncated: [`Element::whole`] is false then.
    pub fn sample(
        &self,
        bundle: &Bundle,
        bytes: usize,
        mut look: impl FnMut(Element<'_>) -> bool,
    ) -> Result<(), ImportError> {
        let mut reader = self.open(bundle)?.in_chunks_of(bytes);
        self.look(self.walk(&mut reader).sampling(bytes), |found| match found {
            Surveyed::Element(element) => Ok(look(element)),
            Surveyed::TooLong(_) => Ok(true),
        })
    }

    /// Calls `decide` with the first element in heads of the file of `sizes`, in bytes, until it returns an answer; for `detect`. The
    /// answer is false if `decide` has none for the whole element, for the whole file, or for the largest head, or if there is no element.
    pub fn sample_first(
        &self,
        bundle: &Bundle,
        sizes: &[usize],
        mut decide: impl FnMut(&Element<'_>) -> Option<bool>,
    ) -> Result<bool, ImportError> {
        let size = bundle.entry(self.path).map_or(0, |entry| entry.size);
        for bytes in sizes {
            let (mut found, mut whole) = (None, true);
            self.sample(bundle, *bytes, |element| {
                found = decide(&element);
                whole = element.whole();
                false
            })?;
            if found.is_some() || whole || size <= *bytes as u64 {
                return Ok(found == Some(true));
            }
        }
        Ok(false)
    }

    /// Calls `look` with every element until it returns false, and reports nothing; for a first pass over a file that
    /// [`JsonArray::each`] reads later. Elements have the same indexes in both. Elements beyond the limit are passed over, because the
    /// other pass reports them; if there is none, use [`JsonArray::survey_all`].
    pub fn survey(
        &self,
        bundle: &Bundle,
        mut look: impl FnMut(Element<'_>) -> Result<bool, ImportError>,
    ) -> Result<(), ImportError> {
        self.survey_all(bundle, |found| match found {
            Surveyed::Element(element) => look(element),
            Surveyed::TooLong(_) => Ok(true),
        })
    }

    /// Calls `look` with every element until it returns false, also with those that are too long; for a walk whose elements nothing else
    /// reports.
    pub fn survey_all(
        &self,
        bundle: &Bundle,
        look: impl FnMut(Surveyed<'_>) -> Result<bool, ImportError>,
    ) -> Result<(), ImportError> {
        let mut reader = self.open(bundle)?;
        self.look(self.walk(&mut reader), look)
    }

    /// Opens the file at the first byte that is read.
    fn open(&self, bundle: &Bundle) -> Result<Reader, ImportError> {
        let mut reader = bundle.open(self.path)?;
        if let Some(start) = self.start {
            reader.seek(start)?;
        }
        Ok(reader)
    }

    /// The name of an element, if the elements are the members of an object.
    fn key<'k>(&self, key: &'k str) -> Option<&'k str> {
        (self.layout == Layout::Members).then_some(key)
    }

    fn walk<R: BufRead>(&self, reader: R) -> Walk<'p, R> {
        Walk::new(reader, self.pointer, self.limit).embedded(self.start.is_some()).layout(self.layout)
    }

    fn look<R: BufRead>(
        &self,
        mut walk: Walk<'_, R>,
        mut look: impl FnMut(Surveyed<'_>) -> Result<bool, ImportError>,
    ) -> Result<(), ImportError> {
        let (path, mut arena, repeated) = (self.path, Arena::new(), RepeatedKeys::default());
        for index in 0.. {
            let (bytes, offset, key, whole) = match walk.next().map_err(|error| error.at(path))? {
                Found::Element { bytes, offset, key } => (bytes, offset, key, true),
                Found::TooLong { head, offset, key } => (head, offset, key, false),
                Found::Cut { .. } | Found::End => break,
            };
            let (text, key) = (text::of_utf8(bytes), self.key(key));
            let (text, repeated) = (&*text, &repeated);
            let element = Element { text, arena: &arena, repeated, path, key, index, offset, whole };
            // Only a sample has a head, and nothing follows it.
            let too_long = !whole && text.is_empty();
            let found = if too_long { Surveyed::TooLong(element) } else { Surveyed::Element(element) };
            if !look(found)? || !(whole || too_long) {
                break;
            }
            arena.reset();
        }
        Ok(())
    }

    /// Calls `each` with the elements of a list in `file` and reports what cannot be read; `outcome` counts on.
    fn each_of<R: BufRead>(
        &self,
        walk: &mut Walk<'_, R>,
        file: &str,
        outcome: &mut WalkOutcome,
        progress: &mut Progress,
        sink: &mut Sink,
        mut each: impl FnMut(Element<'_>, &mut Sink) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        let (mut arena, repeated) = (Arena::new(), RepeatedKeys::default());
        loop {
            let (path, index) = (self.path, outcome.elements);
            match walk.next().map_err(|error| error.at(file))? {
                Found::Element { bytes, offset, key } => {
                    let (text, key) = (text::of_utf8(bytes), self.key(key));
                    let (arena, repeated) = (&arena, &repeated);
                    let element =
                        Element { text: &text, arena, repeated, path, key, index, offset, whole: true };
                    if let Cow::Owned(_) = text {
                        sink.warn(&element.locator(), "invalid UTF-8 was replaced by U+FFFD");
                    }
                    self.report(each(element, sink), &element, sink)?;
                    outcome.elements += 1;
                }
                Found::TooLong { key, .. } => {
                    let reason = format!("it is longer than {} bytes", self.limit);
                    sink.skip(self.kind, &locator(path, self.key(key), index), &reason)?;
                    outcome.elements += 1;
                }
                Found::Cut { offset, problem } => {
                    sink.skip(self.kind, &format!("{file}@{offset}"), problem)?;
                    outcome.cut = Some(offset);
                }
                Found::End => return Ok(()),
            }
            arena.reset();
            if walk.position() >= progress.reported + PROGRESS_STEP {
                progress.reported = walk.position();
                sink.progress(progress.reported, Some(progress.total))?;
            }
        }
    }

    /// Reports a malformed element as skipped, and the repeated keys of one that was read.
    fn report(
        &self,
        result: Result<(), ImportError>,
        element: &Element<'_>,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        let keys = element.repeated.take();
        match result {
            Err(error) if error.kind == ErrorKind::Malformed => {
                let place = error.locator.unwrap_or_else(|| element.locator());
                sink.skip(self.kind, &place, &error.message)
            }
            Err(error) => Err(error.at(element.locator())),
            Ok(()) => {
                for key in keys {
                    let message = format!("an object gives the key {key:?} twice; the last value is read");
                    sink.warn(&element.locator(), &message);
                }
                Ok(())
            }
        }
    }
}

/// The place of an element: by its name if it is a member of an object, otherwise by its index.
fn locator(path: &str, key: Option<&str>, index: u64) -> String {
    key.map_or_else(|| format!("{path}[{index}]"), |key| format!("{path}.{key}"))
}

#[cfg(test)]
mod tests;
