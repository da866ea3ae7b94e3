//! Addresses (URIs) in exports, and their signatures and passwords, which must not be stored.

use std::borrow::Cow;

/// Query parameters with a signature: of Azure; of Amazon (both versions), its content network, Google Cloud and Huawei; of Alibaba,
/// Volcengine with its siblings, and Tencent. Anyone who has a signed address can fetch the file, and the other parameters only say what was signed.
const SIGNATURES: [&str; 9] = [
    "sig",
    "Signature",
    "X-Amz-Signature",
    "X-Goog-Signature",
    "Key-Pair-Id",
    "x-oss-signature",
    "X-Tos-Signature",
    "x-signature",
    "q-signature",
];
/// Query parameters with a password of their own: of Firebase, Supabase, GitHub and many others. The other parameters may say which page or
/// file it is.
const TOKENS: [&str; 10] = [
    "token",
    "access_token",
    "auth_token",
    "id_token",
    "refresh_token",
    "jwt",
    "api_key",
    "apikey",
    "x-api-key",
    "client_secret",
];
/// `key` has any meaning. Keys of Google's interfaces begin so.
const GOOGLE_KEY: &str = "AIza";
/// Shortest value that is a password, in bytes. Those of the services are longer.
const MIN_PASSWORD: usize = 16;
/// What stands between parameters, also in JSON and in HTML.
const SEPARATORS: [&str; 4] = ["\\u0026", "&amp;", "&", ";"];

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

/// The address without its query if the query has a signature, and without single parameters that are passwords; otherwise the address
/// itself.
pub fn unsigned(address: &str) -> Cow<'_, str> {
    let Some((before, query)) = address.split_once('?') else { return Cow::Borrowed(address) };
    match unsigned_query(query) {
        None => Cow::Borrowed(address),
        Some(rest) if rest.is_empty() => Cow::Borrowed(before),
        Some(rest) => Cow::Owned(format!("{before}{rest}")),
    }
}

/// JSON text in which every address is as [`unsigned`] has it, also addresses inside longer texts.
pub fn unsigned_json(text: Cow<'_, str>) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let has = |byte| memchr::memchr(byte, bytes).is_some();
    if !has(b'?') || !has(b'=') {
        return text;
    }
    let mut clean = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = text[at..].find('?') {
        let start = at + found;
        let end = start + query_end(&text[start..]);
        if let Some(rest) = unsigned_query(&text[start + 1..end]) {
            clean.push_str(&text[copied..start]);
            clean.push_str(&rest);
            copied = end;
        }
        at = end;
    }
    if copied == 0 {
        return text;
    }
    clean.push_str(&text[copied..]);
    Cow::Owned(clean)
}

/// What is left of a query, with its question mark and the fragment behind it; none if it may stay as it is.
fn unsigned_query(query: &str) -> Option<String> {
    let is = |parameter: &Parameter<'_>, names: &[&str]| {
        names.iter().any(|name| name.eq_ignore_ascii_case(parameter.name))
    };
    if parameters(query).any(|parameter| is(&parameter, &SIGNATURES)) {
        return Some(String::new());
    }
    let is_token = |parameter: &Parameter<'_>| {
        let named =
            is(parameter, &TOKENS) || (parameter.name == "key" && parameter.value.starts_with(GOOGLE_KEY));
        named && is_password(parameter.value)
    };
    if !parameters(query).any(|parameter| is_token(&parameter)) {
        return None;
    }
    let mut rest = String::new();
    for parameter in parameters(query) {
        if !is_token(&parameter) {
            rest.push_str(if rest.is_empty() { "?" } else { parameter.separator });
            rest.push_str(parameter.text);
        } else if let Some(at) = parameter.value.find('#') {
            rest.push_str(&parameter.value[at..]);
        }
    }
    Some(rest)
}

/// Whether a value looks like a password, and not like a placeholder or a piece of a program such as `${token}`, which must stay as it is.
fn is_password(value: &str) -> bool {
    let value = value.split('#').next().unwrap_or_default();
    let in_tokens = |byte: u8| byte.is_ascii_alphanumeric() || b"._~%+/=-".contains(&byte);
    value.len() >= MIN_PASSWORD
        && value.bytes().all(in_tokens)
        && value.bytes().any(|byte| byte.is_ascii_digit())
}

/// A parameter of a query.
struct Parameter<'q> {
    /// What stands before it.
    separator: &'q str,
    /// The whole parameter.
    text: &'q str,
    /// What is before its `=`; empty if there is none.
    name: &'q str,
    value: &'q str,
}

