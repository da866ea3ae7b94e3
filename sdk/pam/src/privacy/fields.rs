//! Which values of a JSON object may stay, and what an address is.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::Identifiers;

/// The key under which Satchel's own notes hold an account.
const ACCOUNT: &str = "account";

/// Whether a text has an e-mail address in it, also with its `@` escaped for a URI.
///
/// Takes too much rather than too little: any `@` between two letters, digits or signs of an address.
pub(super) fn address(text: &str) -> bool {
    let text = text.replace("%40", "@");
    let part = |c: char| c.is_alphanumeric() || "._%+-\"[".contains(c);
    text.match_indices('@').any(|(at, _)| {
        text[..at].chars().next_back().is_some_and(part) && text[at + 1..].chars().next().is_some_and(part)
    })
}

/// The text with what is escaped for a URI as it reads.
pub(super) fn unescaped(text: &str) -> Cow<'_, str> {
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

/// Takes a value away if `gone` says so; answers how many went.
pub(super) fn take_if(value: &mut Option<String>, gone: impl FnOnce(&str) -> bool) -> u64 {
    u64::from(value.take_if(|text| gone(text)).is_some())
}

/// Keeps the keys of a list, and of their values what holds no account, no address and nobody of `who`; answers how many values went.
pub(super) fn allow(object: &mut Map<String, Value>, keys: &[&str], who: &Identifiers) -> u64 {
    let before = object.len();
    object.retain(|key, value| keys.contains(&key.as_str()) && !tells(value, who));
    let mut gone = (before - object.len()) as u64;
    object.values_mut().for_each(|value| gone += clean(value, who));
    gone
}

/// Recursion is bounded by the depth of what was parsed.
fn clean(value: &mut Value, who: &Identifiers) -> u64 {
    match value {
        Value::Object(map) => {
            let before = map.len();
            map.retain(|key, value| key != ACCOUNT && !who.hold(key) && !tells(value, who));
            let gone = (before - map.len()) as u64;
            gone + map.values_mut().map(|value| clean(value, who)).sum::<u64>()
        }
        Value::Array(items) => {
            let before = items.len();
            items.retain(|item| !tells(item, who));
            let gone = (before - items.len()) as u64;
            gone + items.iter_mut().map(|item| clean(item, who)).sum::<u64>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn tells(value: &Value, who: &Identifiers) -> bool {
    value.as_str().is_some_and(|text| who.hold(text))
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn addresses_are_found_in_what_surrounds_them() {
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
            assert!(address(text), "{text}");
        }
        for text in ["", "@", "lea", "@lea", "lea@", "3 @ 4", "did:key:z6Mk", "a @b"] {
            assert!(!address(text), "{text}");
        }
    }
}
