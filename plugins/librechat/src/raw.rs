//! The export's own structures. Any field may be absent, null or of another type.

use std::collections::BTreeSet;

use satchel_importer::{
    Arena, JsonError, Leftover, Parser,
    json::{Kind, items, texts},
};

use crate::split::{Item, Split};

mod copies;
mod message;
mod nodes;

pub(crate) use message::Message;
pub(crate) use nodes::{MAX_ID, Node, key_of};

/// The settings that are kept and may contain natural language, or names that look like it.
const SETTINGS: [&str; 12] = [
    "additional_instructions",
    "agentOptions",
    "artifacts",
    "chatGptLabel",
    "context",
    "examples",
    "greeting",
    "modelLabel",
    "presetOverride",
    "spec",
    "tools",
    "userLabel",
];

/// One conversation.
#[derive(Debug, Default)]
pub(crate) struct Export<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) title: Option<&'a str>,
    pub(crate) created: Option<i64>,
    pub(crate) updated: Option<i64>,
    pub(crate) options: Options<'a>,
    pub(crate) nodes: Vec<Node<'a>>,
    /// Places of all items of the lists, for locators.
    pub(crate) items: Vec<Item<'a>>,
    /// Messages that the file has a second time.
    pub(crate) copies: usize,
    /// Fields in which these differ from the first ones.
    pub(crate) differing: BTreeSet<&'a str>,
    /// Whether different messages have the same id.
    pub(crate) clashes: bool,
    /// Keys that an object has twice.
    pub(crate) repeated: BTreeSet<&'a str>,
    /// Fields that have no place above.
    pub(crate) rest: Leftover<'a>,
}

/// The settings of a conversation, if the person exported them.
#[derive(Debug, Default)]
pub(crate) struct Options<'a> {
    pub(crate) model: Option<&'a str>,
    pub(crate) system: Option<&'a str>,
    pub(crate) archived: bool,
    /// As the person wrote them.
    pub(crate) tags: Vec<&'a str>,
}

impl<'a> Export<'a> {
    /// Reads the parts of one export.
    pub(crate) fn read(split: Split<'a>, arena: &'a Arena) -> Result<Self, JsonError> {
        let mut it = Self { repeated: split.repeated, ..Self::default() };
        let mut json = Parser::new(split.root, arena);
        if json.enter_object()? {
            while let Some(key) = json.key()? {
                it.read_field(key, &mut json)?;
            }
        }
        json.end()?;
        nodes::read(&mut it, split.items, arena);
        Ok(it)
    }

    fn read_field(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let rest = &mut self.rest;
        match key {
            "conversationId" => self.id = rest.nonempty_text(key, json)?,
            "title" => self.title = rest.text(key, json)?,
            "createdAt" => self.created = rest.time(key, json)?,
            "updatedAt" => self.updated = rest.time(key, json)?,
            "options" if json.kind()? == Kind::Object => self.read_options(key, json)?,
            // The lists were cut out: what is left of one is empty.
            "messages" | "messagesTree" if json.kind()? == Kind::Array => {
                let list = json.raw_value()?;
                if list != "[]" && !items(list, json.arena()).is_empty() {
                    rest.mark_unread(key);
                    rest.add_json(key, list);
                }
            }
            "endpoint" | "exportAt" | "branches" | "recursive" => rest.keep(key, json)?,
            _ => rest.keep_unknown(key, json)?,
        }
        Ok(())
    }

    fn read_options(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let (options, mut rest) = (&mut self.options, Leftover::default());
        let mut prompts = [("promptPrefix", None), ("system", None), ("instructions", None)];
        json.enter_object()?;
        while let Some(key) = json.key()? {
            if let Some((_, prompt)) = prompts.iter_mut().find(|(name, _)| *name == key) {
                *prompt = rest.nonempty_text(key, json)?;
                continue;
            }
            match key {
                "model" => options.model = rest.nonempty_text(key, json)?,
                "isArchived" => options.archived = rest.bool(key, json)?.unwrap_or_default(),
                "tags" => {
                    let list = rest.keep_and_read(key, json)?.raw().unwrap_or_default();
                    options.tags = texts(list, json.arena());
                }
                "title" => {
                    let title = rest.nonempty_text(key, json)?;
                    if let Some(title) = title.filter(|title| self.title != Some(title)) {
                        rest.add_text(key, title);
                    }
                }
                _ if SETTINGS.contains(&key) => rest.keep(key, json)?,
                _ => rest.keep_unknown(key, json)?,
            }
        }
        options.system = prompts.iter().find_map(|(_, prompt)| *prompt);
        let others = prompts.iter().filter_map(|(key, prompt)| Some((*key, (*prompt)?))).skip(1);
        others.for_each(|(key, prompt)| rest.add_text(key, prompt));
        if let Some(unread) = rest.unread() {
            self.rest.mark_unread(unread);
        }
        if let Some(json) = rest.into_json() {
            self.rest.add_json(key, &json);
        }
        Ok(())
    }
}
