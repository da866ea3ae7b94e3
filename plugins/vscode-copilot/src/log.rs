//! What a file says about a session after all its changes: the session's own fields, and where each request is.
//!
//! A log may change any request at any time, so nothing is known before its last line. This pass keeps only the places of the requests in
//! the file, and a later one reads them one by one: a file of any size needs little memory.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::{
    Arena, Bundle, Element, ErrorKind, ImportError, JsonArray, JsonLists, Parser, RecordKind, Sink,
    warnings::shortened,
};

use crate::detect;
use changed::Changed;
pub(crate) use changed::{Failed, Restored};
use operation::{Change, Operation, Step};
pub(crate) use piece::Source;
use piece::{Piece, Place};

mod changed;
mod header;
mod node;
mod operation;
mod piece;

/// Requests of a session; real ones have hundreds.
const MAX_REQUESTS: usize = 100_000;
/// Lines of a log.
const MAX_LINES: u64 = 200_000;
/// Names of fields that are reported.
const MAX_NAMES: usize = 64;
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
    /// Names that the object with its fields gives twice.
    pub(crate) repeated: BTreeSet<String>,
    /// Where its own fields are, until the last line was read.
    fields: BTreeMap<String, Changed>,
    requests: Vec<Changed>,
    /// Bytes of texts that are kept because their places in the file are not known, and of names.
    owned: usize,
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
        session.read_header(bundle, path, sink)?;
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

    /// Bytes of all requests with their changes, and of the other values in lines that change them.
    pub(crate) fn request_bytes(&self) -> usize {
        self.requests.iter().map(Changed::len).sum()
    }

    /// A request after all its changes.
    pub(crate) fn request<'a>(
        &self,
        at: usize,
        source: &mut Source,
        arena: &'a Arena,
    ) -> Result<Restored<'a>, ImportError> {
        let request = self.requests.get(at).ok_or_else(|| ImportError::malformed("it is not there"))?;
        request.restore(source, arena)
    }

    /// Reads a file with one object.
    fn document(&mut self, bundle: &Bundle, path: &str, sink: &mut Sink) -> Result<(), ImportError> {
        self.header_at("", bundle, path)?;
        let lists = [(REQUESTS, RecordKind::Message)];
        let found = JsonLists::new(path, &lists)
            .each(bundle, sink, |_, element, _| self.push_element(bundle, path, &element))?;
        self.leave_out_others(&found.others);
        Ok(())
    }

    /// Reads the state in the first line of a log request by request.
    fn long_state(&mut self, bundle: &Bundle, path: &str, sink: &mut Sink) -> Result<(), ImportError> {
        if self.header_at("/v", bundle, path)? {
            self.left_out.insert("v".to_owned());
        }
        let requests =
            JsonArray::new(path).pointer("/v/requests").kind(RecordKind::Message).limit(MAX_REQUEST);
        match requests.each(bundle, sink, |element, _| self.push_element(bundle, path, &element)) {
            Err(error) if error.kind == ErrorKind::NotThisFormat => Ok(()),
            other => other.map(|_| ()),
        }
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
        self.owned += operation.path.iter().map(Step::len).sum::<usize>();
        match (operation.path.as_slice(), operation.change()) {
            ([], Change::Initial(_)) => self.restart(place)?,
            ([Step::Key(key)], change) if key == REQUESTS => self.change_requests(place, &change)?,
            ([Step::Key(key), Step::Index(at), path @ ..], change) if key == REQUESTS => {
                self.change_request(place, *at, path, &change)?;
            }
            ([Step::Key(key), path @ ..], change) if key != REQUESTS => {
                self.change_field(place, key, path, &change)?;
            }
            _ => return Err(ImportError::malformed("its path leads to nothing")),
        }
        Ok(operation.unknown.into_iter().map(shortened).collect())
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
                let items = items_at(&mut json, place)?;
                new.push_items(items)?;
            } else {
                let value = value_at(&mut json, place)?;
                new.add_or_leave_out(key, value);
            }
        }
        *self = new;
        Ok(())
    }

    /// Replaces, cuts or extends the list of requests. What cannot be read changes nothing.
    fn change_requests(&mut self, place: Place<'_>, change: &Change<'_>) -> Result<(), ImportError> {
        let mut json = place.element.parser();
        let found = operation::find_value(&mut json)?;
        let items = if found { items_at(&mut json, place)? } else { Vec::new() };
        let left = match change {
            Change::Set(_) | Change::Delete => 0,
            Change::Push { from: Some(from), .. } => self.requests.len().min(*from),
            Change::Push { from: None, .. } => self.requests.len(),
            Change::Initial(_) => return Err(nowhere()),
        };
        check_count(left + items.len())?;
        self.requests.truncate(left);
        self.push_items(items)
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
        let missing = || ImportError::malformed("there is no request with this number");
        let line = self.count(place.whole())?;
        let request = self.requests.get_mut(at).ok_or_else(missing)?;
        request.note(path, change, line, place.element.index())
    }

    /// Replaces a whole request.
    fn replace(&mut self, place: Place<'_>, at: usize, change: &Change<'_>) -> Result<(), ImportError> {
        if at > self.requests.len() || matches!(change, Change::Push { .. } | Change::Initial(_)) {
            return Err(nowhere());
        }
        let base = new_value(place)?;
        if at == self.requests.len() {
            return self.push(base);
        }
        let new = Changed::new(self.count(base)?);
        *self.requests.get_mut(at).ok_or_else(nowhere)? = new;
        Ok(())
    }

    fn push_items(&mut self, items: Vec<Piece>) -> Result<(), ImportError> {
        items.into_iter().try_for_each(|item| self.push(item))
    }

    fn push(&mut self, base: Piece) -> Result<(), ImportError> {
        check_count(self.requests.len() + 1)?;
        let base = self.count(base)?;
        self.requests.push(Changed::new(base));
        Ok(())
    }

    /// Counts the bytes of a piece that are kept in memory.
    fn count(&mut self, piece: Piece) -> Result<Piece, ImportError> {
        self.owned += piece.owned();
        if self.owned > MAX_REQUEST {
            return Err(ImportError::malformed(
                "too much of the session is not valid UTF-8, or its names are too long",
            ));
        }
        Ok(piece)
    }
}

