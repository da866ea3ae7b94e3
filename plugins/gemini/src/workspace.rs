//! Reads conversations of Gemini in Workspace.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::{
    Arena, Attachment, AttachmentKind, Citation, Content, Conversation, Element, ImportError, Leftover,
    Message, RecordKind, Role, Sink,
    address::unsigned_json,
    json::{Object, Value, items, objects, time_of_text},
    names, natural_key, order,
};

use crate::{
    conversation_file::{ConversationFile, citation, unique_id},
    files,
    redact::{self, keep_value, without_secrets},
};

const DELETED: &str = "the person deleted this turn";
/// The most turns of one conversation that are read.
const MAX_TURNS: usize = 200_000;

/// Reads and emits one conversation.
pub(crate) fn read<'a>(
    element: &Element<'a>,
    file: &ConversationFile<'_, 'a>,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let mut json = element.parser();
    let mut chat = Chat::default();
    if !json.enter_object()? {
        return Err(ImportError::malformed("it is not an object"));
    }
    while let Some(key) = json.key()? {
        match key {
            "title" => chat.title = chat.rest.text(key, &mut json)?,
            "creation_time" => chat.created = chat.rest.time(key, &mut json)?,
            "last_modification_time" => chat.updated = chat.rest.time(key, &mut json)?,
            "conversation_turns" if chat.rest.array(key, &mut json)? => {
                while json.item()? {
                    chat.turns.push(Value::read(&mut json)?);
                    if chat.turns.len() > MAX_TURNS {
                        return Err(ImportError::malformed(format!("it has more than {MAX_TURNS} turns")));
                    }
                }
                chat.has_turns = true;
            }
            _ if json.pending() => redact::keep(&mut chat.rest, key, &mut json)?,
            _ => {}
        }
    }
    json.end()?;
    if !chat.has_turns {
        return Err(ImportError::malformed("it has no turns"));
    }
    chat.emit(file, sink)
}

#[derive(Default)]
struct Chat<'a> {
    title: Option<&'a str>,
    created: Option<i64>,
    updated: Option<i64>,
    turns: Vec<Value<'a>>,
    has_turns: bool,
    rest: Leftover<'a>,
}

impl<'a> Chat<'a> {
    fn emit(self, file: &ConversationFile<'_, 'a>, sink: &mut Sink) -> Result<(), ImportError> {
        let mut turns =
            TurnReader { file, messages: Vec::new(), counts: BTreeMap::new(), first_prompt: None };
        let mut skipped = Vec::new();
        for (index, turn) in self.turns.iter().enumerate() {
            if let Err(reason) = turns.add(*turn) {
                skipped.push((index, reason));
            }
        }
        let TurnReader { messages, first_prompt, .. } = turns;
        // The key is made of what never changes; a title may.
        let created = self.created.map(|time| time.to_string());
        let name = created.is_none().then(|| names::split(file.path).1);
        let key = natural_key(&[Some("workspace"), created.as_deref(), first_prompt, name]);
        let conversation = Conversation {
            id: Cow::Owned(key),
            export_format_version: Some(Cow::Borrowed(file.version)),
            title: self.title.filter(|title| !title.trim().is_empty()).map(Cow::Borrowed),
            created_at: self.created,
            updated_at: self.updated,
            raw_metadata: self.rest.into_json().map(unsigned_json),
            locator: Cow::Owned(file.locator.to_owned()),
            ..Conversation::default()
        };
        // `turn_last_modified` is the time of the last change, so turns are not sorted by it.
        if order::contradicts(messages.iter().map(|message| message.created_at)) {
            sink.warn(file.locator, order::KEPT);
        }
        sink.conversation(&conversation, &messages)?;
        for (index, reason) in skipped {
            let locator = format!("{}.conversation_turns[{index}]", file.locator);
            sink.skip(RecordKind::Message, &locator, reason)?;
        }
        Ok(())
    }
}

struct TurnReader<'f, 'a> {
    file: &'f ConversationFile<'f, 'a>,
    messages: Vec<Message<'a>>,
    /// The number of turns with each id.
    counts: BTreeMap<String, usize>,
    /// The first prompt, deleted or not.
    first_prompt: Option<&'a str>,
}

