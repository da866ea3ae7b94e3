//! `UploadService`, and files that arrive as one stream: what devices send instead of a path.

use std::time::Duration;

use satchel_core::{
    ingest::{ImportRequest, JobView, receipt::ImportStatus},
    uploads::{NewUpload, Upload, UploadedFile},
};
use satchel_proto::{
    integers::signed,
    v1::{self, upload_import_request::Part, upload_service_server::UploadService},
};
use satchel_source::envelope::DecryptionKeys;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Response, Status};
use uuid::Uuid;

use super::{
    ServerState,
    call_state::CallState,
    import,
    request::{check_required, service},
    status::CallError,
    wire::scalar::{count_from_wire, time_to_wire},
};

/// How long a stream may send nothing. After that it counts as gone, because others may wait for its permit.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub(super) struct UploadHandler(pub(super) ServerState);

service!(UploadService for UploadHandler {
    create_upload: CreateUploadRequest => CreateUploadResponse = create;
    write_upload: WriteUploadRequest => WriteUploadResponse = write;
    get_upload: GetUploadRequest => GetUploadResponse = get;
    cancel_upload: CancelUploadRequest => CancelUploadResponse = cancel;
});

/// Returns the name under which the uploads of the caller are kept.
fn owner(state: &CallState) -> &str {
    state.device().map_or("", |device| device.id.as_str())
}

fn create(
    state: &CallState,
    request: v1::CreateUploadRequest,
) -> Result<v1::CreateUploadResponse, CallError> {
    let v1::CreateUploadRequest { name, size_bytes, sha256 } = request;
    let new = NewUpload {
        owner: owner(state).to_owned(),
        name,
        size: count_from_wire("size_bytes", size_bytes)?,
        sha256: Some(sha256),
        streamed: false,
    };
    let upload = state.uploads.create(new, state.clock.now_micros())?;
    Ok(v1::CreateUploadResponse { upload: Some(upload_to_wire(upload)), header: Some(state.header()) })
}

fn write(state: &CallState, request: v1::WriteUploadRequest) -> Result<v1::WriteUploadResponse, CallError> {
    let v1::WriteUploadRequest { id, offset, data, crc32c } = request;
    check_required("id", &id)?;
    let offset = count_from_wire("offset", offset)?;
    if crc32c.is_some_and(|sum| sum != crc32c::crc32c(&data)) {
        return Err(CallError::invalid_field("crc32c", "is not that of data; send the chunk again"));
    }
    let committed = state.uploads.write((owner(state), &id), offset, &data, state.clock.now_micros())?;
    Ok(v1::WriteUploadResponse { committed_bytes: signed(committed), header: Some(state.header()) })
}

fn get(state: &CallState, request: v1::GetUploadRequest) -> Result<v1::GetUploadResponse, CallError> {
    check_required("id", &request.id)?;
    let upload = state.uploads.get(owner(state), &request.id, state.clock.now_micros())?;
    Ok(v1::GetUploadResponse { upload: Some(upload_to_wire(upload)), header: Some(state.header()) })
}

fn cancel(
    state: &CallState,
    request: v1::CancelUploadRequest,
) -> Result<v1::CancelUploadResponse, CallError> {
    check_required("id", &request.id)?;
    state.uploads.cancel(owner(state), &request.id, state.clock.now_micros())?;
    Ok(v1::CancelUploadResponse { header: Some(state.header()) })
}

fn upload_to_wire(upload: Upload) -> v1::Upload {
    v1::Upload {
        id: upload.id,
        name: upload.name,
        size_bytes: signed(upload.size),
        sha256: upload.sha256.unwrap_or_default(),
        committed_bytes: signed(upload.committed),
        created_at: Some(time_to_wire(upload.created_at)),
        expires_at: Some(time_to_wire(upload.expires_at)),
    }
}

/// Returns the bytes of a complete upload of the caller.
pub(super) fn content(state: &CallState, id: &str) -> Result<UploadedFile, CallError> {
    check_required("upload_id", id)?;
    Ok(state.uploads.content(owner(state), id, state.clock.now_micros())?)
}

/// Removes an upload of the caller that was used. One that has expired or was cancelled meanwhile is gone already.
pub(super) fn remove(state: &CallState, id: &str) {
    drop(state.uploads.cancel(owner(state), id, state.clock.now_micros()));
}

