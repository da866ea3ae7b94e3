//! Memory files: what the person tells Claude Code in `CLAUDE.md`, and what it notes in `memory/` of a project.

use std::collections::BTreeMap;

use satchel_importer::{
    Bundle, ErrorKind, ImportError, Item, RecordKind, Sink,
    json::time_of_text,
    pam::{
        memory::{ExtractionMethod, MemoryType},
        raw::RawObject,
    },
    snapshot,
};

use crate::{detect::OWN_MEMORY, layout};

mod markdown;

use markdown::{FrontMatter, is_index_line, sections};

/// The longest memory file, in bytes. Claude Code reads at most 4 MiB.
const MAX_FILE: u64 = 4 * 1024 * 1024;
/// The file that lists the others of a project.
const INDEX: &str = "MEMORY.md";

/// Reads all memory files. `folders` has the working directory of each project.
pub(crate) fn read(
    bundle: &Bundle,
    folders: &BTreeMap<&str, String>,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    for entry in bundle.entries() {
        let path = entry.path.as_str();
        let own = path.ends_with(OWN_MEMORY);
        let of_project = layout::memory_file(path);
        if !own && of_project.is_none() {
            continue;
        }
        let text = match bundle.read(path, MAX_FILE) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind == ErrorKind::Limit => {
                sink.skip(RecordKind::Memory, path, &error.message)?;
                continue;
            }
            Err(error) => return Err(error),
        };
        let text = text.trim_start_matches('\u{feff}');
        match of_project {
            Some((project, name)) => {
                let folder =
                    folders.get(project).map_or_else(|| layout::project_name(project), String::as_str);
                read_note(text, &Note { path, folder, name }, sink)?;
            }
            None => read_instructions(text, path, sink)?,
        }
    }
    Ok(())
}

/// The instructions of the person: a memory for each section.
fn read_instructions(text: &str, path: &str, sink: &mut Sink) -> Result<(), ImportError> {
    let items: Vec<Item> =
        sections(text).into_iter().map(|text| Item::new(text, MemoryType::Instruction)).collect();
    if items.is_empty() {
        return sink.skip(RecordKind::Memory, path, "the file is empty");
    }
    let mut evidence = snapshot(OWN_MEMORY.to_owned(), items, None, path.to_owned());
    evidence.extraction_method = ExtractionMethod::ExplicitUserInput;
    sink.evidence(&[evidence])
}

/// A file in the `memory` folder of a project.
struct Note<'n> {
    path: &'n str,
    /// The working directory of the project.
    folder: &'n str,
    name: &'n str,
}

fn read_note(text: &str, note: &Note<'_>, sink: &mut Sink) -> Result<(), ImportError> {
    let (matter, body) = FrontMatter::split(text);
    let body = if note.name == INDEX {
        // Its lines about other files repeat those.
        let own: Vec<&str> = body.lines().filter(|line| !is_index_line(line)).collect();
        if own.iter().all(|line| line.trim().is_empty() || line.starts_with('#')) {
            return Ok(());
        }
        own.join("\n").trim().to_owned()
    } else {
        body.trim().to_owned()
    };
    if body.is_empty() {
        return sink.skip(RecordKind::Memory, note.path, "the file has no text");
    }
    let modified = matter.get("modified").and_then(time_of_text).map(|(time, _)| time);
    let item = Item {
        scope: Some(format!("project:{}", note.folder)),
        summary: matter.get("description").map(ToOwned::to_owned),
        updated_at: modified,
        metadata: RawObject::parse(matter.to_json(note.name)).ok(),
        ..Item::new(&body, memory_type(matter.get("type")))
    };
    let series = format!("memory/{}/{}", note.folder, note.name);
    let mut evidence = snapshot(series, vec![item], modified, note.path.to_owned());
    evidence.extraction_method = ExtractionMethod::LlmInference;
    sink.evidence(&[evidence])
}

/// The type of a note by what Claude Code calls it.
fn memory_type(kind: Option<&str>) -> MemoryType {
    match kind {
        Some("user") => MemoryType::Preference,
        Some("feedback") => MemoryType::Instruction,
        Some("project") => MemoryType::Project,
        Some("reference") => MemoryType::Fact,
        _ => MemoryType::Context,
    }
}
