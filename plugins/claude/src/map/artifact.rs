//! An artifact as a conversation: its versions one after the other, and what people wrote about the one that is shown.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use satchel_importer::{
    Attachment, AttachmentKind, Content, Conversation, Message, Participant, Role, Source,
    address::unsigned_json, names, natural_key,
};

use crate::raw::{Artifact, Comment, Thread, Version};

/// The files beside the description of an artifact.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    /// Their names in the export.
    pub(crate) files: Vec<String>,
    /// The folder of the artifact, with its final `/`.
    pub(crate) folder: String,
}

/// Maps an artifact; a text if it is none.
pub(crate) fn records<'a>(
    mut artifact: Artifact<'a>,
    threads: Vec<Thread<'a>>,
    beside: &Beside,
    version: &'static str,
    locator: &str,
) -> Result<(Conversation<'a>, Vec<Message<'a>>), &'static str> {
    let Some(id) = artifact.id else { return Err("the artifact has no id") };
    let shown =
        artifact.versions.iter().rfind(|version| version.id.is_some() && version.id == artifact.active);
    let title = shown.or(artifact.versions.last()).and_then(|version| version.title);
    let created = artifact.versions.iter().filter_map(|version| version.created).min();
    let active = shown.and(artifact.active);
    if let (None, Some(missing)) = (active, artifact.active) {
        artifact.rest.add_text("active_version", missing);
    }
    let mut messages = versions(artifact.versions, beside);
    place_others(&mut messages, active, beside);
    let root = messages.iter().rfind(|message| active.is_none_or(|active| message.id == active));
    let root = root.map(|message| message.id.clone());
    let mut keys = BTreeMap::new();
    messages.extend(threads.into_iter().flat_map(|thread| comments(thread, root.as_ref(), &mut keys)));
    let account = artifact.owner.map(Cow::Borrowed);
    let participant = |account: &Cow<'a, str>| Participant {
        role: Role::User,
        name: None,
        provider_id: Some(account.clone()),
    };
    let id: Cow<'a, str> = format!("artifact:{id}").into();
    let conversation = Conversation {
        id: id.clone(),
        provider_conversation_id: Some(id),
        participants: account.iter().map(participant).collect(),
        account,
        export_format_version: Some(version.into()),
        title: title.map(Cow::Borrowed),
        created_at: created.or(artifact.updated),
        updated_at: artifact.updated,
        tags: vec!["artifact".into()],
        current: active.map(Cow::Borrowed),
        raw_metadata: artifact.rest.into_json().map(unsigned_json),
        locator: Cow::Owned(locator.to_owned()),
        ..Conversation::default()
    };
    Ok((conversation, messages))
}

fn versions<'a>(versions: Vec<Version<'a>>, beside: &Beside) -> Vec<Message<'a>> {
    let mut messages: Vec<Message<'a>> = Vec::with_capacity(versions.len());
    for mut version in versions {
        let parent = messages.last().map(|message| message.id.clone());
        let created = version.created.map(|time| time.to_string());
        let id = version.id.map_or_else(
            || natural_key(&[Some("version"), version.title, created.as_deref()]).into(),
            Cow::Borrowed,
        );
        if messages.iter().any(|message| message.id == id) {
            continue;
        }
        if let Some(title) = version.title {
            version.rest.add_text("title", title);
        }
        messages.push(Message {
            attachments: version.id.map(|id| files_of(id, beside)).unwrap_or_default(),
            id,
            provider_message_id: version.id.map(Cow::Borrowed),
            role: Role::Assistant,
            content: version.description.map(|text| Content::Text(text.into())),
            created_at: version.created,
            parent,
            unread: version.rest.unread().map(Cow::Borrowed),
            raw_metadata: version.rest.into_json().map(unsigned_json),
            ..Message::default()
        });
    }
    messages
}

/// The files of one version: `versions/<id>.html`, or all in `versions/<id>/`.
fn files_of<'a>(version: &str, beside: &Beside) -> Vec<Attachment<'a>> {
    let start = format!("{}versions/{version}", beside.folder);
    let own = |path: &&String| {
        path.strip_prefix(&start).is_some_and(|rest| rest.starts_with('/') || is_ending(rest))
    };
    beside.files.iter().filter(own).map(|path| attachment(path)).collect()
}

fn is_ending(rest: &str) -> bool {
    rest.strip_prefix('.').is_some_and(|ending| !ending.contains(['.', '/']))
}

/// Files that are of no version belong to what is shown.
fn place_others<'a>(messages: &mut Vec<Message<'a>>, active: Option<&str>, beside: &Beside) {
    let attached = messages.iter().flat_map(|message| &message.attachments);
    let placed: BTreeSet<&str> = attached
        .filter_map(|known| if let Some(Source::Path(path)) = &known.source { Some(&**path) } else { None })
        .collect();
    let others = beside.files.iter().filter(|path| !placed.contains(path.as_str()));
    let others: Vec<Attachment<'a>> = others.map(|path| attachment(path)).collect();
    if others.is_empty() {
        return;
    }
    let at = messages.iter().position(|message| Some(&*message.id) == active);
    let at = at.or(messages.len().checked_sub(1));
    match at.and_then(|at| messages.get_mut(at)) {
        Some(message) => message.attachments.extend(others),
        None => messages.push(Message {
            id: "files".into(),
            role: Role::Assistant,
            attachments: others,
            ..Message::default()
        }),
    }
}

fn attachment<'a>(path: &str) -> Attachment<'a> {
    let (_, name) = names::split(path);
    let mime = [("html", "text/html"), ("md", "text/markdown"), ("json", "application/json")]
        .into_iter()
        .find(|(ending, _)| names::ends_in(name, ending));
    Attachment {
        kind: AttachmentKind::of(None, Some(name)),
        name: Some(name.to_owned().into()),
        mime_type: mime.map(|(_, mime)| mime.into()),
        source: Some(Source::Path(path.to_owned().into())),
        ..Attachment::default()
    }
}

/// Each comment answers the one before, the first one the version that is shown.
///
/// `keys` counts the threads of one key.
fn comments<'a>(
    mut thread: Thread<'a>,
    root: Option<&Cow<'a, str>>,
    keys: &mut BTreeMap<String, usize>,
) -> Vec<Message<'a>> {
    let about = thread.rest.into_json().map(unsigned_json);
    let mut parent = root.cloned();
    let mut messages = Vec::with_capacity(thread.comments.len());
    let first = thread.comments.first().and_then(|comment| comment.text);
    let started = thread.created.map(|time| time.to_string());
    let mut key = natural_key(&[Some("thread"), started.as_deref(), first]);
    let count = keys.entry(key.clone()).or_default();
    *count += 1;
    if *count > 1 {
        key = format!("{key}:{count}");
    }
    for (index, Comment { text, created, mut rest }) in
        std::mem::take(&mut thread.comments).into_iter().enumerate()
    {
        if let Some(about) = about.as_deref().filter(|_| index == 0) {
            rest.add_json("thread", about);
        }
        let id: Cow<'a, str> = format!("{key}:{index}").into();
        messages.push(Message {
            id: id.clone(),
            role: Role::User,
            content: text.map(|text| Content::Text(text.into())),
            created_at: created.or(thread.created),
            parent: parent.replace(id),
            unread: rest.unread().map(Cow::Borrowed),
            raw_metadata: rest.into_json().map(unsigned_json),
            ..Message::default()
        });
    }
    messages
}
