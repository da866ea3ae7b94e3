//! The list of all evidence of one memory, as it is written to the memory's metadata.
//!
//! Providers repeat a list of memories in every conversation. If each repetition had a line of its own, every memory
//! would grow with every conversation, and its history, which holds each version in full, would grow quadratically.
//! Therefore all snapshots of one series share a line with the first, the last and the count. Each statement and each
//! edit has its own line. Nothing is left out: the counts add up to `evidence_count`.

use std::collections::BTreeMap;

use satchel_pam::time::Timestamp;
use serde_json::{Map, Value};

use super::{
    StoredEvidence,
    streams::{StreamName, UNDATED},
};

/// One line of the list.
struct EvidenceLine<'a> {
    first: &'a StoredEvidence,
    last: &'a StoredEvidence,
    count: u64,
}

/// Lists `all`, which must be sorted by time and free of duplicates.
pub(super) fn list(all: &[&StoredEvidence]) -> Vec<Value> {
    let mut lines: Vec<EvidenceLine<'_>> = Vec::new();
    let mut series: BTreeMap<StreamName, usize> = BTreeMap::new();
    for evidence in all.iter().copied() {
        let stream = StreamName::of_series(evidence);
        if let Some(&at) = stream.as_ref().and_then(|stream| series.get(stream)) {
            lines[at].last = evidence;
            lines[at].count += 1;
        } else {
            series.extend(stream.map(|stream| (stream, lines.len())));
            lines.push(EvidenceLine { first: evidence, last: evidence, count: 1 });
        }
    }
    lines.iter().map(EvidenceLine::to_json).collect()
}

impl EvidenceLine<'_> {
    fn to_json(&self) -> Value {
        let mut line = evidence_entry(self.first);
        line.insert("platform".into(), self.first.platform.clone().into());
        if let Some(account) = &self.first.account {
            line.insert("account".into(), account.clone().into());
        }
        if self.count > 1 {
            line.insert("count".into(), self.count.into());
            line.insert("last".into(), evidence_entry(self.last).into());
        }
        line.into()
    }
}

fn evidence_entry(evidence: &StoredEvidence) -> Map<String, Value> {
    let mut entry = Map::new();
    entry.insert("id".into(), evidence.id.clone().into());
    if evidence.at != UNDATED {
        entry.insert("at".into(), Timestamp::saturating(evidence.at).to_string().into());
    }
    for (key, place) in [("conversation", &evidence.conversation), ("message", &evidence.message)] {
        if let Some(id) = place {
            entry.insert(key.into(), id.clone().into());
        }
    }
    entry
}
