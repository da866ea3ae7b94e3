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

use markdown::{FrontMatter, heading, is_index_line, sections};

/// The longest memory file, in bytes. Claude Code reads at most 4 MiB.
const MAX_FILE: u64 = 4 * 1024 * 1024;
/// The longest working folder that names a scope, in bytes.
const MAX_SCOPE: usize = 512;
/// The file that lists the others of a project.
const INDEX: &str = "MEMORY.md";

/// Reads all memory files. `folders` has the working directory of each project.
pub(crate) fn read(
    bundle: &Bundle,
    folders: &BTreeMap<&str, WorkingFolder>,
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
                let folder = folders.get(project);
                read_note(text, &Note { path, project, folder, name }, sink)?;
            }
            None => read_instructions(text, path, sink)?,
        }
    }
    Ok(())
}

/// The instructions of the person: a list for each section, so that a changed section takes the place of the former one.
fn read_instructions(text: &str, path: &str, sink: &mut Sink) -> Result<(), ImportError> {
    let sections = sections(text);
    if sections.is_empty() {
        return sink.skip(RecordKind::Memory, path, "the file is empty");
    }
    let mut headings: BTreeMap<&str, u32> = BTreeMap::new();
    let mut evidence = Vec::with_capacity(sections.len());
    for section in &sections {
        let heading = heading(section);
        let count = headings.entry(heading).or_default();
        *count += 1;
        let number = if *count > 1 { format!("#{count}") } else { String::new() };
        let item = Item::new(section, MemoryType::Instruction);
        let mut claim =
            snapshot(format!("{OWN_MEMORY}/{heading}{number}"), vec![item], None, path.to_owned());
        claim.extraction_method = ExtractionMethod::ExplicitUserInput;
        evidence.push(claim);
    }
    sink.evidence(&evidence)
}

/// The working folder of a project: the first one that gives the project's folder its name, else the first one.
#[derive(Debug, Default)]
pub(crate) struct WorkingFolder {
    path: Option<String>,
    named: bool,
}

impl WorkingFolder {
    /// Adds the working folder of a session of `project`.
    pub(crate) fn add(&mut self, path: &str, project: &str) {
        let named = folder_name(path) == layout::project_name(project);
        if self.path.is_none() || (named && !self.named) {
            self.path = Some(path.to_owned());
            self.named = named;
        }
    }
}

/// The name that Claude Code gives the folder of the project at `path`.
fn folder_name(path: &str) -> String {
    path.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect()
}

/// A file in the `memory` folder of a project.
struct Note<'n> {
    path: &'n str,
    project: &'n str,
    folder: Option<&'n WorkingFolder>,
    name: &'n str,
}

impl Note<'_> {
    /// The name of the project's folder. If the folder itself was imported, it has none, and is that of its working folder.
    fn project_name(&self) -> String {
        let path = self.folder.and_then(|folder| folder.path.as_deref());
        match layout::project_name(self.project) {
            "" => path.map(folder_name).unwrap_or_default(),
            name => name.to_owned(),
        }
    }

    /// Where the note holds: in the working folder, or else in the project of this name.
    fn scope(&self) -> String {
        let known = self.folder.filter(|folder| folder.named || self.project.is_empty());
        let path = known.and_then(|folder| folder.path.clone()).filter(|path| path.len() <= MAX_SCOPE);
        format!("project:{}", path.unwrap_or_else(|| self.project_name()))
    }
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
        scope: Some(note.scope()),
        summary: matter.get("description").map(ToOwned::to_owned),
        updated_at: modified,
        metadata: RawObject::parse(matter.to_json(note.name)).ok(),
        ..Item::new(&body, memory_type(matter.get("type")))
    };
    let series = format!("memory/{}/{}", note.project_name(), note.name);
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
