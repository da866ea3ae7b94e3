//! Streams the elements of a JSON array, of JSON Lines, or a single object, with one element in memory at a time.

use std::borrow::Cow;

use crate::{Arena, Bundle, ErrorKind, ImportError, Parser, Reader, RecordKind, Sink, json::Repeated};

mod lists;
mod scan;
mod stream;
mod walk;

pub use lists::{JsonLists, Lists};
use walk::{Found, Walk};

/// The longest element that is parsed, in bytes; a longer one is reported as a skip. It must fit several times into a
/// guest's 128 MiB.
pub const ELEMENT_LIMIT: usize = 64 * 1024 * 1024;

/// Progress is reported each time so many bytes were read.
const PROGRESS_STEP: u64 = 1024 * 1024;

/// Where the elements are, and how to read them.
///
/// The root may be an array, an object that [`JsonArray::pointer`] leads through, a single object (one element), or
/// JSON Lines (an element each).
#[derive(Clone, Copy, Debug)]
pub struct JsonArray<'p> {
    path: &'p str,
    pointer: &'p str,
    kind: RecordKind,
    limit: usize,
    start: Option<u64>,
    keyed: bool,
}

/// What a walk over the elements came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Elements found whole, those that were skipped too.
    pub elements: u64,
    /// Offset in bytes at which the file breaks off or stops being JSON; it was reported as a skip.
    pub cut: Option<u64>,
}

/// One element, valid for one call.
#[derive(Clone, Copy)]
pub struct Element<'a> {
    text: &'a str,
    arena: &'a Arena,
    repeated: &'a Repeated,
    path: &'a str,
    key: Option<&'a str>,
    index: u64,
    offset: u64,
    whole: bool,
}

impl<'a> Element<'a> {
    /// Its text, valid UTF-8.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// A parser at its first byte. Keys that stand twice in an object that it walks end as a warning.
    pub fn parser(&self) -> Parser<'a> {
        Parser::noting(self.text, self.arena, self.repeated)
    }

    /// Whether [`Element::parser`] met an object that gives a key twice; of such keys the last value counts.
    pub fn repeats_keys(&self) -> bool {
        !self.repeated.is_empty()
    }

    /// Emits what `read` gives of it, unless an earlier run did ([`Sink::remembering`]); `note` tells all that was looked
    /// at beside it, as it is now. An element that repeats keys is not remembered, as that is told each time.
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

    /// Where decoded strings live; emptied before the next element.
    pub fn arena(&self) -> &'a Arena {
        self.arena
    }

    /// Its number in the file, from 0.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// Bytes from the start of the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether it is whole; a sample may break off ([`JsonArray::sample`]).
    pub fn whole(&self) -> bool {
        self.whole
    }

    /// The name of the member that it is ([`JsonArray::members`]).
    pub fn key(&self) -> Option<&'a str> {
        self.key
    }

    /// Where it stands, for receipts: `conversations.json[17]`; of a member, `threads.json.its-name`.
    pub fn locator(&self) -> String {
        locator(self.path, self.key, self.index)
    }
}

impl<'p> JsonArray<'p> {
    /// The elements of the root of the file `path`; each is a conversation.
    pub fn new(path: &'p str) -> Self {
        Self {
            path,
            pointer: "",
            kind: RecordKind::Conversation,
            limit: ELEMENT_LIMIT,
            start: None,
            keyed: false,
        }
    }

    /// An RFC 6901 pointer to the array, object members only: `/conversations`.
    #[must_use]
    pub fn pointer(self, pointer: &'p str) -> Self {
        Self { pointer, ..self }
    }

    /// The array begins at `offset`, in bytes, inside a file of another format, such as a script in a page; what stands
    /// behind it is not looked at. Offsets of elements count from there.
    #[must_use]
    pub fn embedded_at(self, offset: u64) -> Self {
        Self { start: Some(offset), ..self }
    }

    /// The elements are the members of an object, such as `{"<id>": {…}, …}`; any other value has none.
    #[must_use]
    pub fn members(self) -> Self {
        Self { keyed: true, ..self }
    }

    /// What a skipped element counts as.
    #[must_use]
    pub fn kind(self, kind: RecordKind) -> Self {
        Self { kind, ..self }
    }

