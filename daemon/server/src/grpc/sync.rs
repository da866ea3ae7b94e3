//! `SyncService`: exchanges changes with the daemons that connect to this one.

use std::{pin::Pin, time::Duration};

use satchel_core::sync::PayloadRange;
use satchel_pam::hash::Sha256Digest;
use satchel_proto::{
    integers::signed,
    v1::{self, sync_service_server::SyncService},
};
use satchel_store::BlobReader;
use satchel_sync::{Frontier, limits::VERSION};
use tokio::sync::{mpsc, watch};
use tokio_stream::{Stream, StreamExt as _, wrappers::ReceiverStream};
use tonic::{Request, Response, Status, Streaming};
use tracing::Instrument as _;

use super::{
    ServerState,
    attachment::digest_from_wire,
    call_state::CallState,
    change_batches::{BatchesEnd, ReadChanges, Visit, send_batches},
    chunks::{ChunkReader, send_chunks},
    request::page_request,
    status::{CallError, ResourceKind},
    wire::sync::{
        WireChanges, changes_from_wire, frontier_from_wire, frontier_to_wire, identity_from_wire,
        range_from_wire, range_to_wire, refused_to_wire,
    },
    withheld_ranges,
};
use crate::peers::{PartState, SelectionFilter};

/// How long a peer may take to read or send a message. After that it counts as gone.
pub(super) const STALL_TIMEOUT: Duration = Duration::from_mins(5);
/// Series of which changes are refused before nothing more is read.
const MAX_REFUSED: usize = 100;
/// Ranges of changes in one call.
const MAX_RANGES: usize = 10_000;
/// Messages that wait for a slow reader.
const BUFFERED_MESSAGES: usize = 1;

/// The service, with a value that becomes true when the daemon is about to stop.
#[derive(Clone)]
pub(super) struct SyncHandler(pub(super) ServerState, pub(super) watch::Receiver<bool>);

