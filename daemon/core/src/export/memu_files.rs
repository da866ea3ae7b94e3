//! Writes a store in MemU's format: reads the facts that the view needs, and writes the result to files.

use std::{cell::RefCell, collections::BTreeMap, io::Write, path::Path};

use satchel_merge::evidence::{StoredEvidence, items_of, memory_id};
use satchel_pam::memory::Status;
use satchel_store::{ConversationQuery, ConversationRecord, Store};

use super::{
    ExportError, ExportRecord, PAGE,
    job::ExportJob,
    memu::{self, MemuLists, MemuSources, Object, OtherMemories},
    pages,
    target::ExportTarget,
};
use crate::{
    conversation_record::MessageTree,
    provenance::{self, ActiveEvidence},
};

/// The models under which the importer stores MemU's vectors.
const MODELS: [&str; 2] = ["text-embedding-ada-002", "unknown"];

/// Counts of what was written.
#[derive(Default)]
struct MemuCounts {
    memories: u64,
    withheld: u64,
    conversations: u64,
}

/// Writes `memories.json`, `memory_contents.json`, `conversations.json` and `answers.json`.
pub(super) fn write(job: &ExportJob<'_>) -> Result<ExportRecord, ExportError> {
    let mut target = job.target()?;
    let mut counts = MemuCounts::default();
    write_memories(job, &mut target, &mut counts)?;
    if job.request.conversations {
        write_conversations(job, &mut target, &mut counts)?;
    }
    let bytes = target.publish()?;
    Ok(ExportRecord {
        memories: counts.memories,
        conversations: counts.conversations,
        withheld: counts.withheld,
        bytes,
        ..job.record()
    })
}

fn write_memories(
    job: &ExportJob<'_>,
    target: &mut ExportTarget,
    counts: &mut MemuCounts,
) -> Result<(), ExportError> {
    let MemuLists { mut memories, mut rows, mut exported, concluded } = memu_lists(job.store)?;
    // The data next to a list is kept as it was read, and may repeat the text of an entry.
    let private = job.private_texts()?;
    for object in memories.iter_mut().chain(&mut rows) {
        private.redact_map(object);
    }
    counts.memories = exported.len() as u64;
    if job.request.conversations {
        exported.extend(concluded);
    }
    let mut others = OtherMemories::default();
    job.each_memory(|record| {
        if !job.is_exportable(&record.memory)? {
            counts.withheld += 1;
        } else if !exported.contains(&record.memory.id) {
            others.add(&record.memory);
        }
        Ok(())
    })?;
    counts.memories += others.count() as u64;
    memories.extend(others.object(&job.signer.owner));
    write_objects(job, target, "memories.json", &memories)?;
    if rows.is_empty() { Ok(()) } else { write_objects(job, target, "memory_contents.json", &rows) }
}

/// Builds the lists from MemU's evidence. All evidence is held in memory at once, as at the end of an import.
fn memu_lists(store: &Store) -> Result<MemuLists, ExportError> {
    // Memories from PAM documents belong to the others: they are not part of MemU's lists.
    let counted = ActiveEvidence::load(store, &provenance::undone_imports(store)?)?;
    let evidence: Vec<StoredEvidence> =
        counted.evidence.into_values().filter(|one| one.platform == memu::PLATFORM).collect();
    let mut shown: BTreeMap<String, Option<String>> = BTreeMap::new();
    for item in evidence.iter().flat_map(|one| items_of(&one.claim)) {
        let id = memory_id(item);
        let text = match store.memory(&id, None)? {
            Some(record) if record.memory.status != Status::Active || !record.memory.exportable() => None,
            Some(record) => Some(record.memory.content),
            // An import has stored its evidence, but not yet the memories derived from it.
            None => Some(item.content.clone()),
        };
        shown.insert(id, text);
    }
    let failed = RefCell::new(None);
    let vector = |id: &str| {
        stored_vector(store, id).unwrap_or_else(|error| {
            failed.replace(Some(error));
            None
        })
    };
    let lists = memu::lists(
        &evidence,
        &MemuSources { shown: &|id| shown.get(id).cloned().flatten(), vector: &vector },
    );
    failed.into_inner().map_or(Ok(lists), Err)
}

fn stored_vector(store: &Store, memory: &str) -> Result<Option<Vec<f64>>, ExportError> {
    for model in MODELS {
        if let Some(record) = store.embedding(memory, model)? {
            return Ok(record.embedding.vector);
        }
    }
    Ok(None)
}

fn write_conversations(
    job: &ExportJob<'_>,
    target: &mut ExportTarget,
    counts: &mut MemuCounts,
) -> Result<(), ExportError> {
    let mut answers = Vec::new();
    let query = ConversationQuery::default();
    target.file("conversations.json", |out| {
        let mut array = JsonArrayWriter::new(job, out);
        pages(
            |after| Ok(job.store.conversations(&query, after, PAGE, job.revision)?),
            |summary| {
                let Some(record) = job.store.conversation(&summary.id, Some(job.revision))? else {
                    return Ok(());
                };
                answers.extend(memu::save_answer(&job.redact_header(record.header.clone())?));
                array.put(&conversation(job, &record)?)
            },
        )?;
        counts.conversations = array.objects;
        array.close()
    })?;
    if answers.is_empty() { Ok(()) } else { write_objects(job, target, "answers.json", &answers) }
}

fn conversation(job: &ExportJob<'_>, record: &ConversationRecord) -> Result<Object, ExportError> {
    let places = MessageTree::new(record);
    let mut messages = Vec::with_capacity(record.heads.len());
    for (at, body) in job.store.all_bodies(record).enumerate() {
        let (_, bytes) = body?;
        let message = places.message(record, at, &bytes);
        messages.push(message.map_err(|_| ExportError::Unencodable { what: "a stored message" })?);
    }
    Ok(memu::conversation(&job.exported_header(record)?, &messages, &job.signer.owner))
}

fn write_objects(
    job: &ExportJob<'_>,
    target: &mut ExportTarget,
    name: &str,
    objects: &[Object],
) -> Result<(), ExportError> {
    target.file(name, |out| {
        let mut array = JsonArrayWriter::new(job, out);
        objects.iter().try_for_each(|object| array.put(object))?;
        array.close()
    })?;
    Ok(())
}

/// A JSON array that is written object by object, one per line.
struct JsonArrayWriter<'a> {
    out: &'a mut dyn Write,
    output: &'a Path,
    objects: u64,
}

impl<'a> JsonArrayWriter<'a> {
    fn new(job: &'a ExportJob<'_>, out: &'a mut dyn Write) -> Self {
        Self { out, output: &job.request.output, objects: 0 }
    }

    fn put(&mut self, object: &Object) -> Result<(), ExportError> {
        let before: &[u8] = if self.objects == 0 { b"[\n" } else { b",\n" };
        self.objects += 1;
        let written = self.out.write_all(before);
        let written = written.and_then(|()| Ok(serde_json::to_writer(&mut *self.out, object)?));
        written.map_err(ExportError::write(self.output))
    }

    fn close(self) -> Result<(), ExportError> {
        let end: &[u8] = if self.objects == 0 { b"[]\n" } else { b"\n]\n" };
        self.out.write_all(end).map_err(ExportError::write(self.output))
    }
}
