//! Walks the root object of a document, its long lists item by item; one value is in memory at a time.

use std::{
    collections::BTreeSet,
    io::{self, Read},
};

use super::{
    MAX_DEPTH,
    path::Path,
    sink::{Sink, Version, json_issue, version},
    stream::{LONGEST_VALUE, Span, Stream, StreamError},
    values::{self, ValueRef},
};
use crate::{
    issue::{Issue, quote},
    json::{
        JsonError, Problem,
        lexer::{Lexer, Token},
        tree::{self, Node, Notes},
    },
};

/// One step of the walk.
pub(super) enum Event<'b> {
    /// A key of the root and its value.
    Field(String, Node<'b>),
    /// The next item of a walked list.
    Item(Item<'b>),
    /// An item that is not JSON, with its list and index; only when salvaging.
    Broken(&'static str, usize, JsonError),
    /// The start of a walked list.
    List(&'static str),
}

/// An item of a walked list.
pub(super) struct Item<'b> {
    pub(super) list: &'static str,
    pub(super) index: usize,
    pub(super) node: Node<'b>,
    /// Bytes of the text before it, without a byte order mark.
    pub(super) offset: usize,
    /// Whether a key occurs twice in it, which makes its meaning ambiguous.
    pub(super) duplicate_key: bool,
}

/// Different keys that a root may have.
const MAX_KEYS: usize = 10_000;

pub(super) struct RootWalk<R> {
    stream: Stream<R>,
    lists: &'static [&'static str],
    state: State,
    seen: BTreeSet<String>,
    /// Whether a key occurred twice anywhere; such a document is refused.
    pub(super) duplicate_keys: bool,
    /// Whether to go on after a broken item.
    salvage: bool,
}

/// What may follow in the text.
#[derive(Clone, Copy)]
enum State {
    /// The root's bracket.
    Start,
    /// A key, or the end if it would be the first one.
    Key { first: bool },
    /// A comma or the end of the root.
    AfterField,
    /// The item of a list with this index.
    Item(&'static str, usize),
}

impl<R: Read> RootWalk<R> {
    pub(super) fn new(
        input: R,
        lists: &'static [&'static str],
        salvage: bool,
        sink: &mut Sink,
    ) -> io::Result<Self> {
        let stream = Stream::new(input)?;
        if stream.has_bom {
            sink.warning("A-13", &Path::ROOT, "the text begins with a byte order mark");
        }
        Ok(Self { stream, lists, state: State::Start, seen: BTreeSet::new(), duplicate_keys: false, salvage })
    }

    /// Whether the text begins with a byte order mark, which offsets leave out.
    pub(super) fn has_bom(&self) -> bool {
        self.stream.has_bom
    }

    pub(super) fn next(&mut self, sink: &mut Sink) -> Result<Option<Event<'_>>, StreamError> {
        if let State::Start = self.state {
            self.expect(b'{', "an object")?;
            self.state = State::Key { first: true };
        }
        if let State::Item(list, index) = self.state {
            if self.at_item(index)? {
                return self.item(list, index, sink).map(Some);
            }
            self.state = State::AfterField;
        }
        if !self.at_key()? {
            return Ok(None);
        }
        let key = self.key(sink)?;
        if let Some(list) = self.lists.iter().copied().find(|list| *list == key)
            && self.stream.peek()? == Some(b'[')
        {
            self.stream.advance();
            self.state = State::Item(list, 0);
            return Ok(Some(Event::List(list)));
        }
        self.state = State::AfterField;
        self.field(key, sink).map(Some)
    }

    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), StreamError> {
        match self.stream.peek()? {
            Some(found) if found == byte => self.stream.advance(),
            Some(_) => return Err(self.stream.error(Problem::Expected(what))),
            None => return Err(self.stream.error(Problem::CutOff)),
        }
        Ok(())
    }

    /// Advances to the next key of the root; false at its end.
    fn at_key(&mut self) -> Result<bool, StreamError> {
        let next = self.stream.peek()?.ok_or_else(|| self.stream.error(Problem::CutOff))?;
        match (self.state, next) {
            (State::AfterField | State::Key { first: true }, b'}') => {
                self.stream.advance();
                match self.stream.peek()? {
                    None => Ok(false),
                    Some(_) => Err(self.stream.error(Problem::Expected("the end of the text"))),
                }
            }
            (State::AfterField, b',') => {
                self.stream.advance();
                self.state = State::Key { first: false };
                self.at_key()
            }
            (State::AfterField, _) => Err(self.stream.error(Problem::Expected("a comma or the end"))),
            (_, b'"') => Ok(true),
            _ => Err(self.stream.error(Problem::Expected("a key in quotes"))),
        }
    }

    fn key(&mut self, sink: &mut Sink) -> Result<String, StreamError> {
        let offset = self.stream.offset();
        let quoted = self.stream.key()?;
        let token = Lexer::new(&quoted, MAX_DEPTH).next().map_err(|problem| shifted(problem, offset))?;
        let Some(Token::String(key)) = token else {
            return Err(self.stream.error(Problem::Expected("a key in quotes")));
        };
        let key = key.decode(&mut false).into_owned();
        if self.seen.len() == MAX_KEYS && !self.seen.contains(&key) {
            return Err(self.stream.error(Problem::TooMany(MAX_KEYS)));
        }
        if !self.seen.insert(key.clone()) {
            self.duplicate_keys = true;
            sink.error("A-13", &Path::ROOT.key(&key), "the key stands twice");
        }
        Ok(key)
    }

    fn field(&mut self, key: String, sink: &mut Sink) -> Result<Event<'_>, StreamError> {
        let span = self.stream.value()?;
        let mut duplicate_key = false;
        let node = match checked(span) {
            Ok(()) => {
                let bytes = self.stream.consume(span);
                let root = Path::ROOT;
                value(bytes, span, MAX_DEPTH - 1, &root.key(&key), sink, &mut duplicate_key)?
            }
            Err(problem) => return Err(problem.into()),
        };
        self.duplicate_keys |= duplicate_key;
        Ok(Event::Field(key, node))
    }

    /// Advances to the next item of a list; false at its end.
    fn at_item(&mut self, index: usize) -> Result<bool, StreamError> {
        let next = self.stream.peek()?.ok_or_else(|| self.stream.error(Problem::CutOff))?;
        match next {
            b']' => {
                self.stream.advance();
                Ok(false)
            }
            _ if index == 0 => Ok(true),
            b',' => {
                self.stream.advance();
                match self.stream.peek()? {
                    Some(_) => Ok(true),
                    None => Err(self.stream.error(Problem::CutOff)),
                }
            }
            _ => Err(self.stream.error(Problem::Expected("a comma or the end"))),
        }
    }

    fn item(&mut self, list: &'static str, index: usize, sink: &mut Sink) -> Result<Event<'_>, StreamError> {
        let span = self.stream.value()?;
        // If no value starts the list, the list itself is broken, and skipping nothing would loop.
        let salvage = self.salvage && !span.cut && (index > 0 || span.length > 0);
        self.state = State::Item(list, index + 1);
        sink.begin_record();
        if let Err(problem) = checked(span) {
            self.stream.skip(span);
            return if salvage { Ok(Event::Broken(list, index, problem)) } else { Err(problem.into()) };
        }
        let root = Path::ROOT;
        let path = root.key(list);
        let mut duplicate_key = false;
        let bytes = self.stream.consume(span);
        match value(bytes, span, MAX_DEPTH - 2, &path.index(index), sink, &mut duplicate_key) {
            Ok(node) => {
                self.duplicate_keys |= duplicate_key && !self.salvage;
                Ok(Event::Item(Item { list, index, node, offset: span.offset, duplicate_key }))
            }
            Err(problem) if salvage => Ok(Event::Broken(list, index, problem)),
            Err(problem) => Err(problem.into()),
        }
    }
}

