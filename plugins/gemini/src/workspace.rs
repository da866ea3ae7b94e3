//! Conversations of Gemini in Workspace: a file each, turns of the person and of the model.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::{
    Arena, Attachment, AttachmentKind, Bundle, Citation, Content, Conversation, Element, ImportError,
    Leftover, Message, Part, RecordKind, Role, Sink,
    address::{is_uri, unsigned, unsigned_json},
    json::{Object, Value, items, objects},
    names, natural_key, order,
};

use crate::{files, private};

const DELETED: &str = "the person deleted this turn";
/// More turns in one conversation cannot be real.
const MAX_TURNS: usize = 200_000;

/// Reads and emits one conversation.
pub(crate) fn read(
    element: &Element<'_>,
    version: &'static str,
    path: &str,
    bundle: &Bundle,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let (arena, mut json) = (element.arena(), element.parser());
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
                chat.listed = true;
            }
            _ if json.pending() => private::keep(&mut chat.rest, key, &mut json)?,
            _ => {}
        }
    }
    json.end()?;
    if !chat.listed {
        return Err(ImportError::malformed("it has no turns"));
    }
    chat.emit(&Scene { version, path, bundle, locator: &element.locator(), arena }, sink)
}

struct Scene<'s, 'a> {
    version: &'static str,
    path: &'s str,
    bundle: &'s Bundle,
    locator: &'s str,
    arena: &'a Arena,
}

#[derive(Default)]
struct Chat<'a> {
    title: Option<&'a str>,
    created: Option<i64>,
    updated: Option<i64>,
    turns: Vec<Value<'a>>,
    listed: bool,
    rest: Leftover<'a>,
}

impl<'a> Chat<'a> {
    fn emit(self, scene: &Scene<'_, 'a>, sink: &mut Sink) -> Result<(), ImportError> {
        let mut turns = Turns { scene, messages: Vec::new(), counts: BTreeMap::new(), first: None };
        let mut skipped = Vec::new();
        for (index, turn) in self.turns.iter().enumerate() {
            if let Err(reason) = turns.add(*turn) {
                skipped.push((index, reason));
            }
        }
        let Turns { messages, first, .. } = turns;
        // Titles change; when it began and with what does not.
        let created = self.created.map(|time| time.to_string());
        let name = created.is_none().then(|| names::split(scene.path).1);
        let key = natural_key(&[Some("workspace"), created.as_deref(), first, name]);
        let conversation = Conversation {
            id: Cow::Owned(key),
            export_format_version: Some(Cow::Borrowed(scene.version)),
            title: self.title.filter(|title| !title.trim().is_empty()).map(Cow::Borrowed),
            created_at: self.created,
            updated_at: self.updated,
            raw_metadata: self.rest.into_json().map(unsigned_json),
            locator: Cow::Owned(scene.locator.to_owned()),
            ..Conversation::default()
        };
        // `turn_last_modified` says when a turn was changed last, so it orders nothing.
        if order::contradicts(messages.iter().map(|message| message.created_at)) {
            sink.warn(scene.locator, order::KEPT);
        }
        sink.conversation(&conversation, &messages)?;
        for (index, reason) in skipped {
            let locator = format!("{}.conversation_turns[{index}]", scene.locator);
            sink.skip(RecordKind::Message, &locator, reason)?;
        }
        Ok(())
    }
}

struct Turns<'s, 'a> {
    scene: &'s Scene<'s, 'a>,
    messages: Vec<Message<'a>>,
    /// How many turns had a key so far.
    counts: BTreeMap<String, usize>,
    /// The first prompt, deleted or not.
    first: Option<&'a str>,
}

