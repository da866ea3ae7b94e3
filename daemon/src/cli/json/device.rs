//! JSON documents for devices, their calls, and paired daemons.

use satchel_proto::v1;
use serde::Serialize;

use super::{non_empty, timestamp};
use crate::cli::labels;

/// `devices list`.
#[derive(Debug, Serialize)]
pub(crate) struct Devices<'a> {
    pub devices: Vec<Device<'a>>,
}

/// `devices show`, `rename`, `update` and `revoke`.
#[derive(Debug, Serialize)]
pub(crate) struct DeviceDocument<'a> {
    pub device: Device<'a>,
}

document! {
    /// A paired device or a token.
    Device<'a> from device: v1::Device {
        id: &'a str = &device.id,
        name: &'a str = &device.name,
        /// `certificate` or `token`.
        kind: String = labels::device_kind(device.kind),
        policy: Option<Policy<'a>> = device.policy.as_ref().map(Policy::new),
        paired_at: Option<String> = timestamp(device.paired_at.as_ref()),
        paired_by: &'a str = &device.paired_by,
        last_seen_at: Option<String> = timestamp(device.last_seen_at.as_ref()),
        last_address: Option<&'a str> = non_empty(&device.last_address),
        expires_at: Option<String> = timestamp(device.expire_time.as_ref()),
        /// Null unless it was revoked.
        revoked_at: Option<String> = timestamp(device.revoked_at.as_ref()),
        revoke_reason: Option<&'a str> = non_empty(&device.revoke_reason),
    }
}

/// What a device may do and see. An empty list does not restrict.
#[derive(Debug, Serialize)]
pub(crate) struct Policy<'a> {
    pub role: String,
    pub scopes: Vec<String>,
    /// The name of the device in grants of memories.
    pub entity: &'a str,
    #[serde(flatten)]
    pub selection: Selection<'a>,
    /// Whether the memories that an agent writes are stored at once.
    pub trusted_writes: bool,
}

impl<'a> Policy<'a> {
    fn new(policy: &'a v1::DevicePolicy) -> Self {
        let v1::DevicePolicy { role, scopes, entity, selection, trusted_writes } = policy;
        Self {
            role: labels::device_role(*role),
            scopes: scopes.iter().map(|scope| labels::scope(*scope)).collect(),
            entity,
            selection: Selection::new(selection.as_ref()),
            trusted_writes: *trusted_writes,
        }
    }
}

/// The part of the store that a device sees, or a peer gets. What is empty does not restrict.
#[derive(Debug, Serialize)]
pub(crate) struct Selection<'a> {
    pub platforms: &'a [String],
    pub tags: &'a [String],
    pub types: Vec<String>,
    pub denied_tags: &'a [String],
    /// The first moment of the time in which they were created; null: no bound.
    pub created_since: Option<String>,
    /// The first moment after it; null: no bound.
    pub created_before: Option<String>,
    /// Whether memories that exports must not contain are left out.
    pub exportable_only: bool,
}

impl<'a> Selection<'a> {
    pub(crate) fn new(selection: Option<&'a v1::DeviceSelection>) -> Self {
        let texts = |field: fn(&v1::DeviceSelection) -> &[String]| selection.map_or(&[][..], field);
        let types = selection.map_or(&[][..], |selection| &selection.types);
        let created = selection.and_then(|selection| selection.created.as_ref());
        Self {
            platforms: texts(|selection| &selection.platforms),
            tags: texts(|selection| &selection.tags),
            types: types.iter().map(|kind| labels::memory_type(*kind)).collect(),
            denied_tags: texts(|selection| &selection.denied_tags),
            created_since: timestamp(created.and_then(|range| range.start.as_ref())),
            created_before: timestamp(created.and_then(|range| range.end.as_ref())),
            exportable_only: selection.is_some_and(|selection| selection.exportable_only),
        }
    }
}

/// `devices pair`.
#[derive(Debug, Serialize)]
pub(crate) struct Pairing<'a> {
    pub id: &'a str,
    pub code: &'a str,
    pub uri: &'a str,
    pub addresses: &'a [String],
    pub expires_at: Option<String>,
}

/// `devices token`.
#[derive(Debug, Serialize)]
pub(crate) struct Token<'a> {
    pub token: &'a str,
    pub device: Device<'a>,
}

/// `devices log`.
#[derive(Debug, Serialize)]
pub(crate) struct Calls<'a> {
    pub calls: Vec<Call<'a>>,
}

document! {
    /// One call of a device.
    Call<'a> from event: v1::AuditEvent {
        called_at: Option<String> = timestamp(event.called_at.as_ref()),
        device_id: Option<&'a str> = non_empty(&event.device_id),
        device_name: Option<&'a str> = non_empty(&event.device_name),
        address: &'a str = &event.address,
        method: &'a str = &event.method,
        /// The gRPC status code; 0 is OK.
        code: i32 = event.code,
    }
}

/// `servers list`.
#[derive(Debug, Serialize)]
pub(crate) struct Servers<'a> {
    pub servers: &'a [Server],
}

/// A paired daemon. If its credentials cannot be read, only `name` and `problem` are set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Server {
    pub name: String,
    pub addresses: Vec<String>,
    /// Of the key of the daemon.
    pub fingerprint: Option<String>,
    /// The id of this device there.
    pub device_id: Option<String>,
    /// When the certificate of this device ends. It is renewed before.
    pub expires_at: Option<String>,
    pub problem: Option<String>,
}

/// `servers remove`.
#[derive(Debug, Serialize)]
pub(crate) struct RemovedServer<'a> {
    pub removed: &'a str,
}

/// `pair`.
#[derive(Debug, Serialize)]
pub(crate) struct Paired<'a> {
    pub server: &'a Server,
    pub device: Device<'a>,
}
