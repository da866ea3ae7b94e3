//! What a person types into a search box.
//!
//! | Written | Finds |
//! |---|---|
//! | `bee hive` | both words, in any form: `bees`, `hives` |
//! | `"bee hive"` | the phrase |
//! | `+bees` | the word as it is written |
//! | `-wasp` | what does not have it |
//! | `bee OR wasp` | one of them |
//! | `hon*` | words that begin like this |
//! | `honny~` | words that differ by a letter or two |
//! | `title:hive` | titles only |
//! | `platform:claude,chatgpt` | one of these platforms; also `role:`, `type:`, `status:`, `model:`, `tag:` |
//! | `before:2025-06 after:2024` | dates; `on:2025-06-15`, `after:30d` |
//! | `valid:2025-06` | memories that were valid at a time in June 2025; `valid:now` |
//! | `expired:2025-06` | memories that were no longer valid when June 2025 began; `expired:now` |
//! | `in:memories` | memories, messages, or titles of conversations |
//! | `has:attachment` | messages with one; `code`, `link`, `citation`, `tool` |
//! | `conversation:ID` | one conversation |
//!
//! A filter with `-` before it leaves out what it describes.

mod date;
mod error;
mod parse;

use std::ops::Range;

pub use self::{
    date::Calendar,
    error::{QueryError, QueryProblem},
};

/// Longest query, in bytes.
pub const MAX_QUERY_BYTES: usize = 4096;
/// Words, phrases and filters of a query; each alternative counts.
pub const MAX_PARTS: usize = 64;
/// Words in the texts of a query, with those of its phrases, and with pairs of characters in scripts without spaces.
pub const MAX_WORDS: usize = 512;

/// A query that was understood.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// All of them have to match.
    pub clauses: Vec<Clause>,
    /// All of them have to match.
    pub filters: Vec<Filter>,
    /// All of them have to match.
    pub validity: Vec<ValidityFilter>,
    /// Microseconds since the Unix epoch, from the first to before the last.
    pub time: Range<i64>,
}

/// Words or phrases, of which one has to match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clause {
    /// Whether none of them may match.
    pub excluded: bool,
    /// At least one.
    pub any: Vec<Atom>,
}

/// A word or a phrase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Atom {
    /// As it was typed, without the characters that have a meaning.
    pub text: String,
    /// How it matches.
    pub matching: Matching,
    /// Where it is looked for.
    pub field: TextField,
    /// Where it stands in the query, in bytes.
    pub at: Range<usize>,
}

/// How a word matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matching {
    /// The word, or one with the same stem.
    Stem,
    /// The word as it is.
    Exact,
    /// Several words in this order.
    Phrase,
    /// Words that begin with it.
    Prefix,
    /// Words that differ by at most so many letters.
    Fuzzy(u8),
}

/// Where a word is looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextField {
    /// In texts and titles.
    #[default]
    All,
    /// In titles of conversations.
    Title,
}

/// A filter for the time in which a memory is valid. Messages and titles have none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidityFilter {
    /// Whether what it describes is left out.
    pub excluded: bool,
    /// What it describes.
    pub validity: Validity,
    /// Microseconds since the Unix epoch, from the first to before the last.
    pub at: Range<i64>,
}

/// When a memory is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// At a time in the range.
    Valid,
    /// Not any more when the range begins.
    Expired,
}

/// A filter: the value of a field is one of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Whether the value must be none of them.
    pub excluded: bool,
    /// Which value.
    pub field: FilterField,
    /// In lower case. At least one.
    pub values: Vec<String>,
}

macro_rules! filter_fields {
    ($($(#[$doc:meta])* $name:ident $word:literal [$($value:literal)*],)+) => {
        /// A field with values.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum FilterField {
            $($(#[$doc])* $name,)+
        }

        impl FilterField {
            const ALL: &[Self] = &[$(Self::$name,)+];

            /// Returns the word before the colon.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }

            /// Returns the possible values; empty if any text is one.
            fn known_values(self) -> &'static [&'static str] {
                match self {
                    $(Self::$name => &[$($value,)*],)+
                }
            }
        }
    };
}

filter_fields! {
    /// PAM's name of the platform.
    Platform "platform" [],
    /// Who wrote a message.
    Role "role" ["user" "assistant" "system" "tool"],
    /// The type of a memory.
    Type "type" ["fact" "preference" "skill" "context" "relationship" "goal" "instruction" "identity" "environment" "project" "custom"],
    /// The status of a memory.
    Status "status" ["active" "superseded" "deprecated" "retracted" "archived"],
    /// The model that answered.
    Model "model" [],
    /// A tag of a memory or conversation.
    Tag "tag" [],
    /// What a message has.
    Has "has" ["attachment" "code" "link" "citation" "tool"],
    /// What is found.
    In "in" ["memories" "messages" "titles"],
    /// The id of a conversation.
    Conversation "conversation" [],
}

impl Query {
    /// Reads a query. `calendar` gives dates their meaning.
    ///
    /// # Errors
    /// If a filter has a value that it cannot have, a word before a colon is a mistyped filter, or the query is too long. What is
    /// still being typed is no error: a quotation mark without its end, or a filter without a value.
    pub fn parse(text: &str, calendar: &Calendar) -> Result<Self, QueryError> {
        parse::Parser::new(text, calendar)?.query()
    }

    /// Returns whether nothing is looked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.clauses.is_empty()
            && self.filters.is_empty()
            && self.validity.is_empty()
            && self.time == ALL_TIMES
    }
}

/// No restriction of time.
pub const ALL_TIMES: Range<i64> = i64::MIN..i64::MAX;

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
