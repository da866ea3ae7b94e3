//! Files of changes, for peers that cannot be reached.

use std::{fs::File, path::Path, sync::Arc};

use satchel_core::{plain_file, sync::WrittenChangeFile};
use satchel_proto::{integers::signed, v1};
use satchel_source::{ReadAt, ReadAtCursor};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Response, Status};

use super::super::{
    call_state::CallState,
    chunks::ChunkWriter,
    request::{check_absolute, check_required},
    status::CallError,
    upload,
    wire::{peer::peer_to_wire, scalar::time_to_wire, sync::refused_to_wire},
};
use crate::peers::{ImportedChanges, PeerState, STALL_TIMEOUT};

/// Messages that wait for a slow reader.
const BUFFERED_MESSAGES: usize = 1;

/// The messages of a file that is written.
pub(super) type ExportStream = ReceiverStream<Result<v1::DownloadChangeFileResponse, Status>>;

/// Streams a file with the changes that a peer lacks.
pub(super) async fn export(
    state: CallState,
    request: v1::DownloadChangeFileRequest,
) -> Result<Response<ExportStream>, Status> {
    let v1::DownloadChangeFileRequest { peer, full } = request;
    check_required("peer", &peer)?;
    let found = state
        .run_blocking(move |state| {
            let found = state.peers.find(&peer)?;
            if found.state == PeerState::Paused {
                return Err(CallError::PeerPaused { peer: found.name });
            }
            state.peers.check_key(&found)?;
            Ok(found)
        })
        .await?;
    let (sender, receiver) = mpsc::channel(BUFFERED_MESSAGES);
    let span = tracing::Span::current();
    tokio::task::spawn_blocking(move || {
        let _entered = span.enter();
        let header = state.header();
        let mut writer = ChunkWriter::new(STALL_TIMEOUT, |offset, data: Vec<u8>| {
            let crc32c = crc32c::crc32c(&data);
            let chunk = Some(v1::Chunk { offset: signed(offset), data, crc32c });
            let message =
                v1::DownloadChangeFileResponse { chunk, summary: None, header: Some(header.clone()) };
            let sender = sender.clone();
            async move { sender.send(Ok(message)).await.is_ok() }
        });
        let written = state.peers.export_changes(&found, full, &mut writer);
        let (gone, size) = (writer.is_refused(), writer.written());
        let last = match written {
            Ok(WrittenChangeFile { changes, files }) => {
                let (changes, files) = (signed(changes), signed(files));
                let summary = Some(v1::ChangeFileSummary { changes, files, size_bytes: signed(size) });
                Ok(v1::DownloadChangeFileResponse { chunk: None, summary, header: Some(header.clone()) })
            }
            // The reader does not take the error either.
            Err(_) if gone => return,
            Err(error) => Err(CallError::from(error).into()),
        };
        drop(sender.blocking_send(last));
    });
    Ok(Response::new(ReceiverStream::new(receiver)))
}

/// Takes the changes of a file.
pub(super) fn import(
    state: &CallState,
    request: v1::ImportChangeFileRequest,
) -> Result<v1::ImportChangeFileResponse, CallError> {
    let v1::ImportChangeFileRequest { path, upload_id } = request;
    let (name, bytes, length) = if upload_id.is_empty() {
        state.check_local("path")?;
        check_absolute("path", &path)?;
        let (file, length) = open(Path::new(&path)).map_err(|error| CallError::ChangeFileUnusable {
            file: path.clone(),
            problem: format!("it cannot be opened: {error}"),
        })?;
        (path, Arc::new(file) as Arc<dyn ReadAt>, length)
    } else if path.is_empty() {
        let file = upload::content(state, &upload_id)?;
        (file.path.display().to_string(), file.bytes, file.length)
    } else {
        return Err(CallError::invalid_field("path", "must be empty, as upload_id is set"));
    };
    let imported = state.peers.import_changes(|| Ok(ReadAtCursor::new(Arc::clone(&bytes), length))).map_err(
        |error| match error {
            crate::peers::PeersError::ChangeFile(refusal) => {
                CallError::ChangeFileUnusable { file: name, problem: satchel_source::chain(&*refusal) }
            }
            error => error.into(),
        },
    )?;
    if !upload_id.is_empty() {
        upload::remove(state, &upload_id);
    }
    let ImportedChanges { peer, header, received, files, problem } = imported;
    Ok(v1::ImportChangeFileResponse {
        peer: Some(peer_to_wire(peer)),
        created_at: Some(time_to_wire(header.created_at)),
        new_changes: signed(received.new + received.completed),
        repeated_changes: signed(received.repeated),
        new_files: signed(files),
        refused: received.refused.iter().map(refused_to_wire).collect(),
        problem: problem.unwrap_or_default(),
        header: Some(state.header()),
    })
}

fn open(path: &Path) -> std::io::Result<(File, u64)> {
    let file = plain_file::open(path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}
