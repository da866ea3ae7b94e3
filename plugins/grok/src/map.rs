//! Maps one conversation of the export to records. It reads nothing but the heads of files that messages refer to.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Conversation, Message, Participant, Role, address::unsigned_json, natural_key, order::SORTED,
    tree::SIBLING_NUMBER,
};

use crate::{assets::Assets, raw};

mod calls;
mod cards;
mod citations;
pub(crate) mod files;
mod markup;
mod message;
mod order;
mod thoughts;

use order::Node;

/// What all conversations of an export share.
pub(crate) struct Context<'c> {
    /// The format's version.
    pub(crate) version: &'static str,
    pub(crate) assets: &'c Assets<'c>,
}

/// The records of one conversation.
pub(crate) struct Records<'a> {
    pub(crate) conversation: Conversation<'a>,
    pub(crate) messages: Vec<Message<'a>>,
    /// Skipped responses: locator and reason.
    pub(crate) skipped: Vec<(String, &'static str)>,
    /// Locator and message.
    pub(crate) warnings: Vec<(String, &'static str)>,
}

/// Maps one conversation; the error is the reason why it is none.
pub(crate) fn records<'a>(
    mut raw: raw::Conversation<'a>,
    context: &Context<'a>,
    locator: &str,
    arena: &'a Arena,
) -> Result<Records<'a>, &'static str> {
    if !raw.recognised || (raw.key().is_none() && raw.responses.is_empty()) {
        return Err("it is no conversation: it has neither an id nor responses");
    }
    let sorted = order::sort(&mut raw.responses);
    let key = raw.key().map_or_else(|| Cow::Owned(natural_id(&raw)), Cow::Borrowed);
    let locate = |index: usize| format!("{locator}.responses[{index}]");
    let (responses, invalid) = (std::mem::take(&mut raw.responses), std::mem::take(&mut raw.invalid));
    let mut skipped: Vec<_> = invalid.into_iter().map(|(index, reason)| (locate(index), reason)).collect();
    let (nodes, repeated) = order::assign_ids(responses);
    skipped.extend(repeated.into_iter().map(|index| (locate(index), "another response has the same id")));
    let order::Links { parents, cut, numbers } = order::link(&nodes);
    let mut warnings = Vec::new();
    if sorted {
        warnings.push((locator.to_owned(), SORTED));
    }
    for node in cut.iter().filter_map(|at| nodes.get(*at)) {
        warnings.push((locate(node.raw.index), "its parents lead back to it; it is read as a root"));
    }
    let current = raw.leaf.filter(|leaf| nodes.iter().any(|node| node.id == *leaf));
    let own_key = raw.key();
    let conversation = conversation(raw, key, current, context, locator);
    let mut messages = Vec::with_capacity(nodes.len());
    for (at, (Node { id, mut raw }, parent)) in nodes.into_iter().zip(parents).enumerate() {
        if message::role(raw.sender).is_none() {
            warnings.push((locate(raw.index), "it does not say who speaks; it is read as the assistant's"));
        }
        if let Some(other) = raw.conversation.filter(|other| Some(*other) != own_key) {
            raw.rest.add_text("conversation_id", other);
        }
        if let Some(number) = numbers.get(&at) {
            raw.rest.add_json(SIBLING_NUMBER, &number.to_string());
        }
        message::map(raw, id, parent, context.assets, arena, &mut messages);
    }
    Ok(Records { conversation, messages, skipped, warnings })
}

fn conversation<'a>(
    mut raw: raw::Conversation<'a>,
    key: Cow<'a, str>,
    current: Option<&'a str>,
    context: &Context<'_>,
    locator: &str,
) -> Conversation<'a> {
    if let (Some(id), Some(legacy)) = (raw.id, raw.legacy_id)
        && id != legacy
    {
        raw.rest.add_text("conversation_id", legacy);
    }
    if let (Some(dangling), None) = (raw.leaf, current) {
        raw.rest.add_text("leaf_response_id", dangling);
    }
    let account = raw.account.map(Cow::Borrowed);
    Conversation {
        id: key,
        provider_conversation_id: raw.key().map(Cow::Borrowed),
        participants: account.clone().map(person).into_iter().collect(),
        account,
        export_format_version: Some(context.version.into()),
        title: raw.title.filter(|title| !title.trim().is_empty()).map(Cow::Borrowed),
        created_at: raw.created,
        updated_at: raw.updated,
        current: current.map(Cow::Borrowed),
        raw_metadata: raw.rest.into_json().map(unsigned_json),
        locator: Cow::Owned(locator.to_owned()),
        ..Conversation::default()
    }
}

/// The person of an account. The name is in another file, which may be missing.
pub(crate) fn person(account: Cow<'_, str>) -> Participant<'_> {
    Participant { role: Role::User, name: None, provider_id: Some(account) }
}

/// An id derived from what later exports of the conversation have too. The title can change, so it is used only if there is
/// no time.
fn natural_id(raw: &raw::Conversation<'_>) -> String {
    let created = raw.created.map(|time| time.to_string());
    let discriminator = created.as_deref().or(raw.title);
    natural_key(&[raw.account, discriminator, raw.responses.first().map(order::natural_id).as_deref()])
}
