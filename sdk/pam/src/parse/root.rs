//! Walks the root object of a document, its long lists item by item, so that one value of it is in memory at a time.

use std::{
    collections::BTreeSet,
    io::{self, Read},
};

use serde_json::Value;

use super::{
    MAX_DEPTH, json_issue,
    path::Path,
    sink::{Sink, Version, version},
    stream::{Fault, LONGEST_VALUE, Span, Stream},
    values,
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
pub(super) enum Part<'b> {
    /// A key of the root and its value.
    Field(String, Node<'b>),
    /// The next item of a list that is walked.
    Item(Item<'b>),
    /// An item that is no JSON; only where what is whole is read in spite of it.
    Broken(&'static str, usize, JsonError),
    /// The start of such a list.
    List(&'static str),
}

/// An item of a list that is walked.
pub(super) struct Item<'b> {
    pub(super) list: &'static str,
    pub(super) index: usize,
    pub(super) node: Node<'b>,
    /// Bytes of the text before it.
    pub(super) offset: usize,
    /// A key stands twice in it, so what it says is open.
    pub(super) twice: bool,
}

/// Different keys of a root that are told apart.
const MOST_KEYS: usize = 10_000;

pub(super) struct Walk<R> {
    stream: Stream<R>,
    lists: &'static [&'static str],
    at: At,
    seen: BTreeSet<String>,
    /// A key stood twice, somewhere: the document is refused.
    pub(super) ambiguous: bool,
    /// Whether what is whole is read although something else is broken.
    salvage: bool,
}

/// What may come next.
#[derive(Clone, Copy)]
enum At {
    /// The root's bracket.
    Start,
    /// A key, or the end if nothing has come before it.
    Key { first: bool },
    /// A comma or the end of the root.
    AfterField,
    /// The item of a list with this index.
    Item(&'static str, usize),
}

impl<R: Read> Walk<R> {
    pub(super) fn new(
        input: R,
        lists: &'static [&'static str],
        salvage: bool,
        sink: &mut Sink,
    ) -> io::Result<Self> {
        let stream = Stream::new(input)?;
        if stream.marked {
            sink.warning("A-13", &Path::ROOT, "the text begins with a byte order mark");
        }
        Ok(Self { stream, lists, at: At::Start, seen: BTreeSet::new(), ambiguous: false, salvage })
    }

    /// Whether the text begins with a byte order mark, which offsets do not count.
    pub(super) fn marked(&self) -> bool {
        self.stream.marked
    }

    pub(super) fn next(&mut self, sink: &mut Sink) -> Result<Option<Part<'_>>, Fault> {
        if let At::Start = self.at {
            self.expect(b'{', "an object")?;
            self.at = At::Key { first: true };
        }
        if let At::Item(list, index) = self.at {
            if self.at_item(index)? {
                return self.item(list, index, sink).map(Some);
            }
            self.at = At::AfterField;
        }
        if !self.at_key()? {
            return Ok(None);
        }
        let key = self.key(sink)?;
        if let Some(list) = self.lists.iter().copied().find(|list| *list == key)
            && self.stream.peek()? == Some(b'[')
        {
            self.stream.step();
            self.at = At::Item(list, 0);
            return Ok(Some(Part::List(list)));
        }
        self.at = At::AfterField;
        self.field(key, sink).map(Some)
    }

    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), Fault> {
        match self.stream.peek()? {
            Some(found) if found == byte => self.stream.step(),
            Some(_) => return Err(self.stream.error(Problem::Expected(what))),
            None => return Err(self.stream.error(Problem::CutOff)),
        }
        Ok(())
    }

    /// Goes to the next key of the root; false at its end.
    fn at_key(&mut self) -> Result<bool, Fault> {
        let next = self.stream.peek()?.ok_or_else(|| self.stream.error(Problem::CutOff))?;
        match (self.at, next) {
            (At::AfterField | At::Key { first: true }, b'}') => {
                self.stream.step();
                match self.stream.peek()? {
                    None => Ok(false),
                    Some(_) => Err(self.stream.error(Problem::Expected("the end of the text"))),
                }
            }
            (At::AfterField, b',') => {
                self.stream.step();
                self.at = At::Key { first: false };
                self.at_key()
            }
            (At::AfterField, _) => Err(self.stream.error(Problem::Expected("a comma or the end"))),
            (_, b'"') => Ok(true),
            _ => Err(self.stream.error(Problem::Expected("a key in quotes"))),
        }
    }

    fn key(&mut self, sink: &mut Sink) -> Result<String, Fault> {
        let offset = self.stream.offset();
        let quoted = self.stream.key()?;
        let token = Lexer::new(&quoted, MAX_DEPTH).next().map_err(|problem| behind(problem, offset))?;
        let Some(Token::String(key)) = token else {
            return Err(self.stream.error(Problem::Expected("a key in quotes")));
        };
        let key = key.decode(&mut false).into_owned();
        if self.seen.len() == MOST_KEYS && !self.seen.contains(&key) {
            return Err(self.stream.error(Problem::TooMany(MOST_KEYS)));
        }
        if !self.seen.insert(key.clone()) {
            self.ambiguous = true;
            sink.error("A-13", &Path::ROOT.key(&key), "the key stands twice");
        }
        Ok(key)
    }

    fn field(&mut self, key: String, sink: &mut Sink) -> Result<Part<'_>, Fault> {
        let span = self.stream.value()?;
        let mut twice = false;
        let node = match checked(span) {
            Ok(()) => {
                let bytes = self.stream.consume(span);
                let root = Path::ROOT;
                value(bytes, span, MAX_DEPTH - 1, &root.key(&key), sink, &mut twice)?
            }
            Err(problem) => return Err(problem.into()),
        };
        self.ambiguous |= twice;
        Ok(Part::Field(key, node))
    }

    /// Goes to the next item of a list; false at its end.
    fn at_item(&mut self, index: usize) -> Result<bool, Fault> {
        let next = self.stream.peek()?.ok_or_else(|| self.stream.error(Problem::CutOff))?;
        match next {
            b']' => {
                self.stream.step();
                Ok(false)
            }
            _ if index == 0 => Ok(true),
            b',' => {
                self.stream.step();
                match self.stream.peek()? {
                    Some(_) => Ok(true),
                    None => Err(self.stream.error(Problem::CutOff)),
                }
            }
            _ => Err(self.stream.error(Problem::Expected("a comma or the end"))),
        }
    }

    fn item(&mut self, list: &'static str, index: usize, sink: &mut Sink) -> Result<Part<'_>, Fault> {
        let span = self.stream.value()?;
        // Where nothing stands at the beginning of a list, the mistake is the list's, and the next look would meet it again.
        let salvage = self.salvage && !span.cut && (index > 0 || span.length > 0);
        self.at = At::Item(list, index + 1);
        sink.begin_record();
        if let Err(problem) = checked(span) {
            self.stream.pass(span);
            return if salvage { Ok(Part::Broken(list, index, problem)) } else { Err(problem.into()) };
        }
        let root = Path::ROOT;
        let path = root.key(list);
        let mut twice = false;
        let bytes = self.stream.consume(span);
        match value(bytes, span, MAX_DEPTH - 2, &path.index(index), sink, &mut twice) {
            Ok(node) => {
                self.ambiguous |= twice && !self.salvage;
                Ok(Part::Item(Item { list, index, node, offset: span.offset, twice }))
            }
            Err(problem) if salvage => Ok(Part::Broken(list, index, problem)),
            Err(problem) => Err(problem.into()),
        }
    }
}