/// Starts the import of an upload, which is removed when the import has read it. Returns the id of the job.
pub(super) fn start_import(
    state: &CallState,
    id: &str,
    request: ImportRequest,
    keys: Option<DecryptionKeys>,
) -> Result<Uuid, CallError> {
    let file = content(state, id)?;
    let dry_run = request.dry_run;
    let (uploads, clock) = (state.uploads.clone(), state.clock.clone());
    let (owner, id) = (owner(state).to_owned(), id.to_owned());
    let on_end = move |view: &JobView, _changed: bool| {
        // An upload that has expired or was cancelled meanwhile is gone already.
        if !dry_run && fully_read(view) {
            drop(uploads.cancel(&owner, &id, clock.now_micros()));
        }
    };
    Ok(state.imports.start_uploaded(request, keys, file, Box::new(on_end))?)
}

/// Returns whether nothing is left to import. After a failure, such as a wrong passphrase, the same upload may be tried
/// again.
fn fully_read(view: &JobView) -> bool {
    let open =
        |status| matches!(status, ImportStatus::Running | ImportStatus::Failed | ImportStatus::Cancelled);
    !view.imports.is_empty() && !view.imports.iter().any(|import| open(import.status))
}

/// Receives a file as a stream, and starts its import.
pub(super) async fn receive(
    state: &CallState,
    mut stream: impl Stream<Item = Result<v1::UploadImportRequest, Status>> + Unpin,
) -> Result<Response<v1::UploadImportResponse>, Status> {
    let Some(Part::Header(header)) = next_part(&mut stream).await?.flatten() else {
        return Err(CallError::invalid_field("header", "must be the first message").into());
    };
    let v1::UploadImportHeader { name, size_bytes, sha256, options } = header;
    let mut options = options.unwrap_or_default();
    if !options.path.is_empty() || !options.upload_id.is_empty() {
        let problem = "must have neither path nor upload_id: the file is in this stream";
        return Err(CallError::invalid_field("header.options", problem).into());
    }
    let new = NewUpload {
        owner: owner(state).to_owned(),
        name,
        size: count_from_wire("header.size_bytes", size_bytes).map_err(CallError::from)?,
        sha256: (!sha256.is_empty()).then_some(sha256),
        streamed: true,
    };
    let created =
        state.run_blocking(|state| Ok(state.uploads.create(new, state.clock.now_micros())?)).await?;
    let guard = RemoveOnDrop { state: state.clone(), id: Some(created.id.clone()) };
    let outcome = match receive_chunks(state, &created.id, &mut stream).await {
        Ok(()) => {
            options.upload_id.clone_from(&created.id);
            state.run_blocking(move |state| import::start(state, options)).await
        }
        Err(error) => Err(error),
    };
    guard.keep();
    let operation = match outcome {
        Ok(operation) => Some(operation),
        Err(error) => {
            // Before the answer, so that the client can try again at once.
            let remove = move |state: &CallState| {
                discard(state, &created.id);
                Ok(())
            };
            state.run_blocking(remove).await?;
            return Err(error);
        }
    };
    Ok(Response::new(v1::UploadImportResponse { operation, header: Some(state.header()) }))
}

/// Removes an upload of the caller. One whose hash was wrong, or that has expired, is gone already.
fn discard(state: &CallState, id: &str) {
    drop(state.uploads.cancel(owner(state), id, state.clock.now_micros()));
}

async fn receive_chunks(
    state: &CallState,
    id: &str,
    stream: &mut (impl Stream<Item = Result<v1::UploadImportRequest, Status>> + Unpin),
) -> Result<(), Status> {
    let mut offset = 0;
    while let Some(part) = next_part(stream).await? {
        let Some(Part::Chunk(chunk)) = part else {
            return Err(CallError::invalid_field("chunk", "must be in every message after the first").into());
        };
        let id = id.to_owned();
        let work = move |state: &CallState| {
            Ok(state.uploads.write((owner(state), &id), offset, &chunk, state.clock.now_micros())?)
        };
        offset = state.run_blocking(work).await?;
    }
    Ok(())
}

/// Returns the next message of a stream; `None` at its end.
async fn next_part(
    stream: &mut (impl Stream<Item = Result<v1::UploadImportRequest, Status>> + Unpin),
) -> Result<Option<Option<Part>>, Status> {
    match tokio::time::timeout(STALL_TIMEOUT, stream.next()).await {
        Err(_) => Err(CallError::UploadStalled { seconds: STALL_TIMEOUT.as_secs() }.into()),
        Ok(message) => Ok(message.transpose()?.map(|message| message.part)),
    }
}

/// Removes the upload of a stream whose call was cancelled.
struct RemoveOnDrop {
    state: CallState,
    id: Option<String>,
}

impl RemoveOnDrop {
    fn keep(mut self) {
        self.id = None;
    }
}

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let state = self.state.clone();
        // Removing a file blocks.
        tokio::task::spawn_blocking(move || discard(&state, &id));
    }
}
