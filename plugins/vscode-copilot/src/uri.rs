//! Addresses as VS Code writes them: a text, or an object with its parts.

use satchel_importer::{
    Arena,
    json::{Object, Value},
};

/// The address in `value`: a text, the parts of an address, or a place in a file.
pub(crate) fn of<'a>(value: Value<'a>, arena: &'a Arena) -> Option<String> {
    match value {
        Value::Text(text) => satchel_importer::address::is_uri(text).then(|| text.to_owned()),
        Value::Raw(raw) if raw.starts_with('{') => {
            let fields = Object::parse(raw, arena);
            of_parts(&fields).or_else(|| of_parts(&fields.object("uri", arena)))
        }
        Value::Raw(_) | Value::Null => None,
    }
}

/// The last name in the path of the address in `value`.
pub(crate) fn name<'a>(value: Value<'a>, arena: &'a Arena) -> Option<String> {
    let address = of(value, arena)?;
    let path = path(&address);
    path.trim_end_matches('/')
        .rsplit(['/', '\\'])
        .next()
        .filter(|name| !name.is_empty())
        .map(ToOwned::to_owned)
}

/// The path of a folder or a file on the computer that has it: without scheme, host and escapes.
pub(crate) fn path(address: &str) -> String {
    let Some((_, rest)) = address.split_once("://") else { return address.to_owned() };
    let path = rest.find('/').and_then(|at| rest.get(at..)).unwrap_or_default();
    let path = unescaped(path.split(['?', '#']).next().unwrap_or_default());
    // Windows: `/c:/Users`.
    match path.as_bytes() {
        [b'/', letter, b':', ..] if letter.is_ascii_alphabetic() => {
            path.get(1..).unwrap_or_default().to_owned()
        }
        _ => path,
    }
}

fn of_parts(fields: &Object<'_>) -> Option<String> {
    if let Some(external) = fields.text("external") {
        return Some(external.to_owned());
    }
    let (scheme, path) = (fields.text("scheme")?, fields.text("path").unwrap_or_default());
    let authority = fields.text("authority").unwrap_or_default();
    let query = fields.text("query").map(|query| format!("?{}", escaped(query))).unwrap_or_default();
    Some(format!("{scheme}://{}{}{query}", escaped(authority), escaped(path)))
}

/// White space, control characters and percent signs may not stand in an address.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_whitespace() || character.is_control() || matches!(character, '%' | '?' | '#') {
            let mut bytes = [0; 4];
            character
                .encode_utf8(&mut bytes)
                .bytes()
                .for_each(|byte| escaped.push_str(&format!("%{byte:02X}")));
        } else {
            escaped.push(character);
        }
    }
    escaped
}

/// Decodes `%20`; anything that is no such escape stays.
fn unescaped(text: &str) -> String {
    let (bytes, mut decoded, mut at) = (text.as_bytes(), Vec::with_capacity(text.len()), 0);
    while let Some(byte) = bytes.get(at) {
        let digits = text.get(at + 1..at + 3).filter(|_| *byte == b'%');
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.push(escaped.unwrap_or(*byte));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_out_of_addresses() {
        for (address, expected) in [
            ("file:///home/mira/my%20app", "/home/mira/my app"),
            ("file:///c%3A/Users/mira", "c:/Users/mira"),
            ("vscode-remote://wsl%2Bubuntu/home/mira", "/home/mira"),
            ("file:///caf%C3%A9%zz", "/café%zz"),
            ("file://", ""),
            ("plain", "plain"),
        ] {
            assert_eq!(path(address), expected, "{address}");
        }
    }

    #[test]
    fn addresses_are_texts_or_parts() {
        let arena = Arena::new();
        let of = |raw: &'static str| of(Value::Raw(raw), &arena);
        assert_eq!(of(r#"{"$mid":1,"path":"/a b","scheme":"file"}"#).as_deref(), Some("file:///a%20b"));
        assert_eq!(of(r#"{"uri":{"external":"file:///a"},"range":{}}"#).as_deref(), Some("file:///a"));
        assert_eq!(of(r#"{"path":"/a"}"#), None);
        assert_eq!(name(Value::Text("file:///a/b.rs"), &arena).as_deref(), Some("b.rs"));
    }
}
