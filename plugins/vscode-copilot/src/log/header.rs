//! The session's own fields, which are put together once after the last line.

use std::collections::BTreeSet;

use satchel_importer::{Arena, Bundle, ErrorKind, ImportError, JsonArray, Parser, Sink, warnings::shortened};

use super::{
    MAX_NAMES, MAX_REQUEST, REQUESTS, Session,
    changed::Changed,
    new_value, nowhere,
    operation::{Change, Step},
    piece::{Piece, Place, Source},
    report,
};

/// Fields of the session itself; real ones have about twenty.
const MAX_FIELDS: usize = 1_000;
/// Bytes of all the session's own fields.
const MAX_HEADER: usize = 2 * 1024 * 1024;

impl Session {
    /// Puts the session's own fields together. Reports the lines that lead to nothing.
    pub(super) fn read_header(
        &mut self,
        bundle: &Bundle,
        path: &str,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        let (mut source, mut arena, mut size) = (Source::open(bundle, path)?, Arena::new(), 0);
        for (key, field) in std::mem::take(&mut self.fields) {
            match field.restore(&mut source, &arena) {
                Ok(restored) => {
                    report(&restored.failed, path, sink)?;
                    self.set_field(key, restored.text, &mut size);
                }
                Err(error) if error.kind == ErrorKind::Malformed => note(&mut self.left_out, &key),
                Err(error) => return Err(error),
            }
            arena.reset();
        }
        Ok(())
    }

    /// Finds the session's own fields in the object at `pointer`. Returns whether there are others that are too long to be read.
    pub(super) fn header_at(
        &mut self,
        pointer: &str,
        bundle: &Bundle,
        path: &str,
    ) -> Result<bool, ImportError> {
        let (mut seen, mut members, mut requests) = (0, 0, false);
        JsonArray::new(path).pointer(pointer).members().limit(MAX_REQUEST).survey(bundle, |member| {
            let Some(key) = member.key() else { return Ok(true) };
            (seen, members) = (seen + 1, member.index() + 1);
            if key == REQUESTS {
                if std::mem::replace(&mut requests, true) {
                    note(&mut self.repeated, key);
                }
            } else {
                if self.fields.contains_key(key) {
                    note(&mut self.repeated, key);
                }
                let text = member.text();
                let value = Place::new(bundle, path, 0, &member)?.piece(text, 0, text.len());
                self.add_or_leave_out(key, value);
            }
            Ok(true)
        })?;
        // The requests themselves may be any length.
        Ok(members - seen > u64::from(!requests))
    }

    /// Adds a field of the first state.
    pub(super) fn add_or_leave_out(&mut self, key: &str, value: Piece) {
        if self.add_field(key, value).is_err() {
            note(&mut self.left_out, key);
        }
    }

    /// Notes those of the names in a file that are neither requests nor fields: their values are too long to be read.
    pub(super) fn leave_out_others(&mut self, names: &[String]) {
        for name in names.iter().filter(|name| !self.fields.contains_key(*name)) {
            note(&mut self.left_out, name);
        }
    }

    /// Notes a change of one of the session's own fields.
    pub(super) fn change_field(
        &mut self,
        place: Place<'_>,
        key: &str,
        path: &[Step],
        change: &Change<'_>,
    ) -> Result<(), ImportError> {
        if path.is_empty() && matches!(change, Change::Set(_) | Change::Delete) {
            return self.add_field(key, new_value(place)?);
        }
        if !self.fields.contains_key(key) {
            self.add_field(key, Piece::Owned("null".into()))?;
        }
        let line = self.count(place.whole())?;
        let field = self.fields.get_mut(key).ok_or_else(nowhere)?;
        field.note(path, change, line, place.element.index())
    }

    fn add_field(&mut self, key: &str, value: Piece) -> Result<(), ImportError> {
        if self.fields.len() == MAX_FIELDS && !self.fields.contains_key(key) {
            return Err(ImportError::malformed(format!("the session has more than {MAX_FIELDS} fields")));
        }
        self.owned += key.len();
        let value = self.count(value)?;
        self.fields.insert(key.to_owned(), Changed::new(value));
        Ok(())
    }

    /// Keeps one of the session's own fields; null counts as absent. `size` is the length of all.
    fn set_field(&mut self, key: String, json: &str, size: &mut usize) {
        let with_it = *size + key.len() + json.len();
        if with_it > MAX_HEADER || !is_valid(json) {
            note(&mut self.left_out, &key);
        } else if json != "null" {
            *size = with_it;
            self.header.insert(key, json.to_owned());
        }
    }
}

/// Adds a name that is reported.
fn note(names: &mut BTreeSet<String>, name: &str) {
    if names.len() < MAX_NAMES {
        names.insert(shortened(name));
    }
}

/// Whether it is JSON that may stand in an object.
fn is_valid(json: &str) -> bool {
    let (text, arena) = (format!("[{json}]"), Arena::new());
    let mut parser = Parser::new(&text, &arena);
    parser.skip_value().and_then(|()| parser.end()).is_ok()
}
