//! Removes secrets from the JSON that is kept.

use std::borrow::Cow;

use satchel_importer::{
    Arena, JsonError, Leftover, Parser,
    json::{Kind, MAX_DEPTH, Value},
};

/// Fields with credentials or with the address of the person, in any case.
const SECRETS: [&str; 14] = [
    "sessionToken",
    "session_token",
    "accessToken",
    "access_token",
    "refreshToken",
    "refresh_token",
    "idToken",
    "id_token",
    "authorization",
    "cookie",
    "apiKey",
    "api_key",
    "password",
    "email",
];

pub(crate) fn is_secret(key: &str) -> bool {
    SECRETS.iter().any(|secret| secret.eq_ignore_ascii_case(key))
}

/// Removes the secret fields of a JSON value, at any depth.
pub(crate) fn without_secrets<'a>(raw: &'a str, arena: &'a Arena) -> Cow<'a, str> {
    if !SECRETS.iter().any(|secret| contains_ignoring_case(raw, secret)) {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len());
    match copy_without_secrets(&mut Parser::new(raw, arena), &mut out, 0) {
        Ok(()) => Cow::Owned(out),
        // The value was parsed before, so this cannot happen.
        Err(_) => Cow::Borrowed("null"),
    }
}

/// Keeps the next value without its secrets, unless `key` is a secret itself.
pub(crate) fn keep<'a>(
    rest: &mut Leftover<'a>,
    key: &'a str,
    json: &mut Parser<'a>,
) -> Result<(), JsonError> {
    if is_secret(key) {
        return json.skip_value();
    }
    match json.kind()? {
        Kind::Object | Kind::Array => {
            let value = without_secrets(json.raw_value()?, json.arena());
            if value != "{}" {
                rest.add_json(key, &value);
            }
            Ok(())
        }
        Kind::Null | Kind::Bool | Kind::Number | Kind::String => rest.keep(key, json),
    }
}

/// Like [`keep`], for an unknown key. Notes the key if its value holds natural language.
pub(crate) fn keep_unknown<'a>(
    rest: &mut Leftover<'a>,
    key: &'a str,
    json: &mut Parser<'a>,
) -> Result<(), JsonError> {
    let mut ahead = None;
    json.attempt(|json| {
        ahead = Some(json.raw_value()?);
        Ok(None::<()>)
    });
    if let Some(raw) = ahead.filter(|_| !is_secret(key)) {
        rest.note_unknown(key, Value::Raw(raw));
    }
    keep(rest, key, json)
}

/// Keeps a value that was read, without its secrets, unless it is empty or `key` is a secret itself.
pub(crate) fn keep_value<'a>(rest: &mut Leftover<'a>, key: &'a str, value: Value<'a>, arena: &'a Arena) {
    if is_secret(key) {
        return;
    }
    match value {
        Value::Null | Value::Raw("{}") => {}
        Value::Text(text) => rest.add_text(key, text),
        Value::Raw(raw) => rest.add_json(key, &without_secrets(raw, arena)),
    }
}

/// `secret` is in ASCII, and its first letter in lower case.
fn contains_ignoring_case(raw: &str, secret: &str) -> bool {
    let (raw, secret) = (raw.as_bytes(), secret.as_bytes());
    memchr::memchr2_iter(secret[0], secret[0].to_ascii_uppercase(), raw)
        .any(|at| raw.get(at..at + secret.len()).is_some_and(|found| found.eq_ignore_ascii_case(secret)))
}

fn copy_without_secrets(json: &mut Parser<'_>, out: &mut String, depth: u32) -> Result<(), JsonError> {
    // The parser refuses deeper nesting, so the recursion is bounded.
    debug_assert!(depth <= MAX_DEPTH);
    let mut first = true;
    let mut separate = |out: &mut String| {
        if !std::mem::take(&mut first) {
            out.push(',');
        }
    };
    if json.enter_object()? {
        out.push('{');
        while let Some(key) = json.key()? {
            if is_secret(key) {
                continue;
            }
            separate(out);
            let mut quoted = Leftover::default();
            quoted.add_json(key, "");
            // The key quoted: `{"key":}` without its braces.
            let quoted = quoted.into_json().unwrap_or_default();
            out.push_str(quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default());
            copy_without_secrets(json, out, depth + 1)?;
        }
        out.push('}');
    } else if json.enter_array()? {
        out.push('[');
        while json.item()? {
            separate(out);
            copy_without_secrets(json, out, depth + 1)?;
        }
        out.push(']');
    } else {
        out.push_str(json.raw_value()?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_secrets_are_removed() {
        let arena = Arena::new();
        let raw = r#"{"a":[1,{"Email":"x","b\"c":"d"}],"sessionToken":{"y":2},"tokenCount":3}"#;
        assert_eq!(without_secrets(raw, &arena), r#"{"a":[1,{"b\"c":"d"}],"tokenCount":3}"#);
        let plain = r#"{"a":"an apiKeyring"}"#;
        assert_eq!(without_secrets(plain, &arena), plain);
        assert_eq!(without_secrets("[[],{}]", &arena), "[[],{}]");
    }
}
