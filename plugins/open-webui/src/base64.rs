//! Pictures inside a file: `data:image/png;base64,…`.

use satchel_importer::bytes::from_data_address;

/// The MIME type and the bytes of a data address; none if it is not one or is too large.
pub(crate) fn decode(address: &str) -> Option<(&str, Vec<u8>)> {
    let (mime, _) = address.strip_prefix("data:")?.split_once(";base64,")?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/+-.".contains(&byte);
    let bytes =
        (mime.contains('/') && mime.bytes().all(plain)).then(|| from_data_address(address)).flatten()?;
    Some((mime, bytes))
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