impl<'a> Turns<'_, 'a> {
    fn add(&mut self, turn: Value<'a>) -> Result<(), &'static str> {
        let arena = self.scene.arena;
        let raw = turn.raw().filter(|raw| raw.starts_with('{')).ok_or("it is not an object")?;
        let object = Object::parse(raw, arena);
        let mut beside = Leftover::default();
        for (key, value) in object.fields().filter(|(key, _)| !matches!(*key, "user_turn" | "system_turn")) {
            put(&mut beside, key, value, arena);
        }
        let mut found = false;
        let mut refused = None;
        for (name, role) in [("user_turn", Role::User), ("system_turn", Role::Assistant)] {
            let Some(inner) = object.get(name).raw().filter(|raw| raw.starts_with('{')) else { continue };
            found = true;
            let inner = Object::parse(inner, arena);
            if self.first.is_none() && role == Role::User {
                self.first = inner.text("prompt");
            }
            match self.speak(&inner, role, std::mem::take(&mut beside)) {
                Ok(()) => {}
                Err(reason) => refused = Some(reason),
            }
        }
        match (found, refused) {
            (false, _) => Err("it is a turn of nobody"),
            (true, Some(reason)) => Err(reason),
            (true, None) => Ok(()),
        }
    }

    fn speak(&mut self, turn: &Object<'a>, role: Role, rest: Leftover<'a>) -> Result<(), &'static str> {
        let id = self.id(turn, role);
        if !matches!(turn.get("turn_deleted_time"), Value::Null | Value::Text("")) {
            return Err(DELETED);
        }
        let mut speech = Speech { rest, ..Speech::default() };
        turn.fields().for_each(|(key, value)| speech.take(key, value, self.scene));
        let mut parent = self.messages.last().map(|last| last.id.clone());
        if !speech.thoughts.is_empty() {
            let thought = Message {
                id: Cow::Owned(format!("{id}:thoughts")),
                role,
                content: Some(Content::Text(Cow::Owned(speech.thoughts.join("\n\n")))),
                created_at: speech.time,
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
            content: content(speech.texts),
            created_at: speech.time,
            parent,
            attachments: speech.images,
            citations: speech.citations,
            unread: speech.rest.unread().map(Cow::Borrowed),
            raw_metadata: speech.rest.into_json().map(unsigned_json),
            ..Message::default()
        });
        Ok(())
    }

    /// Its number and what is said: edited turns have the number of those before, and deleted ones may be gone from a
    /// later export.
    fn id(&mut self, turn: &Object<'a>, role: Role) -> String {
        let name = if role == Role::User { "user" } else { "model" };
        let said = |key| match turn.get(key) {
            Value::Raw(text) | Value::Text(text) => Some(text),
            Value::Null => None,
        };
        let key = natural_key(&[Some(name), said("turn_index"), said("prompt"), said("text")]);
        let count = self.counts.entry(key.clone()).or_default();
        *count += 1;
        if *count == 1 { key } else { format!("{key}#{count}") }
    }
}

/// What the fields of one turn come to.
#[derive(Default)]
struct Speech<'a> {
    texts: Vec<&'a str>,
    thoughts: Vec<String>,
    time: Option<i64>,
    images: Vec<Attachment<'a>>,
    citations: Vec<Citation<'a>>,
    rest: Leftover<'a>,
}

impl<'a> Speech<'a> {
    fn take(&mut self, key: &'a str, value: Value<'a>, scene: &Scene<'_, 'a>) {
        let arena = scene.arena;
        match (key, value) {
            ("prompt", Value::Text(text)) => self.texts.extend((!text.is_empty()).then_some(text)),
            ("turn_last_modified", Value::Text(text)) => {
                self.time = satchel_importer::json::time_of_text(text).map(|(micros, _)| micros);
                if self.time.is_none() {
                    put(&mut self.rest, key, value, arena);
                }
            }
            ("text", Value::Text(text)) => self.texts.extend((!text.is_empty()).then_some(text)),
            ("text", Value::Raw(raw)) if raw.starts_with('[') => self.take_texts(key, raw, arena),
            ("model_thoughts", Value::Raw(raw)) if raw.starts_with('[') => {
                self.take_thoughts(key, raw, arena);
            }
            ("images", Value::Raw(raw)) if raw.starts_with('[') => self.take_images(key, raw, scene),
            ("citations", Value::Raw(raw)) if raw.starts_with('[') => {
                self.citations.extend(objects(raw, arena).iter().filter_map(citation));
                if raw != "[]" {
                    put(&mut self.rest, key, value, arena);
                }
            }
            ("turn_deleted_time", _) => {}
            _ => self.put_unknown(key, value, arena),
        }
    }

    fn put_unknown(&mut self, key: &'a str, value: Value<'a>, arena: &'a Arena) {
        self.rest.note_unknown(key, value);
        put(&mut self.rest, key, value, arena);
    }

