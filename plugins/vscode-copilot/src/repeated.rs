//! Finds keys that an object gives twice, because the last value alone is read.

use std::collections::BTreeSet;

use satchel_importer::{Arena, JsonError, Parser, warnings::shortened};

/// Keys that are reported for one request; one is enough to doubt its source.
const MAX_KEYS: usize = 8;

/// An object or a list that is open.
enum Open<'a> {
    Object(BTreeSet<&'a str>),
    List,
}

/// The keys that any object in the JSON text gives twice.
pub(crate) fn keys(text: &str) -> BTreeSet<String> {
    let (arena, mut found) = (Arena::new(), BTreeSet::new());
    // A text that is not JSON is reported where it is read.
    let (Ok(()) | Err(_)) = walk(&mut Parser::new(text, &arena), &mut found);
    found
}

/// The words of a warning about a key.
pub(crate) fn message(key: &str) -> String {
    format!("an object gives the key {key:?} twice; the last value is read")
}

fn walk(json: &mut Parser<'_>, found: &mut BTreeSet<String>) -> Result<(), JsonError> {
    let mut open: Vec<Open<'_>> = Vec::new();
    while found.len() < MAX_KEYS {
        if json.enter_object()? {
            open.push(Open::Object(BTreeSet::new()));
        } else if json.enter_array()? {
            open.push(Open::List);
        } else {
            json.skip_value()?;
        }
        if !go_on(json, &mut open, found)? {
            break;
        }
    }
    Ok(())
}

/// Goes to the next value. False at the end of the text.
fn go_on<'a>(
    json: &mut Parser<'a>,
    open: &mut Vec<Open<'a>>,
    found: &mut BTreeSet<String>,
) -> Result<bool, JsonError> {
    while let Some(innermost) = open.last_mut() {
        let more = match innermost {
            Open::List => json.item()?,
            Open::Object(seen) => match json.key()? {
                Some(key) => {
                    if !seen.insert(key) {
                        found.insert(shortened(key));
                    }
                    true
                }
                None => false,
            },
        };
        if more {
            return Ok(true);
        }
        open.pop();
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_compared_in_each_object() {
        let found = |text| keys(text).into_iter().collect::<Vec<_>>();
        assert_eq!(found(r#"{"a":[{"b":1,"c":{"b":2,"a":0}},{"b":3}],"d":{"a":"a"}}"#), [""; 0]);
        assert_eq!(found(r#"{"a":[{"b":1,"b":{}}],"d":{"c":1,"c":"x"},"a":0}"#), ["a", "b", "c"]);
        assert_eq!(found(r#"{"a":1,"a":"#), ["a"]);
    }
}
