//! Maps a reflection, a person's feedback on an answer, to a conversation.

use std::borrow::Cow;

use satchel_importer::{
    Content, Conversation, JsonError, Leftover, Message, Parser, Role, address::unsigned_json,
};

/// Reads and maps one; none if it is no object. `name` is the file's name, which is its uuid.
///
/// Its fields are not known for sure, so all of them are kept; `text` is also the message.
pub(crate) fn read<'a>(
    json: &mut Parser<'a>,
    name: &str,
    version: &'static str,
    locator: &str,
) -> Result<Option<(Conversation<'a>, Vec<Message<'a>>)>, JsonError> {
    let (mut uuid, mut text, mut rest) = (None, None, Leftover::default());
    let (mut created, mut updated) = (None, None);
    if !json.enter_object()? {
        return Ok(None);
    }
    while let Some(key) = json.key()? {
        match key {
            "uuid" => uuid = rest.nonempty_text(key, json)?,
            "text" => text = rest.nonempty_text(key, json)?,
            "created_at" => created = rest.time(key, json)?,
            "updated_at" => updated = rest.time(key, json)?,
            _ => rest.keep(key, json)?,
        }
    }
    json.end()?;
    let uuid: Cow<'a, str> = uuid.map_or_else(|| name.to_owned().into(), Cow::Borrowed);
    let id: Cow<'a, str> = format!("reflection:{uuid}").into();
    let conversation = Conversation {
        id: id.clone(),
        provider_conversation_id: Some(id),
        export_format_version: Some(version.into()),
        created_at: created,
        updated_at: updated,
        tags: vec!["reflection".into()],
        raw_metadata: rest.into_json().map(unsigned_json),
        locator: Cow::Owned(locator.to_owned()),
        ..Conversation::default()
    };
    let message = text.map(|text| Message {
        id: uuid.clone(),
        provider_message_id: Some(uuid),
        role: Role::User,
        content: Some(Content::Text(text.into())),
        created_at: created,
        ..Message::default()
    });
    Ok(Some((conversation, message.into_iter().collect())))
}
