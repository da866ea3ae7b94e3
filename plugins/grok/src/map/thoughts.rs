//! Reasoning that comes with an answer, as messages of its own between question and answer.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Content, JsonError, Leftover, Message, Parser, Role, address::unsigned_json, json::Value,
};

use crate::raw::{Response, visit};

/// Where an agent's words are.
const WORDS: &str = "thinking_trace";

/// Appends a message for each thought of `raw`, the first answering `parent`; gives what the answer itself answers.
pub(super) fn add<'a>(
    raw: &mut Response<'a>,
    id: &str,
    role: Role,
    parent: Option<Cow<'a, str>>,
    arena: &'a Arena,
    messages: &mut Vec<Message<'a>>,
) -> Option<Cow<'a, str>> {
    let mut chain =
        Chain { id, role, of: raw.id, time: raw.thinking_started.or(raw.created), parent, messages };
    let main = raw.thinking.filter(|words| !words.trim().is_empty());
    match main {
        Some(words) => chain.think("thinking", words, Leftover::default()),
        None => raw.thinking.into_iter().for_each(|blank| raw.rest.add_text(WORDS, blank)),
    }
    let (mut index, mut kept) = (0, Vec::new());
    visit(raw.agents, arena, |agent| {
        match Agent::read(agent, arena) {
            // A team of one repeats the thinking of the answer.
            Some(agent) if Some(agent.words) != main => {
                chain.think(&format!("agent:{index}"), agent.words, agent.rest);
            }
            Some(_) => kept.push(agent),
            None => {
                raw.rest.note_unknown("agent_thinking_traces", agent);
                kept.push(agent);
            }
        }
        index += 1;
    });
    let parent = chain.parent;
    if let Some(list) = written(&kept) {
        raw.rest.add_json("agent_thinking_traces", &list);
    }
    parent
}

struct Chain<'a, 'm> {
    id: &'m str,
    role: Role,
    /// The provider's id of the answer.
    of: Option<&'a str>,
    time: Option<i64>,
    parent: Option<Cow<'a, str>>,
    messages: &'m mut Vec<Message<'a>>,
}

impl<'a> Chain<'a, '_> {
    fn think(&mut self, name: &str, words: &'a str, mut rest: Leftover<'a>) {
        if let Some(of) = self.of {
            rest.add_text("response_id", of);
        }
        let id: Cow<'a, str> = format!("{}:{name}", self.id).into();
        let parent = self.parent.replace(id.clone());
        self.messages.push(Message {
            id,
            role: self.role,
            content: Some(Content::Text(words.into())),
            created_at: self.time,
            parent,
            is_thought: true,
            raw_metadata: rest.into_json().map(unsigned_json),
            ..Message::default()
        });
    }
}

/// What one of several agents thought.
struct Agent<'a> {
    words: &'a str,
    rest: Leftover<'a>,
}

impl<'a> Agent<'a> {
    /// Reads an item; none if no words are found in it.
    fn read(item: Value<'a>, arena: &'a Arena) -> Option<Self> {
        let (mut words, mut rest) = (item.text(), Leftover::default());
        if let Some(raw) = item.raw() {
            let mut json = Parser::new(raw, arena);
            let mut read = || -> Result<(), JsonError> {
                if json.enter_object()? {
                    while let Some(key) = json.key()? {
                        match key {
                            WORDS => words = rest.text(key, &mut json)?,
                            _ => rest.keep(key, &mut json)?,
                        }
                    }
                }
                Ok(())
            };
            // The value was walked when it was taken, so there is no error.
            read().unwrap_or_default();
        }
        let words = words.filter(|words| !words.trim().is_empty())?;
        Some(Self { words, rest })
    }
}

/// A list as JSON text; none if nothing is in it.
fn written(items: &[Value<'_>]) -> Option<String> {
    let written: Vec<Cow<'_, str>> = items.iter().map(|item| super::cards::written(*item)).collect();
    (!written.is_empty()).then(|| format!("[{}]", written.join(",")))
}
