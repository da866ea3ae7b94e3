//! Digests for comparisons inside one file. They are in no record.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use satchel_importer::text::bytes_of_words;

/// What the subject of a thought stands between.
const STARS: &str = "**";

/// A digest of a text.
pub(crate) fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// A digest of the words of texts. Gemini CLI trims an answer in one place and not in another, and splits it into parts or joins it.
pub(crate) fn digest_of_words<'t>(texts: impl IntoIterator<Item = &'t str>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for text in texts {
        add_words(&mut hasher, text);
    }
    hasher.finish()
}

/// A digest of the words of thoughts. The subject of one may be between stars.
pub(crate) fn digest_of_thoughts<'t>(texts: impl IntoIterator<Item = &'t str>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for mut text in texts {
        while let Some((before, subject, behind)) = split_subject(text) {
            add_words(&mut hasher, before);
            add_words(&mut hasher, subject);
            text = behind;
        }
        add_words(&mut hasher, text);
    }
    hasher.finish()
}

/// What is before, between and behind the first stars; none if there are none, or if they stand for a power.
fn split_subject(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once(STARS)?;
    let (subject, behind) = rest.split_once(STARS)?;
    let power = before.ends_with(char::is_alphanumeric) || subject.starts_with(char::is_whitespace);
    (!power).then_some((before, subject, behind))
}

fn add_words(hasher: &mut DefaultHasher, text: &str) {
    // The digest does not depend on how its bytes are split, and one long write is faster than many short ones.
    hasher.write(&bytes_of_words(text));
}

/// A digest of a JSON text, without the white space between its tokens.
pub(crate) fn digest_of_json(json: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    let (mut inside, mut escaped) = (false, false);
    let mut kept = Vec::with_capacity(json.len());
    kept.extend(json.bytes().filter(|byte| {
        let kept = inside || !byte.is_ascii_whitespace();
        inside ^= *byte == b'"' && !escaped;
        escaped = inside && *byte == b'\\' && !escaped;
        kept
    }));
    hasher.write(&kept);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_are_compared() {
        assert_eq!(
            digest_of_thoughts(["**Plan** Look first. "]),
            digest_of_thoughts(["Plan", "Look", "first."])
        );
        assert_eq!(digest_of_thoughts(["**A**b.**C** d"]), digest_of_thoughts(["A", "b.", "C", "d"]));
        assert_ne!(digest_of_thoughts(["2*3 = 6"]), digest_of_thoughts(["23 = 6"]));
        assert_ne!(digest_of_thoughts(["2**3 and 4**5"]), digest_of_thoughts(["23 and 45"]));
        assert_eq!(digest_of_words(["Plan Look first. "]), digest_of_words(["Plan", "Look", "first."]));
        assert_ne!(digest_of_words(["**Plan**"]), digest_of_words(["Plan"]));
        assert_ne!(digest_of_words(["Plan"]), digest_of_words(["plan"]));
        assert_ne!(digest("a "), digest("a"));
    }

    #[test]
    fn white_space_counts_inside_of_texts_only() {
        assert_eq!(digest_of_json("{ \"a b\":\n[1]}"), digest_of_json("{\"a b\":[1]}"));
        assert_ne!(digest_of_json(r#"["\" a"]"#), digest_of_json(r#"["\"a"]"#));
        assert_eq!(digest_of_json(r#"["\\" , 1]"#), digest_of_json(r#"["\\",1]"#));
    }
}