/// Reports lines that lead to nothing.
pub(crate) fn report(failed: &[Failed], path: &str, sink: &mut Sink) -> Result<(), ImportError> {
    let skip =
        |Failed { line, reason }: &Failed| sink.skip(RecordKind::Message, &format!("{path}[{line}]"), reason);
    failed.iter().try_for_each(skip)
}

fn nowhere() -> ImportError {
    ImportError::malformed("its path leads to nothing")
}

fn check_count(requests: usize) -> Result<(), ImportError> {
    if requests <= MAX_REQUESTS {
        return Ok(());
    }
    Err(ImportError::malformed(format!("the session has more than {MAX_REQUESTS} requests")))
}

/// Takes the next value.
fn value_at(json: &mut Parser<'_>, place: Place<'_>) -> Result<Piece, ImportError> {
    // Skips white space.
    json.kind()?;
    let start = json.offset();
    let text = json.raw_value()?;
    Ok(place.piece(text, start, json.offset() - start))
}

/// Takes the items of the list that is next.
fn items_at(json: &mut Parser<'_>, place: Place<'_>) -> Result<Vec<Piece>, ImportError> {
    let mut items = Vec::new();
    if json.null()? {
        return Ok(items);
    }
    if !json.enter_array()? {
        return Err(ImportError::malformed("its requests are not a list"));
    }
    while json.item()? {
        check_count(items.len() + 1)?;
        items.push(value_at(json, place)?);
    }
    Ok(items)
}

/// The value of a line; null if it has none.
fn new_value(place: Place<'_>) -> Result<Piece, ImportError> {
    let mut json = place.element.parser();
    if operation::find_value(&mut json)? {
        return value_at(&mut json, place);
    }
    Ok(Piece::Owned("null".into()))
}

#[cfg(test)]
mod tests;
