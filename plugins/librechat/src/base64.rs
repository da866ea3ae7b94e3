//! Bytes inside an export: `data:image/png;base64,…`, and recordings.

use satchel_importer::bytes::from_base64;

/// The MIME type and the bytes of a `data:` address; none if it has no bytes or too many.
pub(crate) fn of_address(address: &str) -> Option<(&str, Vec<u8>)> {
    let (mime, data) = address.strip_prefix("data:")?.split_once(";base64,")?;
    let (major, minor) = mime.split_once('/')?;
    let is_name = |name: &str| {
        let mut letters = name.bytes();
        !name.is_empty() && letters.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    };
    (is_name(major) && is_name(minor)).then_some(())?;
    Some((mime, from_base64(data)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_decoded_and_addresses_are_not() {
        assert_eq!(of_address("data:image/png;base64,UE5H"), Some(("image/png", b"PNG".to_vec())));
        for address in
            ["/images/a.png", "data:image;base64,UE5H", "data:image/png,UE5H", "data:a/b;base64,*", "data:"]
        {
            assert_eq!(of_address(address), None, "{address}");
        }
    }
}
