//! Canvas documents in files of their own that no message names: each becomes a conversation.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Bundle, Conversation, ImportError, JsonError, Leftover, Message, Parser, RecordKind, Role, Sink,
    address::unsigned_json,
};

use crate::map::{Context, document_content};

/// PAM tag of these conversations.
const TAG: &str = "canvas";
/// Bytes of one document; those seen are under 1 MB.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// One document.
#[derive(Debug, Default)]
struct Textdoc<'a> {
    title: Option<&'a str>,
    text: Option<&'a str>,
    /// `document`, `code/python`.
    kind: Option<&'a str>,
    created: Option<i64>,
    updated: Option<i64>,
    rest: Leftover<'a>,
}

/// Emits the document `id` of the file `path`.
pub(crate) fn emit(
    bundle: &Bundle,
    id: &str,
    path: &str,
    context: &Context<'_>,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let bytes = match bundle.read(path, MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(error) => return sink.skip(RecordKind::File, path, &error.message),
    };
    let text = String::from_utf8_lossy(&bytes);
    let arena = Arena::new();
    match Textdoc::read(text.trim_start_matches('\u{feff}'), &arena) {
        Ok(Some(doc)) if doc.text.is_some() => doc.emit(id, path, context, &arena, sink),
        Ok(_) => sink.skip(RecordKind::File, path, "it holds no text of a document"),
        Err(error) => sink.skip(RecordKind::File, path, &error.to_string()),
    }
}

impl<'a> Textdoc<'a> {
    fn read(text: &'a str, arena: &'a Arena) -> Result<Option<Self>, JsonError> {
        let mut json = Parser::new(text, arena);
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            let rest = &mut it.rest;
            match key {
                "title" | "name" if it.title.is_none() => it.title = rest.nonempty_text(key, &mut json)?,
                "content" | "text" if it.text.is_none() => it.text = rest.nonempty_text(key, &mut json)?,
                "textdoc_type" | "type" => it.kind = rest.keep_and_read(key, &mut json)?.nonempty_text(),
                "created_at" | "create_time" => it.created = rest.time(key, &mut json)?,
                "updated_at" | "update_time" => it.updated = rest.time(key, &mut json)?,
                _ => rest.keep(key, &mut json)?,
            }
        }
        json.end()?;
        Ok(Some(it))
    }

    fn emit(
        mut self,
        id: &str,
        path: &str,
        context: &Context<'_>,
        arena: &'a Arena,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        let text = Cow::Borrowed(self.text.unwrap_or_default());
        let message = Message {
            id: "document".into(),
            role: Role::Assistant,
            content: Some(document_content(text, self.kind)),
            created_at: self.created,
            raw_metadata: self.rest.take_json(arena).map(unsigned_json),
            ..Message::default()
        };
        let conversation = Conversation {
            id: format!("textdoc:{id}").into(),
            provider_conversation_id: Some(id.into()),
            account: context.account.map(Cow::Borrowed),
            export_format_version: Some(context.version.into()),
            title: self.title.map(Cow::Borrowed),
            created_at: self.created,
            updated_at: self.updated,
            tags: vec![TAG.into()],
            locator: path.into(),
            ..Conversation::default()
        };
        sink.conversation(&conversation, &[message])
    }
}
