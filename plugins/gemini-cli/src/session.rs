//! What a file says about its session, apart from the messages.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::{
    Fields, Leftover,
    json::{Value, time_of_text},
    natural_key,
};

use crate::fields::KEPT;

/// Bytes of the fields that are kept; those of real sessions have some kilobytes.
const MAX_BYTES: usize = 1024 * 1024;
/// Fields that are not known, of which there is a warning; one is enough to see that the format has changed.
const MAX_UNREAD: usize = 16;
/// Sessions that another session started.
const SUBAGENT: &str = "subagent";

/// The fields of a session; of each, the last value counts.
#[derive(Debug, Default)]
pub(crate) struct Session {
    /// The first id in the file, which stays.
    pub(crate) id: Option<String>,
    /// When it began, as the file has it.
    start: Option<String>,
    /// Microseconds.
    pub(crate) created: Option<i64>,
    /// Microseconds.
    pub(crate) updated: Option<i64>,
    pub(crate) summary: Option<String>,
    /// Whether another session started this one for a part of its work.
    pub(crate) subagent: bool,
    /// The other fields as JSON text, in order.
    others: Vec<(String, String)>,
    places: BTreeMap<String, usize>,
    bytes: usize,
    /// Whether some did not fit.
    pub(crate) truncated: bool,
    /// Fields that are not known and hold a text.
    pub(crate) unread: BTreeSet<String>,
}

impl Session {
    /// Adds the fields of a line.
    pub(crate) fn add(&mut self, mut fields: Fields<'_>) {
        if let Some(id) = fields.take_id("sessionId") {
            match &self.id {
                None => self.id = Some(id.to_owned()),
                // A session that was resumed under another id.
                Some(own) if own != id => self.keep("sessionId", &Value::Text(id).json()),
                Some(_) => {}
            }
        }
        if let Some((text, micros)) = take_time(&mut fields, "startTime") {
            self.start.get_or_insert_with(|| text.to_owned());
            self.created = self.created.or(Some(micros));
        }
        if let Some((_, micros)) = take_time(&mut fields, "lastUpdated") {
            self.updated = self.updated.max(Some(micros));
        }
        if fields.has("summary") {
            self.summary = fields.take_text("summary").map(ToOwned::to_owned).or(self.summary.take());
        }
        self.subagent |= fields.get("kind").text() == Some(SUBAGENT);
        for (key, value) in fields.iter() {
            self.keep(key, &value.json());
        }
        let mut rest = Leftover::default();
        fields.add_to(&mut rest, &KEPT);
        let unread = rest.unread().map(ToOwned::to_owned);
        self.unread.extend(unread.filter(|_| self.unread.len() < MAX_UNREAD));
    }

    /// The key of the conversation. One run of the program writes several sessions under one id: each begins at another time.
    pub(crate) fn key(&self, stem: &str) -> String {
        match (&self.id, &self.start) {
            (Some(id), Some(start)) => format!("{id}/{start}"),
            (Some(id), None) => id.clone(),
            (None, _) => natural_key(&[Some(stem)]),
        }
    }

    /// The fields that are kept.
    pub(crate) fn add_to<'s>(&'s self, rest: &mut Leftover<'s>) {
        for (key, json) in &self.others {
            rest.add_json(key, json);
        }
    }

    fn keep(&mut self, key: &str, json: &str) {
        let known = self.places.get(key).and_then(|at| self.others.get_mut(*at));
        let before = known.as_ref().map_or(0, |(key, json)| key.len() + json.len());
        let bytes = self.bytes - before + key.len() + json.len();
        if bytes > MAX_BYTES {
            self.truncated = true;
            return;
        }
        self.bytes = bytes;
        if let Some((_, value)) = known {
            json.clone_into(value);
        } else {
            self.places.insert(key.to_owned(), self.others.len());
            self.others.push((key.to_owned(), json.to_owned()));
        }
    }
}

/// Takes a time in a text out of the fields; one that is not understood in full is left there.
fn take_time<'a>(fields: &mut Fields<'a>, key: &str) -> Option<(&'a str, i64)> {
    let text = fields.get(key).text()?;
    let (micros, note) = time_of_text(text)?;
    if note.is_none() {
        fields.take(key);
    }
    Some((text, micros))
}
