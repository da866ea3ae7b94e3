//! Recognizes mail addresses and telephone numbers, which are private.

/// Digits of a telephone number without and with its country, and of the longest one (E.164).
const FEWEST_DIGITS: (usize, usize, usize) = (7, 5, 15);

/// Whether the text contains a mail address or is a telephone number: only a person has one.
pub(crate) fn is_contact(text: &str) -> bool {
    has_mail_address(text) || is_telephone_number(text)
}

/// Whether a field of another meaning contains a mail address or is a telephone number. A date also looks like a number without `+`.
pub(crate) fn contains_contact(text: &str) -> bool {
    has_mail_address(text) || (text.starts_with('+') && is_telephone_number(text))
}

/// Whether the text must not be stored: a contact, or a number that may be a telephone number or an id.
pub(crate) fn is_private(text: &str) -> bool {
    let digits = text.chars().all(|c| c.is_ascii_digit());
    is_contact(text) || (digits && (FEWEST_DIGITS.0..=FEWEST_DIGITS.2).contains(&text.len()))
}

/// `@handle`, `model@20260514` and `model@default` are not mail addresses.
fn has_mail_address(text: &str) -> bool {
    text.match_indices('@').any(|(at, _)| {
        let (local, domain) = (text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default());
        let part_of_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.');
        let domain = domain.split(|c| !part_of_name(c)).next().unwrap_or_default();
        let top = domain.trim_end_matches('.').rsplit_once('.');
        local.ends_with(|c: char| c.is_alphanumeric() || "._%+-'\"".contains(c))
            && top.is_some_and(|(host, top)| !host.is_empty() && top.contains(char::is_alphabetic))
    })
}

fn is_telephone_number(text: &str) -> bool {
    let separator = |c: char| matches!(c, '-' | '(' | ')' | ' ' | '.' | '/');
    let (fewest, fewest_with_country, most) = FEWEST_DIGITS;
    let (number, fewest) = match text.trim().strip_prefix('+') {
        Some(number) => (number, fewest_with_country),
        None if text.contains(separator) => (text, fewest),
        None => return false,
    };
    number.chars().all(|c| c.is_ascii_digit() || separator(c))
        && (fewest..=most).contains(&number.chars().filter(char::is_ascii_digit).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mail_addresses_and_telephone_numbers_are_contacts() {
        for text in
            ["mo@example.org", "Mo <mo@mail.example.org>", "mailto:m.o+x@example.org", "mo@bücher.example"]
        {
            assert!(is_contact(text) && is_private(text), "{text}");
        }
        for text in ["+49 30 5550 117", "+49305550117", "(030) 5550-117", "030/5550117"] {
            assert!(is_contact(text) && is_private(text), "{text}");
        }
    }

    #[test]
    fn names_of_models_handles_and_short_numbers_are_no_contacts() {
        for text in [
            "claude-opus-4@20250514",
            "gemini@default",
            "@mo:example.org",
            "@",
            "a@",
            "a@.",
            "1",
            "42",
            "",
            "gpt-4.1",
            "+",
        ] {
            assert!(!is_contact(text) && !is_private(text), "{text}");
        }
        assert!(is_private("493055501") && !is_contact("493055501"), "it may be either");
    }
}
