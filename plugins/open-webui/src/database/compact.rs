//! Writes JSON as exports have it: the database has blanks between the values and escapes of all letters that are not ASCII.

/// The JSON text without white space outside of strings, and with letters in place of escapes. What is not JSON stays not JSON.
pub(super) fn compact(text: String) -> String {
    let mut bytes = text.into_bytes();
    let (mut read, mut written, mut in_string) = (0, 0, false);
    let mut letter = [0; 4];
    while let Some(byte) = bytes.get(read).copied() {
        let rest = bytes.get(read..).unwrap_or_default();
        let taken = match byte {
            b'\\' if in_string => {
                if let Some((taken, c)) = escaped(rest) {
                    let put = c.encode_utf8(&mut letter).as_bytes();
                    // An escape is longer than its letter, so there is room for it.
                    if let Some(target) = bytes.get_mut(written..written + put.len()) {
                        target.copy_from_slice(put);
                    }
                    (read, written) = (read + taken, written + put.len());
                    continue;
                }
                rest.len().min(2)
            }
            b' ' | b'\t' | b'\n' | b'\r' if !in_string => {
                read += 1;
                continue;
            }
            _ => 1,
        };
        in_string ^= byte == b'"';
        bytes.copy_within(read..read + taken, written);
        (read, written) = (read + taken, written + taken);
    }
    bytes.truncate(written);
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The letter of an escape, and the length of the escape; none if exports have it too.
fn escaped(text: &[u8]) -> Option<(usize, char)> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
        let digits = std::str::from_utf8(digits)
            .ok()
            .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
        u16::from_str_radix(digits, 16).ok()
    };
    if text.starts_with(b"\\/") {
        return Some((2, '/'));
    }
    let first = unit(0)?;
    let single = char::from_u32(u32::from(first)).map(|c| (6, c));
    let pair = || char::decode_utf16([first, unit(6)?]).next()?.ok().map(|c| (12, c));
    single
        .or_else(pair)
        .filter(|(_, c)| !c.is_control() || *c == '\u{7f}')
        .filter(|(_, c)| !matches!(c, '"' | '\\'))
}

#[cfg(test)]
mod tests {
    use super::compact;

    #[test]
    fn blanks_between_values_go_and_letters_come_back() {
        for (stored, exported) in [
            (r#"{"a": [1, 2], "b c": "d,  e: \"f\" \\"}"#, r#"{"a":[1,2],"b c":"d,  e: \"f\" \\"}"#),
            (r#"{"\u00f6l": "\ud83c\udf4b \u4e2d"}"#, r#"{"öl":"🍋 中"}"#),
            (r#""a\nb\u0000\u001f\u2028\u0022\u005c\/""#, "\"a\\nb\\u0000\\u001f\u{2028}\\u0022\\u005c/\""),
            // Halves of pairs stay as they are.
            (r#""\ud83c \udf4b\ud83c""#, r#""\ud83c \udf4b\ud83c""#),
            ("{\n\t\"a\" :\r\n null }", r#"{"a":null}"#),
            // What breaks off stays broken.
            (r#"{"a": "b\"#, r#"{"a":"b\"#),
            (r#"{"a": "\u00f"#, r#"{"a":"\u00f"#),
            (r#"{"ä": "b c" "#, r#"{"ä":"b c""#),
        ] {
            assert_eq!(compact(stored.to_owned()), exported, "{stored}");
        }
    }
}
