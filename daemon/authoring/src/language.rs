//! The languages in which an importer can be written.

use std::{fmt, str::FromStr};

/// A language that `satchel plugins new` and `build` know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Rust, built by cargo.
    Rust,
    /// JavaScript, built by componentize-qjs.
    JavaScript,
    /// Python, built by componentize-py.
    Python,
}

/// The text names no language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not one of rust, javascript and python")]
pub struct LanguageError;

impl Language {
    /// All languages.
    pub const ALL: [Self; 3] = [Self::Rust, Self::JavaScript, Self::Python];

    /// Returns the name, as in `satchel-plugin.toml`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::JavaScript => "javascript",
            Self::Python => "python",
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Language {
    type Err = LanguageError;

    fn from_str(text: &str) -> Result<Self, LanguageError> {
        Self::ALL.into_iter().find(|language| language.name() == text).ok_or(LanguageError)
    }
}
