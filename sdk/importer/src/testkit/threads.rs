//! What is said in conversations, in the order in which messages answer one another.

use std::collections::BTreeMap;

use satchel_pam::{
    conversation::Content,
    record::{ConversationRecord, Line, MessageRecord},
};

use super::{Importer, produce};
use crate::{Bundle, ImportError};

/// What an importer makes of one file.
#[derive(Debug, PartialEq, Eq)]
pub struct Threads {
    /// The texts of each conversation from its root on, each with the first that answers it.
    pub said: Vec<Vec<String>>,
    /// The messages of all warnings.
    pub warnings: Vec<String>,
}

/// Reads one file by `T`.
///
/// # Errors
/// When it cannot be read.
pub fn threads<T: Importer>(name: &str, content: &str) -> Result<Threads, ImportError> {
    let produced = produce::<T>(&Bundle::from_files([(name, content)]))?;
    let mut threads = Threads { said: Vec::new(), warnings: Vec::new() };
    for line in produced.exports.into_iter().flat_map(|export| export.lines) {
        match line {
            Line::Conversation(conversation) => threads.said.push(thread(&conversation)),
            Line::Warning(warning) => threads.warnings.push(warning.message),
            _ => {}
        }
    }
    Ok(threads)
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

fn text(message: &MessageRecord) -> String {
    match &message.content {
        Some(Content { text: Some(text), .. }) => text.clone(),
        Some(Content { parts, .. }) => {
            parts.iter().filter_map(|part| part.text.as_deref()).collect::<Vec<_>>().join("\n")
        }
        None => String::new(),
    }
}
