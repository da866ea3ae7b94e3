//! Memories of an export: the instructions of projects and the requests of tasks, both written by the person.

use satchel_importer::{
    Evidence, ImportError, Item, Leftover, Parser,
    pam::{
        memory::{ExtractionMethod, MemoryType},
        raw::RawObject,
    },
    snapshot,
};

/// Memories of one export. Real exports have fewer, and more would not fit into the sandbox.
const MAX_MEMORIES: usize = 20_000;
/// PAM `custom_type` of a task's request.
const STANDING_REQUEST: &str = "standing_request";

/// The memories found so far. The time at which they were observed, the newest of the export, is known only at the end.
#[derive(Default)]
pub(crate) struct Memories {
    list: Vec<Memory>,
}

struct Memory {
    series: String,
    item: Item,
    account: Option<String>,
    locator: String,
}

/// The fields of a project or a task.
#[derive(Default)]
struct Fields<'a> {
    id: Option<&'a str>,
    text: Option<&'a str>,
    account: Option<&'a str>,
    /// Also kept in `rest`.
    name: Option<&'a str>,
    created: Option<i64>,
    updated: Option<i64>,
    rest: Leftover<'a>,
}

impl Memories {
    /// Adds `custom_personality` of one item of `projects`, else its name; the other fields become the metadata.
    pub(crate) fn add_project(&mut self, json: &mut Parser<'_>, locator: &str) -> Result<(), ImportError> {
        let project = Fields::read(json, &["workspace_id", "id"], &["custom_personality"])?;
        let (series, mut item, locator) = match (project.text(), project.name) {
            (Some(text), _) => {
                let item = Item::new(text, MemoryType::Instruction);
                ("project_personality", item, format!("{locator}.custom_personality"))
            }
            (None, Some(name)) => ("project", Item::new(name, MemoryType::Project), locator.to_owned()),
            (None, None) => {
                return Err(ImportError::malformed("the project has neither instructions nor a name"));
            }
        };
        let id = project.id.ok_or_else(|| ImportError::malformed("the project has no workspace_id"))?;
        item.scope = Some(format!("project:{id}"));
        self.add(format!("{series}/{id}"), item, project, locator)
    }

    /// Adds the request of one item of `tasks`.
    pub(crate) fn add_task(&mut self, json: &mut Parser<'_>, locator: &str) -> Result<(), ImportError> {
        let task = Fields::read(json, &["task_id", "id", "_id"], &["prompt", "instructions"])?;
        let text =
            task.text().ok_or_else(|| ImportError::malformed("no request of a known form is in it"))?;
        let id = task.id.ok_or_else(|| ImportError::malformed("the task has no id"))?;
        let mut item = Item::new(text, MemoryType::Custom);
        item.custom_type = Some(STANDING_REQUEST.to_owned());
        self.add(format!("task/{id}"), item, task, locator.to_owned())
    }

    /// All evidence, of `account` where an item names no other. It was observed at `newest` (microseconds), the newest time
    /// of the conversations, or at the newest of its own times if that is later.
    pub(crate) fn evidence(self, newest: Option<i64>, account: Option<&str>) -> Vec<Evidence> {
        let times = self.list.iter().flat_map(|memory| [memory.item.created_at, memory.item.updated_at]);
        let observed = times.flatten().max().max(newest);
        let evidence = |memory: Memory| {
            let mut evidence = snapshot(memory.series, vec![memory.item], observed, memory.locator);
            evidence.account = memory.account.or(account.map(ToOwned::to_owned));
            evidence.extraction_method = ExtractionMethod::ExplicitUserInput;
            evidence
        };
        self.list.into_iter().map(evidence).collect()
    }

    fn add(
        &mut self,
        series: String,
        mut item: Item,
        raw: Fields<'_>,
        locator: String,
    ) -> Result<(), ImportError> {
        if self.list.len() == MAX_MEMORIES {
            return Err(ImportError::malformed("there are more projects and tasks than the limit"));
        }
        let account = raw.account.map(ToOwned::to_owned);
        (item.created_at, item.updated_at) = (raw.created, raw.updated);
        let rest = raw.rest.into_json().map(satchel_importer::address::unsigned_json);
        item.metadata = rest.and_then(|rest| RawObject::parse(rest.into_owned()).ok());
        self.list.push(Memory { series, item, account, locator });
        Ok(())
    }
}

impl<'a> Fields<'a> {
    fn read(json: &mut Parser<'a>, ids: &[&str], texts: &[&str]) -> Result<Self, ImportError> {
        if !json.enter_object()? {
            return Err(ImportError::malformed("it is not an object"));
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            let rest = &mut it.rest;
            if it.id.is_none() && ids.contains(&key) {
                it.id = rest.nonempty_text(key, json)?;
            } else if it.text.is_none() && texts.contains(&key) {
                it.text = rest.nonempty_text(key, json)?;
            } else if key == "name" {
                it.name =
                    rest.keep_and_read(key, json)?.nonempty_text().filter(|name| !name.trim().is_empty());
            } else {
                match key {
                    "user_id" => it.account = rest.nonempty_text(key, json)?,
                    "create_time" => it.created = rest.time(key, json)?,
                    "modify_time" => it.updated = rest.time(key, json)?,
                    _ => rest.keep(key, json)?,
                }
            }
        }
        json.end()?;
        Ok(it)
    }

    fn text(&self) -> Option<&'a str> {
        self.text.map(str::trim).filter(|text| !text.is_empty())
    }
}
