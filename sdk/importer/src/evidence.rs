//! What importers build evidence from, where the provider gives no ids.

use satchel_pam::{
    hash::Sha256Digest,
    memory::ExtractionMethod,
    record::{Claim, Evidence, Item},
};

/// A key for a record to which the provider gives no id, made of what later exports of the same record hold too: its
/// account, its first time, its title, its first words. No provider's id looks like it.
///
/// Parts are told apart: `["ab", "c"]` and `["a", "bc"]` give different keys, an absent part counts as an empty one.
pub fn natural_key(parts: &[Option<&str>]) -> String {
    /// Digits of a length, and what parts it from the text.
    const MARK: usize = 21;
    let length: usize = parts.iter().flatten().map(|part| part.len()).sum();
    let mut text = Vec::with_capacity(length + parts.len() * MARK);
    for part in parts {
        push_part(part.unwrap_or_default(), &mut text);
    }
    ["natural:", &Sha256Digest::of(&text).to_hex()].concat()
}

/// Evidence that a list was seen as a whole at `at` (microseconds), stored by the provider.
///
/// The same list seen at the same time has the same id; a text that goes and comes back later is evidence of its own,
/// so that the order in which exports arrive does not matter. Account, conversation, message and extraction method are
/// for the caller to set.
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

/// With its length in front, so that parts cannot run into each other.
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
    fn parts_do_not_run_into_each_other() {
        assert_ne!(natural_key(&[Some("ab"), Some("c")]), natural_key(&[Some("a"), Some("bc")]));
        assert_ne!(natural_key(&[Some("a"), None]), natural_key(&[None, Some("a")]));
        assert_eq!(natural_key(&[None]), natural_key(&[Some("")]));
    }

    #[test]
    fn a_snapshot_is_known_by_its_texts_and_its_time() {
        let id = |text: &str, at| {
            snapshot("list".into(), vec![Item::new(text, MemoryType::Fact)], at, String::new()).id
        };
        assert_eq!(id("tea", Some(1)), id("tea", Some(1)));
        assert_ne!(id("tea", Some(1)), id("tea", Some(2)));
        assert_ne!(id("tea", Some(1)), id("rye", Some(1)));
        assert!(id("tea", None).starts_with("list#"));
    }
}
