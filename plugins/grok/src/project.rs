//! Projects in which the person told nothing about how to answer: each is a conversation in which nothing is said, so that its
//! name and the beginnings that it offers are not lost.

use std::borrow::Cow;

use satchel_importer::{Conversation, JsonError, Leftover, Parser, address::unsigned_json, natural_key};

use crate::map::{Context, person};

/// PAM tag of these conversations.
const TAG: &str = "project";

/// Reads one item of `projects`; none if it is no object, or says nothing by which it could be told from others.
pub(crate) fn read<'a>(
    json: &mut Parser<'a>,
    context: &Context<'a>,
    locator: &str,
) -> Result<Option<Conversation<'a>>, JsonError> {
    let (mut id, mut name, mut account, mut created) = (None, None, None, None);
    let mut rest = Leftover::default();
    if !json.enter_object()? {
        return Ok(None);
    }
    while let Some(key) = json.key()? {
        match key {
            "workspace_id" | "id" if id.is_none() => id = rest.words(key, json)?,
            "name" => name = rest.words(key, json)?,
            "user_id" => account = rest.words(key, json)?,
            "create_time" => created = rest.time(key, json)?,
            _ => rest.keep(key, json)?,
        }
    }
    json.end()?;
    if id.or(name).is_none() {
        return Ok(None);
    }
    let time = created.map(|time| time.to_string());
    let key: Cow<'a, str> = match id {
        Some(id) => format!("project:{id}").into(),
        None => natural_key(&[Some("project"), time.as_deref(), name]).into(),
    };
    let account = account.or(context.owner.id.as_deref()).map(|account| Cow::Owned(account.to_owned()));
    Ok(Some(Conversation {
        provider_conversation_id: id.map(|_| key.clone()),
        id: key,
        title: name.map(Cow::Borrowed),
        participants: account.as_deref().map(|account| person(account, context.owner)).into_iter().collect(),
        account,
        export_format_version: Some(context.version.into()),
        created_at: created,
        tags: vec![TAG.into()],
        raw_metadata: rest.into_json().map(unsigned_json),
        locator: Cow::Owned(locator.to_owned()),
        ..Conversation::default()
    }))
}