impl<'a> TurnReader<'_, 'a> {
    /// Adds the messages of one turn. Returns the reason if the turn is skipped.
    fn add(&mut self, turn: Value<'a>) -> Result<(), &'static str> {
        let arena = self.file.arena;
        let raw = turn.raw().filter(|raw| raw.starts_with('{')).ok_or("it is not an object")?;
        let object = Object::parse(raw, arena);
        let mut rest = Leftover::default();
        for (key, value) in object.fields().filter(|(key, _)| !matches!(*key, "user_turn" | "system_turn")) {
            keep_value(&mut rest, key, value, arena);
        }
        let (mut found, mut result) = (false, Ok(()));
        for (name, role) in [("user_turn", Role::User), ("system_turn", Role::Assistant)] {
            let Some(inner) = object.get(name).raw().filter(|raw| raw.starts_with('{')) else { continue };
            found = true;
            let inner = Object::parse(inner, arena);
            if self.first_prompt.is_none() && role == Role::User {
                self.first_prompt = inner.text("prompt");
            }
            if let Err(reason) = self.add_message(&inner, role, std::mem::take(&mut rest)) {
                result = Err(reason);
            }
        }
        if found { result } else { Err("it is a turn of nobody") }
    }

    fn add_message(&mut self, turn: &Object<'a>, role: Role, rest: Leftover<'a>) -> Result<(), &'static str> {
        let id = self.id(turn, role);
        if !matches!(turn.get("turn_deleted_time"), Value::Null | Value::Text("")) {
            return Err(DELETED);
        }
        let mut fields = TurnFields { rest, ..TurnFields::default() };
        turn.fields().for_each(|(key, value)| fields.take(key, value, self.file));
        let mut parent = self.messages.last().map(|last| last.id.clone());
        if !fields.thoughts.is_empty() {
            let thought = Message {
                id: Cow::Owned(format!("{id}:thoughts")),
                role,
                content: Some(Content::Text(Cow::Owned(fields.thoughts.join("\n\n")))),
                created_at: fields.time,
                parent: parent.take(),
                is_thought: true,
                ..Message::default()
            };
            parent = Some(thought.id.clone());
            self.messages.push(thought);
        }
        self.messages.push(Message {
            id: Cow::Owned(id),
            role,
            content: Content::of_texts(fields.texts),
            created_at: fields.time,
            parent,
            attachments: fields.images,
            citations: fields.citations,
            unread: fields.rest.unread().map(Cow::Borrowed),
            raw_metadata: fields.rest.into_json().map(unsigned_json),
            ..Message::default()
        });
        Ok(())
    }

    /// The id of a turn: a hash of its index and text. The index alone is not unique, because an edited turn keeps it. The
    /// position is not stable, because a later export may lack deleted turns.
    fn id(&mut self, turn: &Object<'a>, role: Role) -> String {
        let name = if role == Role::User { "user" } else { "model" };
        let json = |key| match turn.get(key) {
            Value::Raw(text) | Value::Text(text) => Some(text),
            Value::Null => None,
        };
        let key = natural_key(&[Some(name), json("turn_index"), json("prompt"), json("text")]);
        unique_id(key, &mut self.counts)
    }
}

/// The fields of one turn.
#[derive(Default)]
struct TurnFields<'a> {
    texts: Vec<&'a str>,
    thoughts: Vec<String>,
    time: Option<i64>,
    images: Vec<Attachment<'a>>,
    citations: Vec<Citation<'a>>,
    rest: Leftover<'a>,
}

impl<'a> TurnFields<'a> {
    fn take(&mut self, key: &'a str, value: Value<'a>, file: &ConversationFile<'_, 'a>) {
        let arena = file.arena;
        match (key, value) {
            ("prompt", Value::Text(text)) => self.texts.extend((!text.is_empty()).then_some(text)),
            ("turn_last_modified", Value::Text(text)) => {
                self.time = time_of_text(text).map(|(micros, _)| micros);
                if self.time.is_none() {
                    keep_value(&mut self.rest, key, value, arena);
                }
            }
            ("text", Value::Text(text)) => self.texts.extend((!text.is_empty()).then_some(text)),
            ("text", Value::Raw(raw)) if raw.starts_with('[') => self.take_texts(key, raw, arena),
            ("model_thoughts", Value::Raw(raw)) if raw.starts_with('[') => {
                self.take_thoughts(key, raw, arena);
            }
            ("images", Value::Raw(raw)) if raw.starts_with('[') => self.take_images(key, raw, file),
            ("citations", Value::Raw(raw)) if raw.starts_with('[') => {
                self.citations.extend(objects(raw, arena).iter().filter_map(citation));
                if raw != "[]" {
                    keep_value(&mut self.rest, key, value, arena);
                }
            }
            ("turn_deleted_time", _) => {}
            _ => {
                self.rest.note_unknown(key, value);
                keep_value(&mut self.rest, key, value, arena);
            }
        }
    }

