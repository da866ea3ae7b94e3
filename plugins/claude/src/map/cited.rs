//! Small lists inside blocks: sources of a text, summaries of a thought.

use std::borrow::Cow;

use satchel_importer::{Arena, Citation, JsonError, Parser, json::Kind};

/// Sources of one message; the block keeps all of them. The bound is one of the sandbox's memory.
const MAX_CITATIONS: usize = 10_000;

/// Appends the sources of a text. What cannot be read is left out here; the block keeps all of it.
pub(super) fn read<'a>(json: &mut Parser<'a>, citations: &mut Vec<Citation<'a>>) {
    let mut walk = || {
        if json.enter_array()? {
            while json.item()? {
                if citations.len() < MAX_CITATIONS {
                    citations.extend(citation(json)?);
                }
            }
        }
        Ok::<(), JsonError>(())
    };
    // The list was walked when it was taken, so it breaks nowhere.
    let (Ok(()) | Err(_)) = walk();
}

fn citation<'a>(json: &mut Parser<'a>) -> Result<Option<Citation<'a>>, JsonError> {
    let (mut title, mut url, mut inner) = (None, None, None);
    if json.enter_object()? {
        while let Some(key) = json.key()? {
            match key {
                "title" => title = text(json)?,
                "url" => url = text(json)?,
                "details" if json.enter_object()? => {
                    while let Some(key) = json.key()? {
                        if key == "url" {
                            inner = text(json)?;
                        }
                    }
                }
                _ => {}
            }
        }
    }
    // PAM takes nothing but a URI; other texts stay in the block.
    let url = [inner, url].into_iter().flatten().find(|url| uri(url));
    let known = title.is_some() || url.is_some();
    Ok(known.then(|| Citation {
        title: title.map(Cow::Borrowed),
        url: url.map(Cow::Borrowed),
        snippet: None,
    }))
}

/// The summaries of a thought whose words are not in the export, one to a line.
pub(super) fn summaries<'a>(raw: &'a str, arena: &'a Arena) -> Option<Cow<'a, str>> {
    let mut json = Parser::new(raw, arena);
    let mut texts = Vec::new();
    let mut walk = || {
        if json.enter_array()? {
            while json.item()? {
                texts.extend(summary(&mut json)?);
            }
        }
        Ok::<(), JsonError>(())
    };
    let (Ok(()) | Err(_)) = walk();
    (!texts.is_empty()).then(|| texts.join("\n").into())
}

fn summary<'a>(json: &mut Parser<'a>) -> Result<Option<&'a str>, JsonError> {
    let mut found = None;
    if json.enter_object()? {
        while let Some(key) = json.key()? {
            if key == "summary" {
                found = text(json)?;
            }
        }
    }
    Ok(found)
}

fn text<'a>(json: &mut Parser<'a>) -> Result<Option<&'a str>, JsonError> {
    if json.kind()? != Kind::String {
        return Ok(None);
    }
    json.string().map(|text| Some(text).filter(|text| !text.trim().is_empty()))
}

/// Whether `text` begins as RFC 3986 has it and holds no white space.
fn uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(letter)
        && !rest.is_empty()
        && !rest.contains(|c: char| c.is_whitespace() || c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_uris_are_taken_for_addresses() {
        assert!(uri("https://example.com/a?b=c"));
        assert!(uri("mailto:someone@example.com"));
        for text in ["example.com", "see: here there", "1a:b", ":b", "https:"] {
            assert!(!uri(text), "{text}");
        }
    }
}
