//! All memories of one type, most recently changed first.

use std::io::{self, Write};

use satchel_pam::memory::{Memory, MemoryType};
use satchel_store::{MemoryOrder, MemoryQuery};

use super::{ExportError, Front, Job, PAGE, Places, Target, name, pages, text};

/// Returns the link target of a memory from a file that reaches the memories' folder by the prefix `folder`.
pub(super) fn link(folder: &str, kind: MemoryType, id: &str) -> String {
    format!("{folder}{}.md#mem-{}", kind.as_str(), name::mark(id))
}

/// Writes the type's file.
pub(super) fn write(
    job: &Job<'_>,
    target: &mut Target,
    kind: MemoryType,
    count: u64,
    places: &mut Places,
) -> Result<(), ExportError> {
    let query = MemoryQuery {
        types: vec![kind],
        order: MemoryOrder::UpdatedDescending,
        ..job.request.selection.memories.clone()
    };
    let failed = ExportError::write(&job.request.output);
    target.file(&format!("memories/{}.md", kind.as_str()), |out| {
        let mut front = Front::of("memories");
        front.text("type", Some(kind.as_str()));
        front.plain("memories", count);
        front.write(out).map_err(&failed)?;
        writeln!(out, "# Memories: {}\n", kind.as_str()).map_err(&failed)?;
        pages(
            |after| Ok(job.store.memories(&query, after, PAGE, job.revision)?),
            |record| {
                job.told.on(|progress| progress.memories += 1)?;
                if !job.may_leave(&record.memory)? {
                    return Ok(());
                }
                let memory = job.leaving(record.memory, |id| places.conversations.contains_key(id))?;
                show(out, &memory, places).map_err(&failed)?;
                places.relations += relations(job, out, &memory)?;
                writeln!(out).map_err(&failed)
            },
        )
    })?;
    Ok(())
}

fn show(out: &mut dyn Write, memory: &Memory, places: &Places) -> io::Result<()> {
    let kind =
        memory.custom_type.as_deref().map(|kind| format!(" · {}", text::plain(kind))).unwrap_or_default();
    let day = name::day(memory.temporal.created_at).unwrap_or_else(|| text::UNKNOWN_TIME.to_owned());
    let mark = name::mark(&memory.id);
    writeln!(out, "## <a id=\"mem-{mark}\"></a>{day} · {}{kind}\n", memory.status.as_str())?;
    text::quote(out, &memory.content)?;
    if let Some(summary) = &memory.summary {
        writeln!(out, "In short:\n")?;
        text::quote(out, summary)?;
    }
    writeln!(out, "- id: `{}`", memory.id.replace(|c: char| c == '`' || c.is_control(), "?"))?;
    let from = &memory.provenance;
    write!(out, "- from: {}", text::plain(&from.platform))?;
    let conversation = from.conversation_ref.as_deref().and_then(|id| places.conversations.get(id));
    match (conversation, &from.message_ref) {
        (Some(file), Some(message)) => {
            writeln!(out, ", [this message](../conversations/{file}.md#m-{})", name::mark(message))?;
        }
        (Some(file), None) => writeln!(out, ", [this conversation](../conversations/{file}.md)")?,
        (None, _) => writeln!(out)?,
    }
    if let Some(account) = &from.platform_user_id {
        writeln!(out, "- account: {}", text::plain(account))?;
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
        let tags: Vec<String> = memory.tags.iter().map(|tag| format!("\\#{}", text::plain(tag))).collect();
        writeln!(out, "- tags: {}", tags.join(", "))?;
    }
    Ok(())
}

/// Writes the relations between a memory and other exported memories. Returns the number of relations that start at it.
fn relations(job: &Job<'_>, out: &mut dyn Write, memory: &Memory) -> Result<u64, ExportError> {
    let failed = ExportError::write(&job.request.output);
    let mut begun = 0;
    for edge in job.store.relations_of(&memory.id, Some(job.revision))? {
        let relation = edge.relation;
        let out_going = relation.from == memory.id;
        let other = if out_going { &relation.to } else { &relation.from };
        if !job.leaves(other)? {
            continue;
        }
        let Some(record) = job.store.memory(other, Some(job.revision))? else { continue };
        begun += u64::from(out_going);
        let way = if out_going { "→" } else { "←" };
        let kind = relation.relation_type.as_str().replace('_', " ");
        let link = link("", record.memory.memory_type, other);
        let said = text::plain(&record.memory.content);
        writeln!(out, "- {way} {kind}: [{said}]({link})").map_err(&failed)?;
    }
    Ok(begun)
}