type Messages<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl SyncService for SyncHandler {
    type WatchFrontierStream = Messages<v1::WatchFrontierResponse>;
    type DownloadChangesStream = Messages<v1::DownloadChangesResponse>;
    type DownloadPayloadsStream = Messages<v1::DownloadPayloadsResponse>;
    type DownloadWithheldRangesStream = Messages<v1::DownloadWithheldRangesResponse>;
    type DownloadFileStream = Messages<v1::DownloadFileResponse>;

    async fn get_frontier(
        &self,
        request: Request<v1::GetFrontierRequest>,
    ) -> Result<Response<v1::GetFrontierResponse>, Status> {
        let state = self.admitted(&request)?;
        let request = request.into_inner();
        state.respond(move |state| get_frontier(state, request)).await
    }

    async fn watch_frontier(
        &self,
        request: Request<v1::WatchFrontierRequest>,
    ) -> Result<Response<Self::WatchFrontierStream>, Status> {
        let state = self.admitted(&request)?;
        Ok(Response::new(watch_frontier(state, self.1.clone())))
    }

    async fn download_changes(
        &self,
        request: Request<v1::DownloadChangesRequest>,
    ) -> Result<Response<Self::DownloadChangesStream>, Status> {
        let state = self.admitted(&request)?;
        let frontier = request.into_inner().frontier;
        let frontier = frontier.ok_or_else(|| CallError::invalid_field("frontier", "is missing"))?;
        let theirs = frontier_from_wire(frontier).map_err(CallError::from)?;
        Ok(Response::new(stream_changes(
            state,
            move |sync, filter, _, visit| sync.changes_after(&theirs, filter, visit),
            |changes, header| v1::DownloadChangesResponse { changes, header: Some(header) },
        )))
    }

    async fn list_missing_payloads(
        &self,
        request: Request<v1::ListMissingPayloadsRequest>,
    ) -> Result<Response<v1::ListMissingPayloadsResponse>, Status> {
        let state = self.admitted(&request)?;
        let request = request.into_inner();
        state.respond(move |state| list_missing_payloads(state, request)).await
    }

    async fn download_payloads(
        &self,
        request: Request<v1::DownloadPayloadsRequest>,
    ) -> Result<Response<Self::DownloadPayloadsStream>, Status> {
        let state = self.admitted(&request)?;
        let ranges = ranges_from_wire(request.into_inner().ranges)?;
        Ok(Response::new(stream_changes(
            state,
            move |sync, filter, wanted, visit| sync.payloads(&ranges, filter, wanted, visit),
            |changes, header| v1::DownloadPayloadsResponse { changes, header: Some(header) },
        )))
    }

    async fn download_withheld_ranges(
        &self,
        request: Request<v1::DownloadWithheldRangesRequest>,
    ) -> Result<Response<Self::DownloadWithheldRangesStream>, Status> {
        let state = self.admitted(&request)?;
        let messages = withheld_ranges::download(&state).await?;
        Ok(Response::new(Box::pin(tokio_stream::iter(messages.into_iter().map(Ok)))))
    }

    async fn upload_withheld_ranges(
        &self,
        request: Request<Streaming<v1::UploadWithheldRangesRequest>>,
    ) -> Result<Response<v1::UploadWithheldRangesResponse>, Status> {
        let state = self.admitted(&request)?;
        withheld_ranges::upload(&state, request.into_inner()).await
    }

    async fn list_missing_files(
        &self,
        request: Request<v1::ListMissingFilesRequest>,
    ) -> Result<Response<v1::ListMissingFilesResponse>, Status> {
        let state = self.admitted(&request)?;
        let request = request.into_inner();
        state.respond(move |state| list_missing_files(state, request)).await
    }

    async fn download_file(
        &self,
        request: Request<v1::DownloadFileRequest>,
    ) -> Result<Response<Self::DownloadFileStream>, Status> {
        let state = self.admitted(&request)?;
        let sha256 = digest_from_wire(&request.into_inner().sha256)?;
        let open = move |state: &CallState| {
            let filter = state.peers.filter_of_device(state.device());
            let origin = state.peers.origin_of(state.device());
            let included = state.peers.included_files([sha256].into(), filter.as_ref(), origin)?;
            let included = !included.is_empty();
            let erased = state.peers.is_erased_file(&sha256)?;
            Ok(if erased || !included { None } else { state.store.blob_open(sha256.as_bytes())? })
        };
        let file = state.run_blocking(open).await?;
        let file = file.ok_or_else(|| CallError::not_found(ResourceKind::Attachment, sha256.to_hex()))?;
        Ok(Response::new(download_file(&state, file)))
    }

    async fn upload_file(
        &self,
        request: Request<Streaming<v1::UploadFileRequest>>,
    ) -> Result<Response<v1::UploadFileResponse>, Status> {
        let state = self.admitted(&request)?;
        upload_file(&state, request.into_inner()).await
    }

    async fn upload_changes(
        &self,
        request: Request<Streaming<v1::UploadChangesRequest>>,
    ) -> Result<Response<v1::UploadChangesResponse>, Status> {
        let state = self.admitted(&request)?;
        upload(&state, request.into_inner()).await
    }
}

impl SyncHandler {
    /// Returns the state for a call of a peer that is not paused.
    fn admitted<T>(&self, request: &Request<T>) -> Result<CallState, Status> {
        let state = CallState::of(&self.0, request)?;
        check_not_paused(&state)?;
        Ok(state)
    }
}

/// Checks that the owner has not paused the exchange with the caller.
pub(super) fn check_not_paused(state: &CallState) -> Result<(), CallError> {
    match state.device().filter(|device| state.peers.is_paused(device)) {
        Some(device) => Err(CallError::PeerPaused { peer: device.name.clone() }),
        None => Ok(()),
    }
}

/// Notes that a peer has called. The owner on the socket is none.
pub(super) fn note(state: &CallState, theirs: Option<Frontier>, received: u64, sent: u64) {
    if let Some(device) = state.device() {
        state.peers.note_contact(device, theirs, received, sent);
    }
}

