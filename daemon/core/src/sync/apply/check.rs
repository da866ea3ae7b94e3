//! Checks received payloads before they take effect: what the store would refuse must not be found out in the middle of a commit.

use std::collections::BTreeSet;

use satchel_merge::evidence::{EditAction, EditStep};
use satchel_pam::{memory::Memory, relation::Relation};
use satchel_store::{Change, Store, id_too_long};

use super::{SyncError, imports::MergedImport};
use crate::{
    export_ledger,
    provenance::{self, EvidenceItem, EvidenceKey},
    series::{
        LATEST_MICROS,
        payload::{ContributionPayload, EditPayload, Payload, contribution_key},
    },
};

/// Longest name of somebody who edits, in bytes. Names of devices have at most 64 characters.
const MAX_ACTOR_BYTES: usize = 1_024;

/// Returns why this payload cannot take effect; `None` if it can.
pub(super) fn refusal(store: &Store, payload: &Payload) -> Result<Option<String>, SyncError> {
    if made_at(payload).is_some_and(|at| at > LATEST_MICROS) {
        return Ok(Some("its time is after the year 2100".to_owned()));
    }
    Ok(match payload {
        Payload::Edit(EditPayload { actor, .. }) if actor.len() > MAX_ACTOR_BYTES => {
            Some(format!("the name of its actor has {} bytes, the limit is {MAX_ACTOR_BYTES}", actor.len()))
        }
        Payload::Edit(EditPayload { step, .. }) | Payload::EarlierEdit(step) => refused_step(store, step)?,
        Payload::Evidence(key, json) => match evidence_item(*key, json) {
            Ok(item) => item.map(|item| refused_evidence(store, &item)).transpose()?.flatten(),
            Err(reason) => Some(reason),
        },
        Payload::Contribution(part) | Payload::Recording(part) => contribution(part).err(),
        Payload::Import(import) => MergedImport::read(import).err(),
        Payload::Remainder(_, json) => match EvidenceItem::decode(json) {
            Ok(Some(EvidenceItem::Stored(_))) => None,
            _ => Some("what is left of a piece of evidence is no statement about memories".to_owned()),
        },
        Payload::AgentMemory(memory) => memory.entry.refusal(&memory.id),
        Payload::Export(export) => export_ledger::refusal(export),
        Payload::Undo(_) | Payload::Erasure(_) | Payload::Continuation(_) => None,
    })
}

/// Returns the time that may decide which of two concurrent changes is shown.
fn made_at(payload: &Payload) -> Option<i64> {
    match payload {
        Payload::Edit(EditPayload { step, .. }) | Payload::EarlierEdit(step) => Some(step.at),
        Payload::Undo(undo) => Some(undo.at),
        Payload::AgentMemory(memory) => memory.entry.reviewer.as_ref().map(|reviewer| reviewer.at),
        Payload::Evidence(..)
        | Payload::Contribution(_)
        | Payload::Import(_)
        | Payload::Erasure(_)
        | Payload::Remainder(..)
        | Payload::Recording(_)
        | Payload::Continuation(_)
        | Payload::Export(_) => None,
    }
}

/// Decodes a piece of evidence; `None` if it was erased. It must be what an import brings, and belong to its key.
pub(super) fn evidence_item(key: EvidenceKey, json: &[u8]) -> Result<Option<EvidenceItem>, String> {
    let item = EvidenceItem::decode(json).map_err(|error| error.to_string())?;
    let Some(item) = item else { return Ok(None) };
    match item.key().map_err(|error| error.to_string())? {
        Some(own) if own == key => Ok(Some(item)),
        Some(_) => Err("a piece of evidence has the key of another one".to_owned()),
        None => Err("an edit is passed off as evidence of an import".to_owned()),
    }
}

fn refused_step(store: &Store, step: &EditStep) -> Result<Option<String>, SyncError> {
    match &step.action {
        // The ids of its memories are derived from it.
        EditAction::AddMemory(_) | EditAction::Undo(_) => Ok(None),
        EditAction::Patch(patch) => refused_memory(store, &patch.to),
        EditAction::AddRelation(relation) => refused_relation(store, relation),
        EditAction::WithdrawRelation(id) => {
            Ok(id_too_long(id).then(|| "the id of a relation is longer than the store takes".to_owned()))
        }
    }
}

fn refused_evidence(store: &Store, item: &EvidenceItem) -> Result<Option<String>, SyncError> {
    match item {
        EvidenceItem::Document(document) => refused_memory(store, &document.memory),
        EvidenceItem::Edge(edge) => refused_relation(store, &edge.relation),
        EvidenceItem::Vector(vector) => {
            // As the store names embeddings.
            let id = format!("{}\n{}", vector.identity.memory, vector.identity.model);
            Ok(id_too_long(&id).then(|| "the id of a vector is longer than the store takes".to_owned()))
        }
        EvidenceItem::Stored(_) | EvidenceItem::Edit(_) => Ok(None),
    }
}

fn refused_memory(store: &Store, memory: &Memory) -> Result<Option<String>, SyncError> {
    refused(store, Change::Memory(Box::new(memory.clone())))
}

fn refused_relation(store: &Store, relation: &Relation) -> Result<Option<String>, SyncError> {
    refused(store, Change::Relation(relation.clone()))
}

fn refused(store: &Store, change: Change) -> Result<Option<String>, SyncError> {
    match store.validate(&[change]) {
        Ok(()) => Ok(None),
        Err(error) if error.concerns_record() => Ok(Some(error.to_string())),
        Err(error) => Err(error.into()),
    }
}

/// Returns the key of what was reported about a conversation.
///
/// # Errors
/// Why it cannot take effect.
pub(super) fn contribution(contribution: &ContributionPayload) -> Result<EvidenceKey, String> {
    let id = &contribution.conversation;
    if id.is_empty() || id_too_long(id) || provenance::is_reserved(id) {
        return Err(format!("{id:?} cannot be the id of a conversation"));
    }
    let mut ids = BTreeSet::new();
    for node in &contribution.nodes {
        if node.id.is_empty() || id_too_long(&node.id) || !ids.insert(&node.id) {
            return Err(format!("{:?} cannot be the id of a message, or two messages have it", node.id));
        }
    }
    contribution_key(contribution).map_err(|error| error.to_string())
}