    /// Each block has a preamble, the answer itself and cards; what else it has is kept.
    fn take_texts(&mut self, key: &'a str, raw: &'a str, arena: &'a Arena) {
        let mut kept = Vec::new();
        for item in items(raw, arena) {
            let Some(object) = item.raw().filter(|raw| raw.starts_with('{')) else {
                self.texts.extend(item.words());
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
                        put(&mut rest, key, value, arena);
                    }
                }
            }
            kept.extend(rest.into_json());
        }
        if !kept.is_empty() {
            self.rest.add_json(key, &format!("[{}]", kept.join(",")));
        }
    }

    fn take_cards(&mut self, raw: &'a str, rest: &mut Leftover<'a>, arena: &'a Arena) {
        let mut beside = false;
        for item in items(raw, arena) {
            let card = item.raw().map(|raw| Object::parse(raw, arena)).unwrap_or_default();
            self.texts.extend(card.text("content").or(item.words()));
            for (key, value) in card.fields().filter(|(key, _)| *key != "content") {
                beside = true;
                self.rest.note_unknown(key, value);
            }
        }
        if beside {
            rest.add_json("cards", &private::clean(raw, arena));
        }
    }

    fn take_thoughts(&mut self, key: &'a str, raw: &'a str, arena: &'a Arena) {
        let mut beside = false;
        for item in items(raw, arena) {
            let thought = item.raw().map(|raw| Object::parse(raw, arena)).unwrap_or_default();
            let parts = [
                thought.text("headline").map(|line| format!("**{line}**")),
                thought.text("description").map(ToOwned::to_owned),
            ];
            let text = parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n");
            let text = if text.is_empty() { item.words().unwrap_or_default().to_owned() } else { text };
            beside |= text.is_empty();
            for (key, value) in
                thought.fields().filter(|(key, _)| !matches!(*key, "headline" | "description"))
            {
                beside = true;
                self.rest.note_unknown(key, value);
            }
            self.thoughts.extend((!text.is_empty()).then_some(text));
        }
        if beside {
            self.rest.add_json(key, &private::clean(raw, arena));
        }
    }

    /// Images stand beside the file, under their name and an ending that is not told.
    fn take_images(&mut self, key: &'a str, raw: &'a str, scene: &Scene<'_, 'a>) {
        let folder = names::split(scene.path).0;
        let mut beside = false;
        for item in items(raw, scene.arena) {
            let object = item.raw().map(|raw| Object::parse(raw, scene.arena)).unwrap_or_default();
            let name = item
                .words()
                .or_else(|| ["name", "file_name", "id", "url"].iter().find_map(|key| object.text(key)));
            beside |= item.words().is_none();
            let Some(name) = name else { continue };
            let file = files::find_stem(scene.bundle, folder, name).map_or(Cow::Borrowed(name), |path| {
                Cow::Owned(path.get(folder.len()..).unwrap_or_default().to_owned())
            });
            self.images.push(files::attachment(
                scene.bundle,
                &[folder.to_owned()],
                file,
                None,
                Some(AttachmentKind::Image),
            ));
        }
        if beside {
            self.rest.add_json(key, &private::clean(raw, scene.arena));
        }
    }
}

/// A source by any of the names that Google's exports give its fields.
pub(crate) fn citation<'a>(source: &Object<'a>) -> Option<Citation<'a>> {
    let first = |keys: &[&str]| keys.iter().find_map(|key| source.text(key));
    let url = first(&["uri", "url", "source_url", "link"]).filter(|url| is_uri(url)).map(unsigned);
    let title = first(&["title", "name", "source_title"]).map(Cow::Borrowed);
    let snippet = first(&["snippet", "text", "content"]).map(Cow::Borrowed);
    (url.is_some() || title.is_some() || snippet.is_some()).then_some(Citation { title, url, snippet })
}

/// One text, or several as parts.
pub(crate) fn content<'a>(texts: Vec<&'a str>) -> Option<Content<'a>> {
    match texts.as_slice() {
        [] => None,
        [text] => Some(Content::Text(Cow::Borrowed(text))),
        _ => {
            let part = |text: &'a str| Part { text: Some(Cow::Borrowed(text)), ..Part::default() };
            Some(Content::Multipart(texts.into_iter().map(part).collect()))
        }
    }
}

/// Keeps a value that was read, unless it says nothing or is a secret.
pub(crate) fn put<'a>(rest: &mut Leftover<'a>, key: &'a str, value: Value<'a>, arena: &'a Arena) {
    if private::is_secret(key) {
        return;
    }
    match value {
        Value::Null | Value::Raw("{}") => {}
        Value::Text(text) => rest.add_text(key, text),
        Value::Raw(raw) => rest.add_json(key, &private::clean(raw, arena)),
    }
}
