//! Walks the root object of a document, its long lists item by item, so that no tree of the whole is ever built.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::Value;

use super::{
    MAX_DEPTH, json_issue,
    path::Path,
    sink::{Sink, Version, version},
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
pub(super) enum Part<'a> {
    /// A key of the root and its value.
    Field(Cow<'a, str>, Node<'a>),
    /// The next item of a list that is walked.
    Item(&'static str, usize, Node<'a>),
    /// An item that is no JSON; only where what is whole is read in spite of it.
    Broken(&'static str, usize, JsonError),
    /// The start of such a list.
    List(&'static str),
}

pub(super) struct Walk<'a> {
    lexer: Lexer<'a>,
    lists: &'static [&'static str],
    within: Option<(&'static str, usize)>,
    seen: BTreeSet<Cow<'a, str>>,
    /// A key stood twice, somewhere: the document is refused.
    pub(super) ambiguous: bool,
    /// Whether what is whole is read although something else is broken.
    salvage: bool,
    /// A key stood twice in the item that came last.
    pub(super) twice: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn new(text: &'a str, lists: &'static [&'static str], salvage: bool) -> Self {
        Self {
            lexer: Lexer::new(text, MAX_DEPTH),
            lists,
            within: None,
            seen: BTreeSet::new(),
            ambiguous: false,
            salvage,
            twice: false,
        }
    }

    pub(super) fn next(&mut self, sink: &mut Sink) -> Result<Option<Part<'a>>, JsonError> {
        if self.lexer.offset() == 0 && self.lexer.next()? != Some(Token::BeginObject) {
            return Err(JsonError { offset: 0, problem: Problem::Expected("an object") });
        }
        if let Some((list, index)) = self.within {
            if let Some(part) = self.item(list, index, sink)? {
                self.within = Some((list, index + 1));
                return Ok(Some(part));
            }
            self.within = None;
        }
        let Some(Token::Key(quoted)) = self.lexer.next()? else {
            self.lexer.next()?;
            return Ok(None);
        };
        let key = quoted.decode(&mut false);
        let root = Path::ROOT;
        let path = root.key(&key);
        if !self.seen.insert(key.clone()) {
            self.ambiguous = true;
            sink.error("A-13", &path, "the key stands twice");
        }
        if let Some(list) =
            self.lists.iter().copied().find(|list| *list == key).filter(|_| self.lexer.at_array())
        {
            self.lexer.next()?;
            self.within = Some((list, 0));
            return Ok(Some(Part::List(list)));
        }
        let node = self.value(&path, sink)?;
        self.ambiguous |= self.twice;
        Ok(node.map(|node| Part::Field(key.clone(), node)))
    }

    /// The next item of a list; none at its end.
    fn item(
        &mut self,
        list: &'static str,
        index: usize,
        sink: &mut Sink,
    ) -> Result<Option<Part<'a>>, JsonError> {
        let root = Path::ROOT;
        let path = root.key(list);
        let mark = self.lexer.mark();
        sink.begin_record();
        match self.value(&path.index(index), sink) {
            Ok(node) => {
                self.ambiguous |= self.twice && !self.salvage;
                Ok(node.map(|node| Part::Item(list, index, node)))
            }
            Err(problem)
                if self.salvage && problem.problem != Problem::CutOff && self.lexer.pass_over(mark) =>
            {
                Ok(Some(Part::Broken(list, index, problem)))
            }
            Err(problem) => Err(problem),
        }
    }

    fn value(&mut self, path: &Path<'_>, sink: &mut Sink) -> Result<Option<Node<'a>>, JsonError> {
        let mut notes = Notes::default();
        let node = tree::next_value(&mut self.lexer, &mut notes)?;
        self.twice = report(&notes, path, sink);
        Ok(node)
    }
}

/// Turns notes into issues; true if a key stood twice.
pub(super) fn report(notes: &Notes, path: &Path<'_>, sink: &mut Sink) -> bool {
    for (offset, key) in &notes.duplicates {
        sink.error(
            "A-13",
            path,
            format!("key {} stands twice in the object that ends at byte {offset}", quote(key)),
        );
    }
    for offset in &notes.surrogates {
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

pub(super) fn schema_of(bytes: &[u8]) -> Option<String> {
    let mut sink = Sink::default();
    // A document may be given by its head: what is cut off comes after.
    let end = match str::from_utf8(bytes) {
        Ok(text) => text.len(),
        Err(problem) => problem.valid_up_to(),
    };
    let text = text(&bytes[..end], &mut sink).ok()?;
    let mut lexer = Lexer::new(text, MAX_DEPTH);
    if lexer.next() != Ok(Some(Token::BeginObject)) {
        return None;
    }
    while let Ok(Some(Token::Key(key))) = lexer.next() {
        let mark = lexer.mark();
        if key.decode(&mut false) == "schema"
            && let Ok(Some(Token::String(value))) = lexer.next()
        {
            return Some(value.decode(&mut false).into_owned());
        }
        // What is wrong or too deep in another value does not make it another document.
        if !lexer.pass_over(mark) {
            return None;
        }
    }
    None
}
