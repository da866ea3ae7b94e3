//! Files that are sent to a paired daemon, and fetched from it.

mod folder;

use std::path::{Path, PathBuf};

use satchel_proto::v1::{ChangeFileSummary, DownloadAttachmentRequest, DownloadChangeFileRequest};
use satchel_server::transfer::{self, TransferError};
use tempfile::NamedTempFile;

use super::{byte_progress::ByteProgress, client::DaemonClient, error::CliError, output::Output, text};

/// Sends a file to the daemon, and returns the id of the upload. A folder is sent as a ZIP of it.
///
/// The file is sent from where an earlier attempt was interrupted.
///
/// # Errors
/// Fails if the file cannot be read or the daemon refuses it, and with [`CliError::Cancelled`] if Ctrl-C is pressed.
pub(super) async fn send(out: &mut Output, client: &DaemonClient, path: &Path) -> Result<String, CliError> {
    let (zipped, name) = if path.is_dir() { zip_folder(out, path).await? } else { (None, file_name(path)?) };
    let file = zipped.as_ref().map_or(path, |zipped| zipped.path());
    let mut shown = ByteProgress::new(out, "sending");
    let mut progress = |done: u64, total: u64| shown.update(out, done, total);
    let sent = tokio::select! {
        sent = transfer::upload(client.channel(), file, &name, &mut progress) => sent.map_err(failed("read", path)),
        _ = tokio::signal::ctrl_c() => Err(CliError::Cancelled),
    };
    shown.finish();
    sent
}

/// Fetches an export into the new file `output`.
///
/// # Errors
/// Fails if the file cannot be written or the daemon refuses it.
pub(super) async fn fetch_export(
    out: &mut Output,
    client: &DaemonClient,
    id: &str,
    output: &Path,
) -> Result<(), CliError> {
    let mut shown = ByteProgress::new(out, "receiving");
    let mut progress = |done: u64, total: u64| shown.update(out, done, total);
    let fetched = transfer::download_export(client.channel(), id, output, &mut progress).await;
    shown.finish();
    fetched.map_err(failed("write", output))
}

/// Fetches an attachment into the new file `output`.
///
/// # Errors
/// As [`fetch_export`].
pub(super) async fn fetch_attachment(
    out: &mut Output,
    client: &DaemonClient,
    request: DownloadAttachmentRequest,
    output: &Path,
) -> Result<(), CliError> {
    let mut shown = ByteProgress::new(out, "receiving");
    let mut progress = |done: u64, total: u64| shown.update(out, done, total);
    let fetched = transfer::download_attachment(client.channel(), request, output, &mut progress).await;
    shown.finish();
    fetched.map_err(failed("write", output))
}

/// Fetches a file of changes for a peer into the new file `output`.
///
/// # Errors
/// As [`fetch_export`], and with [`CliError::Cancelled`] if Ctrl-C is pressed.
pub(super) async fn fetch_change_file(
    out: &mut Output,
    client: &DaemonClient,
    request: DownloadChangeFileRequest,
    output: &Path,
) -> Result<ChangeFileSummary, CliError> {
    let mut shown = ByteProgress::new(out, "writing");
    let mut progress = |done: u64, total: u64| shown.update(out, done, total);
    let fetched = tokio::select! {
        fetched = transfer::download_change_file(client.channel(), request, output, &mut progress) => {
            fetched.map_err(failed("write", output))
        }
        _ = tokio::signal::ctrl_c() => Err(CliError::Cancelled),
    };
    shown.finish();
    fetched
}

/// Writes a ZIP of the folder into the system's temporary folder. It is removed when the result is dropped.
async fn zip_folder(out: &mut Output, path: &Path) -> Result<(Option<NamedTempFile>, String), CliError> {
    let name = format!("{}.zip", file_name(path)?);
    let spinner = out.spinner("packing the folder");
    let root = path.to_owned();
    // Ctrl-C ends the command, and leaves the thread behind.
    let packed = tokio::select! {
        packed = tokio::task::spawn_blocking(move || folder::zip(&root)) => {
            packed.map_err(|error| CliError::step("packing the folder failed", error))
        }
        _ = tokio::signal::ctrl_c() => Err(CliError::Cancelled),
    };
    spinner.finish_and_clear();
    let folder::ZippedFolder { file, left_out } = packed??;
    for path in left_out {
        let path = text::one_line(&path.to_string_lossy());
        out.note(&format!("{path} is not sent: it is neither a file nor a folder, but a link or a device"));
    }
    Ok((Some(file), name))
}

fn file_name(path: &Path) -> Result<String, CliError> {
    let name = path.file_name().and_then(|name| name.to_str());
    name.map(ToOwned::to_owned).ok_or_else(|| {
        CliError::Usage(format!(
            "{path:?} has no name that can be sent; name a file or folder whose name is UTF-8"
        ))
    })
}

/// Returns the error of the command. `action` says what is done with the file on this machine.
fn failed(action: &'static str, path: &Path) -> impl Fn(TransferError) -> CliError {
    move |error| match error {
        TransferError::Call(status) => status.into(),
        TransferError::File(source) => CliError::File { action, path: PathBuf::from(path), source },
        error => CliError::step("the file was not transferred", error),
    }
}
