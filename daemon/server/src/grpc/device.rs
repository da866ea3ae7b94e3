//! `DeviceService`: pairs, lists, changes and revokes devices.

use std::time::Duration;

use satchel_devices::{Device, DeviceKind, Opener, PairingCode, PairingId, PairingUri, WindowState};
use satchel_proto::v1::{self, device_service_server::DeviceService};

use super::{
    ServerState,
    call_state::CallState,
    request::{check_length, check_required, page_request, service},
    status::{CallError, ResourceKind},
    wire::{
        device::{audit_event_to_wire, device_to_wire, pairing_state_to_wire, policy_from_wire},
        scalar::{duration_from_wire, time_from_wire, time_to_wire},
    },
};

/// How long a pairing stays open if the client does not specify it.
const DEFAULT_VALID_FOR: Duration = Duration::from_mins(5);
/// Entries of the log that a list goes through.
const MAX_EVENTS: usize = 100_000;
/// Name of the owner in `Device.paired_by`.
const OWNER: &str = "owner";

#[derive(Clone)]
pub(super) struct DeviceHandler(pub(super) ServerState);

service!(DeviceService for DeviceHandler {
    create_pairing: CreatePairingRequest => CreatePairingResponse = create_pairing;
    get_pairing: GetPairingRequest => GetPairingResponse = get_pairing;
    cancel_pairing: CancelPairingRequest => CancelPairingResponse = cancel_pairing;
    list_devices: ListDevicesRequest => ListDevicesResponse = list;
    update_device: UpdateDeviceRequest => UpdateDeviceResponse = update;
    revoke_device: RevokeDeviceRequest => RevokeDeviceResponse = revoke;
    create_token: CreateTokenRequest => CreateTokenResponse = create_token;
    get_caller_identity: GetCallerIdentityRequest => GetCallerIdentityResponse = caller_identity;
    renew_certificate: RenewCertificateRequest => RenewCertificateResponse = renew;
    list_audit_events: ListAuditEventsRequest => ListAuditEventsResponse = list_events;
});

fn create_pairing(
    state: &CallState,
    request: v1::CreatePairingRequest,
) -> Result<v1::CreatePairingResponse, CallError> {
    let v1::CreatePairingRequest { policy, name, valid_for } = request;
    let authority = state.devices.authority().ok_or(CallError::NotListening)?;
    let valid_for = match valid_for {
        None => DEFAULT_VALID_FOR,
        Some(wire) => duration_from_wire(wire)
            .ok_or_else(|| CallError::invalid_field("valid_for", "must lie between 1 s and 15 min"))?,
    };
    let policy = policy_from_wire(policy, &name)?;
    let name = (!name.is_empty()).then_some(name);
    let opener = Opener { name: caller_name(state), device: state.device().map(|device| device.id.clone()) };
    let now = state.clock.now_micros();
    let opened = state.devices.windows().open(policy, name, opener, valid_for, now)?;
    let addresses = state.devices.addresses();
    let fingerprint = authority.fingerprint();
    let code = PairingCode::new(&fingerprint, opened.token.clone());
    let uri = PairingUri { addresses: addresses.clone(), fingerprint, token: opened.token };
    Ok(v1::CreatePairingResponse {
        pairing: Some(pairing(state, opened.id)?),
        code: code.to_string(),
        uri: uri.to_string(),
        addresses,
        header: Some(state.header()),
    })
}

/// Returns a pairing in its current state.
fn pairing(state: &CallState, id: PairingId) -> Result<v1::Pairing, CallError> {
    let window = state.devices.windows().state(id, state.clock.now_micros());
    let window = window.ok_or_else(|| CallError::not_found(ResourceKind::Pairing, id.to_string()))?;
    let expire_time = match &window {
        WindowState::Open { expires_at, .. } => Some(time_to_wire(*expires_at)),
        _ => None,
    };
    let device = match &window {
        WindowState::Redeemed { device: Some(device) } => state.devices.registry().by_id(device),
        _ => None,
    };
    Ok(v1::Pairing {
        id: id.to_string(),
        state: pairing_state_to_wire(&window).into(),
        expire_time,
        device: device.map(|device| device_to_wire(&device)),
    })
}

fn pairing_id(id: &str) -> Result<PairingId, CallError> {
    check_required("id", id)?;
    id.parse().map_err(|_| CallError::not_found(ResourceKind::Pairing, id))
}

fn get_pairing(
    state: &CallState,
    request: v1::GetPairingRequest,
) -> Result<v1::GetPairingResponse, CallError> {
    let pairing = Some(pairing(state, pairing_id(&request.id)?)?);
    Ok(v1::GetPairingResponse { pairing, header: Some(state.header()) })
}

fn cancel_pairing(
    state: &CallState,
    request: v1::CancelPairingRequest,
) -> Result<v1::CancelPairingResponse, CallError> {
    let id = pairing_id(&request.id)?;
    state.devices.windows().cancel(id, state.clock.now_micros());
    Ok(v1::CancelPairingResponse { pairing: Some(pairing(state, id)?), header: Some(state.header()) })
}

