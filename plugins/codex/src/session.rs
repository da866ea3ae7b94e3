//! The session's own fields, from `session_meta` or the header of an older file.

use std::collections::BTreeMap;

use satchel_importer::{
    Fields, JsonError, Leftover,
    json::{Value, time_of_text},
};

use crate::fields::{FIELD_READER, take_id};

/// Bytes of the fields that are kept; real ones have up to 200 KiB, with the descriptions of tools.
const MAX_BYTES: usize = 1024 * 1024;
/// Sessions whose history was copied; a fork of a fork has a few.
const MAX_COPIED: usize = 1000;

/// The fields of a session.
#[derive(Debug, Default)]
pub(crate) struct Session {
    pub(crate) id: Option<String>,
    /// Microseconds.
    pub(crate) created: Option<i64>,
    pub(crate) instructions: Option<String>,
    pub(crate) cwd: Option<String>,
    /// Whether another session started this one for a part of its work.
    pub(crate) subagent: bool,
    /// The other fields as JSON text, in order.
    fields: Vec<(String, String)>,
    /// Where each of them is.
    places: BTreeMap<String, usize>,
    copied_from: Vec<String>,
    bytes: usize,
    /// Some fields did not fit.
    pub(crate) truncated: bool,
    known: bool,
}

impl Session {
    /// A session with the id in the file's name, if there is one.
    pub(crate) fn named(id: Option<&str>) -> Self {
        Self { id: id.map(ToOwned::to_owned), ..Self::default() }
    }

    /// Adds the fields of a line. The first line of the file is the session's own; a later one updates it, or it was copied with the
    /// history of another session.
    pub(crate) fn add(&mut self, mut fields: Fields<'_>, first: bool) -> Result<(), JsonError> {
        fields.remove(&["type"]);
        let id = take_id(&mut fields, "id");
        let own = first || id.is_none() || self.id.is_none() || self.id.as_deref() == id;
        if !own {
            self.add_copied(id.unwrap_or_default());
            return Ok(());
        }
        if !self.known || first {
            self.id = id.map(ToOwned::to_owned).or(self.id.take());
        }
        self.known = true;
        self.take_instructions(&mut fields)?;
        self.take_time(&mut fields);
        self.subagent |= is_subagent(&fields)?;
        if let Some(cwd) = fields.get("cwd").nonempty_text() {
            self.cwd = Some(cwd.to_owned());
        }
        for (key, value) in fields.iter() {
            self.keep(key, &value.json());
        }
        Ok(())
    }

    /// The fields that are kept, for `raw_metadata`.
    pub(crate) fn add_to<'s>(&'s self, rest: &mut Leftover<'s>) {
        for (key, json) in &self.fields {
            rest.add_json(key, json);
        }
        if !self.copied_from.is_empty() {
            let ids: Vec<_> = self.copied_from.iter().map(|id| Value::Text(id).json()).collect();
            rest.add_json("copied_from", &format!("[{}]", ids.join(",")));
        }
    }

    fn add_copied(&mut self, id: &str) {
        if self.copied_from.len() < MAX_COPIED && !self.copied_from.iter().any(|known| known == id) {
            self.copied_from.push(id.to_owned());
        }
    }

    fn take_instructions(&mut self, fields: &mut Fields<'_>) -> Result<(), JsonError> {
        let nested = fields.take_object("base_instructions")?;
        let base = nested.and_then(|mut nested| {
            let text = nested.take_text("text");
            nested
                .iter()
                .for_each(|(key, value)| self.keep(&format!("base_instructions.{key}"), &value.json()));
            text
        });
        let flat = fields.take_text("instructions");
        if let Some(text) = base.or(flat) {
            self.instructions = Some(text.to_owned());
        }
        Ok(())
    }

    fn take_time(&mut self, fields: &mut Fields<'_>) {
        let time = fields.get("timestamp").text().and_then(time_of_text);
        if let Some((micros, note)) = time {
            self.created = Some(micros);
            if note.is_none() {
                fields.take("timestamp");
            }
        }
    }

    fn keep(&mut self, key: &str, json: &str) {
        let known = self.places.get(key).copied().and_then(|at| self.fields.get_mut(at));
        let bytes = match &known {
            Some((_, value)) => self.bytes - value.len() + json.len(),
            None => self.bytes + key.len() + json.len(),
        };
        if bytes > MAX_BYTES {
            self.truncated = true;
            return;
        }
        self.bytes = bytes;
        if let Some((_, value)) = known {
            json.clone_into(value);
        } else {
            self.places.insert(key.to_owned(), self.fields.len());
            self.fields.push((key.to_owned(), json.to_owned()));
        }
    }
}

fn is_subagent(fields: &Fields<'_>) -> Result<bool, JsonError> {
    let nested = match fields.get("source").raw().filter(|raw| raw.starts_with('{')) {
        Some(raw) => FIELD_READER.parse(raw, fields.arena())?.get("subagent") != Value::Null,
        None => false,
    };
    Ok(nested || fields.get("thread_source").text() == Some("subagent"))
}

#[cfg(test)]
mod tests {
    use satchel_importer::Arena;

    use super::*;

    fn session(name: Option<&str>, lines: &[&str]) -> Session {
        let arena = Arena::new();
        let mut session = Session::named(name);
        for (at, line) in lines.iter().enumerate() {
            let fields = FIELD_READER.parse(arena.alloc_str(line), &arena).expect("it is JSON");
            session.add(fields, at == 0).expect("it is JSON");
        }
        session
    }

    #[test]
    fn a_later_line_updates_its_own_session_only() {
        let session = session(
            None,
            &[
                r#"{"id":"a","cwd":"/a","git":{"branch":"main"}}"#,
                r#"{"id":"b","cwd":"/b"}"#,
                r#"{"id":"b","cwd":"/b"}"#,
                r#"{"id":"a","git":{"branch":"dev"},"source":{"subagent":"review"}}"#,
            ],
        );
        let mut rest = Leftover::default();
        session.add_to(&mut rest);
        assert_eq!((session.id.as_deref(), session.cwd.as_deref()), (Some("a"), Some("/a")));
        assert!(session.subagent);
        let expected =
            r#"{"cwd":"/a","git":{"branch":"dev"},"source":{"subagent":"review"},"copied_from":["b"]}"#;
        assert_eq!(rest.into_json().as_deref(), Some(expected));
    }

    #[test]
    fn fields_that_are_replaced_need_no_more_room() {
        let line = format!(r#"{{"id":"a","tools":"{}"}}"#, "x".repeat(MAX_BYTES / 2));
        let session = session(None, &[&line, &line, &line]);
        assert!(!session.truncated && session.fields.len() == 1);
    }

    #[test]
    fn the_name_of_the_file_tells_the_session_if_its_first_line_is_lost() {
        let mut lost = Session::named(Some("a"));
        let arena = Arena::new();
        let fields = FIELD_READER.parse(r#"{"id":"b"}"#, &arena).expect("it is JSON");
        lost.add(fields, false).expect("it is JSON");
        assert_eq!((lost.id.as_deref(), lost.copied_from.len()), (Some("a"), 1));
        assert_eq!(session(Some("a"), &[r#"{"id":"b"}"#]).id.as_deref(), Some("b"), "a page after an undo");
    }
}
