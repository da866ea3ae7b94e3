//! The export's own structures. Any field may be absent, null or of another type.

use std::collections::BTreeSet;

use satchel_importer::{
    Arena, JsonError, Leftover, Parser,
    json::{Kind, Object, Value, items, time_of_text},
};

mod message;
mod nodes;

pub(crate) use message::Message;
pub(crate) use nodes::{Layout, Node};

/// One chat: a row of the program's table `chat`, and in it the chat itself; or the chat alone.
#[derive(Debug, Default)]
pub(crate) struct Chat<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) user: Option<&'a str>,
    pub(crate) title: Option<&'a str>,
    pub(crate) created: Option<i64>,
    pub(crate) updated: Option<i64>,
    pub(crate) archived: bool,
    /// As the person wrote them.
    pub(crate) tags: Vec<&'a str>,
    /// The model, if only one was chosen.
    pub(crate) model: Option<&'a str>,
    pub(crate) system: Option<&'a str>,
    /// The ids of the current message, the one that counts first.
    pub(crate) current: Vec<&'a str>,
    pub(crate) layout: Layout,
    /// Whether the chat is inside a row.
    pub(crate) inside: bool,
    pub(crate) nodes: Vec<Node<'a>>,
    /// The fields of the row that have no place above.
    pub(crate) rest: Leftover<'a>,
}

/// Fields of the chat, which may be inside the row or at its place.
#[derive(Debug, Default)]
struct Inner<'a> {
    id: Option<&'a str>,
    title: Option<&'a str>,
    created: Option<i64>,
    /// Of old versions.
    system: Option<&'a str>,
    /// `params` with the system prompt.
    params: Option<(&'a str, Params<'a>)>,
    current: Option<&'a str>,
    /// The list `messages`, as JSON text.
    listed: Option<&'a str>,
    rest: Leftover<'a>,
}

impl<'a> Chat<'a> {
    /// Reads one element; none if it is not an object.
    pub(crate) fn read(json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let (mut it, mut inner) = (Self::default(), Inner::default());
        let mut row_current = None;
        while let Some(key) = json.key()? {
            let rest = &mut it.rest;
            match key {
                "chat" if rest.object(key, json)? => {
                    it.inside = true;
                    while let Some(key) = json.key()? {
                        it.read_inner(&mut inner, key, json)?;
                    }
                }
                // It was kept.
                "chat" => {}
                "id" => it.id = rest.nonempty_text(key, json)?,
                "user_id" => it.user = rest.nonempty_text(key, json)?,
                "title" => it.title = rest.text(key, json)?,
                "created_at" => it.created = rest.time(key, json)?,
                "updated_at" => it.updated = rest.time(key, json)?,
                "archived" => it.archived = rest.bool(key, json)?.unwrap_or_default(),
                "current_message_id" => row_current = rest.nonempty_text(key, json)?,
                "meta" => {
                    let meta = rest.keep_and_read(key, json)?.raw();
                    let meta = meta.map(|raw| Object::parse(raw, json.arena())).unwrap_or_default();
                    it.tags.extend(tags(meta.get("tags"), json.arena()));
                }
                "share_id" | "pinned" | "folder_id" | "folder_path" | "variables" | "tasks" | "summary"
                | "last_read_at" | "timer_at" | "context_usage" => rest.keep(key, json)?,
                _ => it.read_inner(&mut inner, key, json)?,
            }
        }
        json.end()?;
        it.finish(inner, row_current, json.arena())?;
        Ok(Some(it))
    }

