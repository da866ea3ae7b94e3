//! Receives a package: bounded in memory, in time, and by the order of its messages.

use std::time::Duration;

use satchel_pam::hash::Sha256Digest;
use satchel_proto::v1::{self, install_plugin_request::Part};
use satchel_registry::package::MAX_PACKAGE_BYTES;
use tokio_stream::{Stream, StreamExt as _};
use tonic::Status;

use crate::grpc::status::CallError;

/// How long an upload may send nothing. After that it counts as gone, because others may wait for its permit.
pub(super) const STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a whole upload may take, so that one that sends a byte now and then ends too.
pub(super) const UPLOAD_TIMEOUT: Duration = Duration::from_mins(10);
/// Largest chunk, in bytes.
const MAX_CHUNK_BYTES: usize = 1 << 20;

/// A package that has arrived, and what its header asks for.
#[derive(Debug)]
pub(super) struct Upload {
    pub(super) header: v1::InstallPluginHeader,
    pub(super) bytes: Vec<u8>,
}

/// The reason why an upload ended early.
#[derive(Debug)]
pub(super) enum UploadError {
    /// The connection failed, or its bytes are no messages.
    Connection(Status),
    Refused(CallError),
}

impl From<CallError> for UploadError {
    fn from(error: CallError) -> Self {
        Self::Refused(error)
    }
}

impl From<UploadError> for Status {
    fn from(error: UploadError) -> Self {
        match error {
            UploadError::Connection(status) => status,
            UploadError::Refused(error) => error.into(),
        }
    }
}

/// Receives a package from `stream`, in which no two messages may be further apart than `stall`.
pub(super) async fn receive(
    mut stream: impl Stream<Item = Result<v1::InstallPluginRequest, Status>> + Unpin,
    stall: Duration,
) -> Result<Upload, UploadError> {
    let mut next = async || match tokio::time::timeout(stall, stream.next()).await {
        Err(_) => Err(CallError::UploadStalled { seconds: stall.as_secs() }.into()),
        Ok(None) => Ok(None),
        Ok(Some(Err(status))) => Err(UploadError::Connection(status)),
        Ok(Some(Ok(message))) => Ok(Some(message.part)),
    };
    let Some(Some(Part::Header(header))) = next().await? else {
        return Err(CallError::invalid_field("header", "must be the first message").into());
    };
    check_sha256(&header.sha256)?;
    let mut bytes = Vec::new();
    while let Some(part) = next().await? {
        let Some(Part::Chunk(chunk)) = part else {
            return Err(CallError::invalid_field("chunk", "must be in every message after the first").into());
        };
        append(&mut bytes, &chunk)?;
    }
    if Sha256Digest::of(&bytes).to_hex() != header.sha256 {
        return Err(CallError::invalid_field("header.sha256", "is not that of the bytes that arrived").into());
    }
    Ok(Upload { header, bytes })
}

fn append(bytes: &mut Vec<u8>, chunk: &[u8]) -> Result<(), CallError> {
    if !(1..=MAX_CHUNK_BYTES).contains(&chunk.len()) {
        return Err(CallError::invalid_field("chunk", "must hold 1 byte to 1 MiB"));
    }
    if bytes.len() + chunk.len() > MAX_PACKAGE_BYTES {
        return Err(CallError::Busy(format!(
            "the file is larger than an importer's package may be, {} MiB",
            MAX_PACKAGE_BYTES >> 20
        )));
    }
    bytes.extend_from_slice(chunk);
    Ok(())
}

fn check_sha256(digest: &str) -> Result<(), CallError> {
    let digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if digest.len() == 64 && digest.bytes().all(digit) {
        return Ok(());
    }
    Err(CallError::invalid_field("header.sha256", "must be 64 lower-case hex digits"))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use tonic::Code;

    use super::*;

    fn header(bytes: &[u8]) -> Part {
        let sha256 = Sha256Digest::of(bytes).to_hex();
        Part::Header(v1::InstallPluginHeader { sha256, ..v1::InstallPluginHeader::default() })
    }

    fn chunk(length: usize) -> Part {
        Part::Chunk(vec![7; length])
    }

    async fn outcome(parts: Vec<Part>) -> Result<usize, Code> {
        let messages = parts.into_iter().map(|part| Ok(v1::InstallPluginRequest { part: Some(part) }));
        let received = receive(tokio_stream::iter(messages), STALL_TIMEOUT).await;
        received.map(|upload| upload.bytes.len()).map_err(|error| Status::from(error).code())
    }

    #[tokio::test]
    async fn a_package_arrives_in_chunks() {
        let bytes = vec![7; MAX_CHUNK_BYTES + 3];
        assert_eq!(outcome(vec![header(&bytes), chunk(MAX_CHUNK_BYTES), chunk(3)]).await, Ok(bytes.len()));
    }

    #[tokio::test]
    async fn messages_in_another_order_or_size_are_refused() {
        for parts in [
            vec![],
            vec![chunk(1)],
            vec![header(&[7]), header(&[7])],
            vec![header(&[7]), chunk(1), header(&[7])],
            vec![header(&[]), chunk(0)],
            vec![header(&[7; MAX_CHUNK_BYTES + 1]), chunk(MAX_CHUNK_BYTES + 1)],
            vec![header(&[7; 2]), chunk(1)],
            vec![Part::Header(v1::InstallPluginHeader::default()), chunk(1)],
        ] {
            let count = parts.len();
            assert_eq!(outcome(parts).await, Err(Code::InvalidArgument), "{count} messages");
        }
    }

    #[tokio::test]
    async fn a_package_that_is_too_large_is_refused_while_it_arrives() {
        let mut parts = vec![header(&[])];
        parts.extend((0..=MAX_PACKAGE_BYTES / MAX_CHUNK_BYTES).map(|_| chunk(MAX_CHUNK_BYTES)));
        assert_eq!(outcome(parts).await, Err(Code::ResourceExhausted));
    }

    #[tokio::test]
    async fn a_stalled_upload_ends() {
        let first = Ok(v1::InstallPluginRequest { part: Some(header(&[7])) });
        let stalled = tokio_stream::iter([first]).chain(tokio_stream::pending());
        let error = receive(stalled, Duration::from_millis(20)).await.unwrap_err();
        assert_eq!(Status::from(error).code(), Code::DeadlineExceeded);
    }
}
