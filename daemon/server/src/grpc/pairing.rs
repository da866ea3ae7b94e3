//! `PairingService`: exchanges the token of a pairing code for a certificate.

use satchel_devices::{Grant, NewDevice};
use satchel_proto::integers::signed;
use satchel_proto::v1::{self, pairing_service_server::PairingService};
use tonic::{Request, Response, Status};

use super::{ServerState, status::CallError, wire::device::device_to_wire};

/// Longest certificate request that is read, in bytes. One with an RSA key of 4,096 bits has about 1,700.
const MAX_REQUEST_BYTES: usize = 8 << 10;

/// The service. Its caller has no credentials, so it has no [`CallState`](super::call_state::CallState).
#[derive(Clone)]
pub(super) struct PairingHandler(pub(super) ServerState);

#[tonic::async_trait]
impl PairingService for PairingHandler {
    async fn complete_pairing(
        &self,
        request: Request<v1::CompletePairingRequest>,
    ) -> Result<Response<v1::CompletePairingResponse>, Status> {
        let (state, request) = (self.0.clone(), request.into_inner());
        let task = tokio::task::spawn_blocking(move || complete(&state, request));
        let outcome = task.await.unwrap_or_else(|error| Err(CallError::internal(error)));
        Ok(Response::new(outcome?))
    }
}

fn complete(
    state: &ServerState,
    request: v1::CompletePairingRequest,
) -> Result<v1::CompletePairingResponse, CallError> {
    let v1::CompletePairingRequest { token, certificate_request_der, name } = request;
    let now = state.clock.now_micros();
    let authority = state.devices.authority().ok_or(CallError::PairingRefused)?;
    // Checked before the token is used up.
    if certificate_request_der.len() > MAX_REQUEST_BYTES {
        return Err(CallError::invalid_field("certificate_request_der", "is too long"));
    }
    let issued = authority.issue(&certificate_request_der, now)?;
    let registry = state.devices.registry();
    let Grant { id, policy, name: chosen, opener } =
        state.devices.windows().redeem(&token, now).map_err(|_| CallError::PairingRefused)?;
    let device = registry.add(
        NewDevice {
            key_hash: issued.key_hash,
            name: chosen.unwrap_or(name),
            policy,
            paired_by: opener.name,
            expires_at: issued.not_after,
        },
        now,
    )?;
    state.devices.windows().record_device(id, device.id.clone());
    tracing::info!(device = device.name, id = %device.id, "a device was paired");
    Ok(v1::CompletePairingResponse {
        device: Some(device_to_wire(&device)),
        certificate_der: issued.der,
        ca_certificate_der: authority.certificate_der().to_vec(),
        header: Some(v1::StoreHeader {
            store_id: state.store.store_id().to_string(),
            revision: signed(state.store.revision().get()),
        }),
    })
}
