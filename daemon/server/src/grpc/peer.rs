//! `PeerService`: manages the daemons with which this one exchanges changes.

mod change_files;

use satchel_devices::PairingSecret;
use satchel_proto::{
    integers::signed,
    v1::{self, peer_service_server::PeerService},
};
use tonic::{Request, Response, Status};

use super::{
    ServerState,
    call_state::CallState,
    request::{check_length, check_required, page_request, service},
    status::CallError,
    wire::{
        device::selection_from_wire,
        peer::{conflict_to_wire, peer_to_wire},
    },
};
use crate::{
    connect::{PairingAttempt, RemoteError, pair},
    peers::{Direction, PeerState, PeersError},
};

/// Largest number of addresses of a peer.
const MAX_ADDRESSES: usize = 16;

#[derive(Clone)]
pub(super) struct PeerHandler(pub(super) ServerState);

service!(PeerService for PeerHandler {
    list_peers: ListPeersRequest => ListPeersResponse = list;
    update_peer: UpdatePeerRequest => UpdatePeerResponse = update;
    remove_peer: RemovePeerRequest => RemovePeerResponse = remove;
    get_sync_status: GetSyncStatusRequest => GetSyncStatusResponse = sync_status;
    list_conflicts: ListConflictsRequest => ListConflictsResponse = list_conflicts;
    import_change_file: ImportChangeFileRequest => ImportChangeFileResponse = change_files::import;
    ..
    type DownloadChangeFileStream = change_files::ExportStream;

    async fn download_change_file(
        &self,
        request: Request<v1::DownloadChangeFileRequest>,
    ) -> Result<Response<change_files::ExportStream>, Status> {
        let state = CallState::of(&self.0, &request)?;
        change_files::export(state, request.into_inner()).await
    }

    async fn add_peer(
        &self,
        request: Request<v1::AddPeerRequest>,
    ) -> Result<Response<v1::AddPeerResponse>, Status> {
        let state = CallState::of(&self.0, &request)?;
        add(&state, request.into_inner()).await
    }

    async fn sync_peers(
        &self,
        request: Request<v1::SyncPeersRequest>,
    ) -> Result<Response<v1::SyncPeersResponse>, Status> {
        let state = CallState::of(&self.0, &request)?;
        let name = request.into_inner().peer;
        check_length("peer", &name)?;
        let tried = state.peers.exchange_now(&name).await.map_err(CallError::from)?;
        state.respond(move |state| {
            let mut peers = state.peers.list();
            peers.retain(|peer| peer.direction == Direction::Outgoing && tried.contains_key(&peer.name));
            for peer in &mut peers {
                // The daemon may be trying again already.
                if tried.get(&peer.name) == Some(&true) && peer.state == PeerState::Syncing {
                    peer.state = PeerState::Failed;
                }
            }
            Ok(v1::SyncPeersResponse {
                peers: peers.into_iter().map(peer_to_wire).collect(),
                header: Some(state.header()),
            })
        }).await
    }
});

/// Pairs with another daemon.
async fn add(
    state: &CallState,
    request: v1::AddPeerRequest,
) -> Result<Response<v1::AddPeerResponse>, Status> {
    let v1::AddPeerRequest { code, addresses, name, device_name, attachments, selection } = request;
    check_required("code", &code)?;
    check_required("name", &name)?;
    check_required("device_name", &device_name)?;
    let on_demand = on_demand_from_wire(attachments)?.unwrap_or(false);
    let selection =
        selection_from_wire("selection", selection.unwrap_or_default()).map_err(CallError::from)?;
    check_addresses(&addresses)?;
    let secret = PairingSecret::parse(&code)
        .map_err(|error| CallError::invalid_field("code", format!("cannot be used: {error}")))?;
    let mut all = addresses;
    let new: Vec<String> = secret.addresses.iter().filter(|one| !all.contains(one)).cloned().collect();
    all.extend(new);
    if all.is_empty() {
        let problem = "must not be empty: a code contains no address, only a link does";
        return Err(CallError::invalid_field("addresses", problem).into());
    }
    let wanted = name.clone();
    state.run_blocking(move |state| check_free(state, &wanted)).await?;
    let attempt =
        PairingAttempt { secret: &secret, addresses: all, device_name: &device_name, server_name: &name };
    let paired = pair(attempt).await.map_err(pairing_error)?;
    let role = paired.device.policy.as_ref().map(|policy| policy.role);
    if role != Some(v1::DeviceRole::Peer.into()) {
        let problem = "the code is for a device, not for a peer; make one there with `satchel devices pair --role peer`, and revoke this device there";
        return Err(CallError::PeerRefused { problem: problem.to_owned() }.into());
    }
    let credentials = paired.credentials;
    state
        .respond(move |state| {
            let name = credentials.name.clone();
            state.peers.add(credentials, on_demand, selection)?;
            let peer = state.peers.find(&name)?;
            Ok(v1::AddPeerResponse { peer: Some(peer_to_wire(peer)), header: Some(state.header()) })
        })
        .await
}

/// Reads whether attachments come only when they are wanted; `None` if nothing is said.
fn on_demand_from_wire(attachments: i32) -> Result<Option<bool>, CallError> {
    match v1::PeerAttachments::try_from(attachments) {
        Ok(v1::PeerAttachments::Unspecified) => Ok(None),
        Ok(v1::PeerAttachments::All) => Ok(Some(false)),
        Ok(v1::PeerAttachments::OnDemand) => Ok(Some(true)),
        Err(_) => Err(CallError::invalid_field("attachments", "is not a known value")),
    }
}