fn get_frontier(
    state: &CallState,
    request: v1::GetFrontierRequest,
) -> Result<v1::GetFrontierResponse, CallError> {
    let v1::GetFrontierRequest { caller_frontier, caller_origin, caller_file_recipient } = request;
    let theirs = caller_frontier.map(frontier_from_wire).transpose()?;
    let identity = identity_from_wire(&caller_origin, caller_file_recipient)?;
    let filter = state.peers.filter_of_device(state.device());
    let held = state.peers.prepare()?;
    let frontier = state.peers.offered(held.clone(), filter.as_ref())?;
    note(state, theirs, 0, 0);
    if let Some(device) = state.device() {
        state.peers.note_identity(device, identity);
    }
    let origin = state.peers.sync().origin()?.map(|origin| origin.to_string()).unwrap_or_default();
    let part = part_state(state)?;
    Ok(v1::GetFrontierResponse {
        payload_state: part.payloads,
        withheld_state: part.withheld,
        missing_state: state.peers.missing_state(key_of(state))?,
        held_frontier: Some(frontier_to_wire(&held)),
        frontier: Some(frontier_to_wire(&frontier)),
        origin,
        format_version: VERSION.into(),
        header: Some(state.header()),
        instance_id: state.peers.instance_id().to_owned(),
        // A store that is only read may not know its key.
        file_recipient: state.peers.file_recipient().unwrap_or_default(),
    })
}

/// Returns what changes when this store may have more payloads for the caller, or withhold more.
fn part_state(state: &CallState) -> Result<PartState, CallError> {
    let filter = state.peers.filter_of_device(state.device());
    Ok(state.peers.part_state(key_of(state), filter.as_ref())?)
}

/// Returns under what the calling peer is known; an empty text for the owner.
pub(super) fn key_of(state: &CallState) -> &str {
    state.device().map_or("", |device| device.id.as_str())
}

/// Streams the frontier until the reader is gone or the daemon stops.
fn watch_frontier(
    state: CallState,
    mut stopping: watch::Receiver<bool>,
) -> Messages<v1::WatchFrontierResponse> {
    let (sender, receiver) = mpsc::channel(BUFFERED_MESSAGES);
    let (mut frontiers, mut policies) = (state.peers.watch_frontier(), state.devices.registry().subscribe());
    let watching = async move {
        loop {
            policies.mark_unchanged();
            let frontier = frontiers.borrow_and_update().clone();
            let payload_state = match state.run_blocking(part_state).await {
                Ok(part) => part.payloads,
                Err(status) => {
                    drop(sender.send(Err(status)).await);
                    return;
                }
            };
            let (frontier, header) = (Some(frontier_to_wire(&frontier)), Some(state.header()));
            let message = v1::WatchFrontierResponse { frontier, header, payload_state };
            if sender.send(Ok(message)).await.is_err() {
                return;
            }
            if let Err(error) = check_not_paused(&state) {
                drop(sender.send(Err(error.into())).await);
                return;
            }
            let changed = tokio::select! {
                changed = frontiers.changed() => changed.is_ok(),
                changed = policies.changed() => changed.is_ok(),
                _ = stopping.wait_for(|stopping| *stopping) => false,
                () = sender.closed() => return,
            };
            if !changed {
                drop(sender.send(Err(CallError::ShuttingDown.into())).await);
                return;
            }
        }
    };
    tokio::spawn(watching.instrument(tracing::Span::current()));
    Box::pin(ReceiverStream::new(receiver))
}