/// Checks the length of a value.
fn checked(span: Span) -> Result<(), JsonError> {
    if span.discarded {
        return Err(JsonError { offset: span.offset, problem: Problem::TooLong(LONGEST_VALUE) });
    }
    if span.length == 0 {
        let problem = if span.cut { Problem::CutOff } else { Problem::Expected("a value") };
        return Err(JsonError { offset: span.offset, problem });
    }
    Ok(())
}

fn shifted(problem: JsonError, offset: usize) -> JsonError {
    JsonError { offset: offset + problem.offset, problem: problem.problem }
}

/// Reads a value of at most `depth` levels of nesting; sets `duplicate_key` if a key occurs twice in it.
fn value<'b>(
    bytes: &'b [u8],
    span: Span,
    depth: usize,
    path: &Path<'_>,
    sink: &mut Sink,
    duplicate_key: &mut bool,
) -> Result<Node<'b>, JsonError> {
    let text = str::from_utf8(bytes).map_err(|problem| JsonError {
        offset: span.offset + problem.valid_up_to(),
        problem: Problem::Utf8,
    })?;
    let mut notes = Notes::default();
    let node = tree::parse(text, depth, &mut notes).map_err(|mut problem| {
        match &mut problem.problem {
            Problem::Depth(limit) => *limit = MAX_DEPTH,
            Problem::Expected(what) if *what == "the end of the text" => *what = "a comma or the end",
            _ => {}
        }
        shifted(problem, span.offset)
    })?;
    *duplicate_key = report(&notes, span.offset, path, sink);
    Ok(node)
}

