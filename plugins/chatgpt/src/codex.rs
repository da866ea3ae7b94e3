//! Codex tasks: a request, and what the agent did in a repository. Each becomes a conversation.

use std::{borrow::Cow, collections::BTreeSet};

use satchel_importer::{
    Arena, Citation, Element, ImportError, JsonError, Leftover, Message, Parser, Part, PartKind,
    address::unsigned_json,
    json::{Object, Value, items},
    natural_key,
};

use crate::{
    map::{self, Context, Records},
    raw,
    turn_list::TurnList,
};

/// PAM tag of these conversations.
const TAG: &str = "codex-task";
/// Keys of the lists in a turn.
const LISTS: [&str; 2] = ["input_items", "output_items"];
/// Fields of an item that are read.
const ITEM_FIELDS: [&str; 7] = ["type", "content", "text", "pr_title", "pr_message", "output_diff", "diff"];

/// One turn.
#[derive(Debug, Default)]
struct Turn<'a> {
    /// Its index in the list of the file.
    index: usize,
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
        read_task(&mut element.parser())?.ok_or_else(|| ImportError::malformed("it is not an object"))?;
    if task.turns.is_empty() {
        return Err(ImportError::malformed("it holds no turn"));
    }
    let locator = element.locator();
    let mut records = task.sort(&locator, "turns", |turn| (turn.role, turn.created));
    let id = task_id(&task);
    let mut ids = BTreeSet::new();
    for (number, turn) in std::mem::take(&mut task.turns).into_iter().enumerate() {
        if map::known_role(turn.role).is_none() {
            records.warnings.push((format!("{locator}.turns[{}]", turn.index), map::UNKNOWN_ROLE));
        }
        let parent = records.messages.last().map(|before| before.id.clone());
        let mut message = turn.map(number, parent, element.arena());
        // Only a broken export has an empty id or the same id twice.
        while message.id.is_empty() || !ids.insert(message.id.clone()) {
            message.id = format!("{}#{number}", message.id).into();
        }
        records.messages.push(message);
    }
    records.conversation = task.conversation(id, TAG, &records.messages, element, context);
    Ok(records)
}

fn read_task<'a>(json: &mut Parser<'a>) -> Result<Option<TurnList<'a, Turn<'a>>>, JsonError> {
    if !json.enter_object()? {
        return Ok(None);
    }
    let mut task = TurnList::default();
    while let Some(key) = json.key()? {
        let rest = &mut task.rest;
        match key {
            "id" => task.id = rest.nonempty_text(key, json)?,
            "title" => task.title = rest.nonempty_text(key, json)?,
            "created_at" | "create_time" => task.created = rest.time(key, json)?,
            "updated_at" | "update_time" => task.updated = rest.time(key, json)?,
            "turns" => {
                if rest.array(key, json)? {
                    task.read_turns(json, Turn::read)?;
                }
            }
            _ => rest.keep(key, json)?,
        }
    }
    json.end()?;
    Ok(Some(task))
}

fn task_id<'a>(task: &TurnList<'a, Turn<'a>>) -> Cow<'a, str> {
    if let Some(id) = task.id {
        return format!("codex:{id}").into();
    }
    let first = task.turns.first().and_then(|turn| turn.id.or(turn.parts.first()?.text.as_deref()));
    natural_key(&[Some("codex"), task.title, first]).into()
}

impl<'a> Turn<'a> {
    fn read(json: &mut Parser<'a>, index: usize) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self { index, ..Self::default() };
        while let Some(key) = json.key()? {
            match key {
                "id" => it.id = it.rest.nonempty_text(key, json)?,
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

    /// Adds the texts of one item, which is kept as a whole too.
    fn add_item(&mut self, item: Value<'a>, arena: &'a Arena) {
        let Value::Raw(raw) = item else {
            return self.add_text(item.nonempty_text());
        };
        let item = Object::parse(raw, arena);
        match item.get("content") {
            Value::Text(text) => self.add_text(Some(text)),
            Value::Raw(list) => {
                for entry in items(list, arena) {
                    self.add_content(entry, arena);
                }
            }
            Value::Null => {}
        }
        item.fields()
            .filter(|(key, _)| !ITEM_FIELDS.contains(key))
            .for_each(|(key, value)| self.rest.note_unknown(key, value));
        ["text", "pr_title", "pr_message"].into_iter().for_each(|key| self.add_text(item.text(key)));
        let diff = item.object("output_diff", arena);
        if let Some(diff) = diff.text("diff").or(item.text("diff")) {
            let text = Some(Cow::Borrowed(diff));
            let language = Some("diff".into());
            self.parts.push(Part { kind: PartKind::Code, text, language, ..Part::default() });
        }
    }

    fn add_content(&mut self, entry: Value<'a>, arena: &'a Arena) {
        let Value::Raw(raw) = entry else {
            return self.add_text(entry.nonempty_text());
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
        self.add_text(entry.text("text"));
    }

    fn add_text(&mut self, text: Option<&'a str>) {
        let part = |text| Part { text: Some(Cow::Borrowed(text)), ..Part::default() };
        self.parts.extend(text.map(part));
    }

    fn map(mut self, number: usize, parent: Option<Cow<'a, str>>, arena: &'a Arena) -> Message<'a> {
        raw::keep_role(self.role, &mut self.rest);
        let id = self.id.map_or_else(|| Cow::Owned(format!("turn-{number}")), Cow::Borrowed);
        Message {
            id,
            provider_message_id: self.id.map(Cow::Borrowed),
            role: map::role(self.role),
            content: map::content_of(self.parts, false),
            created_at: self.created,
            parent,
            citations: self.citations,
            unread: self.rest.unread().map(Cow::Borrowed),
            raw_metadata: self.rest.take_json(arena).map(unsigned_json),
            ..Message::default()
        }
    }
}
