//! Collects what is wrong with a document, and what it says beyond our version of the schema.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::path::Path;
use crate::issue::{Issue, Issues, Severity};

/// Where a memory's `metadata` or a message's `raw_metadata` keeps what a later minor version added to it.
pub const UNKNOWN_KEY: &str = "pam:unknown";

/// Unknown keys kept of one document; hostile ones could have a million.
const MOST_UNKNOWN: usize = 10_000;

/// Placeholder until the document's version is known; see [`Sink::finish`].
const UNDECIDED: &str = "A-29";

#[derive(Default)]
pub(super) struct Sink {
    issues: Issues,
    unknown: Vec<(String, Value)>,
    /// What is wrong with the record that is read now.
    said: Vec<String>,
}

/// Errors of one record that say why it was left out.
const MOST_SAID: usize = 3;

/// What the version of a document says about unknown keys and names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// 1.0: they are errors.
    Ours,
    /// 1.x: they are preserved.
    LaterMinor,
    /// Another major version, or none that can be read.
    Foreign,
}

impl Sink {
    pub(super) fn push(&mut self, issue: Issue) {
        self.issues.push(issue);
    }

    pub(super) fn error(&mut self, rule: &'static str, path: &Path<'_>, message: impl Into<String>) {
        let issue = Issue::error(rule, path.to_string(), message);
        if self.said.len() < MOST_SAID && rule != UNDECIDED {
            self.said.push(format!("{} {}", issue.path, issue.message));
        }
        self.push(issue);
    }

    /// Forgets what was wrong with the record before.
    pub(super) fn begin_record(&mut self) {
        self.said.clear();
    }

    /// What is wrong with the record since [`Sink::begin_record`].
    pub(super) fn reason(&self) -> String {
        self.said.join("; ")
    }

    pub(super) fn warning(&mut self, rule: &'static str, path: &Path<'_>, message: impl Into<String>) {
        self.push(Issue::warning(rule, path.to_string(), message));
    }

    /// Something that PAM 1.0 does not know: kept, and judged when the version is known.
    pub(super) fn unknown(&mut self, path: &Path<'_>, what: &str, value: Value) {
        self.error(UNDECIDED, path, format!("{what} is not known to PAM 1.0"));
        if self.unknown.len() < MOST_UNKNOWN {
            self.unknown.push((path.to_string(), value));
        }
    }

    /// For [`Sink::taken_since`].
    pub(super) fn mark(&self) -> usize {
        self.unknown.len()
    }

    /// What was unknown below `path` since the mark, by the rest of its path; it has found its place then.
    pub(super) fn taken_since(&mut self, mark: usize, path: &Path<'_>) -> Map<String, Value> {
        if self.unknown.len() <= mark {
            return Map::new();
        }
        let prefix = path.to_string().len();
        let taken = self.unknown.drain(mark..);
        taken.map(|(path, value)| (path[prefix..].trim_start_matches('.').to_owned(), value)).collect()
    }

    pub(super) fn finish(mut self, version: Version) -> (Vec<Issue>, BTreeMap<String, Value>) {
        for issue in self.issues.iter_mut().filter(|issue| issue.rule == UNDECIDED) {
            match version {
                Version::LaterMinor => issue.severity = Severity::Warning,
                Version::Ours | Version::Foreign => issue.rule = "R-3.9",
            }
        }
        (self.issues.finish(), self.unknown.into_iter().collect())
    }
}

/// The version of a document by its `schema_version`.
pub(super) fn version(text: &str) -> Version {
    let number = text.split('-').next().unwrap_or_default();
    match number.split_once('.') {
        Some(("1", "0")) => Version::Ours,
        Some(("1", minor)) if !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit()) => {
            Version::LaterMinor
        }
        _ => Version::Foreign,
    }
}
