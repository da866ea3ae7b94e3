//! Digests for comparisons inside one file. They are in no record.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// A digest of a text.
pub(crate) fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// A digest of the words of texts. Gemini CLI trims an answer in one place and not in another, splits it into parts or joins it, and marks
/// the subject of a thought with stars.
pub(crate) fn digest_of_words<'t>(texts: impl IntoIterator<Item = &'t str>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for text in texts {
        for word in text.split(|letter: char| letter.is_whitespace() || letter == '*') {
            hasher.write(word.as_bytes());
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_are_compared() {
        assert_eq!(digest_of_words(["**Plan** Look first. "]), digest_of_words(["Plan", "Look", "first."]));
        assert_ne!(digest_of_words(["Plan"]), digest_of_words(["plan"]));
        assert_ne!(digest("a "), digest("a"));
    }
}
