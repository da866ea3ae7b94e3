//! Memories from projects: their instructions, or what a project without documents is about.

use satchel_importer::{
    Item, Leftover,
    pam::{
        memory::{ExtractionMethod, MemoryType},
        raw::RawObject,
    },
    snapshot,
};

use super::{Fallback, MemoryRecords};
use crate::raw::Project;

/// The evidence that one project gives; `rest` is its unread fields as JSON text.
///
/// A project without instructions and documents becomes a memory, not a conversation: it holds no messages.
pub(crate) fn evidence(
    project: &Project<'_>,
    fallback: &Fallback<'_>,
    rest: Option<&str>,
    locator: &str,
) -> MemoryRecords {
    let mut records = MemoryRecords::default();
    let (series, item, field) = match (trimmed(project.prompt), about(project)) {
        (Some(prompt), _) => {
            ("project_prompt", Item::new(prompt, MemoryType::Instruction), ".prompt_template")
        }
        (None, _) if !project.documents.is_empty() => return records,
        (None, Some(about)) => ("project", Item::new(about, MemoryType::Project), ""),
        (None, None) => {
            let reason = "the project has neither instructions nor documents, description or name";
            records.skip(locator.to_owned(), reason);
            return records;
        }
    };
    let Some(uuid) = project.uuid else {
        records.skip(locator.to_owned(), "the project has no uuid");
        return records;
    };
    let item = Item {
        scope: Some(format!("project:{uuid}")),
        created_at: project.created,
        updated_at: project.updated,
        metadata: metadata(project, rest),
        ..item
    };
    let at = project.updated.or(project.created).or(fallback.observed);
    let mut evidence = snapshot(format!("{series}/{uuid}"), vec![item], at, format!("{locator}{field}"));
    evidence.account = project.creator.or(fallback.account).map(ToOwned::to_owned);
    evidence.extraction_method = ExtractionMethod::ExplicitUserInput;
    records.push(evidence);
    records
}

fn trimmed(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

/// The name and the description of a project, or the one that it has.
fn about(project: &Project<'_>) -> Option<String> {
    match (trimmed(project.name), trimmed(project.description)) {
        (Some(name), Some(description)) => Some(format!("{name}: {description}")),
        (name, description) => name.or(description).map(ToOwned::to_owned),
    }
}

/// Describes the project: an export of memories alone holds no conversations that do.
fn metadata(project: &Project<'_>, rest: Option<&str>) -> Option<RawObject> {
    let mut own = Leftover::default();
    for (key, text) in [("name", project.name), ("description", project.description)] {
        if let Some(text) = text {
            own.add_text(key, text);
        }
    }
    let text = match (own.into_json(), rest) {
        (Some(own), Some(rest)) => format!("{},{}", own.strip_suffix('}')?, rest.strip_prefix('{')?),
        (Some(own), None) => own.into_owned(),
        (None, rest) => rest?.to_owned(),
    };
    RawObject::parse(text).ok()
}
