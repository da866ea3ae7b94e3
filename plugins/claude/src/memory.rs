//! What an export says about memories.

use satchel_importer::{
    Claim, Evidence, Item, JsonError, Leftover, Parser,
    pam::{
        hash::Sha256Digest,
        memory::{ExtractionMethod, MemoryType},
        raw::RawObject,
    },
};

pub(crate) mod edits;
pub(crate) mod project;
mod prose;
pub(crate) mod stored;

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

    /// The newest time in it.
    pub(crate) fn newest(&self) -> Option<i64> {
        self.evidence.iter().filter_map(|evidence| evidence.at).max()
    }
}

/// Reads one element of a file: element, origin, locator.
pub(crate) type Read = fn(&mut Parser<'_>, &Origin<'_>, &str) -> Result<Found, JsonError>;

/// An item that says `content`.
fn item(content: &str, memory_type: MemoryType) -> Item {
    Item {
        key: None,
        content: content.to_owned(),
        memory_type,
        custom_type: None,
        status: None,
        scope: None,
        summary: None,
        tags: Vec::new(),
        confidence: None,
        updated_at: None,
        valid_from: None,
        valid_until: None,
        superseded_by: None,
        access: None,
        embedding_ref: None,
        metadata: None,
    }
}

/// A snapshot of a list at one time.
fn snapshot(series: String, items: Vec<Item>, at: Option<i64>, locator: String) -> Evidence {
    Evidence {
        id: snapshot_id(&series, &items, at),
        claim: Claim::Snapshot { series, items },
        at,
        account: None,
        conversation: None,
        message: None,
        extraction_method: ExtractionMethod::ApiExport,
        locator,
    }
}

/// The same list seen at the same time has the same id; a text that comes back later is evidence of its own, so that
/// the order in which exports arrive does not matter.
fn snapshot_id(series: &str, items: &[Item], at: Option<i64>) -> String {
    let mut text = at.map(|at| at.to_string()).unwrap_or_default();
    for item in items {
        text.push('\n');
        text.push_str(&item.content.len().to_string());
        text.push(':');
        text.push_str(&item.content);
    }
    let digest = Sha256Digest::of(text.as_bytes()).to_hex();
    format!("{series}#{}", digest.get(..16).unwrap_or(&digest))
}

/// The metadata of an item; none if nothing was kept.
fn metadata(kept: Leftover<'_>) -> Option<RawObject> {
    kept.into_json().and_then(|text| RawObject::parse(text.into_owned()).ok())
}
