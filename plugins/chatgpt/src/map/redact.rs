//! Signed addresses: whoever holds one may fetch the file, so the signature is cut off.

use std::borrow::Cow;

use crate::scan;

/// Names of query parameters that carry a signature (Azure, S3, Google Cloud, and others).
const SIGNATURES: [&str; 4] = ["sig=", "X-Amz-Signature=", "X-Goog-Signature=", "Signature="];

/// An address without its query, if that is signed.
pub(crate) fn url(address: &str) -> Cow<'_, str> {
    match address.split_once('?') {
        Some((before, query)) if SIGNATURES.iter().any(|name| has_parameter(query, name)) => {
            Cow::Borrowed(before)
        }
        _ => Cow::Borrowed(address),
    }
}

/// JSON text without the queries of signed addresses.
pub(crate) fn json(text: Cow<'_, str>) -> Cow<'_, str> {
    if !scan::holds(&text, b'?') || !SIGNATURES.iter().any(|name| text.contains(name)) {
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

/// Where the query that begins with `?` ends: at the string's end, or where an address ends inside a text.
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
    fn signed_queries_go_and_others_stay() {
        assert_eq!(url("https://a/b?se=1&sig=x"), "https://a/b");
        assert_eq!(url("https://a/b?design=1"), "https://a/b?design=1");
        let text = r#"{"a":"https://a/b?se=1\u0026sig=x\u0026sp=r","b":"why? https://c/d?q=1 sig=","c":"(https://e/f?Signature=1)"}"#;
        assert_eq!(
            json(text.into()),
            r#"{"a":"https://a/b","b":"why? https://c/d?q=1 sig=","c":"(https://e/f)"}"#
        );
    }
}