/// What is wrong with a value as far as it was looked at.
fn checked(span: Span) -> Result<(), JsonError> {
    if span.gone {
        return Err(JsonError { offset: span.offset, problem: Problem::TooLong(LONGEST_VALUE) });
    }
    if span.length == 0 {
        let problem = if span.cut { Problem::CutOff } else { Problem::Expected("a value") };
        return Err(JsonError { offset: span.offset, problem });
    }
    Ok(())
}

fn behind(problem: JsonError, offset: usize) -> JsonError {
    JsonError { offset: offset + problem.offset, problem: problem.problem }
}

/// Reads a value; `depth`: how many objects and arrays it may have inside each other. `twice`: whether a key stands twice in it.
fn value<'b>(
    bytes: &'b [u8],
    span: Span,
    depth: usize,
    path: &Path<'_>,
    sink: &mut Sink,
    twice: &mut bool,
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
        behind(problem, span.offset)
    })?;
    *twice = report(&notes, span.offset, path, sink);
    Ok(node)
}

/// Turns notes into issues; true if a key stood twice. `before`: bytes of the text that come before what the notes are about.
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

/// The text of a document, without a byte order mark.
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

/// The fields that every document begins with.
#[derive(Default)]
pub(super) struct Heading {
    pub(super) schema: Option<String>,
    pub(super) schema_version: Option<String>,
}

