//! Codex tasks: a request, and what the agent did in a repository. Each is read as a conversation of its own.

use std::{borrow::Cow, collections::BTreeSet};

use satchel_importer::{
    Arena, Citation, Content, Conversation, Element, ImportError, JsonError, Leftover, Message, Parser, Part,
    PartKind,
    address::unsigned_json,
    json::{Object, Value, items},
    natural_key,
    order::{SORTED, sort_by_time},
};

use crate::map::{self, Context, Records};

/// PAM tag of these conversations.
const TAG: &str = "codex-task";
/// Keys of the lists in a turn.
const LISTS: [&str; 2] = ["input_items", "output_items"];
/// Fields of an item that are read.
const ITEM: [&str; 7] = ["type", "content", "text", "pr_title", "pr_message", "output_diff", "diff"];

/// One task.
#[derive(Debug, Default)]
struct Task<'a> {
    id: Option<&'a str>,
    title: Option<&'a str>,
    created: Option<i64>,
    updated: Option<i64>,
    turns: Vec<Turn<'a>>,
    /// Items of `turns` that are no objects: their numbers.
    odd: Vec<usize>,
    rest: Leftover<'a>,
}

/// One turn.
#[derive(Debug, Default)]
struct Turn<'a> {
    /// Its place in the list, counting those that are no objects.
    at: usize,
    id: Option<&'a str>,
    role: Option<&'a str>,
    created: Option<i64>,
    parts: Vec<Part<'a>>,
    citations: Vec<Citation<'a>>,
    rest: Leftover<'a>,
}

/// Reads one task.
pub(crate) fn read<'a>(element: &Element<'a>, context: &Context<'a>) -> Result<Records<'a>, ImportError> {
    let mut task =
        Task::read(&mut element.parser())?.ok_or_else(|| ImportError::malformed("it is not an object"))?;
    if task.turns.is_empty() {
        return Err(ImportError::malformed("it holds no turn"));
    }
    let arena = element.arena();
    let locator = element.locator();
    let sorted = sort_by_time(&mut task.turns, |turn| (map::role(turn.role), turn.created));
    let mut warnings: Vec<_> = sorted.then(|| (locator.clone(), SORTED)).into_iter().collect();
    let id = task.key();
    let skipped = task.odd.iter().map(|at| (format!("{locator}.turns[{at}]"), "it is not an object"));
    let skipped = skipped.collect();
    let mut messages: Vec<Message<'a>> = Vec::with_capacity(task.turns.len());
    let mut ids = BTreeSet::new();
    for (number, turn) in task.turns.into_iter().enumerate() {
        if !map::is_role(turn.role) {
            warnings.push((format!("{locator}.turns[{}]", turn.at), map::SPEAKERLESS));
        }
        let parent = messages.last().map(|before| before.id.clone());
        let mut message = turn.message(number, parent, arena);
        // Only a broken export has two turns of one id, or one of none.
        while message.id.is_empty() || !ids.insert(message.id.clone()) {
            message.id = format!("{}#{number}", message.id).into();
        }
        messages.push(message);
    }
    let mut rest = task.rest;
    let conversation = Conversation {
        id,
        provider_conversation_id: task.id.map(Cow::Borrowed),
        account: context.account.map(Cow::Borrowed),
        export_format_version: Some(Cow::Borrowed(context.version)),
        title: task.title.map(Cow::Borrowed),
        created_at: task.created,
        updated_at: task.updated,
        tags: vec![TAG.into()],
        current: messages.last().map(|last| last.id.clone()),
        raw_metadata: rest.take_json(arena).map(unsigned_json),
        locator: Cow::Owned(locator),
        ..Conversation::default()
    };
    Ok(Records { conversation, messages, skipped, warnings, ..Records::default() })
}

impl<'a> Task<'a> {
    fn read(json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            let rest = &mut it.rest;
            match key {
                "id" => it.id = rest.words(key, json)?,
                "title" => it.title = rest.words(key, json)?,
                "created_at" | "create_time" => it.created = rest.time(key, json)?,
                "updated_at" | "update_time" => it.updated = rest.time(key, json)?,
                "turns" => {
                    if rest.array(key, json)? {
                        it.read_turns(json)?;
                    }
                }
                _ => rest.keep(key, json)?,
            }
        }
        json.end()?;
        Ok(Some(it))
    }

    fn read_turns(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
        (self.turns, self.odd) = (Vec::new(), Vec::new());
        let mut number = 0;
        while json.item()? {
            match Turn::read(json)? {
                Some(turn) => self.turns.push(Turn { at: number, ..turn }),
                None => self.odd.push(number),
            }
            number += 1;
        }
        Ok(())
    }

    fn key(&self) -> Cow<'a, str> {
        if let Some(id) = self.id {
            return format!("codex:{id}").into();
        }
        let first = self.turns.first();
        let said = first.and_then(|turn| turn.id.or(turn.parts.first()?.text.as_deref()));
        natural_key(&[Some("codex"), self.title, said]).into()
    }
}

