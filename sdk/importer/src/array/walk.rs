//! Goes from element to element: finds the array, then the end of each element.

use std::io::BufRead;

use super::{scan::Scan, stream::Stream};
use crate::{Arena, ErrorKind, ImportError, Parser};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const ENDS_INSIDE: &str = "the file ends inside this record";
const ENDS_EARLY: &str = "the file ends before its list does";
const MORE_BEHIND: &str = "something that is no list stands behind the list; it cannot be read";
const NO_VALUE: &str = "expected a value; the rest of the file cannot be read";

/// What comes next.
pub(super) enum Found<'w> {
    /// An element, valid up to the next call; `key` is its name, empty where elements have none.
    Element { bytes: &'w [u8], offset: u64, key: &'w str },
    /// An element beyond the limit. A sample gives its head, a full walk passes over it.
    TooLong { head: &'w [u8], offset: u64, key: &'w str },
    /// The file cannot be read from here on.
    Cut { offset: u64, problem: &'static str },
    /// Nothing more.
    End,
}

/// A walk over the elements of one file.
pub(super) struct Walk<'p, R> {
    stream: Stream<R>,
    pointer: &'p str,
    state: State,
    /// Bytes of the element given last.
    given: usize,
    limit: usize,
    sampling: bool,
    /// Something else follows the list.
    embedded: bool,
    /// The elements are the members of an object.
    keyed: bool,
    /// The name of the member given last.
    key: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was read.
    Start,
    /// Inside the array.
    Array,
    /// Inside the object whose members are the elements.
    Members,
    /// Behind the array that is the root.
    Behind,
    /// One value to a line.
    Lines,
    /// One value behind the other; usually there is one.
    Values,
    /// One value, whatever follows.
    One,
    /// Over.
    Done,
}

/// What [`Walk::next_list`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Member {
    /// A list that was asked for, by its number; its elements are next.
    List(usize),
    /// The file cannot be read from here on.
    Cut { offset: u64, problem: &'static str },
    /// The object ends here.
    End,
}

/// Where an element ends, without borrowing it.
enum Extent {
    Whole(usize),
    Long { offset: u64 },
    Broken,
}

impl<'p, R: BufRead> Walk<'p, R> {
    pub(super) fn new(reader: R, pointer: &'p str, limit: usize) -> Self {
        let stream = Stream::new(reader, usize::MAX);
        Self {
            stream,
            pointer,
            state: State::Start,
            given: 0,
            limit,
            sampling: false,
            embedded: false,
            keyed: false,
            key: String::new(),
        }
    }

    /// A walk over the first `budget` bytes.
    pub(super) fn sampling(reader: R, pointer: &'p str, budget: usize) -> Self {
        let stream = Stream::new(reader, budget);
        Self {
            stream,
            pointer,
            state: State::Start,
            given: 0,
            limit: budget,
            sampling: true,
            embedded: false,
            keyed: false,
            key: String::new(),
        }
    }

    /// Whether the list stands inside another format: what follows it is no part of the walk.
    pub(super) fn embedded(self, embedded: bool) -> Self {
        Self { embedded, ..self }
    }

    /// Whether the elements are the members of an object.
    pub(super) fn keyed(self, keyed: bool) -> Self {
        Self { keyed, ..self }
    }

    /// Bytes of the file that were walked over.
    pub(super) fn position(&self) -> u64 {
        self.stream.offset()
    }

