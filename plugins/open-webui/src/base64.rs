//! Pictures inside a file: `data:image/png;base64,…`.

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// The largest picture that the host accepts, in bytes.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The MIME type and the bytes of a data address; none if it is not one or is too large.
pub(crate) fn decode(address: &str) -> Option<(&str, Vec<u8>)> {
    let (mime, data) = address.strip_prefix("data:")?.split_once(";base64,")?;
    let small = data.len() / 4 * 3 <= MAX_BYTES;
    let bytes = small.then(|| STANDARD.decode(data.trim_end()).ok()).flatten()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/+-.".contains(&byte);
    (mime.contains('/') && mime.bytes().all(plain) && !bytes.is_empty()).then_some((mime, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_data_addresses_are_decoded() {
        assert_eq!(decode("data:image/gif;base64,R0lG"), Some(("image/gif", b"GIF".to_vec())));
        for other in [
            "https://example.org/a.png",
            "data:image/gif;base64,",
            "data:image/gif;base64,?",
            "data:;base64,R0lG",
            "data:image/gif,R0lG",
        ] {
            assert_eq!(decode(other), None, "{other}");
        }
    }
}
