//! Queries that cannot be understood.

use std::ops::Range;

use super::{MAX_PARTS, MAX_QUERY_BYTES, MAX_WORDS};

/// Why a query cannot be understood, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct QueryError {
    /// Bytes of the query.
    pub at: Range<usize>,
    /// What is wrong there.
    pub problem: QueryProblem,
}

/// What is wrong with a query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryProblem {
    /// It is too long.
    #[error("the query is longer than {MAX_QUERY_BYTES} bytes; shorten it")]
    TooLong,
    /// It has too many parts.
    #[error("the query has more than {MAX_PARTS} words and filters; leave some out")]
    TooManyParts,
    /// Its phrases and compounds have too many words.
    #[error("the query has more than {MAX_WORDS} words in all; leave some out")]
    TooManyWords,
    /// The word before the colon is nearly that of a filter.
    #[error(
        "there is no filter {given:?}; did you mean {near}:? To look for the text, put it in quotation marks"
    )]
    UnknownFilter {
        /// As it was typed.
        given: String,
        /// The filter.
        near: &'static str,
    },
    /// The filter does not take the value.
    #[error("{field}: takes {expected}, not {given:?}")]
    UnknownValue {
        /// The word before the colon.
        field: &'static str,
        /// As it was typed.
        given: String,
        /// The values that are possible.
        expected: String,
    },
    /// Not a date.
    #[error("{given:?} is no date; write 2025, 2025-06, 2025-06-15, today, yesterday, now or 30d")]
    BadDate {
        /// As it was typed.
        given: String,
    },
    /// The dates leave nothing.
    #[error("no time is both after and before these dates")]
    EmptyTime,
    /// Only exclusions would list nearly everything.
    #[error("there is nothing to look for; add a word or a filter without `-`")]
    OnlyExcluded,
}

impl QueryError {
    pub(super) fn new(at: Range<usize>, problem: QueryProblem) -> Self {
        Self { at, problem }
    }

    /// Returns the query with a line below it that marks the place, for a terminal.
    #[must_use]
    pub fn mark(&self, query: &str) -> String {
        let line: String = query.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let before = query.get(..self.at.start).map_or(0, |text| text.chars().count());
        let marked = query.get(self.at.clone()).map_or(1, |text| text.chars().count().max(1));
        format!("{line}\n{}{}", " ".repeat(before), "^".repeat(marked))
    }
}