fn list(
    state: &CallState,
    mut request: v1::ListDevicesRequest,
) -> Result<v1::ListDevicesResponse, CallError> {
    let page = page_request!(state, "ListDevices", request)?;
    let all = state.devices.registry().list(request.include_revoked);
    let (devices, next_page_token) = state.fill_from(&page, &all, |device| Ok(device_to_wire(&device)))?;
    Ok(v1::ListDevicesResponse { devices, next_page_token, header: Some(state.header()) })
}

/// Finds a device by its id, its name, or the beginning of its id.
pub(super) fn find(state: &CallState, device: &str) -> Result<std::sync::Arc<Device>, CallError> {
    check_required("device", device)?;
    Ok(state.devices.registry().find(device)?)
}

fn update(
    state: &CallState,
    request: v1::UpdateDeviceRequest,
) -> Result<v1::UpdateDeviceResponse, CallError> {
    let v1::UpdateDeviceRequest { device, name, policy } = request;
    let device = find(state, &device)?;
    if name.is_empty() && policy.is_none() {
        return Err(CallError::invalid_field("name", "or policy must be set"));
    }
    let registry = state.devices.registry();
    if let Some(policy) = policy {
        let entity = if name.is_empty() { &device.name } else { &name };
        registry.set_policy(&device.id, policy_from_wire(Some(policy), entity)?)?;
    }
    if !name.is_empty() {
        registry.rename(&device.id, &name)?;
    }
    let device = registry.by_id(&device.id).map(|device| device_to_wire(&device));
    Ok(v1::UpdateDeviceResponse { device, header: Some(state.header()) })
}

fn revoke(
    state: &CallState,
    request: v1::RevokeDeviceRequest,
) -> Result<v1::RevokeDeviceResponse, CallError> {
    let v1::RevokeDeviceRequest { device, reason } = request;
    check_length("reason", &reason)?;
    let device = find(state, &device)?;
    let now = state.clock.now_micros();
    let revoked = state.devices.registry().revoke(&device.id, &reason, now)?;
    state.devices.windows().cancel_opened_by(&device.id, now);
    Ok(v1::RevokeDeviceResponse { device: Some(device_to_wire(&revoked)), header: Some(state.header()) })
}

fn create_token(
    state: &CallState,
    request: v1::CreateTokenRequest,
) -> Result<v1::CreateTokenResponse, CallError> {
    let v1::CreateTokenRequest { name, policy, expire_time } = request;
    check_required("name", &name)?;
    let policy = policy_from_wire(policy, &name)?;
    let expire_time = expire_time.ok_or_else(|| CallError::invalid_field("expire_time", "is missing"))?;
    let expires_at = time_from_wire("expire_time", expire_time)?;
    let created_by = caller_name(state);
    let now = state.clock.now_micros();
    let (token, secret) =
        state.devices.registry().create_token(&name, policy, &created_by, expires_at, now)?;
    Ok(v1::CreateTokenResponse {
        token: secret.expose().to_owned(),
        device: Some(device_to_wire(&token)),
        header: Some(state.header()),
    })
}

/// Returns the name of the caller for the registry.
pub(super) fn caller_name(state: &CallState) -> String {
    state.device().map_or_else(|| OWNER.to_owned(), |device| device.name.clone())
}

#[expect(clippy::unnecessary_wraps, reason = "each function of a service returns a result")]
fn caller_identity(
    state: &CallState,
    _request: v1::GetCallerIdentityRequest,
) -> Result<v1::GetCallerIdentityResponse, CallError> {
    let authority = state.devices.authority();
    Ok(v1::GetCallerIdentityResponse {
        device: state.device().map(device_to_wire),
        daemon_fingerprint: authority.map(|one| one.fingerprint().to_string()).unwrap_or_default(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        header: Some(state.header()),
    })
}

fn renew(
    state: &CallState,
    request: v1::RenewCertificateRequest,
) -> Result<v1::RenewCertificateResponse, CallError> {
    let v1::RenewCertificateRequest { certificate_request_der } = request;
    let device = state.device().filter(|device| device.kind == DeviceKind::Certificate);
    let device = device.ok_or(CallError::NoCertificate)?;
    let authority = state.devices.authority().ok_or(CallError::NotListening)?;
    let issued = authority.issue(&certificate_request_der, state.clock.now_micros())?;
    if issued.key_hash != device.key_hash {
        return Err(CallError::invalid_field(
            "certificate_request_der",
            "has another key than the certificate of this call",
        ));
    }
    let renewed = state.devices.registry().certificate_renewed(&device.key_hash, issued.not_after)?;
    Ok(v1::RenewCertificateResponse {
        device: Some(device_to_wire(&renewed)),
        certificate_der: issued.der,
        header: Some(state.header()),
    })
}

fn list_events(
    state: &CallState,
    mut request: v1::ListAuditEventsRequest,
) -> Result<v1::ListAuditEventsResponse, CallError> {
    let page = page_request!(state, "ListAuditEvents", request)?;
    let device = if request.device.is_empty() { None } else { Some(find(state, &request.device)?) };
    let all = state.devices.calls(device.as_deref(), MAX_EVENTS)?;
    let (events, next_page_token) = state.fill_from(&page, &all, |entry| Ok(audit_event_to_wire(entry)))?;
    Ok(v1::ListAuditEventsResponse { events, next_page_token, header: Some(state.header()) })
}
