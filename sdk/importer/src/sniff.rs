//! Recognises the type of a file by its first bytes.

use std::io::Read;

use crate::Bundle;

/// Bytes that are read to recognise a type; more than any known signature needs.
const HEAD: u64 = 512;

/// The MIME type of the file at `path`; none if it is not recognised or the file cannot be read.
pub fn mime(bundle: &Bundle, path: &str) -> Option<&'static str> {
    let mut head = Vec::new();
    bundle.open(path).ok()?.take(HEAD).read_to_end(&mut head).ok()?;
    let known = infer::get(&head).map(|kind| kind.mime_type());
    known.or_else(|| is_text(&head).then_some("text/plain"))
}

/// Whether this is the beginning of a text: UTF-8 without control characters; the last character may be truncated.
fn is_text(head: &[u8]) -> bool {
    let whole = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => head
            .get(..error.valid_up_to())
            .and_then(|head| std::str::from_utf8(head).ok())
            .unwrap_or_default(),
        Err(_) => return false,
    };
    !whole.is_empty() && !whole.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_recognised_by_the_first_bytes() {
        let bundle = Bundle::from_files([
            ("image", b"\x89PNG\r\n\x1a\n0000".to_vec()),
            ("text", "plain, \u{e9}".as_bytes().to_vec()),
            ("noise", vec![0, 1, 2]),
            ("empty", Vec::new()),
        ]);
        let types = ["image", "text", "noise", "empty", "absent"].map(|path| mime(&bundle, path));
        assert_eq!(types, [Some("image/png"), Some("text/plain"), None, None, None]);
    }
}
