//! Images and videos that the person generated outside of conversations; each becomes a conversation.

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
    /// `image` or `video`; also kept in `rest`.
    kind: Option<&'a str>,
    link: Value<'a>,
    rest: Leftover<'a>,
}

/// Reads one item; none if it has neither a prompt nor a file.
pub(crate) fn read<'a>(
    json: &mut Parser<'a>,
    context: &Context<'a>,
    locator: &str,
    arena: &'a Arena,
) -> Result<Option<(Conversation<'a>, Vec<Message<'a>>)>, JsonError> {
    let Some(mut post) = Post::read(json)? else { return Ok(None) };
    let mut files = Files::new(context.assets, arena);
    files.add(post.link, post.media_type());
    if let Some(id) = post.id.filter(|id| context.assets.find(id).is_some()) {
        files.add(Value::Text(id), None);
    }
    if post.prompt.is_none() && files.attachments.is_empty() {
        return Ok(None);
    }
    let id = post.key();
    let prompt_id: Cow<'a, str> = "prompt".into();
    let mut messages = Vec::new();
    if let Some(prompt) = post.prompt {
        messages.push(Message {
            id: prompt_id.clone(),
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
        parent: post.prompt.map(|_| prompt_id),
        model: post.model.map(Cow::Borrowed),
        attachments: files.attachments,
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
    Ok(Some((conversation, messages)))
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
                "id" | "_id" | "post_id" => it.id = rest.nonempty_text(key, json)?,
                "user_id" => it.account = rest.nonempty_text(key, json)?,
                "create_time" => it.created = rest.time(key, json)?,
                "original_prompt" => it.prompt = rest.nonempty_text(key, json)?,
                "model" | "model_name" => it.model = rest.nonempty_text(key, json)?,
                "media_type" => it.kind = rest.keep_and_read(key, json)?.nonempty_text(),
                "link" => it.link = rest.keep_and_read(key, json)?,
                _ => rest.keep_unknown(key, json)?,
            }
        }
        json.end()?;
        Ok(Some(it))
    }

    /// The first half of the MIME type.
    fn media_type(&self) -> Option<&'static str> {
        let kind = self.kind?.to_ascii_lowercase();
        ["image", "video", "audio"].into_iter().find(|media| kind.contains(media))
    }

    /// Its id, with a prefix that no conversation has; else a key of what later exports have too.
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
