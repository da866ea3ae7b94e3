//! What an export says about memories: the instructions of projects and the requests of tasks, both the person's words.

use satchel_importer::{
    Evidence, Item, JsonError, Leftover, Parser,
    pam::{
        memory::{ExtractionMethod, MemoryType},
        raw::RawObject,
    },
    snapshot,
};

/// Memories of one export; what is more cannot be real and would not fit into the sandbox.
const MAX_MEMORIES: usize = 20_000;
/// PAM `custom_type` of a task's request.
const STANDING_REQUEST: &str = "standing_request";

/// What was found so far. When it was seen is known at the end only: the newest time of the export.
#[derive(Default)]
pub(crate) struct Found {
    memories: Vec<Memory>,
}

struct Memory {
    series: String,
    item: Item,
    account: Option<String>,
    locator: String,
}

/// What came of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Taken,
    /// It should hold a memory and cannot be read.
    Skipped(&'static str),
}

/// The fields of a project or a task that count.
#[derive(Default)]
struct Source<'a> {
    id: Option<&'a str>,
    text: Option<&'a str>,
    account: Option<&'a str>,
    /// Kept in `rest` too.
    name: Option<&'a str>,
    created: Option<i64>,
    updated: Option<i64>,
    rest: Leftover<'a>,
}

impl Found {
    /// Takes `custom_personality` of one item of `projects`, else its name: what a project offers is kept with either.
    pub(crate) fn project(&mut self, json: &mut Parser<'_>, locator: &str) -> Result<Outcome, JsonError> {
        let Some(project) = Source::read(json, &["workspace_id", "id"], &["custom_personality"])? else {
            return Ok(Outcome::Skipped("it is not an object"));
        };
        let (series, mut item, locator) = match (project.words(), project.name) {
            (Some(text), _) => {
                let item = Item::new(text, MemoryType::Instruction);
                ("project_personality", item, format!("{locator}.custom_personality"))
            }
            (None, Some(name)) => ("project", Item::new(name, MemoryType::Project), locator.to_owned()),
            (None, None) => return Ok(Outcome::Skipped("the project has neither instructions nor a name")),
        };
        let Some(id) = project.id else { return Ok(Outcome::Skipped("the project has no workspace_id")) };
        item.scope = Some(format!("project:{id}"));
        Ok(self.push(format!("{series}/{id}"), item, project, locator))
    }

    /// Takes the request of one item of `tasks`.
    pub(crate) fn task(&mut self, json: &mut Parser<'_>, locator: &str) -> Result<Outcome, JsonError> {
        let Some(task) = Source::read(json, &["task_id", "id", "_id"], &["prompt", "instructions"])? else {
            return Ok(Outcome::Skipped("it is not an object"));
        };
        let Some(text) = task.words() else {
            return Ok(Outcome::Skipped("no request of a known form is in it"));
        };
        let Some(id) = task.id else { return Ok(Outcome::Skipped("the task has no id")) };
        let mut item = Item::new(text, MemoryType::Custom);
        item.custom_type = Some(STANDING_REQUEST.to_owned());
        Ok(self.push(format!("task/{id}"), item, task, locator.to_owned()))
    }

    /// All evidence, of `account` where it names no other. It was seen at `newest` (microseconds), the newest time of the
    /// conversations, or at the newest of its own times if that is later.
    pub(crate) fn evidence(self, newest: Option<i64>, account: Option<&str>) -> Vec<Evidence> {
        let own = self.memories.iter().flat_map(|memory| [memory.item.created_at, memory.item.updated_at]);
        let observed = own.flatten().max().max(newest);
        let evidence = |memory: Memory| {
            let mut evidence = snapshot(memory.series, vec![memory.item], observed, memory.locator);
            evidence.account = memory.account.or(account.map(ToOwned::to_owned));
            evidence.extraction_method = ExtractionMethod::ExplicitUserInput;
            evidence
        };
        self.memories.into_iter().map(evidence).collect()
    }

    fn push(&mut self, series: String, mut item: Item, source: Source<'_>, locator: String) -> Outcome {
        if self.memories.len() == MAX_MEMORIES {
            return Outcome::Skipped("there are more projects and tasks than the limit");
        }
        let account = source.account.map(ToOwned::to_owned);
        (item.created_at, item.updated_at) = (source.created, source.updated);
        let rest = source.rest.into_json().map(satchel_importer::address::unsigned_json);
        item.metadata = rest.and_then(|rest| RawObject::parse(rest.into_owned()).ok());
        self.memories.push(Memory { series, item, account, locator });
        Outcome::Taken
    }
}

impl<'a> Source<'a> {
    fn read(json: &mut Parser<'a>, ids: &[&str], texts: &[&str]) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            let rest = &mut it.rest;
            if it.id.is_none() && ids.contains(&key) {
                it.id = rest.words(key, json)?;
            } else if it.text.is_none() && texts.contains(&key) {
                it.text = rest.words(key, json)?;
            } else if key == "name" {
                it.name = rest.keep_and_read(key, json)?.words().filter(|name| !name.trim().is_empty());
            } else {
                match key {
                    "user_id" => it.account = rest.words(key, json)?,
                    "create_time" => it.created = rest.time(key, json)?,
                    "modify_time" => it.updated = rest.time(key, json)?,
                    _ => rest.keep(key, json)?,
                }
            }
        }
        json.end()?;
        Ok(Some(it))
    }

    fn words(&self) -> Option<&'a str> {
        self.text.map(str::trim).filter(|text| !text.is_empty())
    }
}
