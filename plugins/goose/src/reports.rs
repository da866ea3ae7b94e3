//! Reports what is not understood in the messages of a session, each kind of it once.

use std::collections::BTreeSet;

use satchel_importer::{ErrorKind, ImportError, RecordKind, Sink};

use crate::message::Record;

/// Characters of a name in a report.
const MAX_NAME: usize = 64;
/// Different warnings about one session; one of a kind is enough to see that the format has changed.
const MAX_WARNINGS: usize = 64;

/// The warning instead of all further ones.
const NOT_LISTED: &str = "there are more kinds of warnings about this session, which are not listed";

/// The warnings that were given.
#[derive(Debug, Default)]
pub(crate) struct Reports(BTreeSet<String>);

impl Reports {
    /// Reports what is not understood in the message at `place`.
    pub(crate) fn add(
        &mut self,
        record: &Record<'_>,
        place: &str,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        for (at, problem) in &record.broken {
            sink.skip(RecordKind::Message, &format!("{place}.content[{at}]"), problem)?;
        }
        let role = record.unknown_role.map(|role| {
            format!("the role {:?} is unknown; the message is read as an answer", shortened(role))
        });
        let types = record.unknown.iter().map(|kind| {
            format!("a part of the unknown type {:?} is kept, and its text is read", shortened(kind))
        });
        let fields = record.unknown_fields.iter().map(|field| {
            format!(
                "the field {:?} of a prompt is unknown; it may say who wrote the prompt",
                shortened(field)
            )
        });
        for warning in role.into_iter().chain(types).chain(fields) {
            self.warn_once(place, warning, sink);
        }
        if record.unreadable {
            sink.warn(place, "a file in it cannot be decoded or is larger than 16 MiB; it is left out");
        }
        Ok(())
    }

    fn warn_once(&mut self, place: &str, warning: String, sink: &mut Sink) {
        if self.0.len() > MAX_WARNINGS || self.0.contains(&warning) {
            return;
        }
        // The last one stands for all others.
        let shown = if self.0.len() < MAX_WARNINGS { &warning } else { NOT_LISTED };
        sink.warn(place, shown);
        self.0.insert(warning);
    }
}

/// Leaves it to the second pass to report what cannot be read.
pub(crate) fn unless_malformed<T>(result: Result<T, ImportError>) -> Result<Option<T>, ImportError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind == ErrorKind::Malformed => Ok(None),
        Err(error) => Err(error),
    }
}

pub(crate) fn shortened(name: &str) -> String {
    name.chars().take(MAX_NAME).collect()
}
