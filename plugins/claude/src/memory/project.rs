//! What a person wrote for Claude to follow inside a project.

use satchel_importer::{
    Item, Leftover,
    pam::{
        memory::{ExtractionMethod, MemoryType},
        raw::RawObject,
    },
    snapshot,
};

use super::{Found, Origin};
use crate::raw::Project;

/// The evidence that one project gives; `kept` is what is left of it as JSON text.
pub(crate) fn evidence(
    project: &Project<'_>,
    origin: &Origin<'_>,
    kept: Option<&str>,
    locator: &str,
) -> Found {
    let mut found = Found::default();
    let Some(prompt) = project.prompt.map(str::trim).filter(|prompt| !prompt.is_empty()) else {
        return found;
    };
    let Some(uuid) = project.uuid else {
        found.skipped.push((locator.to_owned(), "the project has no uuid".to_owned()));
        return found;
    };
    if project.starter {
        found.skipped.push((
            locator.to_owned(),
            "the provider wrote these instructions, to show what projects are".to_owned(),
        ));
        return found;
    }
    let mut item = Item::new(prompt, MemoryType::Instruction);
    item.scope = Some(format!("project:{uuid}"));
    (item.created_at, item.updated_at) = (project.created, project.updated);
    item.metadata = metadata(project, kept);
    let at = project.updated.or(project.created).or(origin.observed);
    let locator = format!("{locator}.prompt_template");
    let mut evidence = snapshot(format!("project_prompt/{uuid}"), vec![item], at, locator);
    evidence.account = project.creator.or(origin.owner).map(ToOwned::to_owned);
    evidence.extraction_method = ExtractionMethod::ExplicitUserInput;
    found.push(evidence);
    found
}

/// The memory tells of its project by itself: whoever exports memories alone has no conversations.
fn metadata(project: &Project<'_>, kept: Option<&str>) -> Option<RawObject> {
    let mut all = Leftover::default();
    for (key, text) in [("name", project.name), ("description", project.description)] {
        if let Some(text) = text {
            all.add_text(key, text);
        }
    }
    let told = all.into_json();
    let text = match (told, kept) {
        (Some(told), Some(kept)) => {
            let (Some(told), Some(kept)) = (told.strip_suffix('}'), kept.strip_prefix('{')) else {
                return None;
            };
            format!("{told},{kept}")
        }
        (Some(told), None) => told.into_owned(),
        (None, kept) => kept?.to_owned(),
    };
    RawObject::parse(text).ok()
}
