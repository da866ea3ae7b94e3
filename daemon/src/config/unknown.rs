//! What to say about a key of the configuration that is not known.

/// Edits, of a key's length in characters, up to which two keys count as the same one mistyped: one in three.
const NEAR: usize = 3;

/// Reads what the parser says about an unknown key: the key, and the advice to give. None when it says something else.
///
/// The parser knows which keys there are at that place, so there is no second list of them to keep.
pub(super) fn advice(message: &str) -> Option<(String, String)> {
    let mut quoted = message.strip_prefix("unknown field ")?.split('`').skip(1).step_by(2);
    let key = quoted.next()?.to_owned();
    let known: Vec<&str> = quoted.collect();
    let nearest = known.iter().min_by_key(|known| strsim::damerau_levenshtein(&key, known))?;
    let near = strsim::damerau_levenshtein(&key, nearest) <= nearest.chars().count().div_ceil(NEAR);
    let advice = if near {
        format!("did you mean {nearest:?}?")
    } else {
        format!("known here: {}", crate::listed(&known))
    };
    Some((key, advice))
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
