//! Evidence about memories.

use satchel_importer::{Evidence, Leftover, pam::raw::RawObject};

pub(crate) mod edits;
pub(crate) mod injected;
pub(crate) mod project;
mod prose;
pub(crate) mod stored;
mod wording;

/// Pieces of evidence from one element. More cannot be real and would not fit into the sandbox.
const MAX_EVIDENCE: usize = 20_000;

/// Facts for evidence that does not state them itself.
pub(crate) struct Fallback<'o> {
    pub(crate) account: Option<&'o str>,
    /// When the export was made, else the newest time in it.
    pub(crate) observed: Option<i64>,
}

/// The result of reading one element.
#[derive(Default)]
pub(crate) struct MemoryRecords {
    pub(crate) evidence: Vec<Evidence>,
    /// Locator and reason.
    pub(crate) skipped: Vec<(String, String)>,
    /// Locator and message.
    pub(crate) warnings: Vec<(String, String)>,
    /// The limit was reached and reported.
    full: bool,
}

impl MemoryRecords {
    /// Adds a piece of evidence, up to `MAX_EVIDENCE`.
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

    /// Reports something that cannot be read, up to `MAX_EVIDENCE` times.
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

/// The metadata of an item; none if `rest` is empty.
fn metadata(rest: Leftover<'_>) -> Option<RawObject> {
    rest.into_json().and_then(|text| RawObject::parse(text.into_owned()).ok())
}

/// The metadata of a section: its heading.
fn heading_metadata(heading: Option<&str>) -> Option<RawObject> {
    let mut rest = Leftover::default();
    rest.add_text("heading", heading?);
    metadata(rest)
}
