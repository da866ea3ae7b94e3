//! The API's answers to saved conversations, and the conversations that they belong to.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::{Conversation, ImportError, Leftover, Sink};

use crate::raw;

/// Answers that are remembered; more are emitted as they come, without looking for their conversations.
const MAX_ANSWERS: usize = 100_000;

/// An answer, kept until its conversation is found.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    pub(super) conversation: String,
    session: Option<String>,
    pub(super) created: Option<i64>,
    count: Option<u64>,
    /// Its other fields, as a JSON object.
    pub(super) rest: Option<String>,
    locator: String,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Nothing was found that it belongs to.
    #[default]
    Open,
    /// The conversation stands in the export.
    Full,
    /// What was sent to be saved stands in the export.
    Sent,
}

/// What was found for a conversation.
pub(super) enum Match {
    None,
    Answer(Answer),
    /// It is what was sent to be saved, and the conversation that was saved is there too.
    InFull(Answer),
}

/// The answers by conversation.
#[derive(Debug, Default)]
pub(super) struct Answers {
    all: BTreeMap<String, Answer>,
    by_session: BTreeMap<String, Vec<String>>,
}

impl Answers {
    /// Remembers an answer; gives it back where there are more than can be real.
    pub(super) fn add(&mut self, raw: raw::Answer<'_>, locator: &str) -> Result<Option<Answer>, ImportError> {
        let conversation =
            raw.conversation.ok_or_else(|| ImportError::malformed("it does not name the conversation"))?;
        let answer = Answer {
            conversation: conversation.to_owned(),
            session: raw.session.map(ToOwned::to_owned),
            created: raw.created,
            count: raw.count,
            rest: raw.rest.into_json().map(Cow::into_owned),
            locator: locator.to_owned(),
            state: State::Open,
        };
        if self.all.len() >= MAX_ANSWERS {
            return Ok(Some(answer));
        }
        let fresh = self.all.insert(conversation.to_owned(), answer).is_none();
        if let Some(session) = raw.session.filter(|_| fresh) {
            self.by_session.entry(session.to_owned()).or_default().push(conversation.to_owned());
        }
        Ok(None)
    }

    /// The answer to the conversation with this id.
    pub(super) fn of_conversation(&mut self, id: &str) -> Match {
        let Some(answer) = self.all.get_mut(id) else { return Match::None };
        answer.state = State::Full;
        Match::Answer(answer.clone())
    }

    /// The answer to what was sent in this session: the one that counts as many messages, if it is the only one.
    pub(super) fn of_request(&mut self, session: Option<&str>, messages: usize) -> Match {
        let ids =
            session.and_then(|session| self.by_session.get(session)).map(Vec::as_slice).unwrap_or_default();
        let fits = |id: &&String| {
            let count = self.all.get(*id).map(|answer| (answer.count, answer.state));
            count.is_some_and(|(count, state)| {
                state != State::Sent && count.is_none_or(|count| count == messages as u64)
            })
        };
        let mut fitting = ids.iter().filter(fits);
        let (Some(id), None) = (fitting.next().cloned(), fitting.next()) else { return Match::None };
        match self.all.get_mut(&id) {
            Some(answer) if answer.state == State::Full => Match::InFull(answer.clone()),
            Some(answer) => {
                answer.state = State::Sent;
                Match::Answer(answer.clone())
            }
            None => Match::None,
        }
    }

    /// Those whose conversation was not found, in the order of their ids.
    pub(super) fn unmatched(&mut self) -> impl Iterator<Item = Answer> + use<> {
        std::mem::take(&mut self.all).into_values().filter(|answer| answer.state == State::Open)
    }
}

impl Answer {
    /// The conversation as far as its answer tells.
    pub(super) fn emit(&self, version: &'static str, sink: &mut Sink) -> Result<(), ImportError> {
        sink.warn(&self.locator, super::NO_MESSAGES);
        let mut rest = Leftover::default();
        if let Some(session) = &self.session {
            rest.add_text("session_id", session);
        }
        if let Some(answer) = &self.rest {
            rest.add_json("save_answer", answer);
        }
        let conversation = Conversation {
            id: self.conversation.as_str().into(),
            provider_conversation_id: Some(self.conversation.as_str().into()),
            export_format_version: Some(version.into()),
            created_at: self.created,
            raw_metadata: rest.into_json(),
            locator: self.locator.as_str().into(),
            ..Conversation::default()
        };
        sink.conversation(&conversation, &[])
    }
}
