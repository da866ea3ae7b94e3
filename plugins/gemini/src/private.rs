//! What must not be stored, though an export holds it.

use std::borrow::Cow;

use satchel_importer::{
    Arena, JsonError, Leftover, Parser,
    json::{Kind, MAX_DEPTH, Value},
};

/// Names of fields that open an account to whoever reads them, or say how to reach the person.
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

/// Whether the value of `key` is never kept.
pub(crate) fn is_secret(key: &str) -> bool {
    SECRETS.iter().any(|secret| secret.eq_ignore_ascii_case(key))
}

/// A JSON value without secret fields, however deep they stand.
pub(crate) fn clean<'a>(raw: &'a str, arena: &'a Arena) -> Cow<'a, str> {
    if !SECRETS.iter().any(|secret| holds(raw, secret)) {
        return Cow::Borrowed(raw);
    }
    let mut clean = String::with_capacity(raw.len());
    match copy(&mut Parser::new(raw, arena), &mut clean, 0) {
        Ok(()) => Cow::Owned(clean),
        // It was walked before, so this cannot be; what cannot be cleaned is not kept.
        Err(_) => Cow::Borrowed("null"),
    }
}

/// Keeps the next value, cleaned, unless its own name is a secret's.
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
            let clean = clean(json.raw_value()?, json.arena());
            if clean != "{}" {
                rest.add_json(key, &clean);
            }
            Ok(())
        }
        Kind::Null | Kind::Bool | Kind::Number | Kind::String => rest.keep(key, json),
    }
}

/// As [`keep`], for a key that is not known: where it holds natural language, that is noted.
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

fn holds(raw: &str, secret: &str) -> bool {
    let (first, rest) = secret.split_at(1);
    memchr::memchr2_iter(first.as_bytes()[0], first.as_bytes()[0].to_ascii_uppercase(), raw.as_bytes()).any(
        |at| {
            raw.as_bytes()
                .get(at + 1..at + 1 + rest.len())
                .is_some_and(|tail| tail.eq_ignore_ascii_case(rest.as_bytes()))
        },
    )
}

fn copy(json: &mut Parser<'_>, out: &mut String, depth: u32) -> Result<(), JsonError> {
    // The parser refuses what is nested more deeply, so the recursion is bounded.
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
            // `{"key":}` without its braces.
            let quoted = quoted.into_json().unwrap_or_default();
            out.push_str(quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default());
            copy(json, out, depth + 1)?;
        }
        out.push('}');
    } else if json.enter_array()? {
        out.push('[');
        while json.item()? {
            separate(out);
            copy(json, out, depth + 1)?;
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
    fn secrets_go_and_the_rest_stays() {
        let arena = Arena::new();
        let raw = r#"{"a":[1,{"Email":"x","b\"c":"d"}],"sessionToken":{"y":2},"tokenCount":3}"#;
        assert_eq!(clean(raw, &arena), r#"{"a":[1,{"b\"c":"d"}],"tokenCount":3}"#);
        let plain = r#"{"a":"an apiKeyring"}"#;
        assert_eq!(clean(plain, &arena), plain);
        assert_eq!(clean("[[],{}]", &arena), "[[],{}]");
    }
}
