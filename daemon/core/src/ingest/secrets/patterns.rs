//! The formats of secrets, as their issuers publish them. Only formats with a prefix of their own are here: a random text
//! alone may be anything.

use std::{ops::Range, sync::LazyLock};

use regex::{Captures, Regex};

const PRIVATE_KEY: &str = "private_key";
/// How far the end of a private key is looked for, in bytes. A key of 16,384 bits has 13 KiB.
const MAX_KEY_BYTES: usize = 16 << 10;
/// What only resembles a key, such as a search for its first line, has no such run of Base64.
const MIN_KEY_RUN: usize = 32;
/// The longest text between two lines of a key, in bytes: numbers, quotation marks and indentation.
const MAX_GAP: usize = 80;

/// The kinds of secrets, and their formats. A kind is the name of its group too, so it has only letters and `_`.
///
/// Sources: the documentation of each issuer, and the partner patterns of GitHub's secret scanning.
const FORMATS: [(&str, &str); 19] = [
    // PEM and OpenPGP. This is where it begins; `end_of_key` finds its end.
    (PRIVATE_KEY, r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"),
    ("age_secret_key", r"AGE-SECRET-KEY-1[AC-HJ-NP-Z02-9]{58}\b"),
    ("aws_access_key", r"(?:AKIA|ASIA)[A-Z2-7]{16}\b"),
    // These have no format of their own, but a name that always stands before them.
    (
        "aws_secret_key",
        r#"(?i:aws_secret_access_key|aws_session_token)\\?["']?\s?[:=]\s?\\?["']?[A-Za-z0-9/+=]{40,}"#,
    ),
    (
        "github_token",
        r"(?:gh[pour]_[A-Za-z0-9]{36,}|ghs_[A-Za-z0-9._-]{36,}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59})\b",
    ),
    ("gitlab_token", r"gl(?:pat|rt|dt|ptt|cbt|oas|agent|ft|imt|soat|ffct)-[A-Za-z0-9_.-]{20,}"),
    ("anthropic_key", r"sk-ant-[a-z]{3,5}[0-9]{2}-[A-Za-z0-9_-]{80,}"),
    ("openai_key", r"sk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{16,}T3BlbkFJ[A-Za-z0-9_-]{16,}"),
    ("google_key", r"AIza[A-Za-z0-9_-]{35}"),
    ("slack_token", r"(?:xox[abcdeoprs]|xapp)-[A-Za-z0-9%-]{10,}"),
    ("slack_webhook", r"https://hooks\.slack\.com/services/T[A-Z0-9]{6,}/B[A-Z0-9]{6,}/[A-Za-z0-9]{20,}"),
    ("stripe_key", r"(?:[rs]k_live|whsec)_[A-Za-z0-9]{16,}\b"),
    ("npm_token", r"npm_[A-Za-z0-9]{36}\b"),
    ("pypi_token", r"pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,}"),
    ("huggingface_token", r"hf_[A-Za-z]{34}\b"),
    ("sendgrid_key", r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    ("digitalocean_token", r"do[opr]_v1_[a-f0-9]{64}\b"),
    ("satchel_token", r"satchel_[A-Za-z0-9_-]{43}\b"),
    ("json_web_token", r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,}"),
];

static SECRET: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let groups: Vec<String> = FORMATS.iter().map(|(kind, format)| format!("(?P<{kind}>{format})")).collect();
    // Boundaries of Unicode words are slow. A unit test compiles the pattern, so there is one.
    Regex::new(&groups.join("|").replace(r"\b", r"(?-u:\b)")).ok()
});

/// The text in which secrets are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notation {
    /// As a person reads it.
    Plain,
    /// Inside the strings of a JSON document, where `\n` stands for the end of a line.
    Json,
}