    /// The longest element that is parsed, in bytes.
    #[must_use]
    pub fn limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Calls `each` with every element.
    ///
    /// Where `each` answers [`ErrorKind::Malformed`], the element is reported as a skip and the walk goes on; any other
    /// error ends it. So do all checks before emitting. A file that breaks off gives its whole elements, then a skip
    /// with the offset. An element with invalid UTF-8 is read with U+FFFD in its place, with a warning; so is one in
    /// which an object gives a key twice, of which the last value counts.
    pub fn each(
        &self,
        bundle: &Bundle,
        sink: &mut Sink,
        mut each: impl FnMut(Element<'_>, &mut Sink) -> Result<(), ImportError>,
    ) -> Result<Outcome, ImportError> {
        let mut reader = self.open(bundle)?;
        let total = reader.size();
        let mut walk =
            Walk::new(&mut reader, self.pointer, self.limit).embedded(self.start.is_some()).keyed(self.keyed);
        let mut outcome = Outcome::default();
        let (mut arena, repeated) = (Arena::new(), Repeated::default());
        let mut reported = 0;
        loop {
            let (path, index) = (self.path, outcome.elements);
            match walk.next().map_err(|error| error.at(path))? {
                Found::Element { bytes, offset, key } => {
                    let (text, key) = (utf8(bytes), self.keyed.then_some(key));
                    let (arena, repeated) = (&arena, &repeated);
                    let element =
                        Element { text: &text, arena, repeated, path, key, index, offset, whole: true };
                    if let Cow::Owned(_) = text {
                        sink.warn(&element.locator(), "invalid UTF-8 was replaced by U+FFFD");
                    }
                    self.settle(each(element, sink), &element, sink)?;
                    outcome.elements += 1;
                }
                Found::TooLong { key, .. } => {
                    let reason = format!("it is longer than {} bytes", self.limit);
                    let place = locator(path, self.keyed.then_some(key), index);
                    sink.skip(self.kind, &place, &reason)?;
                    outcome.elements += 1;
                }
                Found::Cut { offset, problem } => {
                    sink.skip(self.kind, &format!("{path}@{offset}"), problem)?;
                    outcome.cut = Some(offset);
                }
                Found::End => break,
            }
            arena.reset();
            if walk.position() >= reported + PROGRESS_STEP {
                reported = walk.position();
                sink.progress(reported, Some(total))?;
            }
        }
        sink.progress(total, Some(total))?;
        Ok(outcome)
    }

    /// Shows `look` the elements among the first `bytes` bytes until it answers false; for `detect`. An element that
    /// does not end there is given as far as it goes, with [`Element::whole`] false.
    pub fn sample(
        &self,
        bundle: &Bundle,
        bytes: usize,
        mut look: impl FnMut(Element<'_>) -> bool,
    ) -> Result<(), ImportError> {
        let mut reader = self.open(bundle)?;
        let mut walk =
            Walk::sampling(&mut reader, self.pointer, bytes).embedded(self.start.is_some()).keyed(self.keyed);
        let (mut arena, repeated) = (Arena::new(), Repeated::default());
        let mut index = 0;
        loop {
            let found = walk.next().map_err(|error| error.at(self.path))?;
            let (bytes, offset, key, whole) = match found {
                Found::Element { bytes, offset, key } => (bytes, offset, key, true),
                Found::TooLong { head, offset, key } => (head, offset, key, false),
                Found::Cut { .. } | Found::End => return Ok(()),
            };
            let text = utf8(bytes);
            let element = Element {
                text: &text,
                arena: &arena,
                repeated: &repeated,
                path: self.path,
                key: self.keyed.then_some(key),
                index,
                offset,
                whole,
            };
            if !look(element) || !whole {
                return Ok(());
            }
            arena.reset();
            index += 1;
        }
    }

    /// Calls `look` with every element that can be read, until it answers false, and says nothing of the others; for a
    /// first look at a whole file before [`JsonArray::each`] reads it. Elements have the same numbers in both.
    pub fn survey(
        &self,
        bundle: &Bundle,
        mut look: impl FnMut(Element<'_>) -> Result<bool, ImportError>,
    ) -> Result<(), ImportError> {
        let mut reader = self.open(bundle)?;
        let mut walk =
            Walk::new(&mut reader, self.pointer, self.limit).embedded(self.start.is_some()).keyed(self.keyed);
        let (mut arena, repeated) = (Arena::new(), Repeated::default());
        let mut index = 0;
        loop {
            let found = walk.next().map_err(|error| error.at(self.path))?;
            match found {
                Found::Element { bytes, offset, key } => {
                    let (text, key) = (utf8(bytes), self.keyed.then_some(key));
                    let (arena, repeated, path) = (&arena, &repeated, self.path);
                    let element =
                        Element { text: &text, arena, repeated, path, key, index, offset, whole: true };
                    if !look(element)? {
                        return Ok(());
                    }
                }
                Found::TooLong { .. } => {}
                Found::Cut { .. } | Found::End => return Ok(()),
            }
            arena.reset();
            index += 1;
        }
    }

    /// The file, at the first byte of what is read.
    fn open(&self, bundle: &Bundle) -> Result<Reader, ImportError> {
        let mut reader = bundle.open(self.path)?;
        if let Some(start) = self.start {
            reader.seek(start)?;
        }
        Ok(reader)
    }

    /// Makes a skip of an element that cannot be read, and tells of keys that stood twice in one that can.
    fn settle(
        &self,
        result: Result<(), ImportError>,
        element: &Element<'_>,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        let repeated = element.repeated;
        let keys = if repeated.is_empty() { Vec::new() } else { repeated.take() };
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

/// Where an element stands: by the name of the member that it is, else by its number.
fn locator(path: &str, key: Option<&str>, index: u64) -> String {
    key.map_or_else(|| format!("{path}[{index}]"), |key| format!("{path}.{key}"))
}

/// The bytes as text, checked once for the whole element.
fn utf8(bytes: &[u8]) -> Cow<'_, str> {
    simdutf8::basic::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

#[cfg(test)]
mod tests;
