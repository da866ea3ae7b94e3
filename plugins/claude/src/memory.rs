//! What an export says about memories.

use satchel_importer::{Evidence, Leftover, pam::raw::RawObject};

pub(crate) mod edits;
pub(crate) mod injected;
pub(crate) mod project;
mod prose;
pub(crate) mod stored;
mod wording;

/// Pieces of evidence from one element; what is more cannot be real and would not fit into the sandbox.
const MAX_EVIDENCE: usize = 20_000;

/// What holds for all records of an export.
pub(crate) struct Origin<'o> {
    /// Whose they are, where they do not say so.
    pub(crate) owner: Option<&'o str>,
    /// When what has no time of its own was seen: when the export was made, else its newest time.
    pub(crate) observed: Option<i64>,
}

/// What one element gives.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) evidence: Vec<Evidence>,
    /// Locator and reason.
    pub(crate) skipped: Vec<(String, String)>,
    /// Locator and message.
    pub(crate) warnings: Vec<(String, String)>,
    /// Evidence was left out.
    full: bool,
}

impl Found {
    /// Takes a piece of evidence, unless there are more than can be real.
    fn push(&mut self, evidence: Evidence) {
        if self.evidence.len() < MAX_EVIDENCE {
            self.evidence.push(evidence);
        } else if !self.full {
            self.full = true;
            self.skipped.push((
                evidence.locator,
                format!("there are more than {MAX_EVIDENCE} memories; the rest is left out"),
            ));
        }
    }

    /// Notes what cannot be read; a flood of it only as far as `MAX_EVIDENCE`.
    fn skip(&mut self, locator: String, reason: &str) {
        if self.skipped.len() < MAX_EVIDENCE {
            self.skipped.push((locator, reason.to_owned()));
        } else if !self.full {
            self.full = true;
            self.warnings.push((
                locator,
                format!("there are more than {MAX_EVIDENCE} mistakes; the rest is not listed"),
            ));
        }
    }
}

/// The metadata of an item; none if nothing was kept.
fn metadata(kept: Leftover<'_>) -> Option<RawObject> {
    kept.into_json().and_then(|text| RawObject::parse(text.into_owned()).ok())
}
