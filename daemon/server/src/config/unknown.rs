//! What to say about a key of the configuration that is not known.

use satchel_core::nearest;

/// Reads what the parser says about an unknown key: the key, and the advice to give. None when it says something else.
///
/// The parser knows which keys there are at that place, so there is no second list of them to keep.
pub(super) fn advice(message: &str) -> Option<(String, String)> {
    let mut quoted = message.strip_prefix("unknown field ")?.split('`').skip(1).step_by(2);
    let key = quoted.next()?.to_owned();
    let known: Vec<&str> = quoted.collect();
    known.first()?;
    let advice = near(&key, &known);
    Some((key, advice))
}

/// Names the known word that is nearest to `word`, or all of them.
pub(super) fn near(word: &str, known: &[&str]) -> String {
    match nearest(word, known) {
        Some(nearest) => format!("did you mean {nearest:?}?"),
        None => format!("known here: {}", satchel_source::listed(known)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_mistakes_are_not_unknown_keys() {
        assert_eq!(advice("invalid type: string \"x\", expected u64"), None);
        assert_eq!(advice("unknown variant `loud`, expected one of `error`, `warn`"), None);
    }
}
