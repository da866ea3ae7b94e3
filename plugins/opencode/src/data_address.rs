//! Decodes the bytes in an address such as `data:image/png;base64,…`.

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// Bytes of a file that the host accepts.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The bytes of a data address; none if they are no Base64, or too many.
pub(crate) fn decode(address: &str) -> Option<Vec<u8>> {
    let (_, data) = address.strip_prefix("data:")?.split_once(";base64,")?;
    let fits = data.len() / 4 * 3 <= MAX_BYTES;
    fits.then(|| STANDARD.decode(data.trim_end()).ok()).flatten().filter(|bytes| !bytes.is_empty())
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn base64_is_decoded_and_nothing_else() {
        assert_eq!(decode("data:image/gif;base64,R0lG"), Some(b"GIF".to_vec()));
        assert_eq!(decode("data:text/plain;charset=utf-8;base64,aGk="), Some(b"hi".to_vec()));
        for other in ["data:image/gif;base64,", "data:image/gif;base64,?", "data:,hi", "file:///a.gif", ""] {
            assert_eq!(decode(other), None, "{other}");
        }
    }
}
