//! Who makes a call, and whether the caller may use the method.

use std::sync::atomic::Ordering;

use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use satchel_devices::{Device, DeviceId, DeviceKind, Role, Scope};
use satchel_pam::time::Timestamp;
use satchel_proto::{DEVICE_HEADER, Method, v1};

use crate::{
    devices::Devices,
    grpc::{
        call_state::Caller,
        connection::{Peer, RemotePeer},
        status::CallError,
        wire::device::scope_from_wire,
    },
};

/// The only method for callers without credentials.
const PAIRING_METHOD: &str = "/satchel.v1.PairingService/CompletePairing";
/// Health is open to everybody who can connect, as load balancers and monitors expect.
const HEALTH_PREFIX: &str = "/grpc.health.v1.Health/";
const REFLECTION_PREFIX: &str = "/grpc.reflection.";
/// The scheme of a token in the header `authorization`.
const BEARER: &str = "Bearer ";

/// Returns who makes a call.
pub(super) fn authenticate(
    peer: Option<&Peer>,
    headers: &HeaderMap,
    path: &str,
    owner: u32,
    (devices, now): (&Devices, i64),
) -> Result<Caller, CallError> {
    match peer {
        Some(Peer::Local { uid }) if *uid == Some(owner) => match headers.get(DEVICE_HEADER) {
            Some(device) => named_device(device, devices, now).map(Caller::Device),
            None => Ok(Caller::Owner),
        },
        Some(Peer::Local { .. }) | None => Err(CallError::NotOwner),
        // Every process and every web page on this machine can connect there, so nothing is open to all.
        Some(Peer::Web { .. }) => {
            let device = token_device(headers, devices, now)?;
            device.map(Caller::Device).ok_or(CallError::NoCredentials)
        }
        Some(Peer::Remote(remote)) => match device(remote, headers, devices, now)? {
            Some(device) => Ok(Caller::Device(device)),
            None if path == PAIRING_METHOD || path.starts_with(HEALTH_PREFIX) => Ok(Caller::Unpaired),
            None => Err(CallError::NoCredentials),
        },
    }
}

/// Returns the device as which the owner makes a call.
fn named_device(
    name: &HeaderValue,
    devices: &Devices,
    now: i64,
) -> Result<std::sync::Arc<Device>, CallError> {
    let name = name.to_str().ok();
    let device = name.and_then(|name| devices.registry().named(name));
    let device = device.ok_or(CallError::UnknownCredentials { what: "device" })?;
    check_current(&device, now).map(|()| device)
}

/// Returns the device of a client over TLS; `None` if it has no credentials.
fn device(
    remote: &RemotePeer,
    headers: &HeaderMap,
    devices: &Devices,
    now: i64,
) -> Result<Option<std::sync::Arc<Device>>, CallError> {
    if let Some(key) = &remote.key {
        let device = devices.registry().by_id(&DeviceId::of(key));
        let device = device.ok_or(CallError::UnknownCredentials { what: "certificate" })?;
        return check_current(&device, now).map(|()| Some(device));
    }
    let device = token_device(headers, devices, now)?;
    if device.is_some() {
        remote.proved.store(true, Ordering::Relaxed);
    }
    Ok(device)
}

/// Returns the device of the token in the headers; `None` if there is none.
pub(super) fn token_device(
    headers: &HeaderMap,
    devices: &Devices,
    now: i64,
) -> Result<Option<std::sync::Arc<Device>>, CallError> {
    let Some(header) = headers.get(AUTHORIZATION) else { return Ok(None) };
    let unknown = || CallError::UnknownCredentials { what: "token" };
    let secret = header.to_str().ok().and_then(|text| text.strip_prefix(BEARER)).ok_or_else(unknown)?;
    let device = devices.registry().by_token_secret(secret, now).ok_or_else(unknown)?;
    check_current(&device, now)?;
    Ok(Some(device))
}

/// Checks that a device is not revoked and its certificate has not expired during the connection.
pub(super) fn check_current(device: &Device, now: i64) -> Result<(), CallError> {
    if device.revoked() {
        return Err(CallError::DeviceRevoked { device: device.name.clone() });
    }
    if device.expired(now) { Err(expired(device)) } else { Ok(()) }
}

/// Returns the error for a device whose certificate or token has expired.
pub(super) fn expired(device: &Device) -> CallError {
    match device.kind {
        DeviceKind::Certificate => CallError::CertificateExpired {
            device: device.name.clone(),
            expired: Timestamp::saturating(device.expires_at).to_string(),
        },
        DeviceKind::Token => CallError::UnknownCredentials { what: "token" },
    }
}

/// Checks that a device may use the method at `path`.
pub(super) fn authorize(device: &Device, path: &str, method: Option<&Method>) -> Result<(), CallError> {
    let Some(method) = method else {
        // The services of others: health for everybody, reflection for those who may administer.
        let allowed = !path.starts_with(REFLECTION_PREFIX) || device.policy.may(Scope::Admin);
        return if allowed { Ok(()) } else { Err(missing(device, v1::Scope::Admin)) };
    };
    let required = v1::Scope::try_from(method.required_scope).unwrap_or_default();
    let permitted = match required {
        v1::Scope::ConversationsRead => may_read_conversations(device),
        required => permits(device, required),
    };
    if permitted { Ok(()) } else { Err(missing(device, required)) }
}

/// Returns whether a device may call the methods that read conversations. An agent that may record conversations reads
/// its own ones; the handlers leave out all others.
pub(in crate::grpc) fn may_read_conversations(device: &Device) -> bool {
    let records = device.policy.role == Role::Agent && device.policy.may(Scope::ConversationsWrite);
    records || device.policy.may(Scope::ConversationsRead)
}

/// Returns whether a device has a permission.
pub(in crate::grpc) fn permits(device: &Device, required: v1::Scope) -> bool {
    match required {
        // A build without it fails, and nobody has it.
        v1::Scope::Unspecified => false,
        // The handler looks at each operation.
        v1::Scope::None | v1::Scope::OfOperation => true,
        required => scope_from_wire("", required.into()).is_ok_and(|scope| device.policy.may(scope)),
    }
}

fn missing(device: &Device, scope: v1::Scope) -> CallError {
    CallError::ScopeMissing { device: device.name.clone(), scope: scope.as_str_name() }
}
