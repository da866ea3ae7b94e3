//! Advice about an unknown key of the configuration.

use satchel_core::nearest;

/// Reads the parser's message about an unknown key, and returns the key and advice. Returns `None` for other messages.
///
/// The parser lists the keys that are allowed in this place, so no second list is needed.
pub(super) fn advice(message: &str) -> Option<(String, String)> {
    let mut quoted = message.strip_prefix("unknown field ")?.split('`').skip(1).step_by(2);
    let key = quoted.next()?.to_owned();
    let known: Vec<&str> = quoted.collect();
    known.first()?;
    let advice = suggest(&key, &known);
    Some((key, advice))
}

/// Suggests the known word that is nearest to `word`, or lists all of them.
pub(super) fn suggest(word: &str, known: &[&str]) -> String {
    match nearest(word, known) {
        Some(nearest) => format!("did you mean {nearest:?}?"),
        None => format!("valid names: {}", satchel_source::quoted_list(known)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_parse_errors_give_no_advice() {
        assert_eq!(advice("invalid type: string \"x\", expected u64"), None);
        assert_eq!(advice("unknown variant `loud`, expected one of `error`, `warn`"), None);
    }
}
