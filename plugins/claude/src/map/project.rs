//! Maps a project to a conversation: PAM has no other place for files that belong to no message.

use std::{borrow::Cow, collections::BTreeSet};

use satchel_importer::{
    Attachment, AttachmentKind, Content, Conversation, Message, Participant, Role, address::unsigned_json,
    natural_key,
};

use super::files;
use crate::raw::{Document, Project};

/// The id of a project's conversation.
pub(crate) fn key(project: &Project<'_>) -> String {
    let created = project.created.map(|time| time.to_string());
    match project.uuid {
        Some(uuid) => format!("project:{uuid}"),
        None => natural_key(&[Some("project"), project.name, created.as_deref()]),
    }
}

/// Maps a project: its description and then its documents, oldest first, each a message of the person.
///
/// `rest` is the project's unread fields as JSON text. The last list holds the indices of documents with a repeated id.
pub(crate) fn map<'a>(
    project: Project<'a>,
    version: &'static str,
    rest: Option<&str>,
    locator: &str,
) -> (Conversation<'a>, Vec<Message<'a>>, Vec<usize>) {
    let id = key(&project);
    let account = project.creator.map(Cow::Borrowed);
    let participant = Participant {
        role: Role::User,
        name: project.creator_name.map(Cow::Borrowed),
        provider_id: account.clone(),
    };
    let known = account.is_some() || project.creator_name.is_some();
    let conversation = Conversation {
        provider_conversation_id: project.uuid.map(|_| id.clone().into()),
        id: id.into(),
        account,
        export_format_version: Some(version.into()),
        title: project.name.filter(|name| !name.trim().is_empty()).map(Cow::Borrowed),
        created_at: project.created,
        updated_at: project.updated,
        participants: if known { vec![participant] } else { Vec::new() },
        system_instruction: project.prompt.filter(|text| !text.trim().is_empty()).map(Cow::Borrowed),
        tags: vec!["project".into()],
        raw_metadata: rest.map(|rest| unsigned_json(rest.to_owned().into())),
        locator: Cow::Owned(locator.to_owned()),
        ..Conversation::default()
    };
    let description = project.description.filter(|text| !text.trim().is_empty());
    let mut messages: Vec<Message<'a>> = Vec::with_capacity(project.documents.len() + 1);
    messages.extend(description.map(|text| Message {
        id: "description".into(),
        role: Role::User,
        content: Some(Content::Text(text.into())),
        created_at: project.created,
        ..Message::default()
    }));
    // Sorted by time, a newer export only appends documents, so the links between the older ones stay.
    let mut documents = project.documents;
    documents.sort_by_key(|document| (document.created, document.index));
    let mut known: BTreeSet<_> = messages.iter().map(|message| message.id.clone()).collect();
    let mut repeated = Vec::new();
    for document in documents {
        let id = document_key(&document);
        if !known.insert(id.clone()) {
            repeated.push(document.index);
            continue;
        }
        let parent = messages.last().map(|message| message.id.clone());
        messages.push(message(document, id, parent));
    }
    (conversation, messages, repeated)
}

fn document_key<'a>(document: &Document<'a>) -> Cow<'a, str> {
    let created = document.created.map(|time| time.to_string());
    let natural = || natural_key(&[document.name, created.as_deref(), document.content]);
    document.uuid.map_or_else(|| natural().into(), Cow::Borrowed)
}

fn message<'a>(mut document: Document<'a>, id: Cow<'a, str>, parent: Option<Cow<'a, str>>) -> Message<'a> {
    let bytes = document.content.and_then(files::bytes);
    if let (Some(text), None) = (document.content, bytes) {
        document.rest.add_text("content", text);
    }
    let attachment = Attachment {
        kind: AttachmentKind::Document,
        name: document.name.map(Cow::Borrowed),
        mime_type: bytes.map(|_| "text/plain".into()),
        size_bytes: bytes.map(|bytes| bytes.len() as u64),
        provider_id: document.uuid.map(Cow::Borrowed),
        source: bytes.map(files::source),
        ..Attachment::default()
    };
    Message {
        id,
        provider_message_id: document.uuid.map(Cow::Borrowed),
        role: Role::User,
        created_at: document.created,
        parent,
        attachments: vec![attachment],
        raw_metadata: document.rest.into_json().map(unsigned_json),
        ..Message::default()
    }
}