    /// The ids of parents of the messages behind the first `start` ones that no message has. `known` has the ids of those before, and gets
    /// the others.
    pub(crate) fn absent_parents(&self, start: usize, known: &mut BTreeSet<&'a str>) -> BTreeSet<&'a str> {
        let new = self.nodes.get(start..).unwrap_or_default();
        known.extend(new.iter().map(|node| node.key));
        let parents = new.iter().filter_map(|node| node.kept()?.parent);
        parents.filter(|parent| !known.contains(parent)).collect()
    }

    /// Adds messages that are stored beside the chat: an object by their ids, as in a tree.
    pub(crate) fn add_messages(&mut self, messages: &'a str, arena: &'a Arena) -> Result<(), JsonError> {
        let json = &mut Parser::new(messages, arena);
        let (mut nodes, layout) = nodes::read(&mut self.rest, "chat_message", json)?;
        if self.nodes.is_empty() {
            self.layout = layout;
        }
        self.nodes.append(&mut nodes);
        nodes::check_count(&self.nodes, json)
    }

    fn read_inner(
        &mut self,
        inner: &mut Inner<'a>,
        key: &'a str,
        json: &mut Parser<'a>,
    ) -> Result<(), JsonError> {
        let rest = &mut inner.rest;
        match key {
            "id" => inner.id = rest.nonempty_text(key, json)?,
            "title" => inner.title = rest.text(key, json)?,
            "timestamp" => {
                // More exact than the time of the row, which is in seconds: kept beside it.
                let value = rest.keep_and_read(key, json)?;
                let text = value.text().or_else(|| value.raw());
                inner.created = text.and_then(time_of_text).map(|(time, _)| time);
            }
            "models" => self.model = read_models(rest, key, json)?,
            "system" => inner.system = rest.nonempty_text(key, json)?,
            "params" => {
                let entered = rest.object(key, json)?;
                inner.params = entered.then(|| Params::read(json)).transpose()?.map(|params| (key, params));
            }
            "tags" => {
                let value = Value::read(json)?;
                keep_filled(rest, key, value);
                self.tags.extend(tags(value, json.arena()));
            }
            "currentId" => inner.current = rest.nonempty_text(key, json)?,
            "history" => self.read_history(inner, key, json)?,
            "messages" if json.kind()? == Kind::Array => inner.listed = Some(json.raw_value()?),
            "files" | "options" | "originalChatId" | "branchPointMessageId" => {
                let value = Value::read(json)?;
                keep_filled(rest, key, value);
            }
            _ => rest.keep_unknown(key, json)?,
        }
        Ok(())
    }

    fn read_history(
        &mut self,
        inner: &mut Inner<'a>,
        key: &'a str,
        json: &mut Parser<'a>,
    ) -> Result<(), JsonError> {
        if !inner.rest.object(key, json)? {
            return Ok(());
        }
        let mut rest = Leftover::default();
        while let Some(key) = json.key()? {
            match key {
                "messages" => {
                    (self.nodes, self.layout) = nodes::read(&mut rest, key, json)?;
                }
                "currentId" => {
                    let id = rest.nonempty_text(key, json)?;
                    self.current.splice(.., id);
                }
                _ => rest.keep_unknown(key, json)?,
            }
        }
        if let Some(unread) = rest.unread() {
            inner.rest.mark_unread(unread);
        }
        if let Some(json) = rest.into_json() {
            inner.rest.add_json(key, &json);
        }
        Ok(())
    }

    /// Joins the fields of the row and those of the chat: the row counts, and other values of the chat are kept.
    fn finish(
        &mut self,
        mut inner: Inner<'a>,
        row_current: Option<&'a str>,
        arena: &'a Arena,
    ) -> Result<(), JsonError> {
        if let Some(listed) = inner.listed {
            nodes::add_listed(self, listed, arena)?;
        }
        for (key, row, own) in [("id", self.id, inner.id), ("title", self.title, inner.title)] {
            if let Some(own) = own.filter(|own| row.is_some_and(|row| row != *own)) {
                inner.rest.add_text(key, own);
            }
        }
        self.id = self.id.or(inner.id);
        self.title = self.title.or(inner.title);
        self.created = self.created.or(inner.created);
        self.system = inner.finish_params();
        self.current.extend(inner.current.into_iter().chain(row_current));
        if let Some(unread) = inner.rest.unread() {
            self.rest.mark_unread(unread);
        }
        if let Some(json) = inner.rest.into_json() {
            self.rest.add_json("chat", &json);
        }
        Ok(())
    }
}

/// The parameters of a chat.
#[derive(Debug, Default)]
struct Params<'a> {
    system: Option<&'a str>,
    rest: Leftover<'a>,
}

impl<'a> Params<'a> {
    /// Reads the object that was entered.
    fn read(json: &mut Parser<'a>) -> Result<Self, JsonError> {
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            match key {
                "system" => it.system = it.rest.nonempty_text(key, json)?,
                _ => it.rest.keep_unknown(key, json)?,
            }
        }
        Ok(it)
    }
}

impl<'a> Inner<'a> {
    /// Keeps the parameters and returns the system prompt: of two different ones that of the parameters, which is newer.
    fn finish_params(&mut self) -> Option<&'a str> {
        let Some((key, params)) = self.params.take() else { return self.system };
        if let Some(older) = self.system.filter(|older| params.system.is_some_and(|newer| newer != *older)) {
            self.rest.add_text("system", older);
        }
        if let Some(unread) = params.rest.unread() {
            self.rest.mark_unread(unread);
        }
        let system = params.system.or(self.system);
        if let Some(json) = params.rest.into_json() {
            self.rest.add_json(key, &json);
        }
        system
    }
}

/// The only model of a list; any other list is kept.
fn read_models<'a>(
    rest: &mut Leftover<'a>,
    key: &'a str,
    json: &mut Parser<'a>,
) -> Result<Option<&'a str>, JsonError> {
    let value = Value::read(json)?;
    let listed = value.raw().map(|raw| items(raw, json.arena())).unwrap_or_default();
    if let [only] = listed.as_slice()
        && let Some(model) = only.nonempty_text()
    {
        return Ok(Some(model));
    }
    keep_filled(rest, key, value);
    Ok(None)
}

/// Keeps a value unless it is empty.
fn keep_filled<'a>(rest: &mut Leftover<'a>, key: &'a str, value: Value<'a>) {
    if !matches!(value, Value::Null | Value::Raw("[]" | "{}")) {
        rest.add_json(key, &value.json());
    }
}

/// Tags are texts; old versions have objects with a name.
fn tags<'a>(list: Value<'a>, arena: &'a Arena) -> impl Iterator<Item = &'a str> {
    let listed = list.raw().map(|raw| items(raw, arena)).unwrap_or_default();
    listed.into_iter().filter_map(move |item| match item {
        Value::Text(tag) => Some(tag),
        Value::Raw(raw) => Object::parse(raw, arena).text("name"),
        Value::Null => None,
    })
}