    pub(super) fn next(&mut self) -> Result<Found<'_>, ImportError> {
        self.stream.take(std::mem::take(&mut self.given));
        if self.state == State::Start
            && let Some(problem) = self.find_list()?
        {
            return Ok(self.cut(problem));
        }
        loop {
            let next = self.stream.first_solid()?;
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
                // Files of a list each, joined into one.
                (State::Behind, Some(b'[')) => {
                    self.stream.take(1);
                    self.state = State::Array;
                }
                (State::Behind, Some(_)) => return Ok(self.cut(MORE_BEHIND)),
                (State::Array | State::Members, Some(b',')) => self.stream.take(1),
                (State::Members, None) => return Ok(self.cut(ENDS_EARLY)),
                (State::Members, Some(b'}')) => {
                    self.stream.take(1);
                    self.state = State::Done;
                }
                (State::Members, Some(_)) => {
                    return match self.member_name()? {
                        Some(problem) => Ok(self.cut(problem)),
                        None => self.element(),
                    };
                }
                (State::Lines, Some(_)) => return self.line(),
                (_, Some(b',' | b':' | b']' | b'}')) => return Ok(self.cut(NO_VALUE)),
                (_, Some(_)) => return self.element(),
                (State::Start, None) => return Ok(Found::End),
            }
        }
    }

    /// Goes on, behind the list walked last, to the next member of the root object that is one of `lists`. `other` hears
    /// the names of members in between, which are passed over.
    pub(super) fn next_list(
        &mut self,
        lists: &[&str],
        mut other: impl FnMut(&str),
    ) -> Result<Member, ImportError> {
        self.stream.take(std::mem::take(&mut self.given));
        if self.state == State::Start {
            self.pass_byte_order_mark()?;
            match self.stream.first_solid()? {
                Some(b'{') => self.stream.take(1),
                _ => return Err(ImportError::not_this_format("the file is not one object")),
            }
        }
        self.state = State::Done;
        let cut = |walk: &Self, problem| Member::Cut { offset: walk.stream.offset(), problem };
        loop {
            match self.stream.first_solid()? {
                Some(b',') => {
                    self.stream.take(1);
                    continue;
                }
                Some(b'"') => {}
                Some(b'}') => {
                    self.stream.take(1);
                    return Ok(Member::End);
                }
                Some(_) => return Ok(cut(self, NO_VALUE)),
                None => return Ok(cut(self, ENDS_EARLY)),
            }
            let Extent::Whole(length) = self.extent()? else { return Ok(cut(self, ENDS_EARLY)) };
            let name = key_of(self.stream.bytes().get(..length).unwrap_or_default());
            self.stream.take(length);
            if self.stream.first_solid()? != Some(b':') {
                return Ok(cut(self, NO_VALUE));
            }
            self.stream.take(1);
            let wanted = lists.iter().position(|list| *list == name);
            match (self.stream.first_solid()?, wanted) {
                (None, _) => return Ok(cut(self, ENDS_EARLY)),
                (Some(b'['), Some(list)) => {
                    self.stream.take(1);
                    self.state = State::Array;
                    return Ok(Member::List(list));
                }
                (Some(first), Some(list)) if first != b'n' => {
                    self.state = State::One;
                    return Ok(Member::List(list));
                }
                (Some(first), wanted) => {
                    if wanted.is_none() {
                        other(&name);
                    }
                    if !self.pass(Scan::new(first))? {
                        return Ok(cut(self, ENDS_EARLY));
                    }
                }
            }
        }
    }

    /// Takes the name of the member at the front, up to its value; what is wrong, if there is none.
    fn member_name(&mut self) -> Result<Option<&'static str>, ImportError> {
        if self.stream.first()? != Some(b'"') {
            return Ok(Some(NO_VALUE));
        }
        let Extent::Whole(length) = self.extent()? else { return Ok(Some(ENDS_EARLY)) };
        self.key = key_of(self.stream.bytes().get(..length).unwrap_or_default());
        self.stream.take(length);
        if self.stream.first_solid()? != Some(b':') {
            return Ok(Some(NO_VALUE));
        }
        self.stream.take(1);
        Ok(match self.stream.first_solid()? {
            None => Some(ENDS_EARLY),
            Some(b',' | b':' | b']' | b'}') => Some(NO_VALUE),
            Some(_) => None,
        })
    }

    fn cut(&mut self, problem: &'static str) -> Found<'_> {
        self.state = State::Done;
        Found::Cut { offset: self.stream.offset(), problem }
    }

    fn element(&mut self) -> Result<Found<'_>, ImportError> {
        let offset = self.stream.offset();
        match self.extent()? {
            Extent::Whole(length) => {
                self.given = length;
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
            Extent::Long { offset } => Ok(Found::TooLong { head: &[], offset, key: &self.key }),
        }
    }

    /// Reads until the value at the front is whole. One that is too long is taken.
    fn extent(&mut self) -> Result<Extent, ImportError> {
        let offset = self.stream.offset();
        let first = self.stream.first()?.unwrap_or_default();
        // A word at the end of the file is whole only if nothing has to follow it.
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
                    return Ok(if self.pass(Scan::new(first))? {
                        Extent::Long { offset }
                    } else {
                        Extent::Broken
                    });
                }
            };
        }
    }

    /// Takes the value at the front without keeping it; false if the file ends before it does.
    fn pass(&mut self, mut scan: Scan) -> Result<bool, ImportError> {
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

    /// The next record where records begin on lines of their own; a broken one spoils no other.
    fn line(&mut self) -> Result<Found<'_>, ImportError> {
        let offset = self.stream.offset();
        let Some((length, whole)) = self.end_of_lines()? else {
            self.pass_line()?;
            return Ok(Found::TooLong { head: &[], offset, key: "" });
        };
        self.given = length;
        let bytes = self.stream.bytes().get(..length).unwrap_or_default().trim_ascii_end();
        // A record that is broken in itself is given: the parser says what is wrong.
        Ok(match whole || length < self.stream.bytes().len() {
            true => Found::Element { bytes, offset, key: "" },
            false if self.sampling => Found::TooLong { head: bytes, offset, key: "" },
            false => Found::Cut { offset, problem: ENDS_INSIDE },
        })
    }

    /// Where the record at the front ends, and whether it is whole: at the first line break behind a whole value, at
    /// the latest before a line that begins with another one. None if it is too long.
    fn end_of_lines(&mut self) -> Result<Option<(usize, bool)>, ImportError> {
        let mut scan = Scan::new(self.stream.first()?.unwrap_or_default());
        let mut looked = 0;
        loop {
            let rest = self.stream.bytes().get(looked..).unwrap_or_default();
            let line_break = memchr::memchr(b'\n', rest).map(|at| looked + at);
            looked = line_break.unwrap_or(self.stream.bytes().len());
            if line_break.is_none() && (looked <= self.limit || self.sampling) && self.stream.more()? {
                continue;
            }
            if looked > self.limit && !self.sampling {
                return Ok(None);
            }
            let whole = scan.end(self.stream.bytes().get(..looked).unwrap_or_default(), true).is_some();
            if whole || line_break.is_none() || self.opens_behind(looked)? {
                return Ok(Some((looked, whole)));
            }
            looked += 1;
        }
    }

    /// Whether what comes behind so many bytes and white space is an object or nothing.
    fn opens_behind(&mut self, looked: usize) -> Result<bool, ImportError> {
        loop {
            let behind = self.stream.bytes().get(looked..).unwrap_or_default().trim_ascii_start();
            if let Some(first) = behind.first() {
                return Ok(*first == b'{');
            }
            if !self.stream.more()? {
                return Ok(true);
            }
        }
    }

    fn pass_line(&mut self) -> Result<(), ImportError> {
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

    /// Goes to the list; what is wrong, if it is not there because the file breaks off.
    fn find_list(&mut self) -> Result<Option<&'static str>, ImportError> {
        self.pass_byte_order_mark()?;
        let pointer = self.pointer;
        for token in pointer.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            if let Some(problem) = self.descend(&token)? {
                return Ok(Some(problem));
            }
        }
        self.state = match self.stream.first_solid()? {
            Some(b'{') if self.keyed => {
                self.stream.take(1);
                State::Members
            }
            Some(_) if self.keyed => State::Done,
            Some(b'[') => {
                self.stream.take(1);
                State::Array
            }
            Some(b'{') if pointer.is_empty() && self.stands_in_lines()? => State::Lines,
            Some(_) if pointer.is_empty() => State::Values,
            Some(b'n') => State::Done,
            Some(_) => State::One,
            None if pointer.is_empty() => State::Done,
            None => return Ok(Some(ENDS_EARLY)),
        };
        Ok(None)
    }

    fn pass_byte_order_mark(&mut self) -> Result<(), ImportError> {
        while self.stream.bytes().len() < BYTE_ORDER_MARK.len() && self.stream.more()? {}
        if self.stream.bytes().starts_with(BYTE_ORDER_MARK) {
            self.stream.take(BYTE_ORDER_MARK.len());
        }
        Ok(())
    }

    /// Whether the first line is a whole object and another object follows, so that the two cannot be one value. No
    /// layout of a single value looks so, not even one with raw line breaks in its strings.
    fn stands_in_lines(&mut self) -> Result<bool, ImportError> {
        let mut looked = 0;
        loop {
            let rest = self.stream.bytes().get(looked..).unwrap_or_default();
            if let Some(line_break) = memchr::memchr(b'\n', rest).map(|at| looked + at) {
                let line = self.stream.bytes().get(..line_break).unwrap_or_default().trim_ascii_end();
                let whole = Scan::new(b'{').end(line, true) == Some(line.len());
                return Ok(whole && self.opens_behind(line_break)?);
            }
            looked = self.stream.bytes().len();
            if looked > self.limit || !self.stream.more()? {
                return Ok(false);
            }
        }
    }

    /// Goes to the member `token` of the object at the front.
    fn descend(&mut self, token: &str) -> Result<Option<&'static str>, ImportError> {
        let pointer = self.pointer;
        let absent = || {
            let message = format!("the file has no list at {pointer:?}");
            Err(ImportError::new(ErrorKind::NotThisFormat, message))
        };
        match self.stream.first_solid()? {
            Some(b'{') => self.stream.take(1),
            Some(_) => return absent(),
            None => return Ok(Some(ENDS_EARLY)),
        }
        loop {
            match self.stream.first_solid()? {
                Some(b',') => {
                    self.stream.take(1);
                    continue;
                }
                Some(b'"') => {}
                Some(b'}') => return absent(),
                Some(_) => return Ok(Some(NO_VALUE)),
                None => return Ok(Some(ENDS_EARLY)),
            }
            let Extent::Whole(length) = self.extent()? else { return Ok(Some(ENDS_EARLY)) };
            let found = key_of(self.stream.bytes().get(..length).unwrap_or_default()) == token;
            self.stream.take(length);
            if self.stream.first_solid()? != Some(b':') {
                return Ok(Some(NO_VALUE));
            }
            self.stream.take(1);
            let Some(first) = self.stream.first_solid()? else { return Ok(Some(ENDS_EARLY)) };
            if found {
                return Ok(None);
            }
            if !self.pass(Scan::new(first))? {
                return Ok(Some(ENDS_EARLY));
            }
        }
    }
}

/// What the string `quoted`, with its quotes, says.
fn key_of(quoted: &[u8]) -> String {
    let arena = Arena::new();
    let text = String::from_utf8_lossy(quoted);
    Parser::new(&text, &arena).string().unwrap_or_default().to_owned()
}
