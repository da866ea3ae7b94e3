//! Maps a list of entries to a conversation, and an entry to a message.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use satchel_importer::{
    Arena, Attachment, AttachmentKind, Content, Conversation, Message, Participant, Role, Source,
    address::{unsigned, unsigned_json},
    names::split,
    warnings::shortened,
};

use crate::{
    order::{Order, Place},
    raw::{Entry, is_words},
};

/// The title of the conversation, which Snapchat does not let people change.
const TITLE: &str = "My AI";

/// The photos of an export, by name.
#[derive(Debug, Default)]
pub(crate) struct Photos<'b> {
    by_name: BTreeMap<&'b str, &'b str>,
    used: BTreeSet<&'b str>,
    /// How many entries name a photo that is not there, and the first name.
    missing: u64,
    first_missing: Option<String>,
}

impl<'b> Photos<'b> {
    pub(crate) fn new(paths: &'b [String]) -> Self {
        let by_name = paths.iter().map(|path| (split(path).1, path.as_str())).collect();
        Self { by_name, ..Self::default() }
    }

    fn find(&mut self, name: &str) -> Option<&'b str> {
        let Some(path) = self.by_name.get(name).copied() else {
            self.missing += 1;
            self.first_missing.get_or_insert_with(|| shortened(name));
            return None;
        };
        self.used.insert(path);
        Some(path)
    }

    /// How many entries name a photo that the export does not have, and the first name.
    pub(crate) fn missing(&self) -> Option<(u64, &str)> {
        self.first_missing.as_deref().map(|first| (self.missing, first))
    }

    /// The photos that no entry names.
    pub(crate) fn unused<'p>(&self, paths: &'p [String]) -> impl Iterator<Item = &'p String> {
        paths.iter().filter(|path| !self.used.contains(path.as_str()))
    }
}

/// The conversation without its messages.
pub(crate) fn conversation(
    id: &'static str,
    account: Option<&str>,
    order: &Order,
    version: &'static str,
    locator: &str,
) -> Conversation<'static> {
    let account: Option<Cow<'static, str>> = account.map(|account| account.to_owned().into());
    let (created_at, updated_at) = order.times();
    Conversation {
        id: id.into(),
        export_format_version: Some(version.into()),
        title: Some(TITLE.into()),
        created_at,
        updated_at,
        participants: vec![
            Participant { role: Role::User, name: None, provider_id: account.clone() },
            Participant { role: Role::Assistant, name: Some(TITLE.into()), provider_id: Some("myai".into()) },
        ],
        account,
        current: order.list.last().map(|last| last.id.clone().into()),
        raw_metadata: (order.inferred > 0).then(|| r#"{"role_source":"times of the entries"}"#.into()),
        locator: locator.to_owned().into(),
        ..Conversation::default()
    }
}

/// Maps one entry; its id, role and parent come from the order.
pub(crate) fn message<'a>(
    mut raw: Entry<'a>,
    place: &'a Place,
    parent: Option<&'a Place>,
    photos: &mut Photos<'_>,
    arena: &'a Arena,
) -> Message<'a> {
    let kind = raw.kind.filter(|kind| !is_words(kind));
    if let Some(kind) = kind {
        raw.rest.add_text("type", kind);
    }
    if let Some(source) = place.role_source.name() {
        raw.rest.add_text("role_source", source);
    }
    let mut attachments = Vec::new();
    let mut text = raw.content;
    if kind.is_some()
        && let Some(name) = raw.content.filter(|text| is_file_name(text))
    {
        attachments.push(attachment(name, photos));
        text = None;
    }
    let media = raw.media.into_iter().flat_map(|media| media.split('|')).map(str::trim);
    attachments.extend(media.filter(|id| !id.is_empty()).map(medium));
    Message {
        id: place.id.as_str().into(),
        role: place.role,
        // What is shared can be an address with a signature.
        content: text.map(|text| Content::Text(if kind.is_some() { unsigned(text) } else { text.into() })),
        created_at: raw.time,
        parent: parent.map(|parent| parent.id.as_str().into()),
        attachments,
        // Of a message without content the host itself says so.
        unread: raw.rest.unread().filter(|_| text.is_some()).map(Cow::Borrowed),
        raw_metadata: raw.rest.take_json(arena).map(unsigned_json),
        ..Message::default()
    }
}

/// Whether it is one word with an extension.
fn is_file_name(text: &str) -> bool {
    let extension = text.rsplit_once('.').map_or("", |(_, extension)| extension);
    (2..=5).contains(&extension.len())
        && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && !text.contains(|c: char| c.is_whitespace() || c == '/')
}

fn attachment<'a>(name: &'a str, photos: &mut Photos<'_>) -> Attachment<'a> {
    Attachment {
        kind: AttachmentKind::of(None, Some(name)),
        name: Some(name.into()),
        source: photos.find(name).map(|path| Source::Path(path.to_owned().into())),
        ..Attachment::default()
    }
}

/// Media of a chat, of which the export gives the id only.
fn medium(id: &str) -> Attachment<'_> {
    Attachment { kind: AttachmentKind::File, provider_id: Some(id.into()), ..Attachment::default() }
}
