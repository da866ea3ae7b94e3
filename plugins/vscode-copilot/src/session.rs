//! The session's own fields.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::{Arena, Fields, JsonError, Leftover, Participant, Role, json::Value, title};

use crate::{
    fields::{FIELD_READER, take_id, take_time},
    uri,
    workspace::Workspace,
};

/// Characters of a title that is made of the first message.
const MAX_TITLE: usize = 120;
/// Fields that are known and kept as they are.
const KEPT: [&str; 17] = [
    "hasPendingEdits",
    "initialLocation",
    "isImported",
    "isNew",
    "mode",
    "pendingRequests",
    "permissionLevel",
    "providerId",
    "providerState",
    "repoData",
    "requesterAvatarIconUri",
    "responderAvatarIconUri",
    "sessionId",
    "source",
    "version",
    "welcomeMessage",
    "workingDirectory",
];

/// What the session says about itself.
#[derive(Debug, Default)]
pub(crate) struct Header<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) title: Option<Cow<'a, str>>,
    pub(crate) created: Option<i64>,
    pub(crate) updated: Option<i64>,
    pub(crate) participants: Vec<Participant<'a>>,
    pub(crate) rest: Leftover<'a>,
}

impl<'a> Header<'a> {
    /// Reads the fields of a session. `words` is what the person wrote first.
    pub(crate) fn read(
        json: &'a BTreeMap<String, String>,
        workspace: &'a Workspace,
        words: Option<&str>,
        arena: &'a Arena,
    ) -> Result<Self, JsonError> {
        let mut text = String::from("{");
        for (key, value) in json {
            text.push_str(if text.len() > 1 { "," } else { "" });
            text.push_str(&format!("{}:{value}", Value::Text(key).json()));
        }
        let mut fields = FIELD_READER.parse(arena.alloc_str(&(text + "}")), arena)?;
        let mut header = Self { id: take_id(&mut fields, "sessionId"), ..Self::default() };
        header.created = take_time(&mut fields, "creationDate");
        header.updated = take_time(&mut fields, "lastMessageDate");
        let given = ["customTitle", "computedTitle"].map(|key| fields.take_text(key));
        header.title = given.into_iter().flatten().find(|title| !title.trim().is_empty()).map(Cow::Borrowed);
        if header.title.is_none()
            && let Some(first) = words.and_then(|words| title::first_line(words, MAX_TITLE))
        {
            header.title = Some(Cow::Owned(first));
            header.rest.add_text("title_source", "first user message");
        }
        for (key, role) in [("requesterUsername", Role::User), ("responderUsername", Role::Assistant)] {
            let name = fields.take_text(key).map(Cow::Borrowed);
            header.participants.extend(name.map(|name| Participant {
                role,
                name: Some(name),
                provider_id: None,
            }));
        }
        header.add_place(&fields, workspace);
        let draft = fields.take_object("inputState")?.map(draft).unwrap_or_default();
        if let Some(json) = draft {
            header.rest.add_json("inputState", &json);
        }
        fields.add_to(&mut header.rest, &KEPT);
        Ok(header)
    }

    /// Adds the folder in which the session took place.
    fn add_place(&mut self, fields: &Fields<'a>, workspace: &'a Workspace) {
        let own = uri::of(fields.get("workingDirectory"), fields.arena()).map(|address| uri::path(&address));
        if let Some(folder) = own.as_deref().or(workspace.folder.as_deref()) {
            self.rest.add_text("cwd", folder);
        }
        if let Some(json) = &workspace.json {
            self.rest.add_json("workspace", json);
        }
    }
}

/// What the person has typed and not sent, and the settings for it. The other fields are the state of the page.
fn draft(mut state: Fields<'_>) -> Option<String> {
    let arena = state.arena();
    let model = FIELD_READER.of(state.take("selectedModel"), arena).ok().flatten();
    let mut rest = state.split_off(&["inputText", "mode"]).into_rest(&["inputText", "mode"]);
    if let Some(id) = model.map(|model| model.get("identifier")) {
        rest.add_value("selectedModel", id);
    }
    rest.into_json().map(Cow::into_owned)
}
