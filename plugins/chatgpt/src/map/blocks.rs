//! Things in an answer's text that plain words open: `:::writing{…}` around a draft, `products{…}` for a shelf of goods.

use std::borrow::Cow;

use serde_json::Value;

const WRITING: &str = ":::writing";
const FENCE: &str = ":::";
const PRODUCTS: &str = "products{";
/// Members of a payload that hold words to show.
const SHOWN: [&str; 7] = ["selections", "title", "name", "label", "caption", "text", "content"];
/// Levels of a payload in which words are looked for.
const DEPTH: usize = 8;

/// The text with the words that a person saw in place of such things. Borrowed when there is none.
pub(crate) fn unwrap(text: Cow<'_, str>) -> Cow<'_, str> {
    let text = if text.contains(WRITING) { Cow::Owned(unwrap_writing(&text)) } else { text };
    if text.contains(PRODUCTS) { Cow::Owned(name_products(&text)) } else { text }
}

/// Drafts without the lines around them; a subject becomes a line of its own.
fn unwrap_writing(text: &str) -> String {
    let (mut out, mut inside) = (String::with_capacity(text.len()), false);
    for line in text.split_inclusive('\n') {
        let words = line.trim();
        if let Some(header) =
            words.strip_prefix(WRITING).filter(|rest| rest.is_empty() || rest.starts_with('{'))
        {
            inside = true;
            if let Some(subject) = attribute(header, "subject") {
                out.push_str(subject);
                out.push_str("\n\n");
            }
        } else if inside && words == FENCE {
            inside = false;
        } else {
            out.push_str(line);
        }
    }
    // The line break before a last fence would be left over.
    if !text.ends_with('\n') && out.ends_with('\n') {
        out.pop();
    }
    out
}

/// The value of `name="…"`.
fn attribute<'t>(header: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = header.split_once(name)?;
    let (value, _) = rest.strip_prefix("=\"")?.split_once('"')?;
    Some(value).filter(|value| !value.is_empty())
}

/// The names of goods in place of the JSON that lists them.
fn name_products(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(PRODUCTS) {
        let (before, found) = rest.split_at(at);
        let payload = &found[PRODUCTS.len() - 1..];
        let mut values = serde_json::Deserializer::from_str(payload).into_iter::<Value>();
        let value = values.next().and_then(Result::ok);
        let listed = value.as_ref().is_some_and(|value| value.get("selections").is_some());
        // `myproducts{` is a word of some program.
        let apart = !before.ends_with(|c: char| c.is_alphanumeric() || "_.$-".contains(c));
        out.push_str(before);
        if let Some(value) = value.filter(|_| listed && apart) {
            out.push_str(&shown(&value).join(", "));
            rest = &payload[values.byte_offset()..];
        } else {
            out.push_str(PRODUCTS);
            rest = &found[PRODUCTS.len()..];
        }
    }
    out.push_str(rest);
    out
}

/// The words to show of a payload that is JSON; none if there are none.
pub(crate) fn words(payload: &str) -> Option<Cow<'static, str>> {
    let value: Value = serde_json::from_str(payload).ok()?;
    let words = shown(&value);
    (!words.is_empty()).then(|| Cow::Owned(words.join(", ")))
}

fn shown(value: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    collect(value, DEPTH, &mut found);
    found
}

fn collect<'v>(value: &'v Value, depth: usize, found: &mut Vec<&'v str>) {
    let (Value::Object(members), Some(depth)) = (value, depth.checked_sub(1)) else { return };
    for (name, member) in members {
        match member {
            Value::String(text) if SHOWN.contains(&name.as_str()) => found.push(text),
            Value::Array(items) if SHOWN.contains(&name.as_str()) => {
                for item in items {
                    // An id and a name.
                    found.extend(item.get(1).or(Some(item)).and_then(Value::as_str));
                    collect(item, depth, found);
                }
            }
            Value::Object(_) => collect(member, depth, found),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unwrapped(text: &str) -> String {
        unwrap(Cow::Borrowed(text)).into_owned()
    }

    #[test]
    fn drafts_lose_their_fences() {
        let text =
            "Here:\n:::writing{variant=\"email\" id=\"1\" subject=\"Rye\"}\nDear Ada,\nrye.\n:::\nGood?";
        assert_eq!(unwrapped(text), "Here:\nRye\n\nDear Ada,\nrye.\nGood?");
        assert_eq!(unwrapped(":::writing\na\n:::"), "a");
        assert_eq!(unwrapped(":::note\na\n:::"), ":::note\na\n:::");
    }

    #[test]
    fn goods_are_named() {
        let text = r#"See products{"selections":[["turn0product0","Tent, red"]],"tags":["best"]} there."#;
        assert_eq!(unwrapped(text), "See Tent, red there.");
        for code in ["products{a: 1}", "my.products{\"selections\":[]}", "products{"] {
            assert_eq!(unwrapped(code), code);
        }
    }
}
