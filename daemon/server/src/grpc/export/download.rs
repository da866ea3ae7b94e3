//! Downloads of bundles, sent in chunks as fast as each client reads.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt as _,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use satchel_proto::{signed::signed, v1};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_stream::{Stream, StreamExt as _, wrappers::ReceiverStream};
use tonic::Status;
use tracing::Instrument as _;

use crate::grpc::status::Fault;

/// Bytes of one chunk of a download.
const CHUNK_BYTES: u64 = 1 << 20;
/// Chunks that wait for a slow reader.
const CHUNKS_AHEAD: usize = 1;
/// How long a reader may take for a chunk. After that it counts as gone, because others may wait for its permit.
pub(super) const STALLED: Duration = Duration::from_mins(5);
/// The message with which a stalled download ends.
const NOT_READ: &str = "the download was not read for 5 minutes; go on from the offset that you have come to";
/// The stream of chunks of a bundle.
pub(super) type Download = Pin<Box<dyn Stream<Item = Result<v1::DownloadExportResponse, Status>> + Send>>;

/// Streams the rest of `file`, which has `size` bytes, to a reader that takes each chunk within `patience`. `place` is
/// released at the end.
pub(super) fn streamed(
    file: File,
    (offset, size): (u64, u64),
    header: v1::StoreHeader,
    place: OwnedSemaphorePermit,
    patience: Duration,
) -> Download {
    let (sender, receiver) = mpsc::channel(CHUNKS_AHEAD);
    let span = tracing::Span::current();
    let stalled = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stalled);
    let sending = async move {
        if !send(file, (offset, size), header, &sender, patience).await {
            told.store(true, Ordering::Release);
        }
        drop((place, sender));
    };
    tokio::spawn(sending.instrument(span));
    // The channel is full of chunks that were not read, so the error follows after them.
    let end = std::iter::from_fn(move || {
        stalled.swap(false, Ordering::AcqRel).then(|| Err(Fault::Busy(NOT_READ.to_owned()).into()))
    });
    Box::pin(ReceiverStream::new(receiver).chain(tokio_stream::iter(end)))
}

/// Sends the rest of `file` until its end, or until the receiver is dropped. Returns false if no chunk was taken within
/// `patience`. No thread blocks while it waits for a slow reader.
async fn send(
    file: File,
    (mut offset, size): (u64, u64),
    header: v1::StoreHeader,
    sender: &mpsc::Sender<Result<v1::DownloadExportResponse, Status>>,
    patience: Duration,
) -> bool {
    let mut header = Some(header);
    let file = Arc::new(file);
    loop {
        // The announced size is binding: bytes that are appended meanwhile are not sent.
        let room = CHUNK_BYTES.min(size - offset);
        let bytes = Arc::clone(&file);
        let read = tokio::task::spawn_blocking(move || piece(&bytes, offset, room)).await;
        let read = read.unwrap_or_else(|broken| Err(Fault::internal(broken)));
        let answer = read.map(|data| {
            let chunk = v1::Chunk { offset: signed(offset), crc32c: crc32c::crc32c(&data), data };
            v1::DownloadExportResponse { chunk: Some(chunk), total_size: signed(size), header: header.take() }
        });
        offset += room;
        let last = answer.is_err() || offset == size;
        // A dropped receiver is not an error.
        match tokio::time::timeout(patience, sender.send(answer.map_err(Status::from))).await {
            Err(_) => return false,
            Ok(sent) if last || sent.is_err() => return true,
            Ok(_) => {}
        }
    }
}

/// Reads `room` bytes from `offset` on.
fn piece(file: &File, offset: u64, room: u64) -> Result<Vec<u8>, Fault> {
    let mut data = vec![0; usize::try_from(room).map_err(Fault::internal)?];
    file.read_exact_at(&mut data, offset).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Fault::internal("the bundle became shorter while it was read"),
        _ => Fault::internal(error),
    })?;
    Ok(data)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use tokio::sync::Semaphore;
    use tonic::Code;

    use super::*;

    /// Starts a download of six chunks with a short timeout. Returns it with the semaphore from which it took a permit.
    async fn begun() -> (Download, Arc<Semaphore>) {
        let places = Arc::new(Semaphore::new(1));
        let place = Arc::clone(&places).acquire_owned().await.unwrap();
        let file = tempfile::tempfile().unwrap();
        file.set_len(6 * CHUNK_BYTES).unwrap();
        let length = (0, 6 * CHUNK_BYTES);
        let download = streamed(file, length, v1::StoreHeader::default(), place, Duration::from_millis(50));
        (download, places)
    }

    #[tokio::test]
    async fn a_download_that_nobody_reads_ends_with_the_reason_and_frees_its_place() {
        let (mut download, places) = begun().await;
        // The permit is released when the download has ended.
        drop(places.acquire().await.unwrap());
        let mut pieces = 0;
        let status = loop {
            match download.next().await.unwrap() {
                Ok(_) => pieces += 1,
                Err(status) => break status,
            }
        };
        assert_eq!(pieces, CHUNKS_AHEAD);
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert!(status.message().contains("was not read"), "{status:?}");
        assert!(download.next().await.is_none());
    }

    #[tokio::test]
    async fn a_download_that_is_given_up_frees_its_place() {
        let (download, places) = begun().await;
        drop(download);
        drop(places.acquire().await.unwrap());
    }
}
