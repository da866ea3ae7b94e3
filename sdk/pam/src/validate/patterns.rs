//! The patterns of the three schemas as functions; a trailing line break never matches (A-30).

/// `^[a-z0-9][a-z0-9_-]*$`
pub(super) fn tag(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
        && !text.is_empty()
        && !text.starts_with(['_', '-'])
}

/// `^[a-z0-9_-]{2,32}$`
pub(super) fn platform(text: &str) -> bool {
    (2..=32).contains(&text.len())
        && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
}

/// `^[a-zA-Z0-9_-]+/[0-9]+\.[0-9]+\.[0-9]+$`
pub(super) fn software(text: &str) -> bool {
    let Some((name, version)) = text.split_once('/') else { return false };
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !name.is_empty()
        && name.bytes().all(word)
        && version.split('.').count() == 3
        && version.split('.').all(digits)
}

/// `^[0-9]+\.[0-9]+(-(rc|alpha|beta)[0-9]*)?$`
pub(super) fn schema_version(text: &str) -> bool {
    let (number, suffix) =
        text.split_once('-').map_or((text, None), |(number, suffix)| (number, Some(suffix)));
    let stage = |suffix: &str| {
        let rest = ["rc", "alpha", "beta"].iter().find_map(|stage| suffix.strip_prefix(stage));
        rest.is_some_and(|rest| rest.is_empty() || digits(rest))
    };
    number.split('.').count() == 2 && number.split('.').all(digits) && suffix.is_none_or(stage)
}

/// `^did:[a-z0-9]+:.+$`
pub(super) fn did(text: &str) -> bool {
    let parts = text.strip_prefix("did:").and_then(|rest| rest.split_once(':'));
    parts.is_some_and(|(method, identifier)| {
        let name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        // The dot of ECMA-262 matches no line break.
        let no_line_break = !identifier.contains(['\n', '\r', '\u{2028}', '\u{2029}']);
        !method.is_empty() && method.bytes().all(name) && !identifier.is_empty() && no_line_break
    })
}

/// `^[a-z]{2,3}(-[A-Z][a-z]{3})?(-[A-Z]{2})?$`
pub(super) fn language(text: &str) -> bool {
    let mut parts = text.split('-');
    let name = parts.next().unwrap_or_default();
    let script = |part: &str| {
        part.len() == 4
            && part.starts_with(|c: char| c.is_ascii_uppercase())
            && part[1..].bytes().all(|byte| byte.is_ascii_lowercase())
    };
    let region = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_uppercase());
    let rest: Vec<&str> = parts.collect();
    let tail = match rest.as_slice() {
        [] => true,
        [one] => (one.is_ascii() && script(one)) || region(one),
        [one, two] => one.is_ascii() && script(one) && region(two),
        _ => false,
    };
    (2..=3).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_lowercase()) && tail
}

/// Whether a text could be a URI: a scheme, a colon, no white space.
pub(super) fn uri(text: &str) -> bool {
    let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
        && !text.contains(char::is_whitespace)
}

/// Whether a reference stays inside its bundle: a relative path with forward slashes and without `..`.
pub(super) fn is_inside_bundle(reference: &str) -> bool {
    let drive = reference.as_bytes().get(1) == Some(&b':');
    !reference.starts_with('/')
        && !drive
        && !reference.contains(['\\', '\0'])
        && !reference.split('/').any(|part| part == "..")
}

/// The product of a company, if `company` is the name of one (R-11.3).
pub(super) fn product_of(company: &str) -> Option<&'static str> {
    match company {
        "openai" => Some("chatgpt"),
        "anthropic" => Some("claude"),
        "google" => Some("gemini"),
        "microsoft" => Some("copilot"),
        "xai" => Some("grok"),
        _ => None,
    }
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::{did, is_inside_bundle, language, platform, schema_version, software, tag, uri};

    fn check(fits: fn(&str) -> bool, good: &[&str], bad: &[&str]) {
        for text in good {
            assert!(fits(text), "{text:?}");
        }
        for text in bad {
            assert!(!fits(text), "{text:?}");
        }
    }

    #[test]
    fn tags() {
        check(tag, &["a", "0", "web-scraping", "a_b"], &["", "-a", "_a", "A", "a b", "é", "a\n"]);
    }

    #[test]
    fn platforms() {
        check(platform, &["chatgpt", "a1", "_-"], &["a", "", "Claude", "a b", "claude\n", &"a".repeat(33)]);
    }

    #[test]
    fn software_names() {
        check(
            software,
            &["gines/0.5.0", "A_b-1/10.20.30"],
            &["gines", "gines/1.0", "a/1.0.0-rc1", "/1.0.0", "a/1.0.0.0", "a/1..0", "a/1.0.0\n"],
        );
    }

    #[test]
    fn schema_versions() {
        check(
            schema_version,
            &["1.0", "12.34", "1.0-rc", "1.0-beta2"],
            &["1", "1.0.0", "1.0-", "1.0-gamma", "1.0-rc1x", "1.0\n", ".1", "1."],
        );
    }

    #[test]
    fn dids() {
        check(
            did,
            &["did:key:z6Mk", "did:web:example.org:a"],
            &["did:", "did:key:", "did:KEY:z", "key:z", "did::z", "did:key:a\n"],
        );
    }

    #[test]
    fn languages() {
        check(
            language,
            &["en", "por", "pt-BR", "zh-Hant", "zh-Hant-TW"],
            &["", "e", "EN", "pt-br", "zh-TW-Hant", "en-", "en-é123", "engl"],
        );
    }

    #[test]
    fn references() {
        check(
            is_inside_bundle,
            &["conversations/a.json", "a..b", "a"],
            &["/etc/passwd", "../a", "a/../b", "C:\\a", "a\\b", "c:a", ".."],
        );
        check(
            uri,
            &["https://example.org/a", "urn:isbn:1", "a+b:c"],
            &["", "example.org", ":a", "1a:b", "https://a b"],
        );
    }
}
