//! The value that is shown of a field for which several values are left.
//!
//! Most fields show the first value, which is the newest one. Where showing too much does harm, or where nothing
//! contradicts, all values are combined: the strictest access, the union of tags, the period that all values agree on.

use std::collections::{BTreeMap, BTreeSet};

use satchel_pam::memory::{Access, AccessGrant, Memory, Permission, Visibility};

use super::{MemoryField, fields::copy_field};

/// The permissions of each entity.
type Grants<'a> = BTreeMap<&'a str, BTreeSet<Permission>>;

/// Sets `field` to what is shown of `values`, of which the first ranks highest.
pub(super) fn show_field(field: MemoryField, values: &[&Memory], to: &mut Memory) {
    let Some(first) = values.first() else { return };
    copy_field(field, first, to);
    match field {
        MemoryField::Tags => to.tags = union_of_tags(values),
        MemoryField::Access => to.access = strictest_access(values),
        MemoryField::ValidFrom => {
            to.temporal.valid_from = values.iter().filter_map(|memory| memory.temporal.valid_from).max();
        }
        MemoryField::ValidUntil => {
            to.temporal.valid_until = values.iter().filter_map(|memory| memory.temporal.valid_until).min();
        }
        MemoryField::Content
        | MemoryField::Type
        | MemoryField::Summary
        | MemoryField::Decay
        | MemoryField::Metadata
        | MemoryField::Status => {}
    }
}

/// Returns the tags of the first value, followed by those that only others have, in order.
fn union_of_tags(values: &[&Memory]) -> Vec<String> {
    let mut tags = values.first().map(|memory| memory.tags.clone()).unwrap_or_default();
    let others: BTreeSet<&String> = values.iter().flat_map(|memory| &memory.tags).collect();
    let missing: Vec<String> = others.into_iter().filter(|tag| !tags.contains(tag)).cloned().collect();
    tags.extend(missing);
    tags
}

/// Returns access that every value allows. If all are equal, that value is returned unchanged.
fn strictest_access(values: &[&Memory]) -> Option<Access> {
    let first = values.first().and_then(|memory| memory.access.clone());
    if values.iter().all(|memory| memory.access == first) {
        return first;
    }
    // A memory without access rights is private and exportable.
    let all: Vec<Access> = values.iter().map(|memory| memory.access.clone().unwrap_or_default()).collect();
    let mut visibility = all
        .iter()
        .map(|access| access.visibility)
        .min_by_key(|one| openness(*one))
        .unwrap_or(Visibility::Private);
    let shared_with = common_grants(&all);
    // Nothing is left to share.
    if visibility == Visibility::Shared && shared_with.is_empty() {
        visibility = Visibility::Private;
    }
    Some(Access { visibility, exportable: all.iter().all(|access| access.exportable), shared_with })
}

fn openness(visibility: Visibility) -> u8 {
    match visibility {
        Visibility::Private => 0,
        Visibility::Shared => 1,
        Visibility::Public => 2,
    }
}

/// Returns the grants that all values contain. Everybody may read a public memory, so it restricts nobody's reading.
fn common_grants(all: &[Access]) -> Vec<AccessGrant> {
    let mut common: Grants<'_> = BTreeMap::new();
    for access in all {
        for (entity, permissions) in grants(access) {
            common.entry(entity).or_default().extend(permissions);
        }
    }
    for access in all {
        let allowed = grants(access);
        for (entity, permissions) in &mut common {
            let own = allowed.get(entity);
            permissions.retain(|permission| {
                let public = access.visibility == Visibility::Public && *permission == Permission::Read;
                public || own.is_some_and(|own| own.contains(permission))
            });
        }
    }
    let grant = |(entity, permissions): (&str, BTreeSet<Permission>)| AccessGrant {
        entity: entity.to_owned(),
        permissions: permissions.into_iter().collect(),
    };
    common.into_iter().filter(|(_, permissions)| !permissions.is_empty()).map(grant).collect()
}

fn grants(access: &Access) -> Grants<'_> {
    let mut grants = Grants::new();
    for AccessGrant { entity, permissions } in &access.shared_with {
        grants.entry(entity).or_default().extend(permissions);
    }
    grants
}
