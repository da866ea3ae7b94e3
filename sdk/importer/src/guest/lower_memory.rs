//! Converts evidence, relations and embeddings to the types of the bindings.

use satchel_pam::{
    embedding::{Storage, StorageKind},
    memory::{Access, AccessGrant, DecayModel, ExtractionMethod, MemoryType, Permission, Status, Visibility},
    record::ConfidenceRecord,
    relation::RelationType,
};

use super::{bindings::satchel::importer::types as wit, lower::list};
use crate::{Arena, Claim, Edit, EmbeddingRecord, Evidence, Item, RelationRecord};

pub(super) fn evidence<'b>(evidence: &'b [Evidence], arena: &'b Arena) -> &'b [wit::Evidence<'b>] {
    list(evidence, arena, |each| one_evidence(each, arena))
}

fn one_evidence<'b>(evidence: &'b Evidence, arena: &'b Arena) -> wit::Evidence<'b> {
    // All fields are named so that a new one does not compile until it is converted.
    let Evidence { id, claim: source, at, account, conversation, message, extraction_method, locator } =
        evidence;
    wit::Evidence {
        id,
        claim: claim(source, arena),
        at: *at,
        account: account.as_deref(),
        conversation: conversation.as_deref(),
        message: message.as_deref(),
        extraction_method: match extraction_method {
            ExtractionMethod::LlmInference => wit::ExtractionMethod::LlmInference,
            ExtractionMethod::ExplicitUserInput => wit::ExtractionMethod::ExplicitUserInput,
            ExtractionMethod::ApiExport => wit::ExtractionMethod::ApiExport,
            ExtractionMethod::BrowserExtraction => wit::ExtractionMethod::BrowserExtraction,
            ExtractionMethod::Manual => wit::ExtractionMethod::Manual,
        },
        locator,
    }
}

fn claim<'b>(claim: &'b Claim, arena: &'b Arena) -> wit::Claim<'b> {
    match claim {
        Claim::Statement(stated) => wit::Claim::Statement(item(stated, arena)),
        Claim::Snapshot { series, items } => wit::Claim::Snapshot(wit::Snapshot {
            series,
            items: list(items, arena, |each| item(each, arena)),
        }),
        Claim::Edit { log, sequence, edit: change } => {
            wit::Claim::Edit(wit::LoggedEdit { log, sequence: *sequence, edit: edit(change, arena) })
        }
    }
}

fn edit<'b>(edit: &'b Edit, arena: &'b Arena) -> wit::Edit<'b> {
    match edit {
        Edit::Add(added) => wit::Edit::Add(item(added, arena)),
        Edit::Replace { line, target, item: new } => {
            let (target, item) = (target.as_deref(), item(new, arena));
            wit::Edit::Replace(wit::Replacement { line: *line, target, item })
        }
        Edit::Remove { line, target } => {
            wit::Edit::Remove(wit::Removal { line: *line, target: target.as_deref() })
        }
    }
}

fn item<'b>(item: &'b Item, arena: &'b Arena) -> wit::Item<'b> {
    let Item {
        key,
        content,
        memory_type: kind,
        custom_type,
        status,
        scope,
        summary,
        tags,
        confidence,
        created_at,
        updated_at,
        valid_from,
        valid_until,
        superseded_by,
        access,
        embedding_ref,
        metadata,
    } = item;
    wit::Item {
        key: key.as_deref(),
        content,
        memory_type: memory_type(*kind),
        custom_type: custom_type.as_deref(),
        status: status.map(memory_status),
        scope: scope.as_deref(),
        summary: summary.as_deref(),
        tags: list(tags, arena, String::as_str),
        confidence: confidence.as_ref().map(lower_confidence),
        created_at: *created_at,
        updated_at: *updated_at,
        valid_from: *valid_from,
        valid_until: *valid_until,
        superseded_by: superseded_by.as_deref(),
        access: access.as_ref().map(|access| lower_access(access, arena)),
        embedding_ref: embedding_ref.as_deref(),
        metadata: metadata.as_ref().map(satchel_pam::raw::RawObject::as_str),
    }
}