fn parameters(query: &str) -> impl Iterator<Item = Parameter<'_>> {
    let (mut separator, mut rest) = ("", Some(query));
    std::iter::from_fn(move || {
        let (text, next, after) = first_parameter(rest?);
        let (name, value) = text.split_once('=').unwrap_or_default();
        let parameter = Parameter { separator, text, name, value };
        (separator, rest) = (next, after);
        Some(parameter)
    })
}

/// The first parameter, the separator behind it, and what follows; none if it is the last one.
fn first_parameter(query: &str) -> (&str, &str, Option<&str>) {
    let mut at = 0;
    while let Some(found) = query[at..].find(['&', ';', '\\']) {
        let (text, behind) = query.split_at(at + found);
        if let Some(separator) = SEPARATORS.iter().find(|separator| behind.starts_with(**separator)) {
            let (separator, after) = behind.split_at(separator.len());
            return (text, separator, Some(after));
        }
        at += found + 1;
    }
    (query, "", None)
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
    fn addresses_of_providers_have_no_signatures() {
        // The shapes of attachments and pictures in exports, with what is left of the query.
        for (query, left) in [
            ("se=2025-01-01T00%3A00%3A00Z&sp=r&sv=2024-08-04&sr=b&rscd=attachment&sig=x%3D", ""),
            ("id=file_1&ts=1&p=fs&cid=1&sig=x&v=0", ""),
            ("AWSAccessKeyId=A&Signature=x&x-amz-security-token=t&Expires=1", ""),
            ("X-Amz-Algorithm=A&X-Amz-Credential=c&X-Amz-SignedHeaders=host&X-Amz-Signature=x", ""),
            ("x-amz-algorithm=A&x-amz-signature=x", ""),
            ("Expires=1&Signature=x&Key-Pair-Id=K", ""),
            ("Policy=p&Signature=x&Key-Pair-Id=K", ""),
            ("Policy=p&Key-Pair-Id=K", ""),
            ("GoogleAccessId=a&Expires=1&Signature=x", ""),
            ("X-Goog-Algorithm=A&X-Goog-Signature=x", ""),
            ("x-oss-signature-version=OSS4&x-oss-signature=x", ""),
            ("X-Tos-Algorithm=A&X-Tos-Signature=x", ""),
            ("lk3s=1&x-expires=1&x-signature=x", ""),
            ("q-sign-algorithm=sha1&q-signature=x", ""),
            ("alt=media&token=0a1B2c3D4e5F.6g-", "?alt=media"),
            ("token=0a1B2c3D4e5F.6g-", ""),
            ("jwt=0a1B2c3D4e5F.6g-", ""),
            ("a=1&Access_Token=0a1B2c3D4e5F.6g-&b=2#c", "?a=1&b=2#c"),
            ("b=2&access_token=0a1B2c3D4e5F.6g-#c", "?b=2#c"),
            ("api_key=0a1B2c3D4e5F.6g-&b=2", "?b=2"),
            ("key=AIzaSy1234567890&cx=2", "?cx=2"),
            ("a=1&amp;token=0a1B2c3D4e5F.6g-&amp;b=2", "?a=1&amp;b=2"),
            ("a=1\\u0026token=0a1B2c3D4e5F.6g-\\u0026b=2", "?a=1\\u0026b=2"),
        ] {
            let address = format!("https://a.example/b?{query}");
            let expected = format!("https://a.example/b{left}");
            assert_eq!(unsigned(&address), expected, "{query}");
            assert_eq!(unsigned_json(format!("\"{address}\"").into()), format!("\"{expected}\""), "{query}");
        }
        for query in [
            "key=value",
            "token",
            "token=",
            "token=1234",
            "a=1&token=${token}&b=2",
            "token={access_token_1}",
            "access_token=YOUR_ACCESS_TOKEN",
            "access_token=your-access-token-here",
            "a=token=b",
            "tokens=1",
            "design=1",
            "q=sig",
            "q=what%20is%20a%20token",
            "v=1&t=2&page=3",
            "",
        ] {
            let address = format!("https://a.example/b?{query}");
            assert_eq!(unsigned(&address), address);
            assert_eq!(unsigned_json(address.as_str().into()), address);
        }
    }

    #[test]
    fn a_text_of_question_marks_and_separators_is_read_in_time() {
        for piece in ["?a=1", "&=", "?&", "\\u0026=", "?token=a "] {
            let text = piece.repeat(2_000_000 / piece.len());
            assert!(unsigned_json(text.as_str().into()).len() <= text.len());
        }
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
