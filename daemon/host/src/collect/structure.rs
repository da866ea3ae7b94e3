//! Repairs the message tree of a conversation: ids become unique, and no message is its own ancestor.

use std::collections::HashMap;

use satchel_pam::record::{ConversationRecord, MessageRecord, RecordKind, Skip, Warning};

/// The problems that were found.
#[derive(Debug, Default)]
pub(super) struct Faults {
    pub(super) skips: Vec<Skip>,
    pub(super) warnings: Vec<Warning>,
}

/// Drops the later of two messages with the same id, and makes one message of each cycle a root. It takes time linear
/// in the number of messages and does not recurse: hostile exports have chains of 10^5 messages.
pub(super) fn repair(conversation: &mut ConversationRecord) -> Faults {
    let mut faults = Faults::default();
    let mut tree = Tree::of(&conversation.messages);
    if tree.repeated.contains(&true) {
        drop_repeated(conversation, tree.repeated, &mut faults);
        tree = Tree::of(&conversation.messages);
    }
    for message in cycle_heads(&tree.parents) {
        cut(conversation, message, &mut faults);
    }
    faults
}

/// The message tree, read from the ids.
struct Tree {
    /// For each message, whether an earlier message has the same id.
    repeated: Vec<bool>,
    /// For each message, the index of its parent; `None` for a root or if the parent is missing.
    parents: Vec<Option<usize>>,
}

impl Tree {
    fn of(messages: &[MessageRecord]) -> Self {
        let mut places = HashMap::with_capacity(messages.len());
        let numbered = messages.iter().enumerate();
        let repeated =
            numbered.map(|(place, message)| places.insert(message.id.as_str(), place).is_some()).collect();
        let parents =
            messages.iter().map(|message| places.get(message.parent.as_deref()?).copied()).collect();
        Self { repeated, parents }
    }
}

fn drop_repeated(conversation: &mut ConversationRecord, repeated: Vec<bool>, faults: &mut Faults) {
    let locator = &conversation.locator;
    let mut repeated = repeated.into_iter();
    conversation.messages.retain(|message| {
        let keep = !repeated.next().unwrap_or_default();
        if !keep {
            faults.skips.push(Skip {
                kind: RecordKind::Message,
                locator: format!("{locator}#{}", message.id),
                reason: "another message of this conversation has the same id; the first one is kept"
                    .to_owned(),
            });
        }
        keep
    });
}

/// Returns one message of each cycle: the first of them in the export.
fn cycle_heads(parents: &[Option<usize>]) -> Vec<usize> {
    // For each message, the start of the walk that reached it first. Each message is visited once.
    let mut reached_by = vec![None; parents.len()];
    let mut heads = Vec::new();
    for start in 0..parents.len() {
        let mut next = Some(start);
        while let Some(place) = next {
            match reached_by[place] {
                None => {
                    reached_by[place] = Some(start);
                    next = parents[place];
                }
                Some(walk) => {
                    if walk == start {
                        heads.push(first_of_cycle(parents, place));
                    }
                    next = None;
                }
            }
        }
    }
    heads
}

fn first_of_cycle(parents: &[Option<usize>], member: usize) -> usize {
    let mut first = member;
    let mut next = parents[member];
    while let Some(place) = next.filter(|place| *place != member) {
        first = first.min(place);
        next = parents[place];
    }
    first
}

fn cut(conversation: &mut ConversationRecord, place: usize, faults: &mut Faults) {
    let message = &mut conversation.messages[place];
    let parent = message.parent.take().unwrap_or_default();
    let problem = if parent == message.id {
        "this message named itself as its parent; it is read as a root".to_owned()
    } else {
        format!("this message was its own ancestor, by its parent \"{parent}\"; it is read as a root")
    };
    faults
        .warnings
        .push(Warning { locator: format!("{}#{}", conversation.locator, message.id), message: problem });
}

#[cfg(test)]
mod tests {
    use satchel_pam::conversation::Role;

    use super::*;

    fn conversation(pairs: &[(&str, Option<&str>)]) -> ConversationRecord {
        let messages = pairs.iter().map(|(id, parent)| message(id, *parent)).collect();
        ConversationRecord { id: "c".to_owned(), locator: "l".to_owned(), messages, ..Default::default() }
    }

    fn message(id: &str, parent: Option<&str>) -> MessageRecord {
        MessageRecord {
            id: id.to_owned(),
            provider_message_id: None,
            role: Role::User,
            content: None,
            created_at: None,
            parent: parent.map(str::to_owned),
            model: None,
            is_thought: false,
            token_count: None,
            attachments: Vec::new(),
            citations: Vec::new(),
            tool_calls: Vec::new(),
            raw_metadata: None,
        }
    }

    fn shape(conversation: &ConversationRecord) -> Vec<(&str, Option<&str>)> {
        conversation.messages.iter().map(|message| (message.id.as_str(), message.parent.as_deref())).collect()
    }

    #[test]
    fn a_sound_tree_stays() {
        let tree = [("a", None), ("c", Some("b")), ("b", Some("a")), ("d", Some("absent"))];
        let mut conversation = conversation(&tree);
        let faults = repair(&mut conversation);
        assert!(faults.skips.is_empty() && faults.warnings.is_empty());
        assert_eq!(shape(&conversation), tree);
    }

    #[test]
    fn the_first_of_two_with_one_id_is_kept() {
        let mut conversation = conversation(&[("a", None), ("b", Some("a")), ("a", Some("b")), ("b", None)]);
        let faults = repair(&mut conversation);
        assert_eq!(shape(&conversation), [("a", None), ("b", Some("a"))]);
        assert_eq!(faults.skips.iter().map(|skip| skip.locator.as_str()).collect::<Vec<_>>(), ["l#a", "l#b"]);
        assert!(faults.warnings.is_empty());
    }

    #[test]
    fn cycles_are_cut_at_their_first_message() {
        let pairs =
            [("x", Some("c")), ("a", Some("a")), ("c", Some("b")), ("b", Some("d")), ("d", Some("c"))];
        let mut conversation = conversation(&pairs);
        let faults = repair(&mut conversation);
        let wanted = [("x", Some("c")), ("a", None), ("c", None), ("b", Some("d")), ("d", Some("c"))];
        assert_eq!(shape(&conversation), wanted);
        let mut messages: Vec<&str> =
            faults.warnings.iter().map(|warning| warning.locator.as_str()).collect();
        messages.sort_unstable();
        assert_eq!(messages, ["l#a", "l#c"]);
    }

    #[test]
    fn a_cycle_of_a_hundred_thousand_is_cut_once() {
        let count = 100_000;
        let messages =
            (0..count).map(|at| message(&at.to_string(), Some(&((at + 1) % count).to_string()))).collect();
        let mut conversation = ConversationRecord { messages, ..Default::default() };
        let faults = repair(&mut conversation);
        assert_eq!(faults.warnings.len(), 1);
        assert_eq!(conversation.messages[0].parent, None);
    }
}
