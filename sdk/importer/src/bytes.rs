//! Decodes files that stand inside the text of an export.

use std::borrow::Cow;

use base64::{
    Engine as _, alphabet,
    engine::{
        DecodePaddingMode,
        general_purpose::{GeneralPurpose, GeneralPurposeConfig},
    },
};

/// Bytes of one file that the host accepts: 16 MiB.
pub const MAX_FILE: usize = 16 * 1024 * 1024;

/// Programs write the padding or leave it out.
const ANY_PADDING: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
/// Base64 of RFC 4648 §4, and that for addresses of §5.
const PLAIN: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, ANY_PADDING);
const FOR_ADDRESSES: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, ANY_PADDING);

/// The bytes of a text in Base64 (RFC 4648 §4 or §5, also without padding), with white space around it and line breaks in it. None if it
/// is something else, is empty, or is so long that it may have more than [`MAX_FILE`] bytes.
pub fn from_base64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    let breaks = text.bytes().filter(|byte| matches!(byte, b'\r' | b'\n')).count();
    if (text.len() - breaks) / 4 * 3 > MAX_FILE {
        return None;
    }
    let joined = if breaks == 0 { Cow::Borrowed(text) } else { Cow::Owned(text.replace(['\r', '\n'], "")) };
    let engine = if joined.contains(['-', '_']) { FOR_ADDRESSES } else { PLAIN };
    engine.decode(joined.as_bytes()).ok().filter(|bytes| !bytes.is_empty())
}

/// The bytes of a data address (RFC 2397) such as `data:image/png;base64,…` or `data:text/plain,…`. None if it is something else, is
/// empty, or has more than [`MAX_FILE`] bytes.
pub fn from_data_address(address: &str) -> Option<Vec<u8>> {
    let (kind, data) = address.strip_prefix("data:")?.split_once(',')?;
    if kind.ends_with(";base64") {
        // A line may end behind the address.
        return from_base64(data).filter(|_| !data.starts_with(char::is_whitespace));
    }
    percent_decoded(data).filter(|bytes| !bytes.is_empty() && bytes.len() <= MAX_FILE)
}

/// The bytes of a text in which some of them are written as `%20`.
fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend(rest.as_bytes());
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    #[test]
    fn base64_is_decoded() {
        assert_eq!(from_base64("R0lG"), Some(b"GIF".to_vec()));
        assert_eq!(from_base64("\r\nR0lGOA==\n"), Some(b"GIF8".to_vec()));
        for other in ["", " ", "?!", "R0l", "R0 lG", "data:image/gif;base64,R0lG"] {
            assert_eq!(from_base64(other), None, "{other}");
        }
    }

    #[test]
    fn variants_of_base64_are_decoded() {
        let bytes = Some(vec![0xfb, 0xef, 0xff, 0x01]);
        for text in ["++//AQ==", "++//AQ", "--__AQ==", "--__AQ", "++//\r\nAQ==\r\n", "--\n__\nAQ"] {
            assert_eq!(from_base64(text), bytes, "{text}");
        }
        // Both alphabets in one text, too much padding, padding in the middle, and bits that no byte has.
        for other in ["+-/_AQ==", "++//AQ===", "AQ==++//", "++//AR", "++//A", "\n"] {
            assert_eq!(from_base64(other), None, "{other}");
        }
    }

    #[test]
    fn base64_and_plain_texts_in_addresses_are_decoded() {
        assert_eq!(from_data_address("data:image/gif;base64,R0lG"), Some(b"GIF".to_vec()));
        assert_eq!(from_data_address("data:image/gif;base64,R0lG\n"), Some(b"GIF".to_vec()));
        assert_eq!(from_data_address("data:text/plain;charset=utf-8;base64,aGk="), Some(b"hi".to_vec()));
        assert_eq!(from_data_address("data:,hi%20there%21"), Some(b"hi there!".to_vec()));
        for other in [
            "data:a;base64,",
            "data:a;base64,?",
            "data:a;base64, R0lG",
            "data:,",
            "data:,%2",
            "data:,%é",
            "file:///a.gif",
            "",
        ] {
            assert_eq!(from_data_address(other), None, "{other}");
        }
    }

    #[test]
    fn larger_files_are_not_decoded() {
        // The text of a file of 16 MiB is as long as that of one with two bytes more.
        for (bytes, fits) in [(MAX_FILE - 1, true), (MAX_FILE, false), (MAX_FILE + 1, false)] {
            assert_eq!(from_base64(&STANDARD.encode(vec![0; bytes])).is_some(), fits, "{bytes}");
        }
        for (bytes, fits) in [(MAX_FILE, true), (MAX_FILE + 1, false)] {
            let address = format!("data:,{}", "x".repeat(bytes));
            assert_eq!(from_data_address(&address).is_some(), fits, "{bytes}");
        }
    }
}
