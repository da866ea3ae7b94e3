//! The API's responses to saving conversations, and the conversations that they belong to.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::{Conversation, ImportError, Leftover, Sink};

use crate::raw;

/// Responses that are held back; further ones are emitted at once, without a search for their conversations.
const MAX_RESPONSES: usize = 100_000;

/// A response, held back until its conversation is found.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingResponse {
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
    /// No conversation was found.
    #[default]
    Open,
    /// The conversation was found.
    Conversation,
    /// The request was found.
    Request,
}

/// The responses by conversation.
#[derive(Debug, Default)]
pub(super) struct Responses {
    all: BTreeMap<String, PendingResponse>,
    by_session: BTreeMap<String, Vec<String>>,
}

impl Responses {
    /// Holds a response back; returns it if there are too many.
    pub(super) fn add(
        &mut self,
        raw: raw::SaveResponse<'_>,
        locator: &str,
    ) -> Result<Option<PendingResponse>, ImportError> {
        let conversation =
            raw.conversation.ok_or_else(|| ImportError::malformed("it does not name the conversation"))?;
        let response = PendingResponse {
            conversation: conversation.to_owned(),
            session: raw.session.map(ToOwned::to_owned),
            created: raw.created,
            count: raw.count,
            rest: raw.rest.into_json().map(Cow::into_owned),
            locator: locator.to_owned(),
            state: State::Open,
        };
        if self.all.len() >= MAX_RESPONSES {
            return Ok(Some(response));
        }
        let fresh = self.all.insert(conversation.to_owned(), response).is_none();
        if let Some(session) = raw.session.filter(|_| fresh) {
            self.by_session.entry(session.to_owned()).or_default().push(conversation.to_owned());
        }
        Ok(None)
    }

    /// The response for the conversation with this id.
    pub(super) fn of_conversation(&mut self, id: &str) -> Option<PendingResponse> {
        let response = self.all.get_mut(id)?;
        response.state = State::Conversation;
        Some(response.clone())
    }

    /// The response for a request of this session: the only one with this count of messages.
    pub(super) fn of_request(&mut self, session: Option<&str>, messages: usize) -> Option<PendingResponse> {
        let ids = self.by_session.get(session?)?;
        let fits = |id: &&String| {
            let count = self.all.get(*id).map(|response| (response.count, response.state));
            count.is_some_and(|(count, state)| {
                state != State::Request && count.is_none_or(|count| count == messages as u64)
            })
        };
        let mut fitting = ids.iter().filter(fits);
        let (Some(id), None) = (fitting.next().cloned(), fitting.next()) else { return None };
        let response = self.all.get_mut(&id)?;
        if response.state == State::Open {
            response.state = State::Request;
        }
        Some(response.clone())
    }

    /// The responses whose conversation was not found, in the order of their ids.
    pub(super) fn unmatched(&mut self) -> impl Iterator<Item = PendingResponse> + use<> {
        std::mem::take(&mut self.all).into_values().filter(|response| response.state == State::Open)
    }
}

impl PendingResponse {
    pub(super) fn conversation_found(&self) -> bool {
        self.state == State::Conversation
    }

    /// Emits the conversation without messages.
    pub(super) fn emit(&self, version: &'static str, sink: &mut Sink) -> Result<(), ImportError> {
        sink.warn(&self.locator, super::NO_MESSAGES);
        let mut rest = Leftover::default();
        if let Some(session) = &self.session {
            rest.add_text("session_id", session);
        }
        if let Some(response) = &self.rest {
            rest.add_json("save_answer", response);
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