/// Returns the secrets in `text`: where each is, and its kind.
pub(super) fn find(text: &str, notation: Notation) -> impl Iterator<Item = (Range<usize>, &'static str)> {
    let all = SECRET.iter().flat_map(move |secret| secret.captures_iter(text));
    let mut end = 0;
    all.filter_map(move |found| {
        let (mut place, kind) = (found.get(0)?.range(), kind(&found));
        if place.start < end || !begins(&text[..place.start], notation) {
            return None;
        }
        if kind == PRIVATE_KEY {
            place.end += end_of_key(&text[place.end..], notation)?;
        }
        end = place.end;
        Some((place, kind))
    })
}

/// Returns where a private key ends after its first line; `None` if no key follows. If its last line is missing, it ends with its
/// Base64: the lines may be numbered, quoted, or escaped.
fn end_of_key(text: &str, notation: Notation) -> Option<usize> {
    let window = &text[..text.floor_char_boundary(MAX_KEY_BYTES)];
    let window = match notation {
        Notation::Plain => window,
        // What takes the place of a key must not reach beyond its string.
        Notation::Json => &window[..string_end(window)],
    };
    let window = window.find("-----BEGIN ").map_or(window, |next| &window[..next]);
    let last_line = window.find("-----END ").and_then(|begin| {
        let rest = &window[begin + 9..];
        let length = rest.find("-----").filter(|length| rest[..*length].contains("PRIVATE KEY"))?;
        Some(begin..begin + 9 + length + 5)
    });
    let body = last_line.as_ref().map_or(window, |last| &window[..last.start]);
    let end = end_of_base64(body)?;
    Some(last_line.map_or(end, |last| last.end))
}

/// Returns where the lines of Base64 at the beginning of `text` end; `None` if there are none.
fn end_of_base64(text: &str) -> Option<usize> {
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let (mut end, mut at) = (None, 0);
    for run in text.as_bytes().split(|byte| !is_base64(byte)) {
        if run.len() >= MIN_KEY_RUN {
            // Before the first line are headers, and between two lines the end of one.
            let gap = &text[end.unwrap_or(0)..at];
            let continues = gap.len() <= MAX_GAP && (gap.contains('\n') || gap.contains("\\n"));
            if end.is_some() && !continues {
                break;
            }
            end = Some(at + run.len());
        }
        at += run.len() + 1;
    }
    end
}

/// Returns where the string of JSON that `text` begins in ends.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    let end = text.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.unwrap_or(text.len())
}

/// Returns whether a secret may begin after `before`: not in the middle of a word.
fn begins(before: &str, notation: Notation) -> bool {
    let mut bytes = before.bytes().rev();
    match (bytes.next(), bytes.next()) {
        (Some(b'n' | b'r' | b't' | b'b' | b'f'), Some(b'\\')) if notation == Notation::Json => true,
        (Some(last), _) => !(last.is_ascii_alphanumeric() || last == b'_'),
        (None, _) => true,
    }
}

