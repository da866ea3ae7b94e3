//! `ExportService`: creates, lists and downloads exports, and verifies bundles.

use std::{
    collections::BTreeMap,
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use satchel_bundle::verify::{self, VerifyError};
use satchel_core::{
    export::{ExportError, ExportFormat, ExportRecord, ExportRequest, Extent, Selection},
    trust,
    uploads::UploadedFile,
    vault,
};
use satchel_pam::sign::PublicKey;
use satchel_proto::v1::{
    self, export_service_server::ExportService, operation::Result as OperationResult,
    verify_export_request::Bundle,
};
use satchel_source::{
    CancelToken, ReadAt,
    envelope::{DecryptionKeys, ExportEncryption},
};
use satchel_store::MemoryQuery;
use tokio::sync::Semaphore;
use tonic::{Request, Response, Status};

use super::{
    ServerState,
    call_state::CallState,
    download::{DownloadRange, DownloadStream, STALL_TIMEOUT, stream_file},
    request::{check_absolute, check_length, check_required, page_request, service},
    status::{CallError, ResourceKind},
    upload,
    wire::{
        export::{
            export_to_wire, format_from_wire, keys_to_wire, progress_to_wire, trusted_key_to_wire,
            verify_report_to_wire,
        },
        memory::filter_from_wire,
        scalar::count_from_wire,
    },
};

/// Largest number of concurrent downloads, of all clients.
const MAX_DOWNLOADS: usize = 16;

/// The service, with the permits for downloads.
#[derive(Clone)]
pub(super) struct ExportHandler(ServerState, Arc<Semaphore>);

impl ExportHandler {
    pub(super) fn new(state: ServerState) -> Self {
        Self(state, Arc::new(Semaphore::new(MAX_DOWNLOADS)))
    }
}

service!(ExportService for ExportHandler {
    create_export: CreateExportRequest => CreateExportResponse = create;
    get_export: GetExportRequest => GetExportResponse = get;
    list_exports: ListExportsRequest => ListExportsResponse = list;
    verify_export: VerifyExportRequest => VerifyExportResponse = start_verification;
    get_signing_keys: GetSigningKeysRequest => GetSigningKeysResponse = signing_keys;
    list_trusted_keys: ListTrustedKeysRequest => ListTrustedKeysResponse = list_trusted_keys;
    rotate_signing_key: RotateSigningKeyRequest => RotateSigningKeyResponse = rotate_signing_key;
    trust_key: TrustKeyRequest => TrustKeyResponse = trust_key;
    untrust_key: UntrustKeyRequest => UntrustKeyResponse = untrust_key;
    ..
    type DownloadExportStream = DownloadStream;

    async fn download_export(
        &self,
        request: Request<v1::DownloadExportRequest>,
    ) -> Result<Response<DownloadStream>, Status> {
        let state = CallState::of(&self.0, &request)?;
        let v1::DownloadExportRequest { id, offset } = request.into_inner();
        let offset = count_from_wire("offset", offset).map_err(CallError::from)?;
        let busy = format!("{MAX_DOWNLOADS} downloads are running; try again when one of them has ended");
        let permit = Arc::clone(&self.1).try_acquire_owned().map_err(|_| CallError::Busy(busy))?;
        let (file, size) = state.run_blocking(move |state| open(state, &id, offset)).await?;
        Ok(Response::new(stream_file(Arc::new(file), DownloadRange { offset, end: size, size }, state.header(), permit, STALL_TIMEOUT)))
    }
});

fn get(state: &CallState, request: v1::GetExportRequest) -> Result<v1::GetExportResponse, CallError> {
    let export = Some(export_to_wire(find(state, &request.id)?));
    Ok(v1::GetExportResponse { export, header: Some(state.header()) })
}

fn signing_keys(
    state: &CallState,
    _request: v1::GetSigningKeysRequest,
) -> Result<v1::GetSigningKeysResponse, CallError> {
    let keys = state.exports.signing_keys()?.map(keys_to_wire);
    Ok(v1::GetSigningKeysResponse { keys, header: Some(state.header()) })
}

fn list_trusted_keys(
    state: &CallState,
    mut request: v1::ListTrustedKeysRequest,
) -> Result<v1::ListTrustedKeysResponse, CallError> {
    let page = page_request!(state, "ListTrustedKeys", request)?;
    let all = trust::list(&state.store)?;
    let (trusted_keys, next_page_token) = state.fill_from(&page, &all, |key| Ok(trusted_key_to_wire(key)))?;
    Ok(v1::ListTrustedKeysResponse { trusted_keys, next_page_token, header: Some(state.header()) })
}

fn rotate_signing_key(
    state: &CallState,
    request: v1::RotateSigningKeyRequest,
) -> Result<v1::RotateSigningKeyResponse, CallError> {
    let exports = &state.exports;
    let keys = if request.new_identity { exports.start_new_identity()? } else { exports.rotate_key()? };
    Ok(v1::RotateSigningKeyResponse { keys: Some(keys_to_wire(keys)), header: Some(state.header()) })
}

fn trust_key(state: &CallState, request: v1::TrustKeyRequest) -> Result<v1::TrustKeyResponse, CallError> {
    let key = key_from_wire("public_key", &request.public_key)?;
    let added = trust::add(&state.store, &key, state.clock.now_micros())?;
    let mut trusted = trust::list(&state.store)?.into_iter();
    let trusted_key = trusted.find(|trusted| trusted.public_key == key.multibase()).map(trusted_key_to_wire);
    Ok(v1::TrustKeyResponse { trusted_key, header: Some(state.header()), added })
}

fn untrust_key(
    state: &CallState,
    request: v1::UntrustKeyRequest,
) -> Result<v1::UntrustKeyResponse, CallError> {
    let key = key_from_wire("public_key", &request.public_key)?;
    let removed = trust::remove(&state.store, &key, state.clock.now_micros())?;
    Ok(v1::UntrustKeyResponse { header: Some(state.header()), removed })
}

/// Reads a public key in any supported form.
pub(super) fn key_from_wire(field: &'static str, text: &str) -> Result<PublicKey, CallError> {
    check_length(field, text)?;
    PublicKey::parse(text).map_err(|_| {
        CallError::invalid_field(
            field,
            "is not a public key; give the z6Mk… that `satchel verify` shows, or a did:key",
        )
    })
}

fn create(
    state: &CallState,
    request: v1::CreateExportRequest,
) -> Result<v1::CreateExportResponse, CallError> {
    if !request.output.is_empty() {
        state.check_local("output")?;
    }
    state.check_sees_everything("create exports")?;
    let download = state.device().is_some();
    let (request, exports) = (request_from_wire(request, download)?, state.exports.clone());
    if download
        && request.lock.is_none()
        && vault::status(&state.data_dir).is_ok_and(|status| status.is_some())
    {
        let problem =
            "or passphrase must be set: the data directory is encrypted, and the export waits in it";
        return Err(CallError::invalid_field("age_recipients", problem));
    }
    let operation = state.operations.start(&state.clock, v1::OperationKind::Export, move |reporter| {
        let report = |progress| reporter.report(progress_to_wire(progress));
        let made = if download {
            exports.create_for_download(request, &report)
        } else {
            exports.create_with_progress(&request, &report)
        };
        match made {
            Ok(record) => Ok(Some(OperationResult::Export(export_to_wire(record)))),
            Err(ExportError::Cancelled) => Ok(None),
            Err(error) => Err(error.into()),
        }
    })?;
    Ok(v1::CreateExportResponse { operation: Some(operation), header: Some(state.header()) })
}

/// Reads a request; an export for a download has no path.
fn request_from_wire(request: v1::CreateExportRequest, download: bool) -> Result<ExportRequest, CallError> {
    let v1::CreateExportRequest {
        r#type,
        output,
        without_conversations,
        attachments,
        format,
        base_export_id,
        filter,
        strip_identifiers,
        age_recipients,
        passphrase,
    } = request;
    let extent = extent_from_wire(r#type, base_export_id)?;
    if !download {
        check_absolute("output", &output)?;
    }
    // Clients that know no formats send zero, which means PAM.
    let format = if format == 0 { ExportFormat::Pam } else { format_from_wire("format", format)? };
    if attachments && format == ExportFormat::Memu {
        return Err(CallError::invalid_field(
            "attachments",
            "must be false, as this format has no attachments",
        ));
    }
    let conversations = !without_conversations;
    let selection = Selection { memories: query_from_wire(filter)?, strip: strip_identifiers };
    let passphrase = (!passphrase.is_empty()).then_some(passphrase);
    let lock = ExportEncryption::parse(&age_recipients, passphrase)
        .map_err(|error| CallError::invalid_field("age_recipients", format!("cannot be used: {error}")))?;
    let output = output.into();
    Ok(ExportRequest { output, format, conversations, attachments, extent, selection, lock })
}

/// Returns the query for the requested memories. Without a status it selects every status, because an export contains
/// everything that was known.
fn query_from_wire(filter: Option<v1::MemoryFilter>) -> Result<MemoryQuery, CallError> {
    let Some(filter) = filter else { return Ok(MemoryQuery::default()) };
    let any = filter.statuses.is_empty();
    for (field, set) in [
        ("filter.conversation_id", !filter.conversation_id.is_empty()),
        ("filter.content_hash", !filter.content_hash.is_empty()),
    ] {
        if set {
            return Err(CallError::invalid_field(field, "must be empty: exports cannot be filtered by it"));
        }
    }
    let mut query = filter_from_wire(Some(filter))?;
    if any {
        query.statuses.clear();
    }
    Ok(query)
}

/// Reads the keys that open an encrypted bundle; `None` if the client sent none.
pub(super) fn keys_from_wire(unlock: Option<v1::Unlock>) -> Result<Option<DecryptionKeys>, CallError> {
    let Some(v1::Unlock { identities, passphrase }) = unlock else { return Ok(None) };
    let passphrase = (!passphrase.is_empty()).then_some(passphrase);
    let keys = DecryptionKeys::parse(&identities, passphrase);
    keys.map(Some).map_err(|error| CallError::invalid_field("unlock", format!("cannot be used: {error}")))
}

fn extent_from_wire(kind: i32, base: String) -> Result<Extent, CallError> {
    let base = (!base.is_empty()).then_some(base);
    match v1::ExportType::try_from(kind) {
        Ok(v1::ExportType::Incremental) => {
            base.as_deref().map_or(Ok(()), |base| check_length("base_export_id", base))?;
            Ok(Extent::Incremental { base })
        }
        Ok(v1::ExportType::Unspecified | v1::ExportType::Full) if base.is_some() => {
            Err(CallError::invalid_field("base_export_id", "must be empty, as a full export has no base"))
        }
        Ok(v1::ExportType::Unspecified | v1::ExportType::Full) => Ok(Extent::Full),
        Err(_) => Err(CallError::invalid_field("type", format!("holds {kind}, which is not a known value"))),
    }
}

fn find(state: &CallState, id: &str) -> Result<ExportRecord, CallError> {
    check_required("id", id)?;
    state.exports.get(id)?.ok_or_else(|| CallError::not_found(ResourceKind::Export, id))
}

fn list(
    state: &CallState,
    mut request: v1::ListExportsRequest,
) -> Result<v1::ListExportsResponse, CallError> {
    let page = page_request!(state, "ListExports", request)?;
    let (exports, next_page_token) = state.fill(
        &page,
        |after, limit| Ok(state.exports.list(after, limit)?),
        |record| Ok(export_to_wire(record)),
    )?;
    Ok(v1::ListExportsResponse { exports, next_page_token, header: Some(state.header()) })
}

fn open(state: &CallState, id: &str, offset: u64) -> Result<(File, u64), CallError> {
    state.check_sees_everything("download exports")?;
    let file = state.exports.open(&find(state, id)?)?;
    let size = file.metadata().map_err(CallError::internal)?.len();
    if offset > size {
        return Err(CallError::OffsetPastEnd { offset, size });
    }
    Ok((file, size))
}

/// Adds an upload to the files that are read, and returns its path.
fn add_upload(
    state: &CallState,
    id: &str,
    stored: &mut BTreeMap<PathBuf, (Arc<dyn ReadAt>, u64)>,
) -> Result<String, CallError> {
    let UploadedFile { path, bytes, length } = upload::content(state, id)?;
    let text = path.to_string_lossy().into_owned();
    stored.insert(path, (bytes, length));
    Ok(text)
}

fn start_verification(
    state: &CallState,
    request: v1::VerifyExportRequest,
) -> Result<v1::VerifyExportResponse, CallError> {
    let v1::VerifyExportRequest { bundle, signer, strict, base_path, unlock, base_upload_id } = request;
    let mut stored = BTreeMap::new();
    let path = match bundle {
        Some(Bundle::Id(id)) => {
            let path = find(state, &id)?.path;
            Path::new(&path).exists().then_some(path.clone()).ok_or(CallError::BundleGone { path })?
        }
        Some(Bundle::Path(path)) => {
            state.check_local("path")?;
            check_absolute("path", &path)?;
            path
        }
        Some(Bundle::UploadId(id)) => add_upload(state, &id, &mut stored)?,
        None => return Err(CallError::invalid_field("bundle", "must be an id, a path or an upload")),
    };
    check_length("signer", &signer)?;
    let signers = if signer.is_empty() { Vec::new() } else { vec![signer] };
    let mut base = (!base_path.is_empty()).then_some(base_path);
    if let Some(base) = &base {
        state.check_local("base_path")?;
        check_absolute("base_path", base)?;
    }
    if !base_upload_id.is_empty() {
        if base.is_some() {
            return Err(CallError::invalid_field("base_upload_id", "must be empty, as base_path is set"));
        }
        base = Some(add_upload(state, &base_upload_id, &mut stored)?);
    }
    let mut options = verify::VerifyOptions {
        signers,
        base: base.map(Into::into),
        own_keys: state.exports.public_keys(),
        strict,
        keys: keys_from_wire(unlock)?,
        stored,
        cancel: CancelToken::new(),
    };
    let operation =
        state.operations.start(&state.clock, v1::OperationKind::VerifyExport, move |reporter| {
            options.cancel = reporter.cancel().clone();
            match verify::path(Path::new(&path), &options) {
                Ok(report) => Ok(Some(OperationResult::Verification(verify_report_to_wire(report)))),
                Err(VerifyError::Cancelled) => Ok(None),
                Err(error) => Err(CallError::bundle_unreadable(&path, &error)),
            }
        })?;
    Ok(v1::VerifyExportResponse { operation: Some(operation), header: Some(state.header()) })
}
