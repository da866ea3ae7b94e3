//! The client's side of files that are sent to a daemon on another machine, and fetched from it.
//!
//! Both continue by themselves after a broken connection: uploads at the last durable byte, downloads at the last byte
//! that arrived.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::Path,
    time::Duration,
};

use satchel_pam::hash::Sha256Digest;
use satchel_proto::{
    integers::{signed, unsigned},
    v1::{
        self, attachment_service_client::AttachmentServiceClient, export_service_client::ExportServiceClient,
        peer_service_client::PeerServiceClient, upload_service_client::UploadServiceClient,
    },
};
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;
use tonic::{Code, Status, transport::Channel};

/// Bytes of a chunk that is sent.
const CHUNK_BYTES: usize = 1 << 20;
/// Bytes that are hashed at once.
const HASHED_BYTES: usize = 256 << 10;
/// How often a broken call is repeated before the transfer fails.
const RETRIES: u32 = 5;
/// The wait before the first repetition; each further one is twice as long.
const RETRY_DELAY: Duration = Duration::from_millis(200);

/// Called with the bytes that are transferred, and with how many there are.
pub type Progress<'a> = dyn FnMut(u64, u64) + Send + 'a;

/// The reason why a transfer failed.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The daemon refuses it, or cannot be reached any more.
    #[error("{}", .0.message())]
    Call(#[from] Status),
    /// The file on this machine cannot be read or written.
    #[error("the file on this machine cannot be read or written")]
    File(#[from] io::Error),
    /// The file was changed while it was sent.
    #[error("the file was changed while it was sent; send it again")]
    Changed,
    /// Bytes were changed on their way.
    #[error("the bytes that arrived are damaged; try again")]
    Damaged,
}

/// Sends a file to the daemon under this name, or what is missing of it, and returns the id of the upload, for
/// `CreateImport` or `VerifyExport`.
///
/// # Errors
/// The file cannot be read, or the daemon refuses it.
pub async fn upload(
    channel: &Channel,
    path: &Path,
    name: &str,
    progress: &mut Progress<'_>,
) -> Result<String, TransferError> {
    let mut file = File::open(path)?;
    let (size, sha256) = hash(&mut file)?;
    let mut client = UploadServiceClient::new(channel.clone());
    let request = v1::CreateUploadRequest { name: name.to_owned(), size_bytes: signed(size), sha256 };
    let mut retries = Retries::default();
    let upload = loop {
        match client.create_upload(request.clone()).await {
            Ok(created) => break created.into_inner().upload.unwrap_or_default(),
            Err(status) => retries.wait(status).await?,
        }
    };
    let mut at = unsigned(upload.committed_bytes);
    while at < size {
        progress(at, size);
        let data = read_chunk(&mut file, at, size)?;
        let crc32c = Some(crc32c::crc32c(&data));
        let request = v1::WriteUploadRequest { id: upload.id.clone(), offset: signed(at), data, crc32c };
        // A chunk that is repeated because its answer was lost is accepted again.
        match client.write_upload(request).await {
            Ok(written) => {
                at = unsigned(written.into_inner().committed_bytes);
                retries = Retries::default();
            }
            Err(status) => retries.wait(status).await?,
        }
    }
    progress(size, size);
    Ok(upload.id)
}

/// Fetches an export into the new file `output`, which exists only when it is complete.
///
/// # Errors
/// `output` exists or cannot be written, or the daemon refuses it.
pub async fn download_export(
    channel: &Channel,
    id: &str,
    output: &Path,
    progress: &mut Progress<'_>,
) -> Result<(), TransferError> {
    let mut client = ExportServiceClient::new(channel.clone());
    let mut download = Download::begin(output)?;
    let mut retries = Retries::default();
    loop {
        let request = v1::DownloadExportRequest { id: id.to_owned(), offset: signed(download.received) };
        let outcome = async {
            let mut answers = client.download_export(request).await?.into_inner();
            while let Some(answer) = answers.message().await? {
                download.append(answer.chunk, answer.total_size, progress)?;
            }
            Ok(())
        };
        match outcome.await {
            Ok(()) => return download.finish(output),
            Err(TransferError::Call(status)) => retries.wait(status).await?,
            Err(error) => return Err(error),
        }
    }
}

/// Fetches an attachment into the new file `output`, which exists only when it is complete and has the SHA-256 of `request`.
/// The offset and the limit of `request` are ignored.
///
/// # Errors
/// As [`download_export`].
pub async fn download_attachment(
    channel: &Channel,
    request: v1::DownloadAttachmentRequest,
    output: &Path,
    progress: &mut Progress<'_>,
) -> Result<(), TransferError> {
    let mut client = AttachmentServiceClient::new(channel.clone());
    let mut download = Download::begin(output)?;
    let mut retries = Retries::default();
    loop {
        let offset = signed(download.received);
        let part = v1::DownloadAttachmentRequest { offset, limit: 0, ..request.clone() };
        let outcome = async {
            let mut answers = client.download_attachment(part).await?.into_inner();
            while let Some(answer) = answers.message().await? {
                download.append(answer.chunk, answer.total_size, progress)?;
            }
            Ok(())
        };
        match outcome.await {
            Ok(()) if sha256_of(download.file.path())? != request.sha256 => {
                return Err(TransferError::Damaged);
            }
            Ok(()) => return download.finish(output),
            Err(TransferError::Call(status)) => retries.wait(status).await?,
            Err(error) => return Err(error),
        }
    }
}

/// Fetches a file of changes for a peer into the new file `output`, which exists only when it is complete. It is written anew after a
/// broken connection only if the caller tries again.
///
/// # Errors
/// As [`download_export`].
pub async fn download_change_file(
    channel: &Channel,
    request: v1::DownloadChangeFileRequest,
    output: &Path,
    progress: &mut Progress<'_>,
) -> Result<v1::ChangeFileSummary, TransferError> {
    let mut download = Download::begin(output)?;
    let mut client = PeerServiceClient::new(channel.clone());
    let mut answers = client.download_change_file(request).await?.into_inner();
    while let Some(answer) = answers.message().await? {
        if let Some(summary) = answer.summary {
            download.total = unsigned(summary.size_bytes);
            download.finish(output)?;
            return Ok(summary);
        }
        // How long the file will be is not known.
        let total = unsigned(answer.chunk.as_ref().map_or(0, |chunk| chunk.offset)) + CHUNK_BYTES as u64;
        download.append(answer.chunk, signed(total), progress)?;
    }
    Err(TransferError::Damaged)
}

/// The repetitions of a broken call.
#[derive(Default)]
struct Retries(u32);

impl Retries {
    /// Waits before the next repetition.
    ///
    /// # Errors
    /// The status, if repeating the call would not help, or it was repeated often enough.
    async fn wait(&mut self, status: Status) -> Result<(), TransferError> {
        // A connection that breaks shows as UNAVAILABLE, UNKNOWN or CANCELLED, depending on the moment.
        let broken = matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Cancelled);
        if !broken || self.0 >= RETRIES {
            return Err(status.into());
        }
        tokio::time::sleep(RETRY_DELAY * 2_u32.pow(self.0)).await;
        self.0 += 1;
        Ok(())
    }
}

