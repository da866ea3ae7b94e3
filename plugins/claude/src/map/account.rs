//! The person whose export it is, where that comes in an archive without conversations.

use std::borrow::Cow;

use satchel_importer::{Conversation, Participant, Role};

use super::Owner;

/// A conversation in which nothing is said: all that is known is who the account is.
pub(crate) fn record<'a>(owner: &'a Owner, version: &'static str, locator: &str) -> Conversation<'a> {
    let account: Cow<'a, str> = Cow::Borrowed(&owner.uuid);
    let name = owner.name.as_deref().map(Cow::Borrowed);
    let id: Cow<'a, str> = format!("account:{account}").into();
    Conversation {
        id: id.clone(),
        provider_conversation_id: Some(id),
        title: name.clone(),
        participants: vec![Participant { role: Role::User, name, provider_id: Some(account.clone()) }],
        account: Some(account),
        export_format_version: Some(version.into()),
        tags: vec!["account".into()],
        locator: Cow::Owned(locator.to_owned()),
        ..Conversation::default()
    }
}
