//! Writes a store in MemU's format: reads the facts that the view needs, and writes the result to files.

use std::{cell::RefCell, collections::BTreeMap, io::Write, path::Path};

use satchel_merge::evidence::{Witness, items_of, memory_id};
use satchel_pam::memory::Status;
use satchel_store::{ConversationQuery, ConversationRecord, Store};

use super::{
    ExportError, ExportRecord, PAGE,
    job::Job,
    memu::{self, Lists, Object, Others, Sources},
    pages,
    target::Target,
};
use crate::{
    conversation_record::Places,
    lineage::{self, Counted},
};

/// The models under which the importer stores MemU's vectors.
const MODELS: [&str; 2] = ["text-embedding-ada-002", "unknown"];

/// Counts of what was written.
#[derive(Default)]
struct Written {
    memories: u64,
    withheld: u64,
    conversations: u64,
}

/// Writes `memories.json`, `memory_contents.json`, `conversations.json` and `answers.json`.
pub(super) fn write(job: &Job<'_>) -> Result<ExportRecord, ExportError> {
    let mut target = job.target()?;
    let mut written = Written::default();
    memories(job, &mut target, &mut written)?;
    if job.request.conversations {
        conversations(job, &mut target, &mut written)?;
    }
    let bytes = target.publish()?;
    Ok(ExportRecord {
        memories: written.memories,
        conversations: written.conversations,
        withheld: written.withheld,
        bytes,
        ..job.record()
    })
}

fn memories(job: &Job<'_>, target: &mut Target, written: &mut Written) -> Result<(), ExportError> {
    let Lists { mut memories, mut rows, mut taken, concluded } = lists(job.store)?;
    // The data next to a list is kept as it was read, and may repeat the text of an entry.
    let private = job.texts()?;
    for object in memories.iter_mut().chain(&mut rows) {
        private.clean_map(object);
    }
    written.memories = taken.len() as u64;
    if job.request.conversations {
        taken.extend(concluded);
    }
    let mut others = Others::default();
    job.each_memory(|record| {
        if !job.may_leave(&record.memory)? {
            written.withheld += 1;
        } else if !taken.contains(&record.memory.id) {
            others.add(&record.memory);
        }
        Ok(())
    })?;
    written.memories += others.count() as u64;
    memories.extend(others.object(&job.signer.owner));
    file(job, target, "memories.json", &memories)?;
    if rows.is_empty() { Ok(()) } else { file(job, target, "memory_contents.json", &rows) }
}

/// Builds the lists from MemU's evidence. All evidence is held in memory at once, as at the end of an import.
fn lists(store: &Store) -> Result<Lists, ExportError> {
    // Memories from PAM documents belong to the others: they are not part of MemU's lists.
    let counted = Counted::of(store, &lineage::undone(store)?)?;
    let witnesses: Vec<Witness> =
        counted.witnesses.into_values().filter(|witness| witness.platform == memu::PLATFORM).collect();
    let mut shown: BTreeMap<String, Option<String>> = BTreeMap::new();
    for item in witnesses.iter().flat_map(|witness| items_of(&witness.claim)) {
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
        vector(store, id).unwrap_or_else(|error| {
            failed.replace(Some(error));
            None
        })
    };
    let lists =
        memu::lists(&witnesses, &Sources { shown: &|id| shown.get(id).cloned().flatten(), vector: &vector });
    failed.into_inner().map_or(Ok(lists), Err)
}

fn vector(store: &Store, memory: &str) -> Result<Option<Vec<f64>>, ExportError> {
    for model in MODELS {
        if let Some(record) = store.embedding(memory, model)? {
            return Ok(record.embedding.vector);
        }
    }
    Ok(None)
}

fn conversations(job: &Job<'_>, target: &mut Target, written: &mut Written) -> Result<(), ExportError> {
    let mut answers = Vec::new();
    let query = ConversationQuery::default();
    target.file("conversations.json", |out| {
        let mut array = Array::new(job, out);
        pages(
            |after| Ok(job.store.conversations(&query, after, PAGE, job.revision)?),
            |summary| {
                let Some(record) = job.store.conversation(&summary.id, Some(job.revision))? else {
                    return Ok(());
                };
                answers.extend(memu::save_answer(&job.leaving_header(record.header.clone())?));
                array.put(&conversation(job, &record)?)
            },
        )?;
        written.conversations = array.objects;
        array.close()
    })?;
    if answers.is_empty() { Ok(()) } else { file(job, target, "answers.json", &answers) }
}

fn conversation(job: &Job<'_>, record: &ConversationRecord) -> Result<Object, ExportError> {
    let places = Places::of(record);
    let mut messages = Vec::with_capacity(record.heads.len());
    for (at, body) in job.store.all_bodies(record).enumerate() {
        let (_, bytes) = body?;
        let message = places.message(record, at, &bytes);
        messages.push(message.map_err(|_| ExportError::Unencodable { what: "a stored message" })?);
    }
    Ok(memu::conversation(&job.header_of(record)?, &messages, &job.signer.owner))
}

fn file(job: &Job<'_>, target: &mut Target, name: &str, objects: &[Object]) -> Result<(), ExportError> {
    target.file(name, |out| {
        let mut array = Array::new(job, out);
        objects.iter().try_for_each(|object| array.put(object))?;
        array.close()
    })?;
    Ok(())
}

/// A JSON array that is written object by object, one per line.
struct Array<'a> {
    out: &'a mut dyn Write,
    output: &'a Path,
    objects: u64,
}

impl<'a> Array<'a> {
    fn new(job: &'a Job<'_>, out: &'a mut dyn Write) -> Self {
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