/// Checks that no other peer has this name, before the code is used up.
fn check_free(state: &CallState, name: &str) -> Result<(), CallError> {
    if state.peers.list().iter().any(|peer| peer.name == name) {
        return Err(CallError::invalid_field("name", "is that of another peer; choose another one"));
    }
    Ok(())
}

fn check_addresses(addresses: &[String]) -> Result<(), CallError> {
    if addresses.len() > MAX_ADDRESSES {
        return Err(CallError::invalid_field("addresses", format!("are more than {MAX_ADDRESSES}")));
    }
    addresses.iter().try_for_each(|address| check_required("addresses", address))
}

/// Returns the error for a daemon that cannot be paired with.
fn pairing_error(error: RemoteError) -> CallError {
    match error {
        RemoteError::Unreachable { .. } | RemoteError::Http { .. } => {
            CallError::PeerUnreachable { problem: error.to_string() }
        }
        RemoteError::Devices(error) => error.into(),
        error => CallError::PeerRefused { problem: error.to_string() },
    }
}

fn list(state: &CallState, mut request: v1::ListPeersRequest) -> Result<v1::ListPeersResponse, CallError> {
    let page = page_request!(state, "ListPeers", request)?;
    let all = state.peers.list();
    let (peers, next_page_token) = state.fill_from(&page, &all, |peer| Ok(peer_to_wire(peer)))?;
    Ok(v1::ListPeersResponse { peers, next_page_token, header: Some(state.header()) })
}

fn update(state: &CallState, request: v1::UpdatePeerRequest) -> Result<v1::UpdatePeerResponse, CallError> {
    let v1::UpdatePeerRequest { peer, paused, addresses, attachments, selection } = request;
    check_required("peer", &peer)?;
    check_addresses(&addresses)?;
    let on_demand = on_demand_from_wire(attachments)?;
    let selection = selection.map(|wire| selection_from_wire("selection", wire)).transpose()?;
    if paused.is_none() && addresses.is_empty() && on_demand.is_none() && selection.is_none() {
        let problem = "or addresses, attachments or selection must be set";
        return Err(CallError::invalid_field("paused", problem));
    }
    let found = state.peers.find(&peer)?;
    if !addresses.is_empty() {
        if found.direction == Direction::Incoming {
            let problem = "cannot be set: this peer connects by itself";
            return Err(CallError::invalid_field("addresses", problem));
        }
        state.peers.set_addresses(&found, addresses)?;
    }
    if let Some(selection) = selection {
        state.peers.set_selection(&found, selection)?;
    }
    if let Some(paused) = paused {
        state.peers.set_paused(&found, paused)?;
    }
    if let Some(on_demand) = on_demand {
        state.peers.set_on_demand(&found, on_demand)?;
    }
    let peer = state.peers.find(&peer)?;
    Ok(v1::UpdatePeerResponse { peer: Some(peer_to_wire(peer)), header: Some(state.header()) })
}

fn remove(state: &CallState, request: v1::RemovePeerRequest) -> Result<v1::RemovePeerResponse, CallError> {
    check_required("peer", &request.peer)?;
    let peer = state.peers.find(&request.peer)?;
    state.peers.remove(&peer)?;
    Ok(v1::RemovePeerResponse { header: Some(state.header()) })
}

fn sync_status(
    state: &CallState,
    request: v1::GetSyncStatusRequest,
) -> Result<v1::GetSyncStatusResponse, CallError> {
    let sync = state.peers.sync();
    let digest = if request.digest { sync.state_digest()?.digest.to_string() } else { String::new() };
    Ok(v1::GetSyncStatusResponse {
        origin: sync.origin()?.map(|origin| origin.to_string()).unwrap_or_default(),
        digest,
        conflicts: signed(state.peers.conflicts()?),
        pending_erasures: signed(state.peers.pending_erasures()?),
        missing_payloads: signed(state.peers.missing_payloads()?),
        header: Some(state.header()),
    })
}

fn list_conflicts(
    state: &CallState,
    mut request: v1::ListConflictsRequest,
) -> Result<v1::ListConflictsResponse, CallError> {
    let page = page_request!(state, "ListConflicts", request)?;
    if !state.sees_everything() {
        let problem = "conflicts are listed only for callers that see every memory and conversation";
        return Err(CallError::AccessDenied { problem: problem.to_owned() });
    }
    let all = state.peers.sync().conflicts()?;
    let own = state.peers.sync().origin()?;
    let others = state.peers.list().into_iter().filter(|peer| peer.origin != own);
    let names = others.filter_map(|peer| Some((*peer.origin?.as_uuid(), peer.name))).collect();
    let (conflicts, next_page_token) =
        state.fill_from(&page, &all, |conflict| Ok(conflict_to_wire(conflict, &names)))?;
    Ok(v1::ListConflictsResponse { conflicts, next_page_token, header: Some(state.header()) })
}

impl From<PeersError> for CallError {
    fn from(error: PeersError) -> Self {
        match error {
            PeersError::Sync(error) => error.into(),
            PeersError::Devices(error) => error.into(),
            PeersError::NotFound(peer) => Self::not_found(super::status::ResourceKind::Peer, peer),
            PeersError::Stopping => Self::ShuttingDown,
            PeersError::Paused(peer) => Self::PeerPaused { peer },
            error @ PeersError::KeyUnknown(_) => Self::PeerKeyUnknown { problem: error.to_string() },
            error => Self::internal(error),
        }
    }
}