    /// Each block has a preamble, the answer itself and cards. Other fields are kept.
    fn take_texts(&mut self, key: &'a str, raw: &'a str, arena: &'a Arena) {
        let mut leftover = Vec::new();
        for item in items(raw, arena) {
            let Some(object) = item.raw().filter(|raw| raw.starts_with('{')) else {
                self.texts.extend(item.nonempty_text());
                continue;
            };
            let object = Object::parse(object, arena);
            self.texts.extend(object.text("preamble"));
            self.texts.extend(object.text("data"));
            let mut rest = Leftover::default();
            for (key, value) in object.fields() {
                match (key, value) {
                    ("preamble" | "data", Value::Text(_)) => {}
                    ("cards", Value::Raw(raw)) if raw.starts_with('[') => {
                        self.take_cards(raw, &mut rest, arena);
                    }
                    _ => {
                        self.rest.note_unknown(key, value);
                        keep_value(&mut rest, key, value, arena);
                    }
                }
            }
            leftover.extend(rest.into_json());
        }
        if !leftover.is_empty() {
            self.rest.add_json(key, &format!("[{}]", leftover.join(",")));
        }
    }

    fn take_cards(&mut self, raw: &'a str, rest: &mut Leftover<'a>, arena: &'a Arena) {
        let mut has_more = false;
        for item in items(raw, arena) {
            let card = item.raw().map(|raw| Object::parse(raw, arena)).unwrap_or_default();
            self.texts.extend(card.text("content").or(item.nonempty_text()));
            for (key, value) in card.fields().filter(|(key, _)| *key != "content") {
                has_more = true;
                self.rest.note_unknown(key, value);
            }
        }
        if has_more {
            rest.add_json("cards", &without_secrets(raw, arena));
        }
    }

    fn take_thoughts(&mut self, key: &'a str, raw: &'a str, arena: &'a Arena) {
        let mut has_more = false;
        for item in items(raw, arena) {
            let thought = item.raw().map(|raw| Object::parse(raw, arena)).unwrap_or_default();
            let parts = [
                thought.text("headline").map(|line| format!("**{line}**")),
                thought.text("description").map(ToOwned::to_owned),
            ];
            let text = parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n");
            let text =
                if text.is_empty() { item.nonempty_text().unwrap_or_default().to_owned() } else { text };
            has_more |= text.is_empty();
            for (key, value) in
                thought.fields().filter(|(key, _)| !matches!(*key, "headline" | "description"))
            {
                has_more = true;
                self.rest.note_unknown(key, value);
            }
            self.thoughts.extend((!text.is_empty()).then_some(text));
        }
        if has_more {
            self.rest.add_json(key, &without_secrets(raw, arena));
        }
    }

    /// Images are files in the same folder. Their extension is not in the JSON.
    fn take_images(&mut self, key: &'a str, raw: &'a str, file: &ConversationFile<'_, 'a>) {
        let folder = names::split(file.path).0;
        let mut has_more = false;
        for item in items(raw, file.arena) {
            let object = item.raw().map(|raw| Object::parse(raw, file.arena)).unwrap_or_default();
            let name = item
                .nonempty_text()
                .or_else(|| ["name", "file_name", "id", "url"].iter().find_map(|key| object.text(key)));
            has_more |= item.nonempty_text().is_none();
            let Some(name) = name else { continue };
            let name = files::find_stem(file.bundle, folder, name).map_or(Cow::Borrowed(name), |path| {
                Cow::Owned(path.get(folder.len()..).unwrap_or_default().to_owned())
            });
            let (folders, kind) = ([folder.to_owned()], Some(AttachmentKind::Image));
            self.images.push(files::attachment(file.bundle, &folders, name, None, kind));
        }
        if has_more {
            self.rest.add_json(key, &without_secrets(raw, file.arena));
        }
    }
}
