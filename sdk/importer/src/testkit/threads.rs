//! What is said in conversations, in the order in which messages answer one another.

use std::collections::BTreeMap;

use satchel_pam::record::{ConversationRecord, Line, MessageRecord};

use super::{Importer, conversations, produce, text, warnings};
use crate::{Bundle, ImportError};

/// What an importer makes of one file.
#[derive(Debug, PartialEq, Eq)]
pub struct Threads {
    /// The texts of each conversation from its root on, each with the first that answers it.
    pub said: Vec<Vec<String>>,
    /// The messages of all warnings.
    pub warnings: Vec<String>,
}

impl Threads {
    /// Checks that there is one conversation with the texts `said`, and the warnings.
    ///
    /// # Panics
    /// If there is anything else.
    pub fn check(&self, said: &[&str], warnings: &[&str]) {
        assert_eq!(self.said, [said]);
        assert_eq!(self.warnings, warnings);
    }
}

/// Reads one file by `T`.
///
/// # Errors
/// When it cannot be read.
pub fn threads<T: Importer>(name: &str, content: &str) -> Result<Threads, ImportError> {
    let produced = produce::<T>(&Bundle::from_files([(name, content)]))?;
    let lines: Vec<Line> = produced.exports.into_iter().flat_map(|export| export.lines).collect();
    Ok(Threads {
        said: conversations(&lines).into_iter().map(thread).collect(),
        warnings: warnings(&lines).into_iter().map(|warning| warning.message.clone()).collect(),
    })
}

fn thread(conversation: &ConversationRecord) -> Vec<String> {
    let mut answers: BTreeMap<Option<&str>, &MessageRecord> = BTreeMap::new();
    for message in &conversation.messages {
        answers.entry(message.parent.as_deref()).or_insert(message);
    }
    let mut said = Vec::new();
    let mut next = answers.get(&None);
    while let Some(message) = next.filter(|_| said.len() < conversation.messages.len()) {
        said.push(text(message));
        next = answers.get(&Some(message.id.as_str()));
    }
    said
}
