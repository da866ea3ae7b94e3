//! What a person wrote for Claude to follow inside a project.

use satchel_importer::{
    Item, JsonError, Leftover, Parser,
    pam::memory::{ExtractionMethod, MemoryType},
    snapshot,
};

use super::{Found, Origin, metadata};

/// The fields of a project that count.
#[derive(Default)]
struct Project<'a> {
    uuid: Option<&'a str>,
    prompt: Option<&'a str>,
    created: Option<i64>,
    updated: Option<i64>,
    creator: Option<&'a str>,
    /// Made by the provider, to show what projects are.
    starter: bool,
    documents: usize,
    rest: Leftover<'a>,
}

/// Reads one project.
pub(crate) fn read(json: &mut Parser<'_>, origin: &Origin<'_>, locator: &str) -> Result<Found, JsonError> {
    let mut found = Found::default();
    let Some(project) = Project::read(json)? else {
        found.skipped.push((locator.to_owned(), "it is not an object".to_owned()));
        return Ok(found);
    };
    if project.documents > 0 {
        let message =
            format!("project documents are not read yet; {} of them are not imported", project.documents);
        found.warnings.push((format!("{locator}.docs"), message));
    }
    let Some(prompt) = project.prompt.map(str::trim).filter(|prompt| !prompt.is_empty()) else {
        found.warnings.push((
            locator.to_owned(),
            "the project has no instructions; its name is not imported".to_owned(),
        ));
        return Ok(found);
    };
    let Some(uuid) = project.uuid else {
        found.skipped.push((locator.to_owned(), "the project has no uuid".to_owned()));
        return Ok(found);
    };
    if project.starter {
        found.skipped.push((
            locator.to_owned(),
            "the provider wrote these instructions, to show what projects are".to_owned(),
        ));
        return Ok(found);
    }
    let mut item = Item::new(prompt, MemoryType::Instruction);
    item.scope = Some(format!("project:{uuid}"));
    item.updated_at = project.updated;
    item.metadata = metadata(project.rest);
    let at = project.updated.or(project.created).or(origin.observed);
    let locator = format!("{locator}.prompt_template");
    let mut evidence = snapshot(format!("project_prompt/{uuid}"), vec![item], at, locator);
    evidence.account = project.creator.or(origin.owner).map(ToOwned::to_owned);
    evidence.extraction_method = ExtractionMethod::ExplicitUserInput;
    found.push(evidence);
    Ok(found)
}

impl<'a> Project<'a> {
    fn read(json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self::default();
        while let Some(key) = json.key()? {
            it.field(key, json)?;
        }
        json.end()?;
        Ok(Some(it))
    }

    fn field(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let rest = &mut self.rest;
        match key {
            "uuid" => self.uuid = rest.words(key, json)?,
            "prompt_template" => self.prompt = rest.text(key, json)?,
            "created_at" => self.created = rest.time(key, json)?,
            "updated_at" => self.updated = rest.time(key, json)?,
            "is_starter_project" => self.starter = rest.bool(key, json)?.unwrap_or_default(),
            "creator" if rest.object(key, json)? => {
                while let Some(key) = json.key()? {
                    if key == "uuid" {
                        self.creator = rest.text(key, json)?;
                    }
                }
            }
            "docs" if rest.array(key, json)? => {
                while json.item()? {
                    self.documents += 1;
                }
            }
            _ if json.pending() => rest.keep(key, json)?,
            _ => {}
        }
        Ok(())
    }
}