impl Heading {
    /// Takes the field if it is one of the heading's.
    pub(super) fn take(&mut self, key: &str, node: &Node<'_>, sink: &mut Sink) -> bool {
        let root = Path::ROOT;
        match key {
            "schema" => self.schema = values::text(node, &root.key("schema"), "R-3.1", sink),
            "schema_version" => {
                self.schema_version = values::text(node, &root.key("schema_version"), "R-3.2", sink);
            }
            _ => return false,
        }
        true
    }

    /// The version to read by; issues if the document is not ours to read.
    pub(super) fn judge(&self, schema: &str, sink: &mut Sink) -> Version {
        let root = Path::ROOT;
        if self.schema.as_deref() != Some(schema) {
            let found = self.schema.as_deref().map_or("missing".to_owned(), quote);
            sink.error("R-3.1", &root.key("schema"), format!("is {found}, not {schema:?}"));
            return Version::Foreign;
        }
        let Some(text) = &self.schema_version else {
            sink.error("R-3.2", &root.key("schema_version"), "is missing");
            return Version::Foreign;
        };
        let version = version(text);
        if version == Version::Foreign {
            let message = format!("is {}; this program reads 1.x", quote(text));
            sink.error("R-3.2", &root.key("schema_version"), message);
        }
        version
    }
}

/// Reports a root key that the schema does not have.
pub(super) fn unknown_field(key: &str, node: &Node<'_>, sink: &mut Sink) {
    let value: Value = node.to_value();
    sink.unknown(&Path::ROOT.key(key), "the key", value);
}

/// The text under `schema`. What is wrong with another value does not make it another document, and a document may be given by its
/// head: what is cut off comes after.
pub(super) fn schema_of(input: impl Read) -> io::Result<Option<String>> {
    match schema(input) {
        Ok(found) => Ok(found),
        Err(Fault::Json(_)) => Ok(None),
        Err(Fault::Io(error)) => Err(error),
    }
}

fn schema(input: impl Read) -> Result<Option<String>, Fault> {
    let mut walk = Walk::new(input, &[], true, &mut Sink::default())?;
    walk.expect(b'{', "an object")?;
    walk.at = At::Key { first: true };
    while walk.at_key()? {
        let quoted = walk.stream.key()?;
        let is_schema = text_of(quoted.as_bytes()).as_deref() == Some("schema");
        walk.stream.peek()?;
        let span = walk.stream.value()?;
        let found = text_of(walk.stream.consume(span)).filter(|_| is_schema);
        if found.is_some() {
            return Ok(found);
        }
        walk.at = At::AfterField;
    }
    Ok(None)
}

/// The string that a text is.
fn text_of(bytes: &[u8]) -> Option<String> {
    let text = str::from_utf8(bytes).ok()?.trim_end();
    match Lexer::new(text, MAX_DEPTH).next() {
        Ok(Some(Token::String(quoted))) => Some(quoted.decode(&mut false).into_owned()),
        _ => None,
    }
}
