//! Goes from element to element: finds the list, then the end of each element.

use std::io::BufRead;

use super::{scan::Scan, stream::Stream};
use crate::{Arena, ErrorKind, ImportError, Parser};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const ENDS_INSIDE: &str = "the file ends inside this record";
const ENDS_EARLY: &str = "the file ends before its list does";
const MORE_BEHIND: &str = "something that is no list stands behind the list; it cannot be read";
const NO_VALUE: &str = "expected a value; the rest of the file cannot be read";

/// What [`Walk::next`] found.
pub(super) enum Found<'w> {
    /// An element, valid until the next call. `key` is its name, or empty if the elements have no names.
    Element { bytes: &'w [u8], offset: u64, key: &'w str },
    /// An element beyond the limit. `head` is empty except in a sample.
    TooLong { head: &'w [u8], offset: u64, key: &'w str },
    /// The file cannot be read from here on.
    Cut { offset: u64, problem: &'static str },
    /// There are no more elements.
    End,
}

/// A walk over the elements of one file.
pub(super) struct Walk<'p, R> {
    stream: Stream<R>,
    pointer: &'p str,
    state: State,
    /// Length of the element that was returned last; the next call takes it from the stream.
    last_length: usize,
    limit: usize,
    sampling: bool,
    /// The list is inside a file of another format.
    embedded: bool,
    layout: Layout,
    /// The name of the member that was returned last.
    key: String,
}

/// What a file is known to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Its first bytes tell.
    Any,
    /// An object whose members are the elements.
    Members,
    /// JSON Lines, whatever its first lines are.
    Lines,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was read yet.
    Start,
    /// Inside the array.
    Array,
    /// Inside the object whose members are the elements.
    Members,
    /// Behind the root array.
    Behind,
    /// JSON Lines.
    Lines,
    /// Values one after another; usually there is only one.
    Values,
    /// A single value, whatever follows it.
    One,
    /// At the end.
    Done,
}

/// What [`Walk::next_list`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Member {
    /// One of the lists, by its index; its elements are next.
    List(usize),
    /// The file cannot be read from here on.
    Cut { offset: u64, problem: &'static str },
    /// The object ends here.
    End,
}

/// Where an element ends, without borrowing it.
enum Extent {
    Whole(usize),
    TooLong,
    Broken,
}

/// Why the rest of the file cannot be read; the reason of a skip.
type Problem = &'static str;

impl<'p, R: BufRead> Walk<'p, R> {
    pub(super) fn new(reader: R, pointer: &'p str, limit: usize) -> Self {
        Self {
            stream: Stream::new(reader),
            pointer,
            state: State::Start,
            last_length: 0,
            limit,
            sampling: false,
            embedded: false,
            layout: Layout::Any,
            key: String::new(),
        }
    }

    /// Reads only the first `budget` bytes.
    pub(super) fn sampling(self, budget: usize) -> Self {
        Self { stream: self.stream.limited(budget), limit: budget, sampling: true, ..self }
    }

    /// Whether the list is inside a file of another format: what follows it is not read.
    pub(super) fn embedded(self, embedded: bool) -> Self {
        Self { embedded, ..self }
    }

    /// What the file is known to be.
    pub(super) fn layout(self, layout: Layout) -> Self {
        Self { layout, ..self }
    }

    /// Offset in bytes of the end of what was walked.
    pub(super) fn position(&self) -> u64 {
        self.stream.offset()
    }

