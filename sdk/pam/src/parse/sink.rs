//! Collects the issues of a document, and the keys and names that our version of the schema does not have.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::path::Path;
use crate::{
    issue::{Issue, Issues, Severity},
    json::{JsonError, Problem},
};

/// The key under which a memory's `metadata` or a message's `raw_metadata` keeps what a later minor version added to it.
pub const UNKNOWN_KEY: &str = "pam:unknown";

/// Unknown keys that are kept for one document; a hostile one could have a million.
const MAX_UNKNOWN: usize = 10_000;
/// Errors of one record that the reason for leaving it out names.
const MAX_RECORD_ERRORS: usize = 3;
/// Rule of issues with unknown keys and names until the document's version is known; see [`Sink::finish`].
const UNDECIDED: &str = "A-29";

#[derive(Default)]
pub(super) struct Sink {
    issues: Issues,
    /// Path and value.
    unknown: Vec<(String, Value)>,
    /// Errors of the current record.
    record_errors: Vec<String>,
}

/// What the version of a document means for unknown keys and names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// 1.0: they are errors.
    Current,
    /// A later 1.x: they are kept, with a warning.
    LaterMinor,
    /// Another major version, or an unreadable one.
    Unsupported,
}

impl Sink {
    pub(super) fn push(&mut self, issue: Issue) {
        self.issues.push(issue);
    }

    /// Adds the issue of a text that is not JSON.
    pub(super) fn push_json(&mut self, problem: &JsonError) {
        self.push(json_issue(problem));
    }

    pub(super) fn error(&mut self, rule: &'static str, path: &Path<'_>, message: impl Into<String>) {
        let issue = Issue::error(rule, path.to_string(), message);
        if self.record_errors.len() < MAX_RECORD_ERRORS && rule != UNDECIDED {
            self.record_errors.push(format!("{} {}", issue.path, issue.message));
        }
        self.push(issue);
    }

    /// Starts a record: [`Sink::reason`] is about the errors from here on.
    pub(super) fn begin_record(&mut self) {
        self.record_errors.clear();
    }

    /// The first errors since [`Sink::begin_record`].
    pub(super) fn reason(&self) -> String {
        self.record_errors.join("; ")
    }

    pub(super) fn warning(&mut self, rule: &'static str, path: &Path<'_>, message: impl Into<String>) {
        self.push(Issue::warning(rule, path.to_string(), message));
    }

    /// Keeps a value that PAM 1.0 does not know. Its severity is decided when the version is known.
    pub(super) fn unknown(&mut self, path: &Path<'_>, what: &str, value: Value) {
        self.error(UNDECIDED, path, format!("{what} is not known to PAM 1.0"));
        if self.unknown.len() < MAX_UNKNOWN {
            self.unknown.push((path.to_string(), value));
        }
    }

    /// How many unknown values are kept, for [`Sink::take_unknown_since`].
    pub(super) fn unknown_count(&self) -> usize {
        self.unknown.len()
    }

    /// Removes and returns the unknown values that were added since the count was `start`, by their paths relative to `path`.
    pub(super) fn take_unknown_since(&mut self, start: usize, path: &Path<'_>) -> Map<String, Value> {
        if self.unknown.len() <= start {
            return Map::new();
        }
        let prefix = path.to_string().len();
        let taken = self.unknown.drain(start..);
        taken.map(|(path, value)| (path[prefix..].trim_start_matches('.').to_owned(), value)).collect()
    }

    /// All issues, and the unknown values that no record took, by path.
    pub(super) fn finish(mut self, version: Version) -> (Vec<Issue>, BTreeMap<String, Value>) {
        for issue in self.issues.iter_mut().filter(|issue| issue.rule == UNDECIDED) {
            match version {
                Version::LaterMinor => issue.severity = Severity::Warning,
                Version::Current | Version::Unsupported => issue.rule = "R-3.9",
            }
        }
        (self.issues.finish(), self.unknown.into_iter().collect())
    }
}

/// The issue of a text that is not JSON.
pub(super) fn json_issue(problem: &JsonError) -> Issue {
    let rule = match problem.problem {
        Problem::NotANumber | Problem::NumberRange => "A-13",
        _ => "R-2.1",
    };
    Issue::error(rule, "$", problem.to_string())
}

/// The version that a `schema_version` names.
pub(super) fn version(text: &str) -> Version {
    let number = text.split('-').next().unwrap_or_default();
    match number.split_once('.') {
        Some(("1", "0")) => Version::Current,
        Some(("1", minor)) if !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit()) => {
            Version::LaterMinor
        }
        _ => Version::Unsupported,
    }
}
