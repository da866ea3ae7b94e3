//! Keeps erased records out, whichever export brings them again.

use satchel_merge::evidence::{StoredEvidence, items_of};
use satchel_pam::{
    embedding::Embedding,
    record::{Claim, ConversationRecord, RecordKind, Skip, Warning},
};
use satchel_store::{Store, StoreError, erased};

use crate::{
    ingest::{error::IngestError, normalise::Normaliser, receipt::ImportRecord},
    provenance::PurgedData,
};

/// The reason why a record is left out.
pub(in crate::ingest) const REASON: &str = "its owner erased it for good; it is not stored again";

/// The reason why a vector is left out.
const GONE: &str = "the owner of its memory erased that for good";

/// The decision on a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ingest) enum FilterResult {
    /// All of it is imported.
    Whole,
    /// What remains of it is imported.
    Part,
    /// Nothing of it is imported.
    Refused,
}

/// Checks a conversation before any byte of it, or of its attachments, is stored. Erased rows are removed from it.
pub(in crate::ingest) fn conversation(
    purged: &PurgedData,
    reader: &Normaliser,
    record: &mut ConversationRecord,
) -> FilterResult {
    if purged.is_empty() {
        return FilterResult::Whole;
    }
    let (id, grouped) = reader.message_namespace(record);
    if !grouped {
        return if purged.contains_conversation(&id.to_string()) {
            FilterResult::Refused
        } else {
            FilterResult::Whole
        };
    }
    let before = record.messages.len();
    record
        .messages
        .retain(|message| !purged.contains_row(&satchel_pam::ids::message_id(id, &message.id).to_string()));
    match record.messages.len() {
        left if left == before => FilterResult::Whole,
        0 => FilterResult::Refused,
        _ => {
            // The title may quote an erased message: importers make titles of the first words.
            record.title = None;
            FilterResult::Part
        }
    }
}

/// Removes erased statements from evidence. Each piece affected is reported as a skip, and pieces with nothing left are
/// dropped.
pub(in crate::ingest) fn evidence(purged: &PurgedData, all: &mut Vec<StoredEvidence>) -> Vec<Skip> {
    let mut skips = Vec::new();
    if purged.is_empty() {
        return skips;
    }
    all.retain_mut(|evidence| {
        if !purged.redact_stored(evidence) {
            return true;
        }
        let (kind, locator, reason) = (RecordKind::Memory, format!("evidence {}", evidence.id), REASON);
        skips.push(Skip { kind, locator, reason: reason.to_owned() });
        // A list or a log is kept even if it was emptied: positions in it define the order of other entries.
        !matches!(evidence.claim, Claim::Statement(_)) || !items_of(&evidence.claim).is_empty()
    });
    skips
}

/// Leaves out the vectors of erased memories, with a warning for each.
pub(in crate::ingest) fn vectors(
    store: &Store,
    vectors: &mut Vec<Embedding>,
    record: &mut ImportRecord,
) -> Result<(), IngestError> {
    let purged = PurgedData::load(store)?;
    if purged.is_empty() {
        return Ok(());
    }
    for vector in std::mem::take(vectors) {
        // A memory with the same content under another id is stored emptied.
        let emptied =
            |id: &str| Ok::<_, StoreError>(store.memory(id, None)?.is_some_and(|one| erased(&one.memory)));
        if purged.contains_vectors_of(&vector.memory_id) || emptied(&vector.memory_id)? {
            let locator = format!("embedding {:?}", vector.id);
            record.embeddings.leave_out();
            record.warn(Warning { locator, message: format!("the embedding is left out: {GONE}") });
        } else {
            vectors.push(vector);
        }
    }
    Ok(())
}
