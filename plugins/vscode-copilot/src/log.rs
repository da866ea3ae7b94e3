//! What a file says about a session after all its changes: the session's own fields, and where each request is.
//!
//! A log may change any request at any time, so nothing is known before its last line. This pass keeps only the places of the requests in
//! the file, and a later one reads them one by one: a file of any size needs little memory.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::{
    Arena, Bundle, Element, ErrorKind, ImportError, JsonArray, JsonLists, Parser, RecordKind, Sink,
};

use crate::detect;
use node::Node;
use operation::{Change, Operation, Step};
pub(crate) use piece::Source;
use piece::{Piece, Place};

mod node;
mod operation;
mod piece;

/// Requests of a session; real ones have hundreds.
const MAX_REQUESTS: usize = 100_000;
/// Changes of one request; the program rewrites a log after about a thousand lines.
const MAX_CHANGES: usize = 4_096;
/// Lines of a log.
const MAX_LINES: u64 = 200_000;
/// Names of fields that are reported.
const MAX_NAMES: usize = 64;
/// Bytes of all the session's own fields.
const MAX_HEADER: usize = 2 * 1024 * 1024;
/// Bytes of one request with all its changes. Its texts must fit several times into a guest's 128 MiB.
const MAX_REQUEST: usize = 12 * 1024 * 1024;
/// Bytes of a line that is read at once; the buffer for it grows in steps, and the old one is there as long as the new one.
const MAX_LINE: usize = 32 * 1024 * 1024;
/// The list of requests.
const REQUESTS: &str = "requests";

/// A session after all changes.
#[derive(Debug, Default)]
pub(crate) struct Session {
    /// Its own fields, as JSON text.
    pub(crate) header: BTreeMap<String, String>,
    /// Names of fields that are too long or not valid JSON.
    pub(crate) left_out: BTreeSet<String>,
    /// Bytes of the header.
    header_size: usize,
    requests: Vec<Request>,
    /// Bytes of texts that are kept because their places in the file are not known.
    owned: usize,
}

/// Where a request and its changes are.
#[derive(Debug)]
struct Request {
    base: Piece,
    changes: Vec<RequestChange>,
}

/// A change inside a request.
#[derive(Debug)]
struct RequestChange {
    line: Piece,
    /// The path inside the request.
    path: Vec<Step>,
}

impl Session {
    /// Reads the file, and reports lines and requests that cannot be read.
    pub(crate) fn read(
        bundle: &Bundle,
        path: &str,
        format: &str,
        sink: &mut Sink,
    ) -> Result<Self, ImportError> {
        let mut session = Self::default();
        if format == detect::LOG {
            let start = session.long_start(bundle, path, sink)?;
            session.lines(bundle, path, start, sink)?;
        } else {
            session.document(bundle, path, sink)?;
        }
        Ok(session)
    }

