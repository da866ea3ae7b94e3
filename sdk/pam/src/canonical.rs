//! Writes the canonical JSON of a memory without building a JSON tree first, because a store has many memories.
//!
//! **Invariant:** the bytes equal those of [`jcs::write`] of the memory (test `a_memory_written_directly_equals_its_tree`).

use crate::{
    jcs::{self, JcsError},
    memory::{self, Access, Confidence, DecayModel, ExtractionMethod, Memory, Provenance, Temporal},
    time::Timestamp,
};

/// Appends the canonical bytes of a memory in PAM normal form.
pub(crate) fn write_memory(out: &mut Vec<u8>, memory: &Memory) -> Result<(), JcsError> {
    // Every field is named, so that a field added to the model fails to compile here.
    let Memory {
        id,
        memory_type,
        custom_type,
        status,
        content,
        content_hash,
        summary,
        tags,
        confidence,
        temporal,
        provenance,
        access,
        embedding_ref,
        metadata,
    } = memory;
    let mut object = ObjectWriter::open(out);
    if let Some(block) = access {
        write_access(object.key("access"), block);
    }
    if let Some(block) = confidence {
        write_confidence(object.key("confidence"), block)?;
    }
    object.string("content", content);
    object.string("content_hash", &content_hash.to_string());
    object.optional("custom_type", custom_type.as_deref());
    object.optional("embedding_ref", embedding_ref.as_deref());
    object.string("id", id);
    if !memory::is_empty(metadata) {
        // Normal form has no nulls at the top level.
        let entries = metadata.iter().filter(|(_, value)| !value.is_null());
        jcs::write_object(
            object.key("metadata"),
            entries.map(|(key, value)| (key.as_str(), value)).collect(),
        )?;
    }
    write_provenance(object.key("provenance"), provenance);
    object.string("status", status.as_str());
    object.optional("summary", summary.as_deref());
    write_strings(object.key("tags"), tags.iter().map(String::as_str));
    write_temporal(object.key("temporal"), temporal);
    object.string("type", memory_type.as_str());
    object.close();
    Ok(())
}

fn write_access(out: &mut Vec<u8>, access: &Access) {
    let mut object = ObjectWriter::open(out);
    let exportable: &[u8] = if access.exportable { b"true" } else { b"false" };
    object.key("exportable").extend_from_slice(exportable);
    let grants = object.key("shared_with");
    write_list(grants, access.shared_with.iter(), |out, grant| {
        let mut object = ObjectWriter::open(out);
        object.string("entity", &grant.entity);
        write_strings(
            object.key("permissions"),
            grant.permissions.iter().map(|permission| permission.as_str()),
        );
        object.close();
    });
    object.string("visibility", access.visibility.as_str());
    object.close();
}

fn write_confidence(out: &mut Vec<u8>, confidence: &Confidence) -> Result<(), JcsError> {
    let mut object = ObjectWriter::open(out);
    if let Some(current) = confidence.current {
        jcs::write_float(object.key("current"), current)?;
    }
    object.optional("decay_model", confidence.decay_model.map(DecayModel::as_str));
    if let Some(initial) = confidence.initial {
        jcs::write_float(object.key("initial"), initial)?;
    }
    object.time("last_reinforced", confidence.last_reinforced);
    object.close();
    Ok(())
}

fn write_provenance(out: &mut Vec<u8>, provenance: &Provenance) {
    let mut object = ObjectWriter::open(out);
    object.optional("conversation_ref", provenance.conversation_ref.as_deref());
    object.time("extracted_at", provenance.extracted_at);
    object.optional("extraction_method", provenance.extraction_method.map(ExtractionMethod::as_str));
    object.optional("extractor", provenance.extractor.as_deref());
    object.optional("message_ref", provenance.message_ref.as_deref());
    object.string("platform", &provenance.platform);
    object.optional("platform_user_id", provenance.platform_user_id.as_deref());
    object.close();
}

fn write_temporal(out: &mut Vec<u8>, temporal: &Temporal) {
    let mut object = ObjectWriter::open(out);
    object.time("created_at", Some(temporal.created_at));
    object.optional("superseded_by", temporal.superseded_by.as_deref());
    object.time("updated_at", temporal.updated_at);
    object.time("valid_from", temporal.valid_from);
    object.time("valid_until", temporal.valid_until);
    object.close();
}

fn write_strings<'s>(out: &mut Vec<u8>, items: impl Iterator<Item = &'s str>) {
    write_list(out, items, jcs::write_string);
}

fn write_list<T>(out: &mut Vec<u8>, items: impl Iterator<Item = T>, mut write: impl FnMut(&mut Vec<u8>, T)) {
    out.push(b'[');
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

/// Writes an object whose keys are given in order.
struct ObjectWriter<'o> {
    out: &'o mut Vec<u8>,
    first: bool,
}

impl<'o> ObjectWriter<'o> {
    fn open(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, first: true }
    }

    fn close(self) {
        self.out.push(b'}');
    }

    fn key(&mut self, key: &str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    fn string(&mut self, key: &str, value: &str) {
        jcs::write_string(self.key(key), value);
    }

    fn optional(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.string(key, value);
        }
    }

    fn time(&mut self, key: &str, time: Option<Timestamp>) {
        if let Some(time) = time {
            self.string(key, &time.to_string());
        }
    }
}
