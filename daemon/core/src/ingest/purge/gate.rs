//! What its owner erased stays out, whichever export brings it again.

use satchel_merge::evidence::{Witness, items_of};
use satchel_pam::{
    embedding::Embedding,
    record::{Claim, ConversationRecord, RecordKind, Skip, Warning},
};
use satchel_store::{Store, StoreError, erased};

use crate::{
    ingest::{IngestError, normalise::Reader, receipt::ImportRecord},
    lineage::Purged,
};

/// Why a record is left out.
pub(in crate::ingest) const REASON: &str = "its owner erased it for good; it is not stored again";

/// Why a vector is left out.
const GONE: &str = "the owner of its memory erased that for good";

/// What becomes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ingest) enum Passage {
    /// All of it comes in.
    Whole,
    /// What is left of it comes in.
    Part,
    /// None of it.
    Refused,
}

/// Looks at a conversation before a byte of it, or of its attachments, is stored. Rows that were erased are taken out.
pub(in crate::ingest) fn conversation(
    purged: &Purged,
    reader: &Reader,
    record: &mut ConversationRecord,
) -> Passage {
    if purged.is_empty() {
        return Passage::Whole;
    }
    let (id, grouped) = reader.home(record);
    if !grouped {
        return if purged.conversation(&id.to_string()) { Passage::Refused } else { Passage::Whole };
    }
    let before = record.messages.len();
    record.messages.retain(|message| !purged.row(&satchel_pam::ids::message_id(id, &message.id).to_string()));
    match record.messages.len() {
        left if left == before => Passage::Whole,
        0 => Passage::Refused,
        _ => {
            // It may be of what was erased: importers make titles of the first words.
            record.title = None;
            Passage::Part
        }
    }
}

/// Takes what was erased out of pieces of evidence; what says nothing any more is left out, and told.
pub(in crate::ingest) fn evidence(purged: &Purged, witnesses: &mut Vec<Witness>) -> Vec<Skip> {
    let mut skips = Vec::new();
    if purged.is_empty() {
        return skips;
    }
    witnesses.retain_mut(|witness| {
        if !purged.take(witness) {
            return true;
        }
        let (kind, locator, reason) = (RecordKind::Memory, format!("evidence {}", witness.id), REASON);
        skips.push(Skip { kind, locator, reason: reason.to_owned() });
        // The place in a list or a log says in which order the others came.
        !matches!(witness.claim, Claim::Statement(_)) || !items_of(&witness.claim).is_empty()
    });
    skips
}

/// Leaves out the vectors of what was erased; each is told.
pub(in crate::ingest) fn vectors(
    store: &Store,
    vectors: &mut Vec<Embedding>,
    record: &mut ImportRecord,
) -> Result<(), IngestError> {
    let purged = Purged::of(store)?;
    if purged.is_empty() {
        return Ok(());
    }
    for vector in std::mem::take(vectors) {
        // One that said the same under another id stands emptied.
        let emptied =
            |id: &str| Ok::<_, StoreError>(store.memory(id, None)?.is_some_and(|one| erased(&one.memory)));
        if purged.vectors(&vector.memory_id) || emptied(&vector.memory_id)? {
            let locator = format!("embedding {:?}", vector.id);
            record.embeddings.leave_out();
            record.warn(Warning { locator, message: format!("the embedding is left out: {GONE}") });
        } else {
            vectors.push(vector);
        }
    }
    Ok(())
}
