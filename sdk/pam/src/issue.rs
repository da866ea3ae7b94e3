//! What is wrong with a document, where, and by which rule.

use std::{borrow::Cow, fmt};

use serde::Serialize;

/// Whether a document may be used in spite of an issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The document breaks a rule.
    Error,
    /// The document is odd, and usable.
    Warning,
}

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Issue {
    /// Error or warning.
    pub severity: Severity,
    /// Name of the rule, such as `R-4.3` or `A-12`; the list stands in this crate's README.
    pub rule: &'static str,
    /// Where: `$.memories[17].content`.
    pub path: String,
    /// What: in words, naming the value.
    pub message: String,
}

impl Issue {
    /// A broken rule.
    #[must_use]
    pub fn error(rule: &'static str, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, rule, path: path.into(), message: message.into() }
    }

    /// An oddity.
    #[must_use]
    pub fn warning(rule: &'static str, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, rule, path: path.into(), message: message.into() }
    }
}

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{severity} {} at {}: {}", self.rule, self.path, self.message)
    }
}

/// Issues kept of one document; hostile ones could have a million.
const MOST_ISSUES: usize = 10_000;

/// Collects issues, up to a bound.
#[derive(Clone, Debug, Default)]
pub(crate) struct Issues {
    list: Vec<Issue>,
    left_out: usize,
}

impl Issues {
    pub(crate) fn push(&mut self, issue: Issue) {
        if self.list.len() < MOST_ISSUES {
            self.list.push(issue);
        } else {
            self.left_out += 1;
        }
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Issue> {
        self.list.iter_mut()
    }

    /// All that were kept, and one that says how many were not.
    pub(crate) fn finish(mut self) -> Vec<Issue> {
        if self.left_out > 0 {
            let message = format!("{} more issues are not listed", self.left_out);
            self.list.push(Issue::error("R-2.2", "$", message));
        }
        self.list
    }
}

/// Characters of a value that a message quotes; documents are hostile and messages are shown.
const QUOTED: usize = 60;

/// A value for a message: quoted, escaped, cut.
pub(crate) fn quote(text: &str) -> String {
    let cut: Cow<'_, str> = match text.char_indices().nth(QUOTED) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    };
    format!("{cut:?}")
}
