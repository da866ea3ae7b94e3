//! Keys and evidence for records to which the provider gives no ids.

use satchel_pam::{
    hash::Sha256Digest,
    memory::ExtractionMethod,
    record::{Claim, Evidence, Item},
};

/// A key for a record without an id, in a form that no provider's id has. `parts` must be the same in every export of the
/// record: for example its account, its first time, its title and its first words.
///
/// `["ab", "c"]` and `["a", "bc"]` give different keys. `None` is the same as an empty part.
pub fn natural_key(parts: &[Option<&str>]) -> String {
    /// Longest decimal length of a part, and the colon behind it.
    const PREFIX: usize = 21;
    let length: usize = parts.iter().flatten().map(|part| part.len()).sum();
    let mut text = Vec::with_capacity(length + parts.len() * PREFIX);
    for part in parts {
        push_part(part.unwrap_or_default(), &mut text);
    }
    ["natural:", &Sha256Digest::of(&text).to_hex()].concat()
}

/// Evidence of the complete list `items` that the provider had at `at` (microseconds since the Unix epoch).
///
/// Its id is made of the contents and the time, so a list that returns to an earlier state is new evidence, and exports
/// can be imported in any order. `account`, `conversation` and `message` are `None`, and the extraction method is
/// [`ExtractionMethod::ApiExport`]; change them if the export says more.
pub fn snapshot(series: String, items: Vec<Item>, at: Option<i64>, locator: String) -> Evidence {
    Evidence {
        id: snapshot_id(&series, &items, at),
        claim: Claim::Snapshot { series, items },
        at,
        account: None,
        conversation: None,
        message: None,
        extraction_method: ExtractionMethod::ApiExport,
        locator,
    }
}

fn snapshot_id(series: &str, items: &[Item], at: Option<i64>) -> String {
    let mut text = at.map(|at| at.to_string()).unwrap_or_default().into_bytes();
    for item in items {
        text.push(b'\n');
        push_part(&item.content, &mut text);
    }
    let digest = Sha256Digest::of(&text).to_hex();
    format!("{series}#{}", digest.get(..16).unwrap_or(&digest))
}

/// Appends a part with its length in front, so that no other parts give the same text.
fn push_part(part: &str, text: &mut Vec<u8>) {
    text.extend_from_slice(part.len().to_string().as_bytes());
    text.push(b':');
    text.extend_from_slice(part.as_bytes());
}

#[cfg(test)]
mod tests {
    use satchel_pam::memory::MemoryType;

    use super::*;

    #[test]
    fn other_parts_give_another_key() {
        assert_ne!(natural_key(&[Some("ab"), Some("c")]), natural_key(&[Some("a"), Some("bc")]));
        assert_ne!(natural_key(&[Some("a"), None]), natural_key(&[None, Some("a")]));
        assert_eq!(natural_key(&[None]), natural_key(&[Some("")]));
    }

    #[test]
    fn the_id_of_a_snapshot_depends_on_its_texts_and_its_time() {
        let id = |text: &str, at| {
            snapshot("list".into(), vec![Item::new(text, MemoryType::Fact)], at, String::new()).id
        };
        assert_eq!(id("tea", Some(1)), id("tea", Some(1)));
        assert_ne!(id("tea", Some(1)), id("tea", Some(2)));
        assert_ne!(id("tea", Some(1)), id("rye", Some(1)));
        assert!(id("tea", None).starts_with("list#"));
    }
}
