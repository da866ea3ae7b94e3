//! The files of attachments, which are not part of changes.

use std::sync::Arc;

use satchel_core::sync::{FileError, SyncError};
use satchel_pam::hash::Sha256Digest;
use satchel_proto::v1;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::{BUFFERED_MESSAGES, Exchange, STALL_TIMEOUT, answered, blocking};
use crate::{
    grpc::chunks::{ChunkReader, send_chunks},
    peers::{PeersError, lock},
};

/// Returns whether a file failed, and not the connection or the daemon.
fn is_about_file(status: &tonic::Status) -> bool {
    matches!(status.code(), tonic::Code::DataLoss | tonic::Code::Internal)
}

/// Files that the peer lacks, per page.
const FILES: i32 = 1_000;
/// Most pages that are read.
const MAX_PAGES: u32 = 10_000;

impl Exchange<'_> {
    /// Fetches the files of attachments that this store lacks, and sends those that the peer lacks.
    pub(super) async fn exchange_files(&mut self) -> Result<(), PeersError> {
        let (peers, peer) = (self.peers.clone(), Arc::clone(self.peer));
        let missing = blocking(move || {
            let missing = peers.files_to_fetch(&peer)?;
            peers.included_files(missing, peer.filter().as_ref(), peer.contact().origin)
        })
        .await?;
        for digest in missing {
            if !lock(&self.peer.failed_files).contains(&digest) {
                self.download_file(digest).await?;
            }
        }
        let mut page_token = String::new();
        for _ in 0..MAX_PAGES {
            let request = v1::ListMissingFilesRequest { page_size: FILES, page_token };
            let answer = answered(self.client.list_missing_files(request)).await?;
            for sha256 in answer.sha256 {
                self.upload_file(sha256).await?;
            }
            page_token = answer.next_page_token;
            if page_token.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Notes that a file cannot be exchanged. The others can.
    fn note_failed_file(&mut self, digest: Sha256Digest, problem: &str) {
        lock(&self.peer.failed_files).insert(digest);
        self.moved.note(Some(format!("the attachment {digest}: {problem}")));
    }

    /// Fetches a file, if the peer has it.
    async fn download_file(&mut self, digest: Sha256Digest) -> Result<(), PeersError> {
        let request = v1::DownloadFileRequest { sha256: digest.to_hex() };
        let mut stream = match self.client.download_file(request).await {
            Err(status) if status.code() == tonic::Code::NotFound => return Ok(()),
            stream => stream?.into_inner(),
        };
        let (sender, mut reader) = ChunkReader::new();
        let peers = self.peers.clone();
        let storing = blocking(move || Ok(peers.put_file(digest, &mut reader)?));
        let seconds = STALL_TIMEOUT.as_secs();
        let receiving = async {
            loop {
                let message = tokio::time::timeout(STALL_TIMEOUT, stream.message()).await;
                let Some(message) = message.map_err(|_| PeersError::Stalled { seconds })?? else { break };
                if sender.send(message.data).await.is_err() {
                    break;
                }
            }
            drop(sender);
            Ok::<_, PeersError>(())
        };
        let (stored, received) = tokio::join!(storing, receiving);
        match received {
            Err(PeersError::Refused(status)) if is_about_file(&status) => {
                self.note_failed_file(digest, status.message());
                return Ok(());
            }
            received => received?,
        }
        match stored {
            Err(PeersError::File(error @ FileError::Damaged(_))) => {
                self.note_failed_file(digest, &error.to_string());
                Ok(())
            }
            // It has come from another peer meanwhile.
            Err(PeersError::File(FileError::NotWanted(_))) => Ok(()),
            stored => stored.map(drop),
        }
    }

    /// Sends a file that the peer lacks, if this store has it.
    async fn upload_file(&mut self, sha256: String) -> Result<(), PeersError> {
        let digest = Sha256Digest::parse(&format!("sha256:{sha256}"))
            .map_err(|_| PeersError::Malformed("a digest that is none".to_owned()))?;
        self.check_wanted()?;
        if lock(&self.peer.failed_files).contains(&digest) {
            return Ok(());
        }
        let (peers, filter, origin) = (self.peers.clone(), self.peer.filter(), self.peer.contact().origin);
        let file = blocking(move || {
            let included = peers.included_files([digest].into(), filter.as_ref(), origin)?;
            let open = |digest: &Sha256Digest| peers.0.store.blob_open(digest.as_bytes());
            Ok(included.first().map(open).transpose().map_err(SyncError::from)?.flatten())
        })
        .await?;
        let Some(mut file) = file else { return Ok(()) };
        let (sender, receiver) = mpsc::channel(BUFFERED_MESSAGES);
        let reading = tokio::task::spawn_blocking(move || {
            // A file may be empty.
            let first = v1::UploadFileRequest { sha256, data: Vec::new() };
            if sender.blocking_send(first).is_err() {
                return Ok(false);
            }
            send_chunks(&mut file, STALL_TIMEOUT, |data| {
                let message = v1::UploadFileRequest { sha256: String::new(), data };
                let sender = sender.clone();
                async move { sender.send(message).await.is_ok() }
            })
        });
        let answer = self.client.upload_file(ReceiverStream::new(receiver)).await;
        let read = reading.await.map_err(|_| PeersError::Stopping)?;
        match answer {
            // Another peer has sent it meanwhile.
            Err(status) if status.code() == tonic::Code::InvalidArgument => return Ok(()),
            Err(status) if is_about_file(&status) => self.note_failed_file(digest, status.message()),
            answer => drop(answer?),
        }
        if let Err(error) = read {
            self.note_failed_file(digest, &error.to_string());
        }
        Ok(())
    }
}
