//! Relations.

use satchel_core::edits::NewRelation;
use satchel_pam::relation::{Relation, RelationType};
use satchel_proto::{integers::signed, v1};
use satchel_store::RelationRecord;

use super::{
    WireError,
    memory::{known_timestamp_to_wire, not_empty},
    scalar::enum_pair,
};

enum_pair!(relation_type_to_wire, relation_type_from_wire, RelationType, v1::RelationType, [
    Supports => Supports,
    Contradicts => Contradicts,
    Extends => Extends,
    Supersedes => Supersedes,
    RelatedTo => RelatedTo,
    DerivedFrom => DerivedFrom,
]);

/// Converts a stored relation to the wire.
#[must_use]
pub fn relation_to_wire(record: RelationRecord) -> v1::Relation {
    let RelationRecord { relation, withdrawn, created_revision: _, revision, origin: _ } = record;
    let Relation { id, from, to, relation_type, confidence, created_at } = relation;
    v1::Relation {
        id,
        from_id: from,
        to_id: to,
        r#type: relation_type_to_wire(relation_type),
        confidence,
        created_at: known_timestamp_to_wire(created_at),
        withdrawn,
        mod_revision: signed(revision.get()),
    }
}

/// Reads a new relation from the wire.
///
/// # Errors
/// Fields that only the daemon sets, and values that cannot be read.
pub fn relation_from_wire(wire: v1::Relation) -> Result<NewRelation, WireError> {
    let v1::Relation { id, from_id, to_id, r#type, confidence, created_at, withdrawn, mod_revision } = wire;
    let set = [
        ("relation.id", !id.is_empty()),
        ("relation.created_at", created_at.is_some()),
        ("relation.withdrawn", withdrawn),
        ("relation.mod_revision", mod_revision != 0),
    ];
    if let Some((field, _)) = set.iter().find(|(_, set)| *set) {
        return Err(WireError::new(*field, "is set by the daemon; leave it out"));
    }
    Ok(NewRelation {
        from: not_empty("relation.from_id", from_id)?,
        to: not_empty("relation.to_id", to_id)?,
        relation_type: relation_type_from_wire("relation.type", r#type)?,
        confidence,
    })
}
