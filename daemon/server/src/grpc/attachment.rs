//! `AttachmentService`: sends the bytes of attachments.

use std::{
    fmt, io,
    io::Read as _,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use satchel_core::conversation_record::MessageTree;
use satchel_pam::hash::Sha256Digest;
use satchel_proto::v1::{self, attachment_service_server::AttachmentService};
use satchel_source::ReadAt;
use satchel_store::BlobReader;
use tokio::sync::Semaphore;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status};

use super::{
    ServerState,
    call_state::CallState,
    conversation::find_conversation,
    download::{DownloadRange, STALL_TIMEOUT, stream_file},
    request::check_required,
    status::{CallError, ResourceKind},
    wire::scalar::count_from_wire,
};

/// Largest number of concurrent downloads of attachments, of all clients.
const MAX_DOWNLOADS: usize = 16;

/// The service, with the permits for downloads.
#[derive(Clone)]
pub(super) struct AttachmentHandler(ServerState, Arc<Semaphore>);

impl AttachmentHandler {
    pub(super) fn new(state: ServerState) -> Self {
        Self(state, Arc::new(Semaphore::new(MAX_DOWNLOADS)))
    }
}

type AttachmentStream = Pin<Box<dyn Stream<Item = Result<v1::DownloadAttachmentResponse, Status>> + Send>>;

#[tonic::async_trait]
impl AttachmentService for AttachmentHandler {
    type DownloadAttachmentStream = AttachmentStream;

    async fn download_attachment(
        &self,
        request: Request<v1::DownloadAttachmentRequest>,
    ) -> Result<Response<AttachmentStream>, Status> {
        let state = CallState::of(&self.0, &request)?;
        let request = request.into_inner();
        let busy = format!("{MAX_DOWNLOADS} attachments are being downloaded; try again when one has ended");
        let permit = Arc::clone(&self.1).try_acquire_owned().map_err(|_| CallError::Busy(busy))?;
        let (bytes, range) = opened(&state, request).await?;
        let chunks = stream_file(bytes, range, state.header(), permit, STALL_TIMEOUT);
        let responses = chunks.map(|response| {
            let v1::DownloadExportResponse { chunk, total_size, header } = response?;
            Ok(v1::DownloadAttachmentResponse { chunk, total_size, header })
        });
        Ok(Response::new(Box::pin(responses)))
    }
}

/// Opens an attachment that the caller sees, and fetches it from a peer first if it is there only.
async fn opened(
    state: &CallState,
    request: v1::DownloadAttachmentRequest,
) -> Result<(Arc<dyn ReadAt>, DownloadRange), Status> {
    let (first, digest) = (request.clone(), digest_from_wire(&request.sha256)?);
    match state.run_blocking(move |state| open(state, &first)).await? {
        Opened::Stored(bytes, range) => return Ok((bytes, range)),
        Opened::Absent => {}
    }
    if !state.peers.fetch_file(digest).await.map_err(CallError::from)? {
        return Err(CallError::AttachmentElsewhere { sha256: request.sha256 }.into());
    }
    let missing = CallError::not_found(ResourceKind::Attachment, &request.sha256);
    match state.run_blocking(move |state| open(state, &request)).await? {
        Opened::Stored(bytes, range) => Ok((bytes, range)),
        Opened::Absent => Err(missing.into()),
    }
}

/// An attachment of a message that the caller sees.
enum Opened {
    Stored(Arc<dyn ReadAt>, DownloadRange),
    /// Its bytes are not stored.
    Absent,
}

/// Opens an attachment that the caller sees.
fn open(state: &CallState, request: &v1::DownloadAttachmentRequest) -> Result<Opened, CallError> {
    let v1::DownloadAttachmentRequest { conversation_id, message_id, sha256, offset, limit } = request;
    let (offset, limit) = (count_from_wire("offset", *offset)?, count_from_wire("limit", *limit)?);
    check_required("message_id", message_id)?;
    let digest = digest_from_wire(sha256)?;
    let record = find_conversation(state, "conversation_id", conversation_id, state.store.revision())?;
    let at = record.heads.iter().position(|head| head.id == *message_id);
    let at = at.ok_or_else(|| CallError::not_found(ResourceKind::Message, message_id))?;
    let bodies = state.store.bodies_at(&record, &[at])?;
    let body = bodies.first().ok_or_else(|| CallError::internal("a message has no body"))?;
    let message = MessageTree::new(&record).message(&record, at, body).map_err(CallError::internal)?;
    let reference = format!("attachments/{sha256}");
    let listed = message.attachments.iter().any(|one| one.reference.as_deref() == Some(&reference));
    if !listed {
        return Err(CallError::not_found(ResourceKind::Attachment, sha256));
    }
    let Some(reader) = state.store.blob_open(digest.as_bytes())? else { return Ok(Opened::Absent) };
    let size = reader.length().map_err(CallError::internal)?;
    if offset > size {
        return Err(CallError::OffsetPastEnd { offset, size });
    }
    let end = if limit == 0 { size } else { offset.saturating_add(limit).min(size) };
    let bytes = Arc::new(AttachmentBytes(Mutex::new(reader)));
    Ok(Opened::Stored(bytes, DownloadRange { offset, end, size }))
}

/// Reads the digest of a file.
pub(super) fn digest_from_wire(hex: &str) -> Result<Sha256Digest, CallError> {
    let problem = "must be 64 lower-case hex digits";
    Sha256Digest::parse(&format!("sha256:{hex}")).map_err(|_| CallError::invalid_field("sha256", problem))
}

/// The bytes of an attachment. The lock guards the position of the reader.
struct AttachmentBytes(Mutex<BlobReader>);

impl fmt::Debug for AttachmentBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AttachmentBytes")
    }
}

impl ReadAt for AttachmentBytes {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut reader = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reader.seek(offset);
        reader.read(buffer)
    }
}
