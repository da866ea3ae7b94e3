//! Maps a thread to a conversation: each turn becomes a question and an answer.

use std::{borrow::Cow, collections::BTreeSet};

use satchel_importer::{
    Attachment, AttachmentKind, Content, Conversation, Message, Role, Source,
    address::{unsigned, unsigned_json},
    natural_key,
    order::{SORTED, sort_by_time},
};

use crate::raw::{Thread, Turn};

/// The records of one thread.
#[derive(Default)]
pub(crate) struct Records<'a> {
    pub(crate) conversation: Conversation<'a>,
    pub(crate) messages: Vec<Message<'a>>,
    /// Skipped turns: locator and reason.
    pub(crate) skipped: Vec<(String, &'static str)>,
    /// Locator and message.
    pub(crate) warnings: Vec<(String, String)>,
}

/// Maps the thread at `locator`.
pub(crate) fn thread<'a>(mut thread: Thread<'a>, version: &'static str, locator: &str) -> Records<'a> {
    let mut turns = std::mem::take(&mut thread.turns);
    // A turn is a question with its answer, so turns of one time keep the order of the file.
    let sorted = sort_by_time(&mut turns, |turn| (Role::User, turn.created));

    let dot = if thread.list.is_empty() { "" } else { "." };
    let locate = |at: usize| format!("{locator}{dot}{}[{at}]", thread.list);
    let mut records = Records::default();
    records.skipped.extend(thread.invalid.iter().map(|(at, reason)| (locate(*at), *reason)));
    if sorted {
        records.warnings.push((locator.to_owned(), SORTED.to_owned()));
    }
    let times = || turns.iter().flat_map(|turn| [turn.created, turn.updated]).flatten();
    let (created, updated) = (thread.created.or(times().min()), thread.updated.or(times().max()));
    let first = turns.first().and_then(|turn| turn.query);
    let id = thread.id.map_or_else(
        || natural_key(&[thread.title, created.map(|time| time.to_string()).as_deref(), first]).into(),
        Cow::Borrowed,
    );
    let mut seen = BTreeSet::new();
    for turn in turns {
        let (at, id) = (turn.index, natural_id(&turn));
        if turn.query.is_none_or(str::is_empty) && turn.answer.as_deref().is_none_or(str::is_empty) {
            records.skipped.push((locate(at), "it has neither a question nor an answer"));
        } else if !seen.insert(id.clone()) {
            records.skipped.push((locate(at), "another turn has the same id"));
        } else {
            records.warnings.extend(missing_half(&turn).map(|message| (locate(at), message)));
            push_messages(turn, &id, &mut records.messages);
        }
    }
    records.conversation = Conversation {
        id,
        provider_conversation_id: thread.id.map(Cow::Borrowed),
        export_format_version: Some(version.into()),
        title: thread.title.filter(|title| !title.trim().is_empty()).map(Cow::Borrowed),
        created_at: created,
        updated_at: updated,
        current: records.messages.last().map(|last| last.id.clone()),
        raw_metadata: thread.rest.into_json().map(unsigned_json),
        locator: Cow::Owned(locator.to_owned()),
        ..Conversation::default()
    };
    records
}

/// The warning about a turn without a question or without an answer, unless its state says that it has no answer.
fn missing_half(turn: &Turn<'_>) -> Option<String> {
    let (has, lacks) = match (blank(turn.query), blank(turn.answer.as_deref())) {
        (false, true) if !turn.unanswered => ("question", "answer"),
        (true, false) => ("answer", "question"),
        _ => return None,
    };
    Some(if turn.candidates.is_empty() {
        format!("its {has} has no {lacks}")
    } else {
        let names: Vec<String> = turn.candidates.iter().map(|name| format!("{name:?}")).collect();
        format!(
            "no {lacks} to its {has} was found; {} may hold it and stays in the metadata",
            names.join(", ")
        )
    })
}

fn blank(text: Option<&str>) -> bool {
    text.is_none_or(|text| text.trim().is_empty())
}

/// Appends the question and the answer of a turn; the answer gets the remaining fields.
fn push_messages<'a>(mut turn: Turn<'a>, key: &str, messages: &mut Vec<Message<'a>>) {
    let query = turn.query.filter(|text| !text.is_empty());
    let answer = turn.answer.take().filter(|text| !text.is_empty());
    let mut rest = turn.rest.into_json().map(unsigned_json);
    let mut attachments: Vec<_> = turn.attachments.iter().copied().map(attachment).collect();
    let base = |part: &str, role, content, parent| Message {
        id: format!("{key}:{part}").into(),
        provider_message_id: turn.uuid.map(Cow::Borrowed),
        role,
        content: Some(Content::Text(content)),
        created_at: turn.created,
        parent,
        ..Message::default()
    };
    let last = |messages: &[Message<'a>]| messages.last().map(|last| last.id.clone());
    if let Some(query) = query {
        let mut message = base("query", Role::User, Cow::Borrowed(query), last(messages));
        message.attachments = std::mem::take(&mut attachments);
        if answer.is_none() {
            message.model = turn.model.map(Cow::Borrowed);
            message.citations = std::mem::take(&mut turn.citations);
            message.raw_metadata = rest.take();
        }
        messages.push(message);
    }
    if let Some(answer) = answer {
        let mut message = base("answer", Role::Assistant, answer, last(messages));
        message.model = turn.model.map(Cow::Borrowed);
        message.citations = turn.citations;
        message.unread = turn.unread.map(Cow::Borrowed);
        message.raw_metadata = rest;
        // Empty if the question has them.
        message.attachments = attachments;
        messages.push(message);
    }
}

fn attachment(url: &str) -> Attachment<'_> {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let name = path.rsplit('/').next().filter(|name| name.contains('.') && path.contains("://"));
    Attachment {
        kind: AttachmentKind::of(None, name),
        name: name.map(Cow::Borrowed),
        source: Some(Source::Uri(unsigned(url))),
        ..Attachment::default()
    }
}

/// The uuid of a turn, else an id derived from what other copies of the thread have too.
fn natural_id(turn: &Turn<'_>) -> String {
    let created = turn.created.map(|time| time.to_string());
    turn.uuid.map_or_else(
        || natural_key(&[created.as_deref(), turn.query, turn.answer.as_deref()]),
        ToOwned::to_owned,
    )
}
