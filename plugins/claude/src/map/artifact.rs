//! Maps an artifact to a conversation: its versions in order, and the comments below the active one.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use satchel_importer::{
    Attachment, AttachmentKind, Content, Conversation, Message, Role, Source, address::unsigned_json, names,
    natural_key,
};

use super::participants;
use crate::raw::{Artifact, Comment, Thread, Version};

/// The files beside the description of an artifact.
#[derive(Debug, Default)]
pub(crate) struct ArtifactFiles {
    pub(crate) paths: Vec<String>,
    /// The folder of the artifact, with its final `/`.
    pub(crate) folder: String,
}

/// Maps an artifact; the error says why it is none.
pub(crate) fn map<'a>(
    mut artifact: Artifact<'a>,
    threads: Vec<Thread<'a>>,
    files: &ArtifactFiles,
    version: &'static str,
    locator: &str,
) -> Result<(Conversation<'a>, Vec<Message<'a>>), &'static str> {
    let Some(id) = artifact.id else { return Err("the artifact has no id") };
    let active_version =
        artifact.versions.iter().rfind(|version| version.id.is_some() && version.id == artifact.active);
    let title = active_version.or(artifact.versions.last()).and_then(|version| version.title);
    let created = artifact.versions.iter().filter_map(|version| version.created).min();
    let active = active_version.and(artifact.active);
    if let (None, Some(missing)) = (active, artifact.active) {
        artifact.rest.add_text("active_version", missing);
    }
    let mut messages = versions(artifact.versions, files);
    attach_others(&mut messages, active, files);
    let root = messages.iter().rfind(|message| active.is_none_or(|active| message.id == active));
    let root = root.map(|message| message.id.clone());
    let mut keys = BTreeMap::new();
    messages.extend(threads.into_iter().flat_map(|thread| comments(thread, root.as_ref(), &mut keys)));
    let id: Cow<'a, str> = format!("artifact:{id}").into();
    let conversation = Conversation {
        id: id.clone(),
        provider_conversation_id: Some(id),
        participants: participants(artifact.owner, &[]),
        account: artifact.owner.map(Cow::Borrowed),
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

fn versions<'a>(versions: Vec<Version<'a>>, files: &ArtifactFiles) -> Vec<Message<'a>> {
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
            attachments: version.id.map(|id| files_of(id, files)).unwrap_or_default(),
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
fn files_of<'a>(version: &str, files: &ArtifactFiles) -> Vec<Attachment<'a>> {
    let start = format!("{}versions/{version}", files.folder);
    let own = |path: &&String| {
        path.strip_prefix(&start).is_some_and(|rest| rest.starts_with('/') || is_extension(rest))
    };
    files.paths.iter().filter(own).map(|path| attachment(path)).collect()
}

fn is_extension(rest: &str) -> bool {
    rest.strip_prefix('.').is_some_and(|extension| !extension.contains(['.', '/']))
}

/// Attaches files of no version to the active version.
fn attach_others<'a>(messages: &mut Vec<Message<'a>>, active: Option<&str>, files: &ArtifactFiles) {
    let attached = messages.iter().flat_map(|message| &message.attachments);
    let placed: BTreeSet<&str> = attached
        .filter_map(|known| if let Some(Source::Path(path)) = &known.source { Some(&**path) } else { None })
        .collect();
    let others = files.paths.iter().filter(|path| !placed.contains(path.as_str()));
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
        .find(|(extension, _)| names::has_extension(name, extension));
    Attachment {
        kind: AttachmentKind::of(None, Some(name)),
        name: Some(name.to_owned().into()),
        mime_type: mime.map(|(_, mime)| mime.into()),
        source: Some(Source::Path(path.to_owned().into())),
        ..Attachment::default()
    }
}

/// Maps a thread: each comment replies to the one before, the first one to `root`. `keys` counts the threads of one key.
fn comments<'a>(
    thread: Thread<'a>,
    root: Option<&Cow<'a, str>>,
    keys: &mut BTreeMap<String, usize>,
) -> Vec<Message<'a>> {
    let thread_fields = thread.rest.into_json().map(unsigned_json);
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
    for (index, Comment { text, created, mut rest }) in thread.comments.into_iter().enumerate() {
        if let Some(fields) = thread_fields.as_deref().filter(|_| index == 0) {
            rest.add_json("thread", fields);
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
