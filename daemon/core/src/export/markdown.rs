//! The `markdown` format: a file for each conversation and each type of memory, for people and for note-taking
//! programs.
//!
//! Layout: `index.md`, `memories/<type>.md`, `conversations/<day>-<title>-<mark>.md`,
//! `attachments/<sha256>.<extension>`. Names and anchors are derived from the record alone, so a link from the user's
//! own notes stays valid across exports. Held in memory at once are one message, one page of memories, and the ids and
//! names of the exported records.

mod conversation;
mod harmless;
mod index;
mod memory;
mod name;
mod text;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
};

use satchel_pam::{hash::Sha256Digest, memory::MemoryType};

use super::{ExportError, ExportRecord, PAGE, job::Job, pages, target::Target};

/// The link targets within the export.
#[derive(Default)]
struct Places {
    /// The file of each conversation, without folder and `.md`.
    conversations: BTreeMap<String, String>,
    /// The memories derived from each conversation.
    derived: BTreeMap<String, Vec<(MemoryType, String)>>,
    /// The number of memories of each type.
    types: BTreeMap<MemoryType, u64>,
    withheld: u64,
    relations: u64,
}

/// Attachments that messages refer to; each is written once.
#[derive(Default)]
struct Files {
    waiting: Vec<(String, Sha256Digest)>,
    done: BTreeSet<String>,
}

/// Writes the export.
pub(super) fn write(job: &Job<'_>) -> Result<ExportRecord, ExportError> {
    let mut target = job.target()?;
    let mut places = survey(job)?;
    let mut files = Files::default();
    if let Some(query) = job.wanted_conversations() {
        pages(
            |after| Ok(job.store.conversations(&query, after, PAGE, job.revision)?),
            |summary| {
                conversation::write(job, &mut target, &summary.id, &mut places, &mut files)?;
                job.told.on(|progress| progress.conversations += 1)?;
                files.write(job, &mut target)
            },
        )?;
    }
    let types: Vec<(MemoryType, u64)> = places.types.iter().map(|(kind, count)| (*kind, *count)).collect();
    for (kind, count) in &types {
        memory::write(job, &mut target, *kind, *count, &mut places)?;
    }
    index::write(job, &mut target, &places)?;
    let bytes = target.publish()?;
    Ok(ExportRecord {
        memories: places.types.values().sum(),
        relations: places.relations,
        conversations: places.conversations.len() as u64,
        withheld: places.withheld,
        bytes,
        ..job.record()
    })
}

/// Scans all memories once. Counts the exported memories of each type, and groups them by conversation.
fn survey(job: &Job<'_>) -> Result<Places, ExportError> {
    let mut places = Places::default();
    job.each_memory(|record| {
        if !job.may_leave(&record.memory)? {
            places.withheld += 1;
            return Ok(());
        }
        let kind = record.memory.memory_type;
        *places.types.entry(kind).or_default() += 1;
        if let Some(conversation) = record.memory.provenance.conversation_ref {
            places.derived.entry(conversation).or_default().push((kind, record.memory.id));
        }
        Ok(())
    })?;
    Ok(places)
}

impl Files {
    /// Returns the link target of a stored file, relative to a folder of the export, if its bytes are exported.
    fn link(
        &mut self,
        job: &Job<'_>,
        reference: Option<&str>,
        name: Option<&str>,
    ) -> Result<Option<String>, ExportError> {
        let hash = reference.and_then(|path| path.strip_prefix("attachments/"));
        let hash = hash.and_then(|hex| format!("sha256:{hex}").parse::<Sha256Digest>().ok());
        let Some(hash) = hash.filter(|_| job.request.attachments) else { return Ok(None) };
        let path = format!("attachments/{}{}", hash.to_hex(), name::extension(name));
        if !self.done.contains(&path) {
            if job.store.blob_open(hash.as_bytes())?.is_none() {
                return Ok(None);
            }
            self.done.insert(path.clone());
            self.waiting.push((path.clone(), hash));
        }
        Ok(Some(format!("../{path}")))
    }

    fn write(&mut self, job: &Job<'_>, target: &mut Target) -> Result<(), ExportError> {
        let failed = ExportError::write(&job.request.output);
        for (path, hash) in std::mem::take(&mut self.waiting) {
            let Some(mut blob) = job.store.blob_open(hash.as_bytes())? else { continue };
            target.file(&path, |out| io::copy(&mut blob, out).map(drop).map_err(&failed))?;
        }
        Ok(())
    }
}

/// The lines of a front matter: keys, and values that are already encoded.
struct Front(Vec<(&'static str, String)>);

impl Front {
    fn of(kind: &str) -> Self {
        Self(vec![("kind", text::yaml(kind))])
    }

    fn text(&mut self, key: &'static str, value: Option<&str>) {
        self.0.extend(value.map(|value| (key, text::yaml(value))));
    }

    fn plain(&mut self, key: &'static str, value: impl ToString) {
        self.0.push((key, value.to_string()));
    }

    fn list(&mut self, key: &'static str, values: &[String]) {
        if !values.is_empty() {
            let values: Vec<String> = values.iter().map(|value| text::yaml(value)).collect();
            self.0.push((key, format!("[{}]", values.join(", "))));
        }
    }

    fn write(self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "---")?;
        for (key, value) in self.0 {
            writeln!(out, "{key}: {value}")?;
        }
        writeln!(out, "---\n")
    }
}
