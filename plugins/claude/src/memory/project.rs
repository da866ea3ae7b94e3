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
///
/// A project without instructions and documents is a memory itself: nothing was said in it, so it is no conversation.
pub(crate) fn evidence(
    project: &Project<'_>,
    origin: &Origin<'_>,
    kept: Option<&str>,
    locator: &str,
) -> Found {
    let mut found = Found::default();
    let said = project.prompt.map(str::trim).filter(|prompt| !prompt.is_empty());
    let (series, item, place) = match (said, about(project)) {
        (Some(prompt), _) => {
            ("project_prompt", Item::new(prompt, MemoryType::Instruction), ".prompt_template")
        }
        (None, _) if !project.documents.is_empty() => return found,
        (None, Some(about)) => ("project", Item::new(about, MemoryType::Project), ""),
        (None, None) => {
            let reason = "the project has neither instructions nor documents, description or name";
            found.skipped.push((locator.to_owned(), reason.to_owned()));
            return found;
        }
    };
    let Some(uuid) = project.uuid else {
        found.skipped.push((locator.to_owned(), "the project has no uuid".to_owned()));
        return found;
    };
    let item = Item {
        scope: Some(format!("project:{uuid}")),
        created_at: project.created,
        updated_at: project.updated,
        metadata: metadata(project, kept),
        ..item
    };
    let at = project.updated.or(project.created).or(origin.observed);
    let mut evidence = snapshot(format!("{series}/{uuid}"), vec![item], at, format!("{locator}{place}"));
    evidence.account = project.creator.or(origin.owner).map(ToOwned::to_owned);
    evidence.extraction_method = ExtractionMethod::ExplicitUserInput;
    found.push(evidence);
    found
}

/// What a project is about: its name and its description, or the one that it has.
fn about(project: &Project<'_>) -> Option<String> {
    let words =
        |text: Option<&'_ str>| text.map(str::trim).filter(|text| !text.is_empty()).map(ToOwned::to_owned);
    match (words(project.name), words(project.description)) {
        (Some(name), Some(description)) => Some(format!("{name}: {description}")),
        (name, description) => name.or(description),
    }
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
