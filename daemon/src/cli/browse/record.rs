//! A record that is read: a conversation with one of its branches, or a memory.

use std::collections::BTreeSet;

use satchel_proto::v1::{Conversation, Memory, Message};

use crate::cli::conversations::branches::Branches;

/// A record as the daemon returned it.
#[derive(Debug)]
pub(super) enum Record {
    Conversation(Box<ConversationRecord>),
    Memory(Box<MemoryRecord>),
}

/// A conversation with all of its messages.
#[derive(Debug)]
pub(super) struct ConversationRecord {
    pub(super) conversation: Conversation,
    /// Parents first.
    tree: Vec<Message>,
    pub(super) branches: Branches,
    /// The ids of the branch that is shown.
    path: BTreeSet<String>,
}

/// A memory, and whom its document is from if it is not trusted.
#[derive(Debug)]
pub(super) struct MemoryRecord {
    pub(super) memory: Memory,
    pub(super) untrusted: String,
}

impl ConversationRecord {
    /// Returns the branch that the person saw last if it has the message or none is named, otherwise the newest
    /// branch through the message.
    pub(super) fn new(conversation: Conversation, tree: Vec<Message>, message: Option<&str>) -> Self {
        let branches = Branches::new(&tree);
        let mut path = branches.active_path();
        let through = match message {
            Some(message) if path.contains(message) => None,
            // The message may have been withdrawn since it was indexed.
            Some(message) if tree.iter().any(|one| one.id == message) => Some(message),
            _ if path.is_empty() => tree.last().map(|last| last.id.as_str()),
            _ => None,
        };
        if let Some(Ok(other)) = through.map(|message| branches.path_through(message)) {
            path = other;
        }
        Self { conversation, tree, branches, path }
    }

    /// Shows the branch through a message.
    pub(super) fn show_branch(&mut self, message: &str) {
        if let Ok(path) = self.branches.path_through(message) {
            self.path = path;
        }
    }

    /// Returns the messages of the branch that is shown, from its root.
    pub(super) fn branch(&self) -> impl Iterator<Item = &Message> {
        self.tree.iter().filter(|message| self.path.contains(&message.id))
    }
}