/// Turns notes into issues; true if a key occurs twice. The notes are about text after the first `before` bytes.
pub(super) fn report(notes: &Notes, before: usize, path: &Path<'_>, sink: &mut Sink) -> bool {
    for (offset, key) in &notes.duplicates {
        let offset = before + offset;
        sink.error(
            "A-13",
            path,
            format!("key {} stands twice in the object that ends at byte {offset}", quote(key)),
        );
    }
    for offset in &notes.surrogates {
        let offset = before + offset;
        sink.error("A-8", path, format!("a lone surrogate before byte {offset} was read as U+FFFD"));
    }
    !notes.duplicates.is_empty()
}

/// The text of a document without its byte order mark.
pub(super) fn text<'a>(bytes: &'a [u8], sink: &mut Sink) -> Result<&'a str, Issue> {
    let text = str::from_utf8(bytes).map_err(|problem| {
        json_issue(&JsonError { offset: problem.valid_up_to(), problem: Problem::Utf8 })
    })?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => {
            sink.warning("A-13", &Path::ROOT, "the text begins with a byte order mark");
            rest
        }
        None => text,
    })
}

/// The fields that every document has.
#[derive(Default)]
pub(super) struct Heading {
    pub(super) schema: Option<String>,
    pub(super) schema_version: Option<String>,
}

impl Heading {
    /// Takes the field if it belongs to the heading.
    pub(super) fn take(&mut self, key: &str, node: &Node<'_>, sink: &mut Sink) -> bool {
        let root = Path::ROOT;
        let path = root.key(key);
        let value = |rule| ValueRef { node, path: &path, rule };
        match key {
            "schema" => self.schema = values::text(value("R-3.1"), sink),
            "schema_version" => self.schema_version = values::text(value("R-3.2"), sink),
            _ => return false,
        }
        true
    }

    /// The version of the document; an issue if it is of another kind or version.
    pub(super) fn check(&self, schema: &str, sink: &mut Sink) -> Version {
        let root = Path::ROOT;
        if self.schema.as_deref() != Some(schema) {
            let found = self.schema.as_deref().map_or("missing".to_owned(), quote);
            sink.error("R-3.1", &root.key("schema"), format!("is {found}, not {schema:?}"));
            return Version::Unsupported;
        }
        let Some(text) = &self.schema_version else {
            sink.error("R-3.2", &root.key("schema_version"), "is missing");
            return Version::Unsupported;
        };
        let version = version(text);
        if version == Version::Unsupported {
            let message = format!("is {}; this program reads 1.x", quote(text));
            sink.error("R-3.2", &root.key("schema_version"), message);
        }
        version
    }
}

/// Reports a root key that the schema does not have.
pub(super) fn unknown_field(key: &str, node: &Node<'_>, sink: &mut Sink) {
    sink.unknown(&Path::ROOT.key(key), "the key", node.to_value());
}

/// The text under `schema`. Errors in other values do not matter, and the document may be cut off after it.
pub(super) fn schema_of(input: impl Read) -> io::Result<Option<String>> {
    match schema(input) {
        Ok(found) => Ok(found),
        Err(StreamError::Json(_)) => Ok(None),
        Err(StreamError::Io(error)) => Err(error),
    }
}

fn schema(input: impl Read) -> Result<Option<String>, StreamError> {
    let mut walk = RootWalk::new(input, &[], true, &mut Sink::default())?;
    walk.expect(b'{', "an object")?;
    walk.state = State::Key { first: true };
    while walk.at_key()? {
        let quoted = walk.stream.key()?;
        let is_schema = string_of(quoted.as_bytes()).as_deref() == Some("schema");
        walk.stream.peek()?;
        let span = walk.stream.value()?;
        let found = string_of(walk.stream.consume(span)).filter(|_| is_schema);
        if found.is_some() {
            return Ok(found);
        }
        walk.state = State::AfterField;
    }
    Ok(None)
}

/// The string that a JSON text consists of.
fn string_of(bytes: &[u8]) -> Option<String> {
    let text = str::from_utf8(bytes).ok()?.trim_end();
    match Lexer::new(text, MAX_DEPTH).next() {
        Ok(Some(Token::String(quoted))) => Some(quoted.decode(&mut false).into_owned()),
        _ => None,
    }
}
