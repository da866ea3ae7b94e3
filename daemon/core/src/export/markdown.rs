//! The `markdown` format: a file for each conversation and each type of memory, for people and for note-taking
//! programs.
//!
//! Layout: `index.md`, `memories/<type>.md`, `conversations/<day>-<title>-<mark>.md`,
//! `attachments/<sha256>.<extension>`. Names and anchors are derived from the record alone, so a link from the user's
//! own notes stays valid across exports. Held in memory at once are one message, one page of memories, and the ids and
//! names of the exported records.

mod conversation;
mod index;
mod memory;
mod name;
mod sanitize;
pub mod text;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
};

use satchel_pam::{hash::Sha256Digest, memory::MemoryType};

use super::{ExportError, ExportRecord, PAGE, job::ExportJob, pages, target::ExportTarget};

/// The link targets within the export.
#[derive(Default)]
struct LinkTargets {
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
struct AttachmentFiles {
    pending: Vec<(String, Sha256Digest)>,
    done: BTreeSet<String>,
}

/// Writes the export.
pub(super) fn write(job: &ExportJob<'_>) -> Result<ExportRecord, ExportError> {
    let mut target = job.target()?;
    let mut targets = collect_link_targets(job)?;
    let mut files = AttachmentFiles::default();
    if let Some(query) = job.conversation_query() {
        pages(
            |after| Ok(job.store.conversations(&query, after, PAGE, job.revision)?),
            |summary| {
                conversation::write(job, &mut target, &summary.id, &mut targets, &mut files)?;
                job.progress.update(|progress| progress.conversations += 1)?;
                files.write(job, &mut target)
            },
        )?;
    }
    let types: Vec<(MemoryType, u64)> = targets.types.iter().map(|(kind, count)| (*kind, *count)).collect();
    for (kind, count) in &types {
        memory::write(job, &mut target, *kind, *count, &mut targets)?;
    }
    index::write(job, &mut target, &targets)?;
    let bytes = target.publish()?;
    Ok(ExportRecord {
        memories: targets.types.values().sum(),
        relations: targets.relations,
        conversations: targets.conversations.len() as u64,
        withheld: targets.withheld,
        bytes,
        ..job.record()
    })
}

/// Scans all memories once. Counts the exported memories of each type, and groups them by conversation.
fn collect_link_targets(job: &ExportJob<'_>) -> Result<LinkTargets, ExportError> {
    let mut targets = LinkTargets::default();
    job.each_memory(|record| {
        if !job.is_exportable(&record.memory)? {
            targets.withheld += 1;
            return Ok(());
        }
        let kind = record.memory.memory_type;
        *targets.types.entry(kind).or_default() += 1;
        if let Some(conversation) = record.memory.provenance.conversation_ref {
            targets.derived.entry(conversation).or_default().push((kind, record.memory.id));
        }
        Ok(())
    })?;
    Ok(targets)
}

impl AttachmentFiles {
    /// Returns the link target of a stored file, relative to a folder of the export, if its bytes are exported.
    fn link(
        &mut self,
        job: &ExportJob<'_>,
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
            self.pending.push((path.clone(), hash));
        }
        Ok(Some(format!("../{path}")))
    }

    fn write(&mut self, job: &ExportJob<'_>, target: &mut ExportTarget) -> Result<(), ExportError> {
        let failed = ExportError::write(&job.request.output);
        for (path, hash) in std::mem::take(&mut self.pending) {
            let Some(mut blob) = job.store.blob_open(hash.as_bytes())? else { continue };
            target.file(&path, |out| io::copy(&mut blob, out).map(drop).map_err(&failed))?;
        }
        Ok(())
    }
}

/// The lines of a front matter: keys, and values that are already encoded.
struct FrontMatter(Vec<(&'static str, String)>);

impl FrontMatter {
    fn new(kind: &str) -> Self {
        Self(vec![("kind", text::yaml_string(kind))])
    }

    fn text(&mut self, key: &'static str, value: Option<&str>) {
        self.0.extend(value.map(|value| (key, text::yaml_string(value))));
    }

    fn plain(&mut self, key: &'static str, value: impl ToString) {
        self.0.push((key, value.to_string()));
    }

    fn list(&mut self, key: &'static str, values: &[String]) {
        if !values.is_empty() {
            let values: Vec<String> = values.iter().map(|value| text::yaml_string(value)).collect();
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
