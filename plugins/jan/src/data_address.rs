//! Decodes the bytes in an address such as `data:image/png;base64,…` or `data:text/plain,…`.

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// Bytes of a file that the host accepts.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The bytes of a data address; none if they cannot be decoded, or are too many.
pub(crate) fn decode(address: &str) -> Option<Vec<u8>> {
    let (kind, data) = address.strip_prefix("data:")?.split_once(',')?;
    let bytes = if kind.ends_with(";base64") {
        let fits = data.len() / 4 * 3 <= MAX_BYTES;
        fits.then(|| STANDARD.decode(data.trim_end()).ok()).flatten()?
    } else {
        percent_decoded(data)?
    };
    Some(bytes).filter(|bytes| !bytes.is_empty() && bytes.len() <= MAX_BYTES)
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
    use super::decode;

    #[test]
    fn base64_and_plain_texts_are_decoded() {
        assert_eq!(decode("data:image/gif;base64,R0lG"), Some(b"GIF".to_vec()));
        assert_eq!(decode("data:text/plain;charset=utf-8;base64,aGk="), Some(b"hi".to_vec()));
        assert_eq!(decode("data:,hi%20there%21"), Some(b"hi there!".to_vec()));
        for other in ["data:a;base64,", "data:a;base64,?", "data:,%2", "data:,%é", "file:///a.gif", ""] {
            assert_eq!(decode(other), None, "{other}");
        }
    }
}
