//! Converts the fields of a memory from the command line into a request: a memory and a field mask.

use clap::ValueEnum as _;
use satchel_proto::v1::{Access, Confidence, Memory, MemoryType, Temporal, Visibility};
use serde_json::{Map, Value};

use crate::cli::{
    args::{AddArgs, EditArgs, FieldArgs, MemoryTypeArg},
    error::CliError,
    time::Calendar,
};

/// The key of the daemon's own metadata.
const DAEMON_METADATA_KEY: &str = "satchel";

/// Returns a new memory.
///
/// # Errors
/// Fails if a value cannot be parsed.
pub(super) fn memory_from_args(args: &AddArgs, calendar: &Calendar) -> Result<Memory, CliError> {
    let (mut memory, mut mask) = (Memory::default(), Vec::new());
    fill(&mut memory, &mut mask, &args.fields, calendar)?;
    memory.content.clone_from(&args.content);
    Ok(memory)
}

/// Returns a memory with the changed fields, and their paths.
///
/// # Errors
/// Fails if a value cannot be parsed, or if nothing would change.
pub(super) fn changes_from_args(
    args: &EditArgs,
    known: &Memory,
    calendar: &Calendar,
) -> Result<(Memory, Vec<String>), CliError> {
    let mut memory = Memory {
        id: known.id.clone(),
        access: known.access.clone(),
        metadata_json: known.metadata_json.clone(),
        tags: known.tags.clone(),
        ..Memory::default()
    };
    let mut mask = Vec::new();
    fill(&mut memory, &mut mask, &args.fields, calendar)?;
    if let Some(content) = &args.content {
        memory.content.clone_from(content);
        mask.push("content");
    }
    if !args.add_tag.is_empty() || !args.remove_tag.is_empty() {
        memory.tags.retain(|tag| !args.remove_tag.contains(tag));
        let more = args.add_tag.iter().filter(|tag| !known.tags.contains(tag));
        memory.tags.extend(more.cloned());
        mask.push("tags");
    }
    for clear in &args.clear {
        let path = clear.path();
        if mask.contains(&path) {
            let field =
                clear.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
            return Err(CliError::Usage(format!(
                "--clear {field} cannot be combined with a new value for it"
            )));
        }
        if path == "tags" {
            memory.tags.clear();
        }
        mask.push(path);
    }
    if mask.is_empty() {
        let problem = "nothing to change; set a field, for example with --content, --tag or --clear";
        return Err(CliError::Usage(problem.to_owned()));
    }
    // Unchanged fields are not sent, so that a repeated request has the same bytes even if the memory changed in
    // between.
    if !mask.contains(&"access") {
        memory.access = None;
    }
    if !mask.contains(&"metadata_json") {
        memory.metadata_json = None;
    }
    if !mask.contains(&"tags") {
        memory.tags.clear();
    }
    Ok((memory, mask.into_iter().map(str::to_owned).collect()))
}

fn fill(
    memory: &mut Memory,
    mask: &mut Vec<&'static str>,
    args: &FieldArgs,
    calendar: &Calendar,
) -> Result<(), CliError> {
    if args.memory_type.is_some() || args.custom_type.is_some() {
        let wanted = args.memory_type.map_or(MemoryType::Custom, MemoryTypeArg::to_wire);
        memory.r#type = wanted.into();
        memory.custom_type.clone_from(&args.custom_type);
        mask.push("type");
    }
    if let Some(summary) = &args.summary {
        memory.summary = Some(summary.clone());
        mask.push("summary");
    }
    if !args.tags.is_empty() {
        memory.tags.clone_from(&args.tags);
        mask.push("tags");
    }
    let times = memory.temporal.get_or_insert_with(Temporal::default);
    if let Some(from) = &args.valid_from {
        times.valid_from = Some(calendar.parse_instant("--valid-from", from)?);
        mask.push("temporal.valid_from");
    }
    if let Some(until) = &args.valid_until {
        times.valid_until = Some(calendar.parse_instant("--valid-until", until)?);
        mask.push("temporal.valid_until");
    }
    if let Some(decay) = args.decay {
        memory.confidence = Some(Confidence { decay_model: decay.to_wire().into(), ..Confidence::default() });
        mask.push("confidence.decay_model");
    }
    if args.visibility.is_some() || args.exportable.is_some() {
        let access = memory.access.get_or_insert_with(|| Access {
            visibility: Visibility::Private.into(),
            exportable: true,
            shared_with: Vec::new(),
        });
        if let Some(visibility) = args.visibility {
            access.visibility = visibility.to_wire().into();
        }
        access.exportable = args.exportable.unwrap_or(access.exportable);
        mask.push("access");
    }
    if !args.meta.is_empty() {
        memory.metadata_json = Some(metadata(memory.metadata_json.as_deref(), &args.meta)?);
        mask.push("metadata_json");
    }
    Ok(())
}

/// Returns the existing metadata, without the daemon's own, merged with the given values.
fn metadata(known: Option<&str>, given: &[String]) -> Result<String, CliError> {
    let known = known.and_then(|json| serde_json::from_str::<Map<String, Value>>(json).ok());
    let mut metadata = known.unwrap_or_default();
    metadata.remove(DAEMON_METADATA_KEY);
    for pair in given {
        let Some((key, value)) = pair.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(CliError::Usage(format!("--meta {pair:?} has no key; use KEY=VALUE")));
        };
        if value.is_empty() {
            metadata.remove(key);
        } else {
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
            metadata.insert(key.to_owned(), value);
        }
    }
    Ok(Value::Object(metadata).to_string())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use clap::Parser as _;
    use jiff::{Timestamp, tz::TimeZone};

    use super::*;
    use crate::cli::args::{Cli, Command, Memories};

    #[test]
    fn a_repeated_edit_sends_the_same_request() {
        let calendar = Calendar { now: Timestamp::UNIX_EPOCH, zone: TimeZone::UTC };
        let cli = Cli::try_parse_from(["satchel", "memories", "edit", "9c41", "--content", "Hives"]).unwrap();
        let Command::Memories(Memories::Edit(args)) = cli.command else { unreachable!("it is an edit") };
        let before = Memory { id: "9c41".to_owned(), ..Memory::default() };
        let marked = r#"{"satchel":{"edited":{"content":"2026-03-01T00:00:00Z"}}}"#;
        let after = Memory {
            metadata_json: Some(marked.to_owned()),
            tags: vec!["bees".to_owned()],
            access: Some(Access::default()),
            ..before.clone()
        };
        assert_eq!(
            changes_from_args(&args, &before, &calendar).unwrap(),
            changes_from_args(&args, &after, &calendar).unwrap()
        );
    }
}
