//! Reasoning of an answer, as messages between the question and the answer.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Content, JsonError, Leftover, Message, Parser, Role, address::unsigned_json, json::Value,
};

use crate::raw::{Response, visit};

/// The key of an agent's text.
const TRACE: &str = "thinking_trace";

/// Appends a message for each thought of `raw`, the first below `parent`; returns the parent of the answer.
pub(super) fn add<'a>(
    raw: &mut Response<'a>,
    id: &str,
    role: Role,
    parent: Option<Cow<'a, str>>,
    arena: &'a Arena,
    messages: &mut Vec<Message<'a>>,
) -> Option<Cow<'a, str>> {
    let mut chain =
        Chain { id, role, response_id: raw.id, time: raw.thinking_started.or(raw.created), parent, messages };
    let own = raw.thinking.filter(|text| !text.trim().is_empty());
    match own {
        Some(text) => chain.push("thinking", text, Leftover::default()),
        None => raw.thinking.into_iter().for_each(|blank| raw.rest.add_text(TRACE, blank)),
    }
    let (mut index, mut unread) = (0, Vec::new());
    visit(raw.agents, arena, |agent| {
        match read_agent(agent, arena) {
            // A single agent repeats the thinking of the answer.
            Some((text, rest)) if Some(text) != own => chain.push(&format!("agent:{index}"), text, rest),
            Some(_) => unread.push(agent.json()),
            None => {
                raw.rest.note_unknown("agent_thinking_traces", agent);
                unread.push(agent.json());
            }
        }
        index += 1;
    });
    let parent = chain.parent;
    if !unread.is_empty() {
        raw.rest.add_json("agent_thinking_traces", &format!("[{}]", unread.join(",")));
    }
    parent
}

struct Chain<'a, 'm> {
    id: &'m str,
    role: Role,
    /// The provider's id of the answer.
    response_id: Option<&'a str>,
    time: Option<i64>,
    parent: Option<Cow<'a, str>>,
    messages: &'m mut Vec<Message<'a>>,
}

impl<'a> Chain<'a, '_> {
    fn push(&mut self, name: &str, text: &'a str, mut rest: Leftover<'a>) {
        if let Some(id) = self.response_id {
            rest.add_text("response_id", id);
        }
        let id: Cow<'a, str> = format!("{}:{name}", self.id).into();
        let parent = self.parent.replace(id.clone());
        self.messages.push(Message {
            id,
            role: self.role,
            content: Some(Content::Text(text.into())),
            created_at: self.time,
            parent,
            is_thought: true,
            raw_metadata: rest.into_json().map(unsigned_json),
            ..Message::default()
        });
    }
}

/// Reads the thought of one of several agents; none if it has no text.
fn read_agent<'a>(item: Value<'a>, arena: &'a Arena) -> Option<(&'a str, Leftover<'a>)> {
    let (mut text, mut rest) = (item.text(), Leftover::default());
    if let Some(raw) = item.raw() {
        let mut json = Parser::new(raw, arena);
        let mut read = || -> Result<(), JsonError> {
            if json.enter_object()? {
                while let Some(key) = json.key()? {
                    match key {
                        TRACE => text = rest.text(key, &mut json)?,
                        _ => rest.keep(key, &mut json)?,
                    }
                }
            }
            Ok(())
        };
        // The value was checked when it was read.
        read().unwrap_or_default();
    }
    Some((text.filter(|text| !text.trim().is_empty())?, rest))
}
