//! Devices, their policies, and the log of their calls.

use std::collections::BTreeSet;

use satchel_devices::{AuditEntry, Device, DeviceKind, Period, Policy, Role, Scope, Selection, WindowState};
use satchel_pam::memory::MemoryType;
use satchel_proto::v1;
use satchel_store::TimeRange;

use super::{
    WireError,
    memory::{memory_type_from_wire, memory_type_to_wire},
    scalar::{check_count, enum_pair, range_from_wire, time_to_wire, value_from_wire, values_from_wire},
};

enum_pair!(role_to_wire, role_from_wire, Role, v1::DeviceRole, [
    Owner => Owner,
    Reader => Reader,
    Agent => Agent,
    Peer => Peer,
]);

enum_pair!(scope_to_wire, scope_from_wire, Scope, v1::Scope, [
    MemoriesRead => MemoriesRead,
    MemoriesWrite => MemoriesWrite,
    MemoriesDelete => MemoriesDelete,
    ConversationsRead => ConversationsRead,
    ConversationsWrite => ConversationsWrite,
    Imports => Imports,
    Exports => Exports,
    Plugins => Plugins,
    Devices => Devices,
    Admin => Admin,
    Sync => Sync,
]);

/// Converts a device to the wire.
#[must_use]
pub fn device_to_wire(device: &Device) -> v1::Device {
    let kind = match device.kind {
        DeviceKind::Certificate => v1::DeviceKind::Certificate,
        DeviceKind::Token => v1::DeviceKind::Token,
    };
    v1::Device {
        id: device.id.to_string(),
        name: device.name.clone(),
        kind: kind.into(),
        policy: Some(policy_to_wire(&device.policy)),
        paired_at: Some(time_to_wire(device.paired_at)),
        paired_by: device.paired_by.clone(),
        last_seen_at: device.last_seen.map(time_to_wire),
        last_address: device.last_address.clone().unwrap_or_default(),
        expire_time: Some(time_to_wire(device.expires_at)),
        revoked_at: device.revoked_at.map(time_to_wire),
        revoke_reason: device.revoke_reason.clone().unwrap_or_default(),
    }
}

fn policy_to_wire(policy: &Policy) -> v1::DevicePolicy {
    let Policy { role, scopes, entity, selection, trusted_writes } = policy;
    v1::DevicePolicy {
        role: role_to_wire(*role),
        scopes: scopes.iter().map(|scope| scope_to_wire(*scope)).collect(),
        entity: entity.clone(),
        selection: Some(selection_to_wire(selection)),
        trusted_writes: *trusted_writes,
    }
}

/// Converts a selection to the wire.
#[must_use]
pub fn selection_to_wire(selection: &Selection) -> v1::DeviceSelection {
    let Selection { platforms, tags, types, denied_tags, created, exportable_only } = selection;
    let texts = |set: &BTreeSet<String>| set.iter().cloned().collect();
    let types = types.iter().filter_map(|word| word.parse().ok()).map(memory_type_to_wire);
    let Period { from, until } = *created;
    v1::DeviceSelection {
        platforms: texts(platforms),
        tags: texts(tags),
        types: types.collect(),
        denied_tags: texts(denied_tags),
        created: (!created.is_unbounded())
            .then(|| v1::TimeRange { start: from.map(time_to_wire), end: until.map(time_to_wire) }),
        exportable_only: *exportable_only,
    }
}

/// Reads a policy. The name of the device stands in for a missing entity.
///
/// # Errors
/// A missing policy; unknown, too many or too long values.
pub fn policy_from_wire(wire: Option<v1::DevicePolicy>, name: &str) -> Result<Policy, WireError> {
    let wire = wire.ok_or_else(|| WireError::new("policy", "is missing"))?;
    let v1::DevicePolicy { role, scopes, entity, selection, trusted_writes } = wire;
    check_count("policy.scopes", scopes.len())?;
    let entity = value_from_wire("policy.entity", entity)?.unwrap_or_else(|| name.to_owned());
    let mut policy = Policy::for_role(role_from_wire("policy.role", role)?, &entity);
    if !scopes.is_empty() {
        policy.scopes = scopes
            .into_iter()
            .map(|scope| scope_from_wire("policy.scopes", scope))
            .collect::<Result<_, _>>()?;
    }
    policy.selection = selection_from_wire("policy.selection", selection.unwrap_or_default())?;
    policy.trusted_writes = trusted_writes;
    Ok(policy)
}

/// Reads a selection. `field` is the one in which it is.
///
/// # Errors
/// Unknown, too many or too long values.
pub fn selection_from_wire(field: &str, wire: v1::DeviceSelection) -> Result<Selection, WireError> {
    let v1::DeviceSelection { platforms, tags, types, denied_tags, created, exportable_only } = wire;
    let in_field = |error: WireError| error.in_field(field);
    let texts = |name, values| values_from_wire(name, values).map(BTreeSet::from_iter).map_err(in_field);
    check_count("types", types.len()).map_err(in_field)?;
    let types: Vec<MemoryType> = types
        .into_iter()
        .map(|number| memory_type_from_wire("types", number).map_err(in_field))
        .collect::<Result<_, _>>()?;
    let TimeRange { from, until } = range_from_wire("created", created).map_err(in_field)?;
    Ok(Selection {
        platforms: texts("platforms", platforms)?,
        tags: texts("tags", tags)?,
        types: types.into_iter().map(|kind| kind.as_str().to_owned()).collect(),
        denied_tags: texts("denied_tags", denied_tags)?,
        created: Period { from, until },
        exportable_only,
    })
}

/// Converts an entry of the log of calls to the wire.
#[must_use]
pub fn audit_event_to_wire(entry: AuditEntry) -> v1::AuditEvent {
    let AuditEntry { at, device_id, device_name, address, method, code, .. } = entry;
    v1::AuditEvent { called_at: Some(time_to_wire(at)), device_id, device_name, address, method, code }
}

/// Converts the state of a pairing to the wire.
#[must_use]
pub fn pairing_state_to_wire(state: &WindowState) -> v1::PairingState {
    match state {
        WindowState::Open { .. } => v1::PairingState::Open,
        WindowState::Redeemed { device: Some(_) } => v1::PairingState::Completed,
        // The device is being registered.
        WindowState::Redeemed { device: None } => v1::PairingState::Open,
        _ => v1::PairingState::Closed,
    }
}