fn kind(found: &Captures<'_>) -> &'static str {
    FORMATS.iter().map(|(kind, _)| *kind).find(|kind| found.name(kind).is_some()).unwrap_or("secret")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Texts in each format, put together here so that no scanner takes this file for a leak.
    fn samples() -> Vec<(&'static str, String)> {
        let letters = |count: usize| "aB3dE".chars().cycle().take(count).collect::<String>();
        let upper = |count: usize| "A2B3C".chars().cycle().take(count).collect::<String>();
        let pem = |end: &str| format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{}{end}", letters(300));
        vec![
            ("private_key", pem("\n-----END OPENSSH PRIVATE KEY-----")),
            ("private_key", pem("")),
            (
                "private_key",
                format!("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n{}", letters(64)),
            ),
            ("private_key", format!("-----BEGIN PRIVATE KEY-----\\n\" + \"{}", letters(64))),
            (
                "private_key",
                format!("-----BEGIN PRIVATE KEY-----\n     2→{}\n     3→{}", letters(64), letters(40)),
            ),
            ("age_secret_key", format!("AGE-SECRET-KEY-1{}", "Q2".repeat(29))),
            ("aws_access_key", format!("AKIA{}", upper(16))),
            ("aws_secret_key", format!("AWS_SECRET_ACCESS_KEY={}", letters(40))),
            ("aws_secret_key", format!("aws_session_token = {}", letters(200))),
            ("github_token", format!("ghp_{}", letters(36))),
            ("github_token", format!("ghs_123_eyJ{}.eyJ{}.{}", letters(20), letters(20), letters(40))),
            ("github_token", format!("github_pat_{}_{}", letters(22), letters(59))),
            ("gitlab_token", format!("glpat-{}", letters(20))),
            ("anthropic_key", format!("sk-ant-api03-{}", letters(95))),
            ("openai_key", format!("sk-proj-{}T3BlbkFJ{}", letters(20), letters(20))),
            ("google_key", format!("AIza{}", letters(35))),
            ("slack_token", format!("xoxb-{}", letters(40))),
            (
                "slack_webhook",
                format!("https://hooks.slack.com/services/T{}/B{}/{}", upper(9), upper(9), letters(24)),
            ),
            ("stripe_key", format!("sk_live_{}", letters(24))),
            ("npm_token", format!("npm_{}", letters(36))),
            ("pypi_token", format!("pypi-AgEIcHlwaS5vcmc{}", letters(80))),
            ("huggingface_token", format!("hf_{}", "aBcDe".repeat(7).get(..34).unwrap_or_default())),
            ("sendgrid_key", format!("SG.{}.{}", letters(22), letters(43))),
            ("digitalocean_token", format!("dop_v1_{}", "0a".repeat(32))),
            ("satchel_token", format!("satchel_{}", letters(43))),
            ("json_web_token", format!("eyJ{}.eyJ{}.{}", letters(20), letters(40), letters(43))),
        ]
    }

    #[test]
    fn every_format_is_found_wherever_it_is_and_as_a_whole() {
        assert!(SECRET.is_some());
        for (kind, secret) in samples() {
            for (before, after) in
                [("", ""), ("KEY=", "\n"), ("\"", "\""), ("Bearer ", ", and more"), ("ü", " ü")]
            {
                let text = format!("{before}{secret}{after}");
                let place = before.len()..before.len() + secret.len();
                assert_eq!(find(&text, Notation::Plain).collect::<Vec<_>>(), [(place, kind)], "{text}");
            }
        }
        let all: Vec<String> = samples().into_iter().map(|(_, secret)| secret).collect();
        assert_eq!(find(&all.join(" ! "), Notation::Plain).count(), all.len());
        for (kind, secret) in samples() {
            let text = json!({"out": format!("a\n{secret}\tb")}).to_string();
            assert_eq!(
                find(&text, Notation::Json).map(|(_, kind)| kind).collect::<Vec<_>>(),
                [kind],
                "{text}"
            );
        }
    }

    #[test]
    fn a_text_of_first_lines_costs_no_more_than_its_length() {
        let text = "-----BEGIN PRIVATE KEY-----\n".repeat(100_000);
        assert_eq!(find(&text, Notation::Plain).count(), 0);
    }

    #[test]
    fn what_only_resembles_a_secret_is_none() {
        for text in [
            "AKIA",
            "AKIA and ASIA are prefixes",
            "xAKIAA2B3CA2B3CA2B3CA",
            "nAKIAA2B3CA2B3CA2B3CA",
            "ghp_short",
            "sk-test",
            "task-force-and-other-words-with-hyphens-that-are-long-enough-to-look-random",
            "AIzaShort",
            "xoxb-",
            "sk_test_aB3dEaB3dEaB3dEaB3dE",
            "-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----",
            "grep -r -- '-----BEGIN PRIVATE KEY-----' src/ | head",
            "if line == '-----BEGIN PRIVATE KEY-----': begin() elif line == '-----END PRIVATE KEY-----': end()",
            "eyJhbGciOiJIUzI1NiJ9",
            "0123456789abcdef0123456789abcdef01234567",
            "550e8400-e29b-41d4-a716-446655440000",
        ] {
            assert_eq!(find(text, Notation::Plain).count(), 0, "{text}");
        }
    }
}
