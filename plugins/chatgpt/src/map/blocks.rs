//! Blocks in an answer's text: `:::writing{…}` around a draft, and `products{…}` for a list of products.

use std::borrow::Cow;

use serde_json::Value;

const WRITING: &str = ":::writing";
const FENCE: &str = ":::";
const PRODUCTS: &str = "products{";
/// Keys in a payload whose values the page shows.
const SHOWN_KEYS: [&str; 7] = ["selections", "title", "name", "label", "caption", "text", "content"];
/// Levels of a payload that are searched.
const MAX_DEPTH: usize = 8;

/// Replaces the blocks of `text` by the text that the page shows for them.
pub(crate) fn render(text: Cow<'_, str>) -> Cow<'_, str> {
    let text = if text.contains(WRITING) { Cow::Owned(render_writing(&text)) } else { text };
    if text.contains(PRODUCTS) { Cow::Owned(render_products(&text)) } else { text }
}

/// Removes the fences around drafts; a subject becomes a line of its own.
fn render_writing(text: &str) -> String {
    let (mut out, mut inside) = (String::with_capacity(text.len()), false);
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        let header = trimmed.strip_prefix(WRITING);
        if let Some(header) = header.filter(|rest| rest.is_empty() || rest.starts_with('{')) {
            inside = true;
            if let Some(subject) = attribute(header, "subject") {
                out.push_str(subject);
                out.push_str("\n\n");
            }
        } else if inside && trimmed == FENCE {
            inside = false;
        } else {
            out.push_str(line);
        }
    }
    // The line break before a fence at the end goes with the fence.
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

/// Replaces lists of products by the names in them.
fn render_products(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(PRODUCTS) {
        let (before, found) = rest.split_at(at);
        let payload = &found[PRODUCTS.len() - 1..];
        let mut values = serde_json::Deserializer::from_str(payload).into_iter::<Value>();
        let value = values.next().and_then(Result::ok);
        let listed = value.as_ref().is_some_and(|value| value.get("selections").is_some());
        // `myproducts{` is code.
        let separate = !before.ends_with(|c: char| c.is_alphanumeric() || "_.$-".contains(c));
        out.push_str(before);
        if let Some(value) = value.filter(|_| listed && separate) {
            out.push_str(&shown_texts(&value).join(", "));
            rest = &payload[values.byte_offset()..];
        } else {
            out.push_str(PRODUCTS);
            rest = &found[PRODUCTS.len()..];
        }
    }
    out.push_str(rest);
    out
}

/// The text that the page shows for a JSON payload, if any.
pub(crate) fn payload_text(payload: &str) -> Option<Cow<'static, str>> {
    let value: Value = serde_json::from_str(payload).ok()?;
    let texts = shown_texts(&value);
    (!texts.is_empty()).then(|| Cow::Owned(texts.join(", ")))
}

fn shown_texts(value: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    collect(value, MAX_DEPTH, &mut found);
    found
}

fn collect<'v>(value: &'v Value, depth: usize, found: &mut Vec<&'v str>) {
    let (Value::Object(members), Some(depth)) = (value, depth.checked_sub(1)) else { return };
    for (name, member) in members {
        match member {
            Value::String(text) if SHOWN_KEYS.contains(&name.as_str()) => found.push(text),
            Value::Array(items) if SHOWN_KEYS.contains(&name.as_str()) => {
                for item in items {
                    // Either an id and a name, or a text.
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

    fn rendered(text: &str) -> String {
        render(Cow::Borrowed(text)).into_owned()
    }

    #[test]
    fn drafts_lose_their_fences() {
        let text =
            "Here:\n:::writing{variant=\"email\" id=\"1\" subject=\"Rye\"}\nDear Ada,\nrye.\n:::\nGood?";
        assert_eq!(rendered(text), "Here:\nRye\n\nDear Ada,\nrye.\nGood?");
        assert_eq!(rendered(":::writing\na\n:::"), "a");
        assert_eq!(rendered(":::note\na\n:::"), ":::note\na\n:::");
    }

    #[test]
    fn products_become_their_names() {
        let text = r#"See products{"selections":[["turn0product0","Tent, red"]],"tags":["best"]} there."#;
        assert_eq!(rendered(text), "See Tent, red there.");
        for code in ["products{a: 1}", "my.products{\"selections\":[]}", "products{"] {
            assert_eq!(rendered(code), code);
        }
    }
}
