//! Agents that answer side by side. Parts of their answers are in one list, each with the agent that wrote it and the group of agents
//! that answered together.

use std::{borrow::Cow, collections::BTreeMap};

use super::object::Parts;

/// Agents of one message that get a message of their own. LibreChat has at most a handful.
const MAX_OTHERS: usize = 100;
/// What separates an agent from the number that it has beside others.
const NUMBER: &str = "____";

/// The agents of one message, in the order of their first parts.
#[derive(Debug, Default)]
pub(super) struct Agents<'a> {
    /// The agent of each group whose answer is the message itself.
    first: BTreeMap<Cow<'a, str>, &'a str>,
    /// The others.
    others: Vec<&'a str>,
}

impl<'a> Agents<'a> {
    /// The number of the other agent that wrote a part; none if the part belongs to the message itself.
    ///
    /// It depends only on the parts before, so it stays the same when the answer goes on.
    pub(super) fn place(&mut self, part: &Parts<'a>) -> Option<usize> {
        let agent = part.get("agentId").nonempty_text()?;
        let group = part.get("groupId");
        let group = group.nonempty_text().or(group.raw())?;
        if self.first.get(group) == Some(&agent) {
            return None;
        }
        if let Some(known) = self.others.iter().position(|other| *other == agent) {
            return Some(known);
        }
        // An agent that was added to a conversation has a number, even if the first one has not answered yet.
        if !is_added(agent) && !self.first.contains_key(group) {
            self.first.insert(group.into(), agent);
            return None;
        }
        (self.others.len() < MAX_OTHERS).then(|| {
            self.others.push(agent);
            self.others.len() - 1
        })
    }
}

/// The id of an agent and its number.
fn numbered(agent: &str) -> (&str, Option<u32>) {
    let split = agent.rsplit_once(NUMBER).and_then(|(id, number)| Some((id, number.parse().ok()?)));
    split.map_or((agent, None), |(id, number)| (id, Some(number)))
}

fn is_added(agent: &str) -> bool {
    numbered(agent).1.is_some_and(|number| number > 0)
}

/// The model of an agent: `openAI__gpt-4o___GPT-4o____1` is a model that the person chose, and any other agent is named by its id.
pub(super) fn model(agent: &str) -> Cow<'_, str> {
    let (id, _) = numbered(agent);
    let model = id.split_once("__").map(|(_, model)| model).filter(|_| !id.starts_with("agent_"));
    let model = model.map(|model| model.split_once("___").map_or(model, |(model, _)| model));
    let Some(model) = model.filter(|model| !model.is_empty()) else { return id.into() };
    // A colon in the name of a model is written as two underscores.
    if model.contains("__") { model.replace("__", ":").into() } else { model.into() }
}

#[cfg(test)]
mod tests {
    use satchel_importer::{Arena, json::Value};

    use super::*;

    fn places(parts: &[(&str, &str)]) -> Vec<Option<usize>> {
        let (arena, mut agents) = (Arena::new(), Agents::default());
        let mut place = |(agent, group): &(&str, &str)| {
            let json = format!(r#"{{"agentId":"{agent}","groupId":{group}}}"#);
            let part = Parts::of(Value::Raw(arena.alloc_str(&json)), &arena).expect("it is an object");
            agents.place(&part)
        };
        parts.iter().map(&mut place).collect()
    }

    #[test]
    fn parts_belong_to_the_first_agent_or_to_others() {
        assert_eq!(
            places(&[("a", "1"), ("b", "1"), ("a", "1"), ("c", "null"), ("c", "1"), ("b", "2"), ("d", "2")]),
            [None, Some(0), None, None, Some(1), Some(0), None]
        );
        assert_eq!(places(&[("b____1", "1"), ("a", "1"), ("b____1", "1")]), [Some(0), None, Some(0)]);
        assert_eq!(places(&[("a____0", "1"), ("b____1", "1"), ("", "1")]), [None, Some(0), None]);
    }

    #[test]
    fn agents_beyond_the_limit_stay_in_the_message() {
        let names: Vec<String> = (0..200).map(|n| format!("a____{}", n + 1)).collect();
        let parts: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
        assert_eq!(places(&parts).into_iter().flatten().max(), Some(MAX_OTHERS - 1));
    }

    #[test]
    fn the_model_is_part_of_the_id() {
        for (agent, expected) in [
            ("anthropic__claude-4____1", "claude-4"),
            ("openAI__gpt-4o___GPT-4o____12", "gpt-4o"),
            ("ollama__llama3__8b___Llama", "llama3:8b"),
            ("agent_abc__x____1", "agent_abc__x"),
            ("agent_abc", "agent_abc"),
            ("__", "__"),
            ("", ""),
        ] {
            assert_eq!(model(agent), expected, "{agent}");
        }
    }
}
