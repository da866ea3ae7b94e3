//! The questions that the messages of one conversation ask about files, so that a later run can ask them again.

use std::cell::RefCell;

use super::Assets;

/// One question.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Question {
    /// What is known of the file with this id?
    File(String),
    /// Where is the canvas document with this id?
    Document(String),
    /// Which file of the library is called so, in this message of this conversation?
    Named { name: String, message: String, thread: String },
}

impl Question {
    /// Its kind, and what it asks for.
    pub(crate) fn words(&self) -> Vec<&str> {
        match self {
            Self::File(id) => vec!["f", id],
            Self::Document(id) => vec!["d", id],
            Self::Named { name, message, thread } => vec!["n", name, message, thread],
        }
    }

    /// The question with these words.
    pub(crate) fn of(words: &[&str]) -> Option<Self> {
        let owned = |word: &&str| (*word).to_owned();
        match words {
            ["f", id] => Some(Self::File(owned(id))),
            ["d", id] => Some(Self::Document(owned(id))),
            ["n", name, message, thread] => {
                Some(Self::Named { name: owned(name), message: owned(message), thread: owned(thread) })
            }
            _ => None,
        }
    }
}

/// The questions of the conversation at hand.
#[derive(Debug, Default)]
pub(super) struct Asked(RefCell<Vec<Question>>);

impl Asked {
    pub(super) fn note(&self, question: Question) {
        self.0.borrow_mut().push(question);
    }
}

impl Assets<'_> {
    /// Forgets the questions of the conversation before.
    pub(crate) fn start_asking(&self) {
        self.asked.0.take();
    }

    /// What was asked since, each question once.
    pub(crate) fn questions(&self) -> Vec<Question> {
        let mut questions = self.asked.0.take();
        questions.sort();
        questions.dedup();
        questions
    }

    /// What the answer rests on, as text: two runs with the same text give the same.
    pub(crate) fn answer(&self, question: &Question) -> String {
        match question {
            Question::File(id) => {
                let found = self.find(id);
                format!("{found:?} {:?}", found.path.and_then(|path| self.size(path)))
            }
            Question::Document(id) => {
                let path = self.document(id);
                format!("{path:?} {:?}", path.and_then(|path| self.size(path)))
            }
            Question::Named { name, message, thread } => {
                format!("{:?}", self.library.named(name, message, thread))
            }
        }
    }
}
