//! Evidence, relations and embeddings.

use satchel_pam::{
    embedding::{Storage, StorageKind},
    memory::{Access, AccessGrant, DecayModel, ExtractionMethod, MemoryType, Permission, Status, Visibility},
    record::{Claim, ConfidenceRecord, Edit, EmbeddingRecord, Evidence, Item, RelationRecord},
    relation::RelationType,
};

use super::raw_object;
use crate::{bindings::satchel::importer::types as wit, collect::RecordNotes};

pub(crate) fn evidence(evidence: wit::Evidence, notes: &mut RecordNotes) -> Evidence {
    let wit::Evidence { id, claim, at, account, conversation, message, extraction_method, locator } =
        evidence;
    let extraction_method = match extraction_method {
        wit::ExtractionMethod::LlmInference => ExtractionMethod::LlmInference,
        wit::ExtractionMethod::ExplicitUserInput => ExtractionMethod::ExplicitUserInput,
        wit::ExtractionMethod::ApiExport => ExtractionMethod::ApiExport,
        wit::ExtractionMethod::BrowserExtraction => ExtractionMethod::BrowserExtraction,
        wit::ExtractionMethod::Manual => ExtractionMethod::Manual,
    };
    let claim = claim_from_wit(claim, notes);
    Evidence { id, claim, at, account, conversation, message, extraction_method, locator }
}

fn claim_from_wit(claim: wit::Claim, notes: &mut RecordNotes) -> Claim {
    match claim {
        wit::Claim::Statement(statement) => Claim::Statement(item(statement, notes)),
        wit::Claim::Snapshot(wit::Snapshot { series, items }) => {
            Claim::Snapshot { series, items: items.into_iter().map(|member| item(member, notes)).collect() }
        }
        wit::Claim::Edit(wit::LoggedEdit { log, sequence, edit }) => {
            Claim::Edit { log, sequence, edit: edit_from_wit(edit, notes) }
        }
    }
}

fn edit_from_wit(edit: wit::Edit, notes: &mut RecordNotes) -> Edit {
    match edit {
        wit::Edit::Add(new) => Edit::Add(item(new, notes)),
        wit::Edit::Replace(wit::Replacement { line, target, item: new }) => {
            Edit::Replace { line, target, item: item(new, notes) }
        }
        wit::Edit::Remove(wit::Removal { line, target }) => Edit::Remove { line, target },
    }
}

fn item(item: wit::Item, notes: &mut RecordNotes) -> Item {
    let wit::Item {
        key,
        content,
        memory_type,
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
    Item {
        key,
        content,
        memory_type: memory_type_from_wit(memory_type),
        custom_type,
        status: status.map(status_from_wit),
        scope,
        summary,
        tags,
        confidence: confidence.map(confidence_from_wit),
        created_at,
        updated_at,
        valid_from,
        valid_until,
        superseded_by,
        access: access.map(access_from_wit),
        embedding_ref,
        metadata: raw_object("metadata", metadata, notes),
    }
}

fn memory_type_from_wit(memory_type: wit::MemoryType) -> MemoryType {
    match memory_type {
        wit::MemoryType::Fact => MemoryType::Fact,
        wit::MemoryType::Preference => MemoryType::Preference,
        wit::MemoryType::Skill => MemoryType::Skill,
        wit::MemoryType::Context => MemoryType::Context,
        wit::MemoryType::Relationship => MemoryType::Relationship,
        wit::MemoryType::Goal => MemoryType::Goal,
        wit::MemoryType::Instruction => MemoryType::Instruction,
        wit::MemoryType::Identity => MemoryType::Identity,
        wit::MemoryType::Environment => MemoryType::Environment,
        wit::MemoryType::Project => MemoryType::Project,
        wit::MemoryType::Custom => MemoryType::Custom,
    }
}

fn status_from_wit(status: wit::MemoryStatus) -> Status {
    match status {
        wit::MemoryStatus::Active => Status::Active,
        wit::MemoryStatus::Superseded => Status::Superseded,
        wit::MemoryStatus::Deprecated => Status::Deprecated,
        wit::MemoryStatus::Retracted => Status::Retracted,
        wit::MemoryStatus::Archived => Status::Archived,
    }
}

fn confidence_from_wit(confidence: wit::Confidence) -> ConfidenceRecord {
    let wit::Confidence { initial, current, decay_model, last_reinforced } = confidence;
    let decay_model = decay_model.map(|model| match model {
        wit::DecayModel::TimeLinear => DecayModel::TimeLinear,
        wit::DecayModel::TimeExponential => DecayModel::TimeExponential,
        wit::DecayModel::None => DecayModel::None,
    });
    ConfidenceRecord { initial, current, decay_model, last_reinforced }
}

fn access_from_wit(access: wit::Access) -> Access {
    let wit::Access { visibility, exportable, shared_with } = access;
    let visibility = match visibility {
        wit::Visibility::Private => Visibility::Private,
        wit::Visibility::Shared => Visibility::Shared,
        wit::Visibility::Public => Visibility::Public,
    };
    Access { visibility, exportable, shared_with: shared_with.into_iter().map(grant).collect() }
}

fn grant(grant: wit::AccessGrant) -> AccessGrant {
    let wit::AccessGrant { entity, permissions } = grant;
    let permissions = permissions.into_iter().map(|permission| match permission {
        wit::Permission::Read => Permission::Read,
        wit::Permission::Write => Permission::Write,
        wit::Permission::Delete => Permission::Delete,
    });
    AccessGrant { entity, permissions: permissions.collect() }
}

pub(crate) fn relation(relation: wit::Relation) -> RelationRecord {
    let wit::Relation { source, target, relation_type, confidence, created_at } = relation;
    let relation_type = match relation_type {
        wit::RelationType::Supports => RelationType::Supports,
        wit::RelationType::Contradicts => RelationType::Contradicts,
        wit::RelationType::Extends => RelationType::Extends,
        wit::RelationType::Supersedes => RelationType::Supersedes,
        wit::RelationType::RelatedTo => RelationType::RelatedTo,
        wit::RelationType::DerivedFrom => RelationType::DerivedFrom,
    };
    RelationRecord { source, target, relation_type, confidence, created_at }
}

pub(crate) fn embedding(embedding: wit::Embedding) -> EmbeddingRecord {
    let wit::Embedding { memory, model, dimensions, created_at, vector, storage } = embedding;
    let storage = storage.map(|wit::Storage { kind, ref_ }| {
        let kind = match kind {
            wit::StorageKind::File => StorageKind::File,
            wit::StorageKind::Database => StorageKind::Database,
            wit::StorageKind::ObjectStorage => StorageKind::ObjectStorage,
            wit::StorageKind::VectorDb => StorageKind::VectorDb,
            wit::StorageKind::Uri => StorageKind::Uri,
        };
        Storage { kind, reference: ref_ }
    });
    EmbeddingRecord { memory, model, dimensions, created_at, vector, storage }
}