impl<'a> Turn<'a> {
    fn read(json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            match key {
                "id" => it.id = it.rest.words(key, json)?,
                "role" => it.role = it.rest.text(key, json)?,
                "created_at" | "create_time" => it.created = it.rest.time(key, json)?,
                _ if LISTS.contains(&key) => {
                    let list = it.rest.keep_and_read(key, json)?.raw().unwrap_or_default();
                    for item in items(list, json.arena()) {
                        it.add_item(item, json.arena());
                    }
                }
                _ => it.rest.keep_unknown(key, json)?,
            }
        }
        Ok(Some(it))
    }

    /// The words of one item; all of it is kept beside them.
    fn add_item(&mut self, item: Value<'a>, arena: &'a Arena) {
        let Value::Raw(raw) = item else {
            return self.add(PartKind::Text, item.words());
        };
        let item = Object::parse(raw, arena);
        match item.get("content") {
            Value::Text(text) => self.add(PartKind::Text, Some(text)),
            Value::Raw(list) => {
                for entry in items(list, arena) {
                    self.add_content(entry, arena);
                }
            }
            Value::Null => {}
        }
        item.fields()
            .filter(|(key, _)| !ITEM.contains(key))
            .for_each(|(key, value)| self.rest.note_unknown(key, value));
        self.add(PartKind::Text, item.text("text"));
        self.add(PartKind::Text, item.text("pr_title"));
        self.add(PartKind::Text, item.text("pr_message"));
        let diff = item.object("output_diff", arena);
        if let Some(diff) = diff.text("diff").or(item.text("diff")) {
            let text = Some(Cow::Borrowed(diff));
            let language = Some("diff".into());
            self.parts.push(Part { kind: PartKind::Code, text, language, ..Part::default() });
        }
    }

    fn add_content(&mut self, entry: Value<'a>, arena: &'a Arena) {
        let Value::Raw(raw) = entry else {
            return self.add(PartKind::Text, entry.words());
        };
        let entry = Object::parse(raw, arena);
        if let Some(path) = entry.text("path") {
            let line = |key| entry.get(key).as_u64();
            let lines = match (line("line_range_start"), line("line_range_end")) {
                (Some(start), Some(end)) => format!("#L{start}-L{end}"),
                (Some(start), None) => format!("#L{start}"),
                _ => String::new(),
            };
            let title = Some(Cow::Owned(format!("{path}{lines}")));
            self.citations.push(Citation { title, ..Citation::default() });
        }
        self.add(PartKind::Text, entry.text("text"));
    }

    fn add(&mut self, kind: PartKind, text: Option<&'a str>) {
        let Some(text) = text else { return };
        self.parts.push(Part { kind, text: Some(Cow::Borrowed(text)), ..Part::default() });
    }

    fn message(mut self, number: usize, parent: Option<Cow<'a, str>>, arena: &'a Arena) -> Message<'a> {
        let known = matches!(self.role, None | Some("user" | "assistant" | "system" | "tool"));
        if let Some(name) = self.role.filter(|_| !known) {
            self.rest.add_text("role", name);
        }
        let id = self.id.map_or_else(|| Cow::Owned(format!("turn-{number}")), Cow::Borrowed);
        let plain = matches!(self.parts.as_slice(), [part] if part.kind == PartKind::Text);
        let content = match self.parts.pop() {
            Some(Part { text: Some(text), .. }) if plain => Some(Content::Text(text)),
            Some(last) => {
                self.parts.push(last);
                Some(Content::Multipart(self.parts))
            }
            None => None,
        };
        Message {
            id,
            provider_message_id: self.id.map(Cow::Borrowed),
            role: map::role(self.role),
            content,
            created_at: self.created,
            parent,
            citations: self.citations,
            unread: self.rest.unread().map(Cow::Borrowed),
            raw_metadata: self.rest.take_json(arena).map(unsigned_json),
            ..Message::default()
        }
    }
}