    pub(super) fn next(&mut self) -> Result<Found<'_>, ImportError> {
        self.stream.take(std::mem::take(&mut self.last_length));
        if self.state == State::Start
            && let Some(problem) = self.find_list()?
        {
            return Ok(self.cut(problem));
        }
        loop {
            let next = self.stream.peek()?;
            match (self.state, next) {
                (State::Done, _) | (State::Lines | State::Values | State::One | State::Behind, None) => {
                    return Ok(Found::End);
                }
                (State::Array, None) => return Ok(self.cut(ENDS_EARLY)),
                (State::Array, Some(b']')) => {
                    self.stream.take(1);
                    let last = self.embedded || !self.pointer.is_empty();
                    self.state = if last { State::Done } else { State::Behind };
                }
                // Several root arrays in sequence: files that were concatenated.
                (State::Behind, Some(b'[')) => {
                    self.stream.take(1);
                    self.state = State::Array;
                }
                (State::Behind, Some(_)) => return Ok(self.cut(MORE_BEHIND)),
                (State::Array, Some(b',')) => self.stream.take(1),
                (State::Members, _) => match self.next_member()? {
                    Ok(Some(key)) => {
                        self.key = key;
                        return match self.stream.first()? {
                            Some(b',' | b':' | b']' | b'}') => Ok(self.cut(NO_VALUE)),
                            _ => self.element(),
                        };
                    }
                    Ok(None) => self.state = State::Done,
                    Err(problem) => return Ok(self.cut(problem)),
                },
                (State::Lines, Some(_)) => return self.line(),
                (_, Some(b',' | b':' | b']' | b'}')) => return Ok(self.cut(NO_VALUE)),
                (_, Some(_)) => return self.element(),
                (State::Start, None) => return Ok(Found::End),
            }
        }
    }

    /// Goes to the next member of the root object that is one of `lists`. Calls `other` with the name of each other
    /// member on the way.
    pub(super) fn next_list(
        &mut self,
        lists: &[&str],
        mut other: impl FnMut(&str),
    ) -> Result<Member, ImportError> {
        self.stream.take(std::mem::take(&mut self.last_length));
        if self.state == State::Start {
            self.skip_byte_order_mark()?;
            match self.stream.peek()? {
                Some(b'{') => self.stream.take(1),
                _ => return Err(ImportError::not_this_format("the file is not one object")),
            }
        }
        self.state = State::Done;
        let cut = |walk: &Self, problem| Ok(Member::Cut { offset: walk.stream.offset(), problem });
        loop {
            let name = match self.next_member()? {
                Ok(Some(name)) => name,
                Ok(None) => return Ok(Member::End),
                Err(problem) => return cut(self, problem),
            };
            let first = self.stream.first()?.unwrap_or_default();
            match lists.iter().position(|list| *list == name) {
                Some(list) if first == b'[' => {
                    self.stream.take(1);
                    self.state = State::Array;
                    return Ok(Member::List(list));
                }
                Some(list) if first != b'n' => {
                    self.state = State::One;
                    return Ok(Member::List(list));
                }
                Some(_) => {}
                None => other(&name),
            }
            if !self.skip(Scan::new(first))? {
                return cut(self, ENDS_EARLY);
            }
        }
    }

    /// Takes the name of the next member and the colon, so that its value is first in the stream. `None` at the end of
    /// the object.
    fn next_member(&mut self) -> Result<Result<Option<String>, Problem>, ImportError> {
        loop {
            match self.stream.peek()? {
                Some(b',') => self.stream.take(1),
                Some(b'"') => break,
                Some(b'}') => {
                    self.stream.take(1);
                    return Ok(Ok(None));
                }
                Some(_) => return Ok(Err(NO_VALUE)),
                None => return Ok(Err(ENDS_EARLY)),
            }
        }
        let Extent::Whole(length) = self.extent()? else { return Ok(Err(ENDS_EARLY)) };
        let name = key_of(self.stream.bytes().get(..length).unwrap_or_default());
        self.stream.take(length);
        if self.stream.peek()? != Some(b':') {
            return Ok(Err(NO_VALUE));
        }
        self.stream.take(1);
        Ok(if self.stream.peek()?.is_some() { Ok(Some(name)) } else { Err(ENDS_EARLY) })
    }

    fn cut(&mut self, problem: Problem) -> Found<'_> {
        self.state = State::Done;
        Found::Cut { offset: self.stream.offset(), problem }
    }

    fn element(&mut self) -> Result<Found<'_>, ImportError> {
        let offset = self.stream.offset();
        match self.extent()? {
            Extent::Whole(length) => {
                self.last_length = length;
                if self.state == State::One {
                    self.state = State::Done;
                }
                let bytes = self.stream.bytes().get(..length).unwrap_or_default();
                Ok(Found::Element { bytes, offset, key: &self.key })
            }
            Extent::Broken if self.sampling => {
                self.state = State::Done;
                Ok(Found::TooLong { head: self.stream.bytes(), offset, key: &self.key })
            }
            Extent::Broken => {
                self.state = State::Done;
                Ok(Found::Cut { offset, problem: ENDS_INSIDE })
            }
            Extent::TooLong => Ok(Found::TooLong { head: &[], offset, key: &self.key }),
        }
    }

    /// Reads until the first value is whole. Takes it if it is too long.
    fn extent(&mut self) -> Result<Extent, ImportError> {
        let first = self.stream.first()?.unwrap_or_default();
        // A number or literal at the end of the file is whole only if nothing has to follow it.
        let inside = matches!(self.state, State::Array | State::Members);
        let open_end = matches!(first, b'{' | b'[' | b'"') || !inside;
        let mut scan = Scan::new(first);
        loop {
            let last = self.stream.ended();
            match scan.end(self.stream.bytes(), last && open_end) {
                Some(length) if length <= self.limit => return Ok(Extent::Whole(length)),
                None if last => return Ok(Extent::Broken),
                None if self.sampling || self.stream.bytes().len() <= self.limit => self.stream.more()?,
                _ => {
                    let whole = self.skip(Scan::new(first))?;
                    return Ok(if whole { Extent::TooLong } else { Extent::Broken });
                }
            };
        }
    }

    /// Takes the first value without buffering it; false if the file ends inside it.
    fn skip(&mut self, mut scan: Scan) -> Result<bool, ImportError> {
        loop {
            let last = self.stream.ended();
            if let Some(length) = scan.end(self.stream.bytes(), last) {
                self.stream.take(length);
                return Ok(true);
            }
            self.stream.take(scan.forget());
            if last {
                return Ok(false);
            }
            self.stream.more()?;
        }
    }

    /// The next record of JSON Lines; a broken one does not affect the others.
    fn line(&mut self) -> Result<Found<'_>, ImportError> {
        let offset = self.stream.offset();
        let Some((length, whole)) = self.end_of_record()? else {
            self.skip_line()?;
            return Ok(Found::TooLong { head: &[], offset, key: "" });
        };
        self.last_length = length;
        let bytes = self.stream.bytes().get(..length).unwrap_or_default().trim_ascii_end();
        // A broken record is returned too: the parser finds what is wrong in it.
        Ok(match whole || length < self.stream.bytes().len() {
            true => Found::Element { bytes, offset, key: "" },
            false if self.sampling => Found::TooLong { head: bytes, offset, key: "" },
            false => Found::Cut { offset, problem: ENDS_INSIDE },
        })
    }

    /// The length of the first record, and whether it is whole. It ends at the first line break behind a whole value, or
    /// else before the next line that begins an object. None if it is too long.
    fn end_of_record(&mut self) -> Result<Option<(usize, bool)>, ImportError> {
        let mut scan = Scan::new(self.stream.first()?.unwrap_or_default());
        let mut searched = 0;
        loop {
            let rest = self.stream.bytes().get(searched..).unwrap_or_default();
            let line_break = memchr::memchr(b'\n', rest).map(|at| searched + at);
            searched = line_break.unwrap_or(self.stream.bytes().len());
            if line_break.is_none() && (searched <= self.limit || self.sampling) && self.stream.more()? {
                continue;
            }
            if searched > self.limit && !self.sampling {
                return Ok(None);
            }
            let whole = scan.end(self.stream.bytes().get(..searched).unwrap_or_default(), true).is_some();
            if whole || line_break.is_none() || self.object_follows(searched)? {
                return Ok(Some((searched, whole)));
            }
            searched += 1;
        }
    }

    /// Whether an object or the end of the file follows the first `searched` bytes and white space.
    fn object_follows(&mut self, searched: usize) -> Result<bool, ImportError> {
        loop {
            let behind = self.stream.bytes().get(searched..).unwrap_or_default().trim_ascii_start();
            if let Some(first) = behind.first() {
                return Ok(*first == b'{');
            }
            if !self.stream.more()? {
                return Ok(true);
            }
        }
    }

    fn skip_line(&mut self) -> Result<(), ImportError> {
        loop {
            if let Some(length) = memchr::memchr(b'\n', self.stream.bytes()) {
                self.stream.take(length);
                return Ok(());
            }
            self.stream.take(self.stream.bytes().len());
            if !self.stream.more()? {
                return Ok(());
            }
        }
    }

    /// Goes to the list; returns a problem if the file is truncated before it.
    fn find_list(&mut self) -> Result<Option<Problem>, ImportError> {
        self.skip_byte_order_mark()?;
        let pointer = self.pointer;
        for token in pointer.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            if let Some(problem) = self.descend(&token)? {
                return Ok(Some(problem));
            }
        }
        self.state = match self.stream.peek()? {
            Some(_) if self.layout == Layout::Lines => State::Lines,
            Some(b'{') if self.layout == Layout::Members => {
                self.stream.take(1);
                State::Members
            }
            Some(_) if self.layout == Layout::Members => State::Done,
            Some(b'[') => {
                self.stream.take(1);
                State::Array
            }
            Some(b'{') if pointer.is_empty() && self.is_json_lines()? => State::Lines,
            Some(_) if pointer.is_empty() => State::Values,
            Some(b'n') => State::Done,
            Some(_) => State::One,
            None if pointer.is_empty() => State::Done,
            None => return Ok(Some(ENDS_EARLY)),
        };
        Ok(None)
    }

    fn skip_byte_order_mark(&mut self) -> Result<(), ImportError> {
        while self.stream.bytes().len() < BYTE_ORDER_MARK.len() && self.stream.more()? {}
        if self.stream.bytes().starts_with(BYTE_ORDER_MARK) {
            self.stream.take(BYTE_ORDER_MARK.len());
        }
        Ok(())
    }

    /// Whether the first line is a whole object and another object follows it. A single value never looks like that, not
    /// even one with raw line breaks in its strings.
    fn is_json_lines(&mut self) -> Result<bool, ImportError> {
        let mut searched = 0;
        loop {
            let rest = self.stream.bytes().get(searched..).unwrap_or_default();
            if let Some(line_break) = memchr::memchr(b'\n', rest).map(|at| searched + at) {
                let line = self.stream.bytes().get(..line_break).unwrap_or_default().trim_ascii_end();
                let whole = Scan::new(b'{').end(line, true) == Some(line.len());
                return Ok(whole && self.object_follows(line_break)?);
            }
            searched = self.stream.bytes().len();
            if searched > self.limit || !self.stream.more()? {
                return Ok(false);
            }
        }
    }

    /// Goes to the member `token` of the next object.
    fn descend(&mut self, token: &str) -> Result<Option<Problem>, ImportError> {
        let pointer = self.pointer;
        let absent = || {
            let message = format!("the file has no list at {pointer:?}");
            Err(ImportError::new(ErrorKind::NotThisFormat, message))
        };
        match self.stream.peek()? {
            Some(b'{') => self.stream.take(1),
            Some(_) => return absent(),
            None => return Ok(Some(ENDS_EARLY)),
        }
        loop {
            match self.next_member()? {
                Ok(Some(name)) if name == token => return Ok(None),
                Ok(Some(_)) => {}
                Ok(None) => return absent(),
                Err(problem) => return Ok(Some(problem)),
            }
            let first = self.stream.first()?.unwrap_or_default();
            if !self.skip(Scan::new(first))? {
                return Ok(Some(ENDS_EARLY));
            }
        }
    }
}

/// Decodes a JSON string with its quotes.
fn key_of(quoted: &[u8]) -> String {
    let arena = Arena::new();
    let text = String::from_utf8_lossy(quoted);
    Parser::new(&text, &arena).string().unwrap_or_default().to_owned()
}
