//! Downloads of bundles and attachments, sent in chunks as fast as each client reads.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use satchel_proto::{integers::signed, v1};
use satchel_source::ReadAt;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_stream::{Stream, StreamExt as _, wrappers::ReceiverStream};
use tonic::Status;
use tracing::Instrument as _;

use crate::grpc::status::CallError;

/// Bytes of one chunk of a download.
const CHUNK_BYTES: u64 = 1 << 20;
/// Chunks that wait for a slow reader.
const BUFFERED_CHUNKS: usize = 1;
/// How long a reader may take for a chunk. After that it counts as gone, because others may wait for its permit.
pub(super) const STALL_TIMEOUT: Duration = Duration::from_mins(5);
/// The message with which a stalled download ends.
const STALLED_MESSAGE: &str =
    "the download was not read for 5 minutes; continue from the offset that you have reached";
/// The stream of chunks of a bundle.
pub(super) type DownloadStream =
    Pin<Box<dyn Stream<Item = Result<v1::DownloadExportResponse, Status>> + Send>>;

/// The bytes of a file that are sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct DownloadRange {
    pub(super) offset: u64,
    pub(super) end: u64,
    /// The size of the whole file.
    pub(super) size: u64,
}

/// Streams a part of `file` to a reader that takes each chunk within `timeout`. `permit` is
/// released at the end.
pub(super) fn stream_file(
    file: Arc<dyn ReadAt>,
    range: DownloadRange,
    header: v1::StoreHeader,
    permit: OwnedSemaphorePermit,
    timeout: Duration,
) -> DownloadStream {
    let (sender, receiver) = mpsc::channel(BUFFERED_CHUNKS);
    let span = tracing::Span::current();
    let stalled = Arc::new(AtomicBool::new(false));
    let stalled_flag = Arc::clone(&stalled);
    let sending = async move {
        if !send(file, range, header, &sender, timeout).await {
            stalled_flag.store(true, Ordering::Release);
        }
        drop((permit, sender));
    };
    tokio::spawn(sending.instrument(span));
    // The channel is full of chunks that were not read, so the error follows after them.
    let end = std::iter::from_fn(move || {
        stalled.swap(false, Ordering::AcqRel).then(|| Err(CallError::Busy(STALLED_MESSAGE.to_owned()).into()))
    });
    Box::pin(ReceiverStream::new(receiver).chain(tokio_stream::iter(end)))
}

/// Sends the rest of `file` until its end, or until the receiver is dropped. Returns false if no chunk was taken within
/// `timeout`. No thread blocks while it waits for a slow reader.
async fn send(
    file: Arc<dyn ReadAt>,
    DownloadRange { mut offset, end, size }: DownloadRange,
    header: v1::StoreHeader,
    sender: &mpsc::Sender<Result<v1::DownloadExportResponse, Status>>,
    timeout: Duration,
) -> bool {
    let mut header = Some(header);
    loop {
        // The announced size is binding: bytes that are appended meanwhile are not sent.
        let length = CHUNK_BYTES.min(end - offset);
        let bytes = Arc::clone(&file);
        let read = tokio::task::spawn_blocking(move || read_chunk(&*bytes, offset, length)).await;
        let read = read.unwrap_or_else(|error| Err(CallError::internal(error)));
        let response = read.map(|data| {
            let chunk = v1::Chunk { offset: signed(offset), crc32c: crc32c::crc32c(&data), data };
            v1::DownloadExportResponse { chunk: Some(chunk), total_size: signed(size), header: header.take() }
        });
        offset += length;
        let last = response.is_err() || offset == end;
        // A dropped receiver is not an error.
        match tokio::time::timeout(timeout, sender.send(response.map_err(Status::from))).await {
            Err(_) => return false,
            Ok(sent) if last || sent.is_err() => return true,
            Ok(_) => {}
        }
    }
}

/// Reads `length` bytes from `offset` on.
fn read_chunk(file: &dyn ReadAt, offset: u64, length: u64) -> Result<Vec<u8>, CallError> {
    let mut data = vec![0; usize::try_from(length).map_err(CallError::internal)?];
    let mut filled = 0;
    while filled < data.len() {
        match file.read_at(offset + filled as u64, &mut data[filled..]) {
            Ok(0) => return Err(CallError::internal("the file became shorter while it was read")),
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(CallError::internal(error)),
        }
    }
    Ok(data)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use tokio::sync::Semaphore;
    use tonic::Code;

    use super::*;

    /// Starts a download of six chunks with a short timeout. Returns it with the semaphore from which it took a permit.
    async fn start_download() -> (DownloadStream, Arc<Semaphore>) {
        let permits = Arc::new(Semaphore::new(1));
        let permit = Arc::clone(&permits).acquire_owned().await.unwrap();
        let file = tempfile::tempfile().unwrap();
        file.set_len(6 * CHUNK_BYTES).unwrap();
        let length = DownloadRange { offset: 0, end: 6 * CHUNK_BYTES, size: 6 * CHUNK_BYTES };
        let download = stream_file(
            Arc::new(file),
            length,
            v1::StoreHeader::default(),
            permit,
            Duration::from_millis(50),
        );
        (download, permits)
    }

    #[tokio::test]
    async fn a_download_that_is_not_read_ends_with_an_error_and_releases_its_permit() {
        let (mut download, permits) = start_download().await;
        // The permit is released when the download has ended.
        drop(permits.acquire().await.unwrap());
        let mut chunks = 0;
        let status = loop {
            match download.next().await.unwrap() {
                Ok(_) => chunks += 1,
                Err(status) => break status,
            }
        };
        assert_eq!(chunks, BUFFERED_CHUNKS);
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert!(status.message().contains("was not read"), "{status:?}");
        assert!(download.next().await.is_none());
    }

    #[tokio::test]
    async fn a_dropped_download_releases_its_permit() {
        let (download, permits) = start_download().await;
        drop(download);
        drop(permits.acquire().await.unwrap());
    }
}
