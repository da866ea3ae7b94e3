//! All memories of one type, most recently changed first.

use std::io::{self, Write};

use satchel_pam::memory::{Memory, MemoryType};
use satchel_store::{MemoryOrder, MemoryQuery};

use super::{ExportError, ExportJob, ExportTarget, FrontMatter, LinkTargets, PAGE, name, pages, text};

/// Returns the link target of a memory from a file that reaches the memories' folder by the prefix `folder`.
pub(super) fn link(folder: &str, kind: MemoryType, id: &str) -> String {
    format!("{folder}{}.md#mem-{}", kind.as_str(), name::short_hash(id))
}

/// Writes the type's file.
pub(super) fn write(
    job: &ExportJob<'_>,
    target: &mut ExportTarget,
    kind: MemoryType,
    count: u64,
    targets: &mut LinkTargets,
) -> Result<(), ExportError> {
    let query = MemoryQuery {
        types: vec![kind],
        order: MemoryOrder::UpdatedDescending,
        ..job.request.selection.memories.clone()
    };
    let failed = ExportError::write(&job.request.output);
    target.file(&format!("memories/{}.md", kind.as_str()), |out| {
        let mut front = FrontMatter::new("memories");
        front.text("type", Some(kind.as_str()));
        front.plain("memories", count);
        front.write(out).map_err(&failed)?;
        writeln!(out, "# Memories: {}\n", kind.as_str()).map_err(&failed)?;
        pages(
            |after| Ok(job.store.memories(&query, after, PAGE, job.revision)?),
            |record| {
                job.progress.update(|progress| progress.memories += 1)?;
                if !job.is_exportable(&record.memory)? {
                    return Ok(());
                }
                let memory = job.redact_memory(record.memory, |id| targets.conversations.contains_key(id))?;
                write_memory(out, &memory, targets).map_err(&failed)?;
                targets.relations += write_relations(job, out, &memory)?;
                writeln!(out).map_err(&failed)
            },
        )
    })?;
    Ok(())
}

fn write_memory(out: &mut dyn Write, memory: &Memory, targets: &LinkTargets) -> io::Result<()> {
    let kind =
        memory.custom_type.as_deref().map(|kind| format!(" · {}", text::inline(kind))).unwrap_or_default();
    let day = name::day(memory.temporal.created_at).unwrap_or_else(|| text::UNKNOWN_TIME.to_owned());
    let anchor = name::short_hash(&memory.id);
    writeln!(out, "## <a id=\"mem-{anchor}\"></a>{day} · {}{kind}\n", memory.status.as_str())?;
    text::quote(out, &memory.content)?;
    if let Some(summary) = &memory.summary {
        writeln!(out, "In short:\n")?;
        text::quote(out, summary)?;
    }
    writeln!(out, "- id: `{}`", memory.id.replace(|c: char| c == '`' || c.is_control(), "?"))?;
    let from = &memory.provenance;
    write!(out, "- from: {}", text::inline(&from.platform))?;
    let conversation = from.conversation_ref.as_deref().and_then(|id| targets.conversations.get(id));
    match (conversation, &from.message_ref) {
        (Some(file), Some(message)) => {
            writeln!(out, ", [this message](../conversations/{file}.md#m-{})", name::short_hash(message))?;
        }
        (Some(file), None) => writeln!(out, ", [this conversation](../conversations/{file}.md)")?,
        (None, _) => writeln!(out)?,
    }
    if let Some(account) = &from.platform_user_id {
        writeln!(out, "- account: {}", text::inline(account))?;
    }
    if let Some(updated) = memory.temporal.updated_at.filter(|updated| updated.known()) {
        writeln!(out, "- changed: {updated}")?;
    }
    if let Some(confidence) = memory.confidence.as_ref().and_then(|confidence| confidence.current) {
        writeln!(out, "- confidence: {confidence}")?;
    }
    for (what, time) in [("from", memory.temporal.valid_from), ("until", memory.temporal.valid_until)] {
        if let Some(time) = time {
            writeln!(out, "- valid {what}: {time}")?;
        }
    }
    if !memory.tags.is_empty() {
        let tags: Vec<String> = memory.tags.iter().map(|tag| format!("\\#{}", text::inline(tag))).collect();
        writeln!(out, "- tags: {}", tags.join(", "))?;
    }
    Ok(())
}

/// Writes the relations between a memory and other exported memories. Returns the number of relations that start at it.
fn write_relations(job: &ExportJob<'_>, out: &mut dyn Write, memory: &Memory) -> Result<u64, ExportError> {
    let failed = ExportError::write(&job.request.output);
    let mut outgoing = 0;
    for edge in job.store.relations_of(&memory.id, Some(job.revision))? {
        let relation = edge.relation;
        let is_outgoing = relation.from == memory.id;
        let other = if is_outgoing { &relation.to } else { &relation.from };
        if !job.is_exported(other)? {
            continue;
        }
        let Some(record) = job.store.memory(other, Some(job.revision))? else { continue };
        outgoing += u64::from(is_outgoing);
        let arrow = if is_outgoing { "→" } else { "←" };
        let kind = relation.relation_type.as_str().replace('_', " ");
        let link = link("", record.memory.memory_type, other);
        let content = text::inline(&record.memory.content);
        writeln!(out, "- {arrow} {kind}: [{content}]({link})").map_err(&failed)?;
    }
    Ok(outgoing)
}
