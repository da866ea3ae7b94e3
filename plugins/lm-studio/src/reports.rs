//! What is reported about a chat: once for each kind, because one of a kind shows that the format has changed.

use std::collections::BTreeSet;

use satchel_importer::{
    ImportError, RecordKind, Sink,
    warnings::{Warnings, shortened},
};

/// The warning instead of all further ones.
pub(crate) const NOT_LISTED: &str =
    "here and below there are more kinds of unknown fields and types than are listed";
/// Skips within one entry that are listed; the others are counted.
const MAX_SKIPS: usize = 1000;

/// What a message has that cannot be read or is not understood.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Places behind that of the message, and why they are left out.
    skips: Vec<(String, String)>,
    more_skips: usize,
    warnings: BTreeSet<String>,
    more_warnings: bool,
}

impl Findings {
    pub(crate) fn skip(&mut self, place: impl FnOnce() -> String, reason: impl ToString) {
        if self.skips.len() < MAX_SKIPS {
            self.skips.push((place(), reason.to_string()));
        } else {
            self.more_skips += 1;
        }
    }

    pub(crate) fn warn(&mut self, warning: impl Into<String>) {
        if self.warnings.len() < Warnings::MAX {
            self.warnings.insert(warning.into());
        } else {
            let warning = warning.into();
            self.more_warnings |= !self.warnings.contains(&warning);
        }
    }

    pub(crate) fn warn_of_field(&mut self, field: &str, owner: &str) {
        let field = shortened(field);
        self.warn(format!("the field {field:?} of {owner} is unknown and holds text; it is kept"));
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
        if self.more_skips > 0 {
            let reason = format!("{} more parts of it cannot be read either", self.more_skips);
            sink.skip(RecordKind::Message, place, &reason)?;
        }
        for warning in self.warnings {
            warnings.warn(place, warning, sink);
        }
        if self.more_warnings {
            warnings.warn_of_more(place, sink);
        }
        Ok(())
    }
}
