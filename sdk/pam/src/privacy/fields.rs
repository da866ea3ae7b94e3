//! Removes identifying values from fields and JSON objects.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::Identifiers;

/// The key of accounts in Satchel's own notes.
const ACCOUNT: &str = "account";

/// Whether a text contains an e-mail address, also with a percent-encoded `@`.
///
/// Any `@` between two characters of an address counts, so there are false positives rather than misses.
pub(super) fn has_email_address(text: &str) -> bool {
    let text = text.replace("%40", "@");
    let part = |c: char| c.is_alphanumeric() || "._%+-\"[".contains(c);
    text.match_indices('@').any(|(at, _)| {
        text[..at].chars().next_back().is_some_and(part) && text[at + 1..].chars().next().is_some_and(part)
    })
}

/// The text with its percent-encoding decoded.
pub(super) fn percent_decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let hex = behind.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        let escaped = hex.filter(|_| *first == b'%');
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &behind[2..] } else { behind };
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// Removes a value if `remove` holds; returns the number of removed values.
pub(super) fn take_if(value: &mut Option<String>, remove: impl FnOnce(&str) -> bool) -> u64 {
    u64::from(value.take_if(|text| remove(text)).is_some())
}

/// Removes the items for which `remove` holds; returns their number.
pub(super) fn remove_where<T>(list: &mut Vec<T>, remove: impl Fn(&T) -> bool) -> u64 {
    let before = list.len();
    list.retain(|item| !remove(item));
    (before - list.len()) as u64
}

/// Removes all keys but `keys`, and from their values accounts, e-mail addresses and texts with one of `identifiers`; returns the
/// number of removed values.
pub(super) fn retain_keys(object: &mut Map<String, Value>, keys: &[&str], identifiers: &Identifiers) -> u64 {
    let before = object.len();
    object.retain(|key, value| keys.contains(&key.as_str()) && !is_identifying(value, identifiers));
    let removed = (before - object.len()) as u64;
    removed + object.values_mut().map(|value| strip_value(value, identifiers)).sum::<u64>()
}

/// The recursion is bounded by the depth of the parsed text.
fn strip_value(value: &mut Value, identifiers: &Identifiers) -> u64 {
    match value {
        Value::Object(map) => {
            let before = map.len();
            map.retain(|key, value| {
                key != ACCOUNT && !identifiers.found_in(key) && !is_identifying(value, identifiers)
            });
            let removed = (before - map.len()) as u64;
            removed + map.values_mut().map(|value| strip_value(value, identifiers)).sum::<u64>()
        }
        Value::Array(items) => {
            let removed = remove_where(items, |item| is_identifying(item, identifiers));
            removed + items.iter_mut().map(|item| strip_value(item, identifiers)).sum::<u64>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn is_identifying(value: &Value, identifiers: &Identifiers) -> bool {
    value.as_str().is_some_and(|text| identifiers.found_in(text))
}

#[cfg(test)]
mod tests {
    use super::has_email_address;

    #[test]
    fn addresses_are_found_inside_texts() {
        for text in [
            "lea@example.org",
            "Lea <lea.b+x@mail.example.org>",
            "mailto:lea@example.org",
            "did:web:example.org:lea%40example.org",
            "acct:lea@localhost",
            "léa@exämple.org",
            "\"lea b\"@example.org",
            "lea@[192.0.2.1]",
        ] {
            assert!(has_email_address(text), "{text}");
        }
        for text in ["", "@", "lea", "@lea", "lea@", "3 @ 4", "did:key:z6Mk", "a @b"] {
            assert!(!has_email_address(text), "{text}");
        }
    }
}
