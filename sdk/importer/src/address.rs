//! Addresses (URIs) in exports, and their signatures, which must not be stored.

use std::borrow::Cow;

/// Query parameters with a signature (Azure, S3, Google Cloud and others). Anyone who has a signed address can fetch the
/// file.
const SIGNATURES: [&str; 4] = ["sig=", "X-Amz-Signature=", "X-Goog-Signature=", "Signature="];

/// Whether PAM accepts `text` as an address: it begins with a scheme (RFC 3986 §3.1) and has neither white space nor
/// control characters.
pub fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let mut letters = scheme.bytes();
    letters.next().is_some_and(|byte| byte.is_ascii_alphabetic())
        && letters.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
        && !rest.is_empty()
        && !rest.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// The address without its query if the query has a signature; otherwise the address itself.
pub fn unsigned(address: &str) -> Cow<'_, str> {
    match address.split_once('?') {
        Some((before, query)) if SIGNATURES.iter().any(|name| has_parameter(query, name)) => {
            Cow::Borrowed(before)
        }
        _ => Cow::Borrowed(address),
    }
}

/// JSON text in which every signed address is without its query, also addresses inside longer texts.
pub fn unsigned_json(text: Cow<'_, str>) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let has = |byte| memchr::memchr(byte, bytes).is_some();
    // Each of `SIGNATURES` ends in one of these.
    let may_sign = |end: &str| memchr::memmem::find(bytes, end.as_bytes()).is_some();
    if !has(b'?') || !has(b'=') || !(may_sign("sig=") || may_sign("Signature=")) {
        return text;
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.as_ref();
    while let Some(at) = rest.find('?') {
        let (before, query) = rest.split_at(at);
        clean.push_str(before);
        let (query, after) = query.split_at(query_end(query));
        if !SIGNATURES.iter().any(|name| has_parameter(&query[1..], name)) {
            clean.push_str(query);
        }
        rest = after;
    }
    clean.push_str(rest);
    Cow::Owned(clean)
}

/// Where the query that begins with `?` ends: at the end of the string, or of the address inside a text.
fn query_end(query: &str) -> usize {
    let mut at = 1;
    while let Some(found) = query[at..].find(['"', '\\', ' ', ')', ']', '<', '>', '?']) {
        let end = at + found;
        // Ampersands and slashes may be escaped.
        if !query[end..].starts_with("\\u0026") && !query[end..].starts_with("\\/") {
            return end;
        }
        at = end + 1;
    }
    query.len()
}

fn has_parameter(query: &str, name: &str) -> bool {
    query.match_indices(name).any(|(at, _)| {
        let before = &query[..at];
        before.is_empty() || before.ends_with(['&', ';']) || before.ends_with("\\u0026")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_queries_are_removed_and_others_are_not() {
        assert_eq!(unsigned("https://a/b?se=1&sig=x"), "https://a/b");
        assert_eq!(unsigned("https://a/b?design=1"), "https://a/b?design=1");
        let text = r#"{"a":"https://a/b?se=1\u0026sig=x\u0026sp=r","b":"why? https://c/d?q=1 sig=","c":"(https://e/f?Signature=1)"}"#;
        assert_eq!(
            unsigned_json(text.into()),
            r#"{"a":"https://a/b","b":"why? https://c/d?q=1 sig=","c":"(https://e/f)"}"#
        );
    }

    #[test]
    fn only_uris_are_addresses() {
        for text in
            ["file-abc", "example.com", "", "http:", ":b", "a b:c", "1x:y", "https://a b", "https://a\u{1}"]
        {
            assert!(!is_uri(text), "{text:?}");
        }
        for text in ["https://example.com/a?b=c", "mailto:someone@example.com", "sediment://file_1"] {
            assert!(is_uri(text), "{text}");
        }
    }
}