/// A file that arrives.
struct Download {
    file: NamedTempFile,
    received: u64,
    total: u64,
}

impl Download {
    fn begin(output: &Path) -> Result<Self, TransferError> {
        if output.exists() {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists).into());
        }
        let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
        let file = NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
        Ok(Self { file, received: 0, total: 0 })
    }

    fn append(
        &mut self,
        chunk: Option<v1::Chunk>,
        total: i64,
        progress: &mut Progress<'_>,
    ) -> Result<(), TransferError> {
        let v1::Chunk { offset, data, crc32c } = chunk.unwrap_or_default();
        if unsigned(offset) != self.received || crc32c != crc32c::crc32c(&data) {
            return Err(TransferError::Damaged);
        }
        self.file.write_all(&data)?;
        (self.received, self.total) = (self.received + data.len() as u64, unsigned(total));
        progress(self.received, self.total);
        Ok(())
    }

    fn finish(self, output: &Path) -> Result<(), TransferError> {
        if self.received != self.total {
            return Err(TransferError::Damaged);
        }
        self.file.as_file().sync_all()?;
        self.file.persist_noclobber(output).map_err(|error| error.error)?;
        Ok(())
    }
}

/// Returns the SHA-256 of a file in lower-case hex digits.
///
/// # Errors
/// The file cannot be read.
pub fn sha256_of(path: &Path) -> io::Result<String> {
    hash(&mut File::open(path)?).map(|(_, sha256)| sha256)
}

/// Returns the size and the SHA-256 of a file.
fn hash(file: &mut File) -> io::Result<(u64, String)> {
    let (mut hasher, mut size, mut buffer) = (Sha256::new(), 0, vec![0; HASHED_BYTES]);
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
        size += read as u64;
    }
    Ok((size, Sha256Digest::from_bytes(hasher.finalize().into()).to_hex()))
}

fn read_chunk(file: &mut File, at: u64, size: u64) -> Result<Vec<u8>, TransferError> {
    let length = CHUNK_BYTES.min(usize::try_from(size - at).unwrap_or(CHUNK_BYTES));
    let mut data = vec![0; length];
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut data).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => TransferError::Changed,
        _ => error.into(),
    })?;
    Ok(data)
}
