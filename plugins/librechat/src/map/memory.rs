//! Memories that the program stored during a conversation. It attaches each change to the answer that it belongs to.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::{
    Arena, Claim, Evidence, Item, Leftover, natural_key,
    pam::{
        memory::{ExtractionMethod, MemoryType, Status},
        raw::RawObject,
    },
};

use super::object::Parts;

/// One change of a memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change<'a> {
    /// The name under which the program stores it.
    name: &'a str,
    /// The agent whose memory it is; none if all share it.
    agent: Option<&'a str>,
    /// The new text; none if the memory was deleted.
    text: Option<&'a str>,
}

/// A change, and the message that it belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dated<'a> {
    pub(super) change: Change<'a>,
    pub(super) message: &'a str,
    pub(super) at: Option<i64>,
    /// The time of its message, or else of the last message before it in the file that has one.
    pub(super) after: Option<i64>,
}

/// The change that an attachment describes, which stays where it is.
pub(super) fn read<'a>(file: &Parts<'a>, arena: &'a Arena) -> Option<Change<'a>> {
    let memory = Parts::of(file.get("memory"), arena)?;
    let field = |key: &str| memory.get(key).nonempty_text();
    let text = match field("type")? {
        "update" => Some(field("value").filter(|text| !text.trim().is_empty())?),
        "delete" => None,
        _ => return None,
    };
    Some(Change { name: field("key")?, agent: field("agentId"), text })
}

/// A statement for each text that was stored. A text that a later change of the same conversation replaced or deleted is archived.
pub(super) fn evidence(mut changes: Vec<Dated<'_>>, conversation: &str, locator: &str) -> Vec<Evidence> {
    // Messages that were sent just before the export have no time yet; a later export must give the same order.
    changes.sort_by_key(|dated| dated.after);
    let mut numbers: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut numbered = Vec::with_capacity(changes.len());
    for dated in changes {
        let number = numbers.entry((dated.message, dated.change.name)).or_default();
        numbered.push((dated, *number));
        *number += 1;
    }
    let mut changed_later = BTreeSet::new();
    let mut found = Vec::new();
    for (dated, number) in numbered.into_iter().rev() {
        let Dated { change, message, at, .. } = dated;
        let newest = changed_later.insert((change.agent, change.name));
        let Some(text) = change.text else { continue };
        let mut item = Item::new(text, MemoryType::Fact);
        item.status = Some(if newest { Status::Active } else { Status::Archived });
        item.scope = change.agent.map(ToOwned::to_owned);
        item.metadata = metadata(change.name);
        let number = number.to_string();
        let key = [conversation, message, "memory", change.name, number.as_str()].map(Some);
        found.push(Evidence {
            // The name may be longer than an id.
            id: natural_key(&key),
            claim: Claim::Statement(item),
            at,
            account: None,
            conversation: Some(conversation.to_owned()),
            message: Some(message.to_owned()),
            extraction_method: ExtractionMethod::ApiExport,
            locator: format!("{locator}#{message}"),
        });
    }
    found.reverse();
    found
}

fn metadata(name: &str) -> Option<RawObject> {
    let mut rest = Leftover::default();
    rest.add_text("key", name);
    RawObject::parse(rest.into_json()?.into_owned()).ok()
}
