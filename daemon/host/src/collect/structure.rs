//! Repairs the message tree of a conversation: ids become unique, and no message is its own ancestor.

use std::collections::HashMap;

use satchel_pam::record::{ConversationRecord, MessageRecord, RecordKind, Skip, Warning};

/// The problems that were found.
#[derive(Debug, Default)]
pub(super) struct StructureProblems {
    pub(super) skips: Vec<Skip>,
    pub(super) warnings: Vec<Warning>,
}

/// Drops the later of two messages with the same id, and makes one message of each cycle a root. It takes time linear
/// in the number of messages and does not recurse: hostile exports have chains of 10^5 messages.
pub(super) fn repair(conversation: &mut ConversationRecord) -> StructureProblems {
    let mut problems = StructureProblems::default();
    let mut tree = ParentIndex::of(&conversation.messages);
    if tree.repeated.contains(&true) {
        drop_repeated(conversation, tree.repeated, &mut problems);
        tree = ParentIndex::of(&conversation.messages);
    }
    for message in cycle_heads(&tree.parents) {
        cut_cycle(conversation, message, &mut problems);
    }
    problems
}

/// The parents of messages, read from the ids.
struct ParentIndex {
    /// For each message, whether an earlier message has the same id.
    repeated: Vec<bool>,
    /// For each message, the index of its parent; `None` for a root or if the parent is missing.
    parents: Vec<Option<usize>>,
}

impl ParentIndex {
    fn of(messages: &[MessageRecord]) -> Self {
        let mut indexes = HashMap::with_capacity(messages.len());
        let numbered = messages.iter().enumerate();
        let repeated =
            numbered.map(|(index, message)| indexes.insert(message.id.as_str(), index).is_some()).collect();
        let parents =
            messages.iter().map(|message| indexes.get(message.parent.as_deref()?).copied()).collect();
        Self { repeated, parents }
    }
}

fn drop_repeated(
    conversation: &mut ConversationRecord,
    repeated: Vec<bool>,
    problems: &mut StructureProblems,
) {
    let locator = &conversation.locator;
    let mut repeated = repeated.into_iter();
    conversation.messages.retain(|message| {
        let keep = !repeated.next().unwrap_or_default();
        if !keep {
            problems.skips.push(Skip {
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
        while let Some(index) = next {
            match reached_by[index] {
                None => {
                    reached_by[index] = Some(start);
                    next = parents[index];
                }
                Some(walk) => {
                    if walk == start {
                        heads.push(first_of_cycle(parents, index));
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
    while let Some(index) = next.filter(|index| *index != member) {
        first = first.min(index);
        next = parents[index];
    }
    first
}

fn cut_cycle(conversation: &mut ConversationRecord, index: usize, problems: &mut StructureProblems) {
    let message = &mut conversation.messages[index];
    let parent = message.parent.take().unwrap_or_default();
    let problem = if parent == message.id {
        "this message named itself as its parent; it is read as a root".to_owned()
    } else {
        format!("this message was its own ancestor, by its parent \"{parent}\"; it is read as a root")
    };
    problems
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
        let problems = repair(&mut conversation);
        assert!(problems.skips.is_empty() && problems.warnings.is_empty());
        assert_eq!(shape(&conversation), tree);
    }

    #[test]
    fn the_first_of_two_with_one_id_is_kept() {
        let mut conversation = conversation(&[("a", None), ("b", Some("a")), ("a", Some("b")), ("b", None)]);
        let problems = repair(&mut conversation);
        assert_eq!(shape(&conversation), [("a", None), ("b", Some("a"))]);
        assert_eq!(
            problems.skips.iter().map(|skip| skip.locator.as_str()).collect::<Vec<_>>(),
            ["l#a", "l#b"]
        );
        assert!(problems.warnings.is_empty());
    }

    #[test]
    fn cycles_are_cut_at_their_first_message() {
        let pairs =
            [("x", Some("c")), ("a", Some("a")), ("c", Some("b")), ("b", Some("d")), ("d", Some("c"))];
        let mut conversation = conversation(&pairs);
        let problems = repair(&mut conversation);
        let wanted = [("x", Some("c")), ("a", None), ("c", None), ("b", Some("d")), ("d", Some("c"))];
        assert_eq!(shape(&conversation), wanted);
        let mut messages: Vec<&str> =
            problems.warnings.iter().map(|warning| warning.locator.as_str()).collect();
        messages.sort_unstable();
        assert_eq!(messages, ["l#a", "l#c"]);
    }

    #[test]
    fn a_cycle_of_a_hundred_thousand_is_cut_once() {
        let count = 100_000;
        let messages =
            (0..count).map(|at| message(&at.to_string(), Some(&((at + 1) % count).to_string()))).collect();
        let mut conversation = ConversationRecord { messages, ..Default::default() };
        let problems = repair(&mut conversation);
        assert_eq!(problems.warnings.len(), 1);
        assert_eq!(conversation.messages[0].parent, None);
    }
}