    /// Reads the lines from `start`.
    fn lines(&mut self, bundle: &Bundle, path: &str, start: u64, sink: &mut Sink) -> Result<(), ImportError> {
        let lines = JsonArray::new(path).lines().kind(RecordKind::Message).limit(MAX_LINE);
        let lines = if start > 0 { lines.embedded_at(start) } else { lines };
        let mut unknown = BTreeSet::new();
        lines.each(bundle, sink, |element, sink| {
            if element.index() >= MAX_LINES {
                return Err(ImportError::malformed(format!("the file has more than {MAX_LINES} lines")));
            }
            let fields = self.line(Place::new(bundle, path, start, &element)?)?;
            let new = |field: &String| unknown.len() < MAX_NAMES && unknown.insert(field.clone());
            for field in fields.into_iter().filter(new) {
                let message = format!("its field {field:?} is unknown and was not read");
                sink.warn(&element.locator(), &message);
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Reads the first line request by request if it is too long to be read at once. Returns where the other lines begin.
    fn long_start(&mut self, bundle: &Bundle, path: &str, sink: &mut Sink) -> Result<u64, ImportError> {
        let limit = MAX_LINE as u64;
        if bundle.entry(path).is_none_or(|entry| entry.size <= limit) {
            return Ok(0);
        }
        let end = piece::first_line_end(bundle, path)?;
        if end <= limit {
            return Ok(0);
        }
        self.long_state(bundle, path, sink)?;
        Ok(end)
    }

    /// How many requests there are.
    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    /// The JSON text of a request after all its changes.
    pub(crate) fn request<'a>(
        &self,
        at: usize,
        source: &mut Source,
        arena: &'a Arena,
    ) -> Result<&'a str, ImportError> {
        let Some(request) = self.requests.get(at) else { return Ok("null") };
        let lengths = request.changes.iter().map(|change| change.line.len());
        if lengths.sum::<usize>() + request.base.len() > MAX_REQUEST {
            return Err(ImportError::malformed(format!("it is longer than {MAX_REQUEST} bytes")));
        }
        if request.changes.is_empty() {
            return source.text(&request.base, arena);
        }
        let pieces = Arena::new();
        let base = source.text(&request.base, &pieces)?;
        let mut node = Node::Raw(base);
        for change in &request.changes {
            let line = source.text(&change.line, &pieces)?;
            let operation = Operation::read(&mut Parser::new(line, &pieces))?;
            node.apply(&change.path, operation.change(), &pieces)?;
        }
        let mut json = String::with_capacity(base.len());
        node.write(&mut json);
        Ok(arena.alloc_str(&json))
    }

    /// Reads a file with one object.
    fn document(&mut self, bundle: &Bundle, path: &str, sink: &mut Sink) -> Result<(), ImportError> {
        self.header_at("", bundle, path)?;
        let lists = [(REQUESTS, RecordKind::Message)];
        JsonLists::new(path, &lists)
            .each(bundle, sink, |_, element, _| self.push_element(bundle, path, &element))?;
        Ok(())
    }

    /// Reads the state in the first line of a log request by request.
    fn long_state(&mut self, bundle: &Bundle, path: &str, sink: &mut Sink) -> Result<(), ImportError> {
        self.header_at("/v", bundle, path)?;
        let requests =
            JsonArray::new(path).pointer("/v/requests").kind(RecordKind::Message).limit(MAX_REQUEST);
        match requests.each(bundle, sink, |element, _| self.push_element(bundle, path, &element)) {
            Err(error) if error.kind == ErrorKind::NotThisFormat => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// Reads the session's own fields from the object at `pointer`.
    fn header_at(&mut self, pointer: &str, bundle: &Bundle, path: &str) -> Result<(), ImportError> {
        JsonArray::new(path).pointer(pointer).members().limit(MAX_HEADER).survey(bundle, |member| {
            if let Some(key) = member.key().filter(|key| *key != REQUESTS) {
                self.set_field(key, member.text());
            }
            Ok(true)
        })
    }

    fn push_element(
        &mut self,
        bundle: &Bundle,
        path: &str,
        element: &Element<'_>,
    ) -> Result<(), ImportError> {
        let text = element.text();
        if text.len() > MAX_REQUEST {
            return Err(ImportError::malformed(format!("it is longer than {MAX_REQUEST} bytes")));
        }
        self.push(Place::new(bundle, path, 0, element)?.piece(text, 0, text.len()))
    }

    /// Applies one line of a log. Returns the names of fields that are not known.
    fn line(&mut self, place: Place<'_>) -> Result<Vec<String>, ImportError> {
        let operation = Operation::read(&mut place.element.parser())?;
        let arena = place.element.arena();
        match (operation.path.as_slice(), operation.change()) {
            ([], Change::Initial(_)) => self.restart(place)?,
            ([Step::Key(key)], change) if key == REQUESTS => self.change_requests(place, &change)?,
            ([Step::Key(key), Step::Index(at), path @ ..], change) if key == REQUESTS => {
                self.change_request(place, *at, path, &change)?;
            }
            ([Step::Key(key), path @ ..], change) if key != REQUESTS => {
                let value = self.header.get(key).map_or("null", String::as_str);
                let mut node = Node::Raw(arena.alloc_str(value));
                node.apply(path, change, arena)?;
                let mut json = String::new();
                node.write(&mut json);
                self.set_field(key, &json);
            }
            _ => return Err(ImportError::malformed("its path leads to nothing")),
        }
        Ok(operation.unknown.into_iter().map(|name| name.chars().take(64).collect()).collect())
    }

    /// Begins with the state in the line. A line that cannot be read changes nothing.
    fn restart(&mut self, place: Place<'_>) -> Result<(), ImportError> {
        let (mut new, mut json) = (Self::default(), place.element.parser());
        operation::find_value(&mut json)?;
        if !json.enter_object()? {
            return Err(ImportError::malformed("its state is not an object"));
        }
        while let Some(key) = json.key()? {
            if key == REQUESTS {
                new.push_items(&mut json, place)?;
            } else {
                new.set_field(key, json.raw_value()?);
            }
        }
        *self = new;
        Ok(())
    }

    /// Replaces, cuts or extends the list of requests.
    fn change_requests(&mut self, place: Place<'_>, change: &Change<'_>) -> Result<(), ImportError> {
        match change {
            Change::Set(_) | Change::Delete => self.requests.clear(),
            Change::Push { from: Some(from), .. } => self.requests.truncate(*from),
            Change::Push { from: None, .. } => {}
            Change::Initial(_) => return Err(ImportError::malformed("its path leads to nothing")),
        }
        let mut json = place.element.parser();
        if operation::find_value(&mut json)? {
            self.push_items(&mut json, place)?;
        }
        Ok(())
    }

    /// Notes a change of one request.
    fn change_request(
        &mut self,
        place: Place<'_>,
        at: usize,
        path: &[Step],
        change: &Change<'_>,
    ) -> Result<(), ImportError> {
        if path.is_empty() {
            return self.replace(place, at, change);
        }
        let text = place.element.text();
        let line = self.count(place.piece(text, 0, text.len()))?;
        let request = self.requests.get_mut(at);
        let request =
            request.ok_or_else(|| ImportError::malformed("there is no request with this number"))?;
        // What a later change replaces need not be read.
        let replaces = match change {
            Change::Set(_) | Change::Delete => true,
            Change::Push { from, .. } => *from == Some(0),
            Change::Initial(_) => false,
        };
        if replaces {
            request.changes.retain(|earlier| !earlier.path.starts_with(path));
        }
        if request.changes.len() == MAX_CHANGES {
            return Err(ImportError::malformed("there are more changes of this request than the limit"));
        }
        request.changes.push(RequestChange { line, path: path.to_vec() });
        Ok(())
    }

    /// Replaces a whole request.
    fn replace(&mut self, place: Place<'_>, at: usize, change: &Change<'_>) -> Result<(), ImportError> {
        let length = self.requests.len();
        if at > length || matches!(change, Change::Push { .. } | Change::Initial(_)) {
            return Err(ImportError::malformed("its path leads to nothing"));
        }
        let mut json = place.element.parser();
        let base = if operation::find_value(&mut json)? {
            self.count(value_at(&mut json, place)?)?
        } else {
            Piece::Owned("null".into())
        };
        let request = Request { base, changes: Vec::new() };
        match self.requests.get_mut(at) {
            Some(old) => *old = request,
            None => self.requests.push(request),
        }
        Ok(())
    }

    /// Appends the items of the list that is next.
    fn push_items(&mut self, json: &mut Parser<'_>, place: Place<'_>) -> Result<(), ImportError> {
        if json.null()? {
            return Ok(());
        }
        if !json.enter_array()? {
            return Err(ImportError::malformed("its requests are not a list"));
        }
        while json.item()? {
            self.push(value_at(json, place)?)?;
        }
        Ok(())
    }

    fn push(&mut self, base: Piece) -> Result<(), ImportError> {
        if self.requests.len() == MAX_REQUESTS {
            return Err(ImportError::malformed(format!("the session has more than {MAX_REQUESTS} requests")));
        }
        let base = self.count(base)?;
        self.requests.push(Request { base, changes: Vec::new() });
        Ok(())
    }

    /// Counts the bytes of a piece that are kept in memory.
    fn count(&mut self, piece: Piece) -> Result<Piece, ImportError> {
        self.owned += piece.owned();
        if self.owned > MAX_REQUEST {
            return Err(ImportError::malformed("too much of the session is not valid UTF-8"));
        }
        Ok(piece)
    }

    /// Sets one of the session's own fields; null counts as absent.
    fn set_field(&mut self, key: &str, json: &str) {
        if let Some(old) = self.header.remove(key) {
            self.header_size -= key.len() + old.len();
        }
        let size = self.header_size + key.len() + json.len();
        if size > MAX_HEADER || !is_valid(json) {
            if self.left_out.len() < MAX_NAMES {
                self.left_out.insert(key.chars().take(64).collect());
            }
        } else if json != "null" {
            self.header_size = size;
            self.header.insert(key.to_owned(), json.to_owned());
        }
    }
}

/// Whether it is JSON that may stand in an object.
fn is_valid(json: &str) -> bool {
    let (text, arena) = (format!("[{json}]"), Arena::new());
    let mut parser = Parser::new(&text, &arena);
    parser.skip_value().and_then(|()| parser.end()).is_ok()
}

/// Takes the next value.
fn value_at(json: &mut Parser<'_>, place: Place<'_>) -> Result<Piece, ImportError> {
    // Skips white space.
    json.kind()?;
    let start = json.offset();
    let text = json.raw_value()?;
    Ok(place.piece(text, start, json.offset() - start))
}

#[cfg(test)]
mod tests;