/// Streams the changes that `read` visits, with the payloads that it gives to the caller.
fn stream_changes<T: Send + 'static>(
    state: CallState,
    read: impl ReadChanges,
    message: fn(Vec<Vec<u8>>, v1::StoreHeader) -> T,
) -> Messages<T> {
    let (sender, receiver) = mpsc::channel(BUFFERED_MESSAGES);
    let span = tracing::Span::current();
    tokio::task::spawn_blocking(move || {
        let _entered = span.enter();
        let header = state.header();
        let filter = state.peers.filter_of_device(state.device());
        let filter = SelectionFilter::of(filter.as_ref());
        let wanted = || !sender.is_closed() && check_not_paused(&state).is_ok();
        let read = |visit: Visit<'_>| read(state.peers.sync(), filter, &wanted, visit);
        let outcome = send_batches(read, STALL_TIMEOUT, |changes| {
            let message = message(changes, header.clone());
            let paused = check_not_paused(&state).is_err();
            let sender = sender.clone();
            async move { !paused && sender.send(Ok(message)).await.is_ok() }
        });
        match outcome {
            Ok(BatchesEnd::Done(sent)) => note(&state, None, 0, sent),
            // The reader does not take the error either.
            Ok(BatchesEnd::NotRead) => {}
            Err(error) => drop(sender.blocking_send(Err(CallError::from(error).into()))),
        }
    });
    Box::pin(ReceiverStream::new(receiver))
}

fn ranges_from_wire(wire: Vec<v1::ChangeRange>) -> Result<Vec<PayloadRange>, CallError> {
    if wire.is_empty() || wire.len() > MAX_RANGES {
        return Err(CallError::invalid_field("ranges", format!("must be 1 to {MAX_RANGES}")));
    }
    let ranges: Vec<PayloadRange> = wire.into_iter().map(range_from_wire).collect::<Result<_, _>>()?;
    ranges.windows(2).try_for_each(|pair| check_order(Some(&pair[0]), &pair[1]))?;
    Ok(ranges)
}

pub(super) fn check_order(last: Option<&PayloadRange>, range: &PayloadRange) -> Result<(), CallError> {
    if last.is_some_and(|last| !last.is_before(range)) {
        return Err(CallError::invalid_field("ranges", "must be in order, and none may overlap"));
    }
    Ok(())
}

fn list_missing_payloads(
    state: &CallState,
    mut request: v1::ListMissingPayloadsRequest,
) -> Result<v1::ListMissingPayloadsResponse, CallError> {
    let page = page_request!(state, "ListMissingPayloads", request)?;
    let missing = state.peers.sync().missing_payloads()?;
    let (ranges, next_page_token) = state.fill_from(&page, &missing, |range| Ok(range_to_wire(&range)))?;
    Ok(v1::ListMissingPayloadsResponse { ranges, next_page_token, header: Some(state.header()) })
}

/// Stores changes as they come, and lets them take effect at the end.
async fn upload(
    state: &CallState,
    mut stream: Streaming<v1::UploadChangesRequest>,
) -> Result<Response<v1::UploadChangesResponse>, Status> {
    let mut response = v1::UploadChangesResponse::default();
    let received = receive_all(state, &mut stream, &mut response).await;
    // What has come is applied also after an error. If the connection is lost, the next call does that.
    let (frontier, blocked) = state
        .run_blocking(|state| {
            let blocked = state.peers.apply()?;
            Ok((state.peers.sync().frontier()?, blocked))
        })
        .await?;
    if let Some(device) = state.device() {
        let refused = response.refused.first();
        let refused = refused.map(|refused| {
            format!(
                "change {} of the series {} was refused: {}",
                refused.counter, refused.origin, refused.problem
            )
        });
        state.peers.note_problem(device, refused.or(blocked));
    }
    received?;
    response.frontier = Some(frontier_to_wire(&frontier));
    response.header = Some(state.header());
    note(state, None, u64::try_from(response.new_changes).unwrap_or_default(), 0);
    Ok(Response::new(response))
}

