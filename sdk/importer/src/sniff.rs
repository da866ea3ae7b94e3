//! What files without a name are, by their first bytes.

use std::io::Read;

use crate::Bundle;

/// Bytes of a file by which its type is told; more than any known signature takes.
const HEAD: u64 = 512;

/// The MIME type of the file named `path`; none if its first bytes say nothing or cannot be read.
pub fn mime(bundle: &Bundle, path: &str) -> Option<&'static str> {
    let mut head = Vec::new();
    bundle.open(path).ok()?.take(HEAD).read_to_end(&mut head).ok()?;
    let known = infer::get(&head).map(|kind| kind.mime_type());
    known.or_else(|| is_text(&head).then_some("text/plain"))
}

/// Whether bytes are the beginning of a text: UTF-8, of which the last character may be cut, without control characters.
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
    fn first_bytes_tell_the_type() {
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
