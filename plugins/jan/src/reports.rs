//! What is reported about a thread: once for each kind, because one of a kind shows that the format has changed.

use std::collections::BTreeSet;

use satchel_importer::{
    ImportError, RecordKind, Sink,
    warnings::{Warnings, shortened},
};

/// The warning instead of all further ones.
pub(crate) const NOT_LISTED: &str =
    "there are more kinds of warnings about this thread, which are not listed";

/// What a message has that cannot be read or is not understood.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Places behind that of the message, and why they are left out.
    skips: Vec<(String, String)>,
    warnings: BTreeSet<String>,
    /// There are more kinds of warnings than are listed.
    more: bool,
}

impl Findings {
    pub(crate) fn skip(&mut self, place: String, reason: impl ToString) {
        self.skips.push((place, reason.to_string()));
    }

    pub(crate) fn warn(&mut self, warning: impl Into<String>) {
        let warning = warning.into();
        if self.warnings.len() < Warnings::MAX {
            self.warnings.insert(warning);
        } else {
            self.more |= !self.warnings.contains(&warning);
        }
    }

    pub(crate) fn warn_of_type(&mut self, what: &str, kind: Option<&str>) {
        let kind = shortened(kind.unwrap_or("none"));
        self.warn(format!("{what} of the unknown type {kind:?} is kept, and its text read"));
    }

    /// Reports them for the message at `place`.
    pub(crate) fn report(
        self,
        place: &str,
        warnings: &mut Warnings,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        for (inside, reason) in self.skips {
            sink.skip(RecordKind::Message, &format!("{place}#{inside}"), &reason)?;
        }
        for warning in self.warnings {
            warnings.warn(place, warning, sink);
        }
        if self.more {
            warnings.warn_of_more(place, sink);
        }
        Ok(())
    }
}