fn memory_type(kind: MemoryType) -> wit::MemoryType {
    match kind {
        MemoryType::Fact => wit::MemoryType::Fact,
        MemoryType::Preference => wit::MemoryType::Preference,
        MemoryType::Skill => wit::MemoryType::Skill,
        MemoryType::Context => wit::MemoryType::Context,
        MemoryType::Relationship => wit::MemoryType::Relationship,
        MemoryType::Goal => wit::MemoryType::Goal,
        MemoryType::Instruction => wit::MemoryType::Instruction,
        MemoryType::Identity => wit::MemoryType::Identity,
        MemoryType::Environment => wit::MemoryType::Environment,
        MemoryType::Project => wit::MemoryType::Project,
        MemoryType::Custom => wit::MemoryType::Custom,
    }
}

fn memory_status(status: Status) -> wit::MemoryStatus {
    match status {
        Status::Active => wit::MemoryStatus::Active,
        Status::Superseded => wit::MemoryStatus::Superseded,
        Status::Deprecated => wit::MemoryStatus::Deprecated,
        Status::Retracted => wit::MemoryStatus::Retracted,
        Status::Archived => wit::MemoryStatus::Archived,
    }
}

fn lower_confidence(confidence: &ConfidenceRecord) -> wit::Confidence {
    let ConfidenceRecord { initial, current, decay_model, last_reinforced } = confidence;
    let decay_model = decay_model.map(|model| match model {
        DecayModel::TimeLinear => wit::DecayModel::TimeLinear,
        DecayModel::TimeExponential => wit::DecayModel::TimeExponential,
        DecayModel::None => wit::DecayModel::None,
    });
    wit::Confidence { initial: *initial, current: *current, decay_model, last_reinforced: *last_reinforced }
}

fn lower_access<'b>(access: &'b Access, arena: &'b Arena) -> wit::Access<'b> {
    let Access { visibility, exportable, shared_with } = access;
    wit::Access {
        visibility: match visibility {
            Visibility::Private => wit::Visibility::Private,
            Visibility::Shared => wit::Visibility::Shared,
            Visibility::Public => wit::Visibility::Public,
        },
        exportable: *exportable,
        shared_with: list(shared_with, arena, |grant| {
            let AccessGrant { entity, permissions } = grant;
            wit::AccessGrant { entity, permissions: list(permissions, arena, permission) }
        }),
    }
}

fn permission(permission: &Permission) -> wit::Permission {
    match permission {
        Permission::Read => wit::Permission::Read,
        Permission::Write => wit::Permission::Write,
        Permission::Delete => wit::Permission::Delete,
    }
}

pub(super) fn relations<'b>(relations: &'b [RelationRecord], arena: &'b Arena) -> &'b [wit::Relation<'b>] {
    list(relations, arena, relation)
}

fn relation(relation: &RelationRecord) -> wit::Relation<'_> {
    let RelationRecord { source, target, relation_type, confidence, created_at } = relation;
    wit::Relation {
        source,
        target,
        relation_type: match relation_type {
            RelationType::Supports => wit::RelationType::Supports,
            RelationType::Contradicts => wit::RelationType::Contradicts,
            RelationType::Extends => wit::RelationType::Extends,
            RelationType::Supersedes => wit::RelationType::Supersedes,
            RelationType::RelatedTo => wit::RelationType::RelatedTo,
            RelationType::DerivedFrom => wit::RelationType::DerivedFrom,
        },
        confidence: *confidence,
        created_at: *created_at,
    }
}

pub(super) fn embeddings<'b>(
    embeddings: &'b [EmbeddingRecord],
    arena: &'b Arena,
) -> &'b [wit::Embedding<'b>] {
    list(embeddings, arena, embedding)
}

fn embedding(embedding: &EmbeddingRecord) -> wit::Embedding<'_> {
    let EmbeddingRecord { memory, model, dimensions, created_at, vector, storage } = embedding;
    wit::Embedding {
        memory,
        model,
        dimensions: *dimensions,
        created_at: *created_at,
        vector: vector.as_deref(),
        storage: storage.as_ref().map(lower_storage),
    }
}

fn lower_storage(storage: &Storage) -> wit::Storage<'_> {
    let Storage { kind, reference } = storage;
    let kind = match kind {
        StorageKind::File => wit::StorageKind::File,
        StorageKind::Database => wit::StorageKind::Database,
        StorageKind::ObjectStorage => wit::StorageKind::ObjectStorage,
        StorageKind::VectorDb => wit::StorageKind::VectorDb,
        StorageKind::Uri => wit::StorageKind::Uri,
    };
    wit::Storage { kind, ref_: reference }
}
