//! Images and films that the person had made outside of conversations; each is read as a conversation of its own.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Content, Conversation, JsonError, Leftover, Message, Parser, Role, address::unsigned_json,
    json::Value, natural_key,
};

use crate::map::{Context, files::Files, person};

/// PAM tag of these conversations.
const TAG: &str = "media-post";

/// One item of `media_posts`.
#[derive(Debug, Default)]
struct Post<'a> {
    id: Option<&'a str>,
    account: Option<&'a str>,
    created: Option<i64>,
    prompt: Option<&'a str>,
    model: Option<&'a str>,
    /// `image` or `video`; kept too.
    kind: Option<&'a str>,
    link: Value<'a>,
    rest: Leftover<'a>,
}

/// What one item gives.
pub(crate) struct Records<'a> {
    pub(crate) conversation: Conversation<'a>,
    pub(crate) messages: Vec<Message<'a>>,
}

/// Reads one item; none if it holds neither a prompt nor a file.
pub(crate) fn read<'a>(
    json: &mut Parser<'a>,
    context: &Context<'a>,
    locator: &str,
    arena: &'a Arena,
) -> Result<Option<Records<'a>>, JsonError> {
    let Some(mut post) = Post::read(json)? else { return Ok(None) };
    let mut files = Files::new(context.assets, arena);
    files.add(post.link, post.medium());
    if let Some(id) = post.id.filter(|id| context.assets.find(id).is_some()) {
        files.add(Value::Text(id), None);
    }
    let attachments = files.finish();
    if post.prompt.is_none() && attachments.is_empty() {
        return Ok(None);
    }
    let id = post.key();
    let asked: Cow<'a, str> = "prompt".into();
    let mut messages = Vec::new();
    if let Some(prompt) = post.prompt {
        messages.push(Message {
            id: asked.clone(),
            role: Role::User,
            content: Some(Content::Text(prompt.into())),
            created_at: post.created,
            ..Message::default()
        });
    }
    messages.push(Message {
        id: "media".into(),
        role: Role::Assistant,
        created_at: post.created,
        parent: post.prompt.map(|_| asked),
        model: post.model.map(Cow::Borrowed),
        attachments,
        unread: post.rest.unread().map(Cow::Borrowed),
        raw_metadata: post.rest.take_json(arena).map(unsigned_json),
        ..Message::default()
    });
    let account = post.account.map(Cow::Borrowed);
    let conversation = Conversation {
        id,
        provider_conversation_id: post.id.map(Cow::Borrowed),
        participants: account.clone().map(person).into_iter().collect(),
        account,
        export_format_version: Some(context.version.into()),
        created_at: post.created,
        tags: vec![TAG.into()],
        locator: Cow::Owned(locator.to_owned()),
        ..Conversation::default()
    };
    Ok(Some(Records { conversation, messages }))
}

impl<'a> Post<'a> {
    fn read(json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            let rest = &mut it.rest;
            match key {
                "id" | "_id" | "post_id" => it.id = rest.words(key, json)?,
                "user_id" => it.account = rest.words(key, json)?,
                "create_time" => it.created = rest.time(key, json)?,
                "original_prompt" => it.prompt = rest.words(key, json)?,
                "model" | "model_name" => it.model = rest.words(key, json)?,
                "media_type" => it.kind = rest.keep_and_read(key, json)?.words(),
                "link" => it.link = rest.keep_and_read(key, json)?,
                _ => rest.keep_unknown(key, json)?,
            }
        }
        json.end()?;
        Ok(Some(it))
    }

    /// The first half of the MIME type of what was made.
    fn medium(&self) -> Option<&'static str> {
        let kind = self.kind?.to_ascii_lowercase();
        ["image", "video", "audio"].into_iter().find(|medium| kind.contains(medium))
    }

    /// Its id, which must not be that of a conversation; else what later exports hold too.
    fn key(&self) -> Cow<'a, str> {
        if let Some(id) = self.id {
            return format!("media_post:{id}").into();
        }
        let link = match self.link {
            Value::Text(link) | Value::Raw(link) => Some(link),
            Value::Null => None,
        };
        let created = self.created.map(|time| time.to_string());
        natural_key(&[Some("media_post"), created.as_deref(), self.prompt, link]).into()
    }
}
