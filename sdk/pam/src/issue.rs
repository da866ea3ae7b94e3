//! Issues: what is wrong with a document, where, and by which rule.

use std::{borrow::Cow, fmt};

use serde::Serialize;

/// Whether an issue makes a document invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The document violates a rule.
    Error,
    /// The document is unusual but usable.
    Warning,
}

/// A violated rule or an oddity in a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Issue {
    /// Error or warning.
    pub severity: Severity,
    /// Name of the rule, such as `R-4.3` or `A-12`; this crate's README lists them.
    pub rule: &'static str,
    /// JSON path, such as `$.memories[17].content`.
    pub path: String,
    /// Description of the problem, with the value.
    pub message: String,
}

impl Issue {
    /// Creates an error.
    #[must_use]
    pub fn error(rule: &'static str, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, rule, path: path.into(), message: message.into() }
    }

    /// Creates a warning.
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

/// Issues that are kept for one document; a hostile one could have a million.
const MAX_ISSUES: usize = 10_000;

/// Collects at most [`MAX_ISSUES`] issues.
#[derive(Clone, Debug, Default)]
pub(crate) struct Issues {
    list: Vec<Issue>,
    left_out: usize,
}

impl Issues {
    /// Adds an error.
    pub(crate) fn error(&mut self, rule: &'static str, path: impl Into<String>, message: impl Into<String>) {
        self.push(Issue::error(rule, path, message));
    }

    /// Adds a warning.
    pub(crate) fn warning(
        &mut self,
        rule: &'static str,
        path: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.push(Issue::warning(rule, path, message));
    }

    /// Adds an error if the text is empty.
    pub(crate) fn reject_empty(&mut self, text: &str, rule: &'static str, path: impl FnOnce() -> String) {
        if text.is_empty() {
            self.error(rule, path(), "is empty");
        }
    }

    pub(crate) fn push(&mut self, issue: Issue) {
        if self.list.len() < MAX_ISSUES {
            self.list.push(issue);
        } else {
            self.left_out += 1;
        }
    }

    pub(crate) fn extend(&mut self, issues: Vec<Issue>) {
        issues.into_iter().for_each(|issue| self.push(issue));
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Issue> {
        self.list.iter_mut()
    }

    /// All issues that were kept, and if necessary one with the number of the others.
    pub(crate) fn finish(mut self) -> Vec<Issue> {
        if self.left_out > 0 {
            let message = format!("{} more issues are not listed", self.left_out);
            self.list.push(Issue::error("R-2.2", "$", message));
        }
        self.list
    }
}

/// Characters of a value that a message quotes, because values may be hostile and messages are displayed.
const MAX_QUOTED: usize = 60;

/// Quotes a value for a message: escaped and shortened.
pub(crate) fn quote(text: &str) -> String {
    let cut: Cow<'_, str> = match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    };
    format!("{cut:?}")
}