async fn receive_all(
    state: &CallState,
    stream: &mut Streaming<v1::UploadChangesRequest>,
    response: &mut v1::UploadChangesResponse,
) -> Result<(), Status> {
    loop {
        let next = tokio::time::timeout(STALL_TIMEOUT, stream.next()).await;
        let seconds = STALL_TIMEOUT.as_secs();
        let Some(message) = next.map_err(|_| CallError::UploadStalled { seconds })?.transpose()? else {
            return Ok(());
        };
        check_not_paused(state)?;
        let WireChanges { changes, newer } = changes_from_wire(&message.changes)
            .map_err(|error| CallError::invalid_field("changes", format!("cannot be read: {error}")))?;
        let received =
            state.run_blocking(move |state| Ok(state.peers.receive(key_of(state), &changes)?)).await?;
        response.new_changes += signed(received.new + received.completed);
        response.repeated_changes += signed(received.repeated);
        for refused in newer.into_iter().chain(received.refused.iter().map(refused_to_wire)) {
            if !response.refused.iter().any(|known| known.origin == refused.origin) {
                response.refused.push(refused);
            }
        }
        // A peer of which so much is refused sends nothing that is worth reading.
        if response.refused.len() >= MAX_REFUSED {
            response.refused.truncate(MAX_REFUSED);
            return Ok(());
        }
    }
}

fn list_missing_files(
    state: &CallState,
    mut request: v1::ListMissingFilesRequest,
) -> Result<v1::ListMissingFilesResponse, CallError> {
    let page = page_request!(state, "ListMissingFiles", request)?;
    let filter = state.peers.filter_of_device(state.device());
    let (missing, origin) =
        (state.peers.files_to_take(state.device())?, state.peers.origin_of(state.device()));
    let missing = state.peers.included_files(missing, filter.as_ref(), origin)?;
    let all: Vec<String> = missing.iter().map(Sha256Digest::to_hex).collect();
    let (sha256, next_page_token) = state.fill_from(&page, &all, Ok)?;
    Ok(v1::ListMissingFilesResponse { sha256, next_page_token, header: Some(state.header()) })
}

/// Streams a file to a peer.
fn download_file(state: &CallState, mut file: BlobReader) -> Messages<v1::DownloadFileResponse> {
    let (sender, receiver) = mpsc::channel(BUFFERED_MESSAGES);
    let header = state.header();
    tokio::task::spawn_blocking(move || {
        let outcome = send_chunks(&mut file, STALL_TIMEOUT, |data| {
            let message = v1::DownloadFileResponse { data, header: Some(header.clone()) };
            let sender = sender.clone();
            async move { sender.send(Ok(message)).await.is_ok() }
        });
        if let Err(error) = outcome {
            drop(sender.blocking_send(Err(CallError::internal(error).into())));
        }
    });
    Box::pin(ReceiverStream::new(receiver))
}

/// Stores a file that a peer sends.
async fn upload_file(
    state: &CallState,
    mut stream: Streaming<v1::UploadFileRequest>,
) -> Result<Response<v1::UploadFileResponse>, Status> {
    let seconds = STALL_TIMEOUT.as_secs();
    let stalled = |_| CallError::UploadStalled { seconds };
    let first = tokio::time::timeout(STALL_TIMEOUT, stream.message()).await.map_err(stalled)??;
    let v1::UploadFileRequest { sha256, data } = first.unwrap_or_default();
    let digest = digest_from_wire(&sha256)?;
    let (sender, mut reader) = ChunkReader::new();
    let storing = state.run_blocking(move |state| Ok(state.peers.put_file(digest, &mut reader)?));
    let sending = async {
        let mut next = Some(data);
        while let Some(data) = next {
            // The store may have refused the file already.
            if sender.send(data).await.is_err() {
                break;
            }
            let message = tokio::time::timeout(STALL_TIMEOUT, stream.message()).await.map_err(stalled)??;
            next = message.map(|message| message.data);
        }
        drop(sender);
        Ok::<_, Status>(())
    };
    let (stored, sent) = tokio::join!(storing, sending);
    sent?;
    stored?;
    Ok(Response::new(v1::UploadFileResponse { header: Some(state.header()) }))
}
