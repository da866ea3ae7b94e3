//! `ExportService`: creates, lists and downloads exports, and verifies bundles.

mod download;

use std::{fs::File, path::Path, sync::Arc};

use download::{Download, STALLED, streamed};
use satchel_bundle::verify::{self, VerifyError};
use satchel_core::{
    export::{ExportError, ExportRecord, ExportRequest, Extent, Format, Selection},
    trust,
};
use satchel_pam::sign::PublicKey;
use satchel_proto::v1::{
    self, export_service_server::ExportService, operation::Result as Reached, verify_export_request::Bundle,
};
use satchel_source::{
    CancelToken,
    envelope::{Keys, Lock},
};
use satchel_store::MemoryQuery;
use tokio::sync::Semaphore;
use tonic::{Request, Response, Status};

use super::{
    Core,
    call::{absolute, bounded, fill, required},
    status::{Fault, Kind},
    wire::{
        export::{
            export_to_wire, format_from_wire, keys_to_wire, progress_to_wire, report_to_wire, trusted_to_wire,
        },
        memory::filter_from_wire,
        scalar::count_from_wire,
    },
};

/// Largest number of concurrent downloads, of all clients.
const DOWNLOADS: usize = 16;

/// The service, with the permits for downloads.
#[derive(Clone)]
pub(super) struct Bundles(Core, Arc<Semaphore>);

impl Bundles {
    pub(super) fn new(core: Core) -> Self {
        Self(core, Arc::new(Semaphore::new(DOWNLOADS)))
    }
}

#[tonic::async_trait]
impl ExportService for Bundles {
    type DownloadExportStream = Download;

    async fn create_export(
        &self,
        request: Request<v1::CreateExportRequest>,
    ) -> Result<Response<v1::CreateExportResponse>, Status> {
        let request = request.into_inner();
        self.0.answer(|core| create(core, request)).await
    }

    async fn get_export(
        &self,
        request: Request<v1::GetExportRequest>,
    ) -> Result<Response<v1::GetExportResponse>, Status> {
        let v1::GetExportRequest { id } = request.into_inner();
        self.0
            .answer(move |core| {
                let export = export_to_wire(find(core, &id)?);
                Ok(v1::GetExportResponse { export: Some(export), header: Some(core.header()) })
            })
            .await
    }

    async fn list_exports(
        &self,
        request: Request<v1::ListExportsRequest>,
    ) -> Result<Response<v1::ListExportsResponse>, Status> {
        let request = request.into_inner();
        self.0.answer(|core| list(core, request)).await
    }

    async fn download_export(
        &self,
        request: Request<v1::DownloadExportRequest>,
    ) -> Result<Response<Download>, Status> {
        let v1::DownloadExportRequest { id, offset } = request.into_inner();
        let offset = count_from_wire("offset", offset).map_err(Fault::from)?;
        let busy = format!("{DOWNLOADS} downloads are on their way; ask again when one of them has ended");
        let place = Arc::clone(&self.1).try_acquire_owned().map_err(|_| Fault::Busy(busy))?;
        let (file, size) = self.0.blocking(move |core| open(core, &id, offset)).await?;
        Ok(Response::new(streamed(file, (offset, size), self.0.header(), place, STALLED)))
    }

    async fn verify_export(
        &self,
        request: Request<v1::VerifyExportRequest>,
    ) -> Result<Response<v1::VerifyExportResponse>, Status> {
        let request = request.into_inner();
        self.0.answer(|core| start_verification(core, request)).await
    }

    async fn get_signing_keys(
        &self,
        request: Request<v1::GetSigningKeysRequest>,
    ) -> Result<Response<v1::GetSigningKeysResponse>, Status> {
        let v1::GetSigningKeysRequest {} = request.into_inner();
        self.0
            .answer(|core| {
                let keys = core.exports.signing_keys()?.map(keys_to_wire);
                Ok(v1::GetSigningKeysResponse { keys, header: Some(core.header()) })
            })
            .await
    }

    async fn list_trusted_keys(
        &self,
        request: Request<v1::ListTrustedKeysRequest>,
    ) -> Result<Response<v1::ListTrustedKeysResponse>, Status> {
        let v1::ListTrustedKeysRequest { page_size, page_token } = request.into_inner();
        self.0
            .answer(move |core| {
                let list = ("ListTrustedKeys", &v1::ListTrustedKeysRequest::default());
                let show = |key| Ok(trusted_to_wire(key));
                let all = trust::list(&core.store)?;
                let (trusted_keys, next_page_token) =
                    core.page_of(list, (page_size, &page_token), &all, show)?;
                Ok(v1::ListTrustedKeysResponse { trusted_keys, next_page_token, header: Some(core.header()) })
            })
            .await
    }

    async fn rotate_signing_key(
        &self,
        request: Request<v1::RotateSigningKeyRequest>,
    ) -> Result<Response<v1::RotateSigningKeyResponse>, Status> {
        let v1::RotateSigningKeyRequest { new_identity } = request.into_inner();
        self.0
            .answer(move |core| {
                let keys =
                    if new_identity { core.exports.begin_identity()? } else { core.exports.rotate_key()? };
                let keys = Some(keys_to_wire(keys));
                Ok(v1::RotateSigningKeyResponse { keys, header: Some(core.header()) })
            })
            .await
    }

    async fn trust_key(
        &self,
        request: Request<v1::TrustKeyRequest>,
    ) -> Result<Response<v1::TrustKeyResponse>, Status> {
        let v1::TrustKeyRequest { public_key } = request.into_inner();
        self.0
            .answer(move |core| {
                let key = key_from_wire("public_key", &public_key)?;
                let added = trust::add(&core.store, &key, core.clock.now_micros())?;
                let trusted = trust::list(&core.store)?;
                let trusted = trusted.into_iter().find(|trusted| trusted.public_key == key.multibase());
                Ok(v1::TrustKeyResponse {
                    trusted_key: trusted.map(trusted_to_wire),
                    header: Some(core.header()),
                    added,
                })
            })
            .await
    }

    async fn untrust_key(
        &self,
        request: Request<v1::UntrustKeyRequest>,
    ) -> Result<Response<v1::UntrustKeyResponse>, Status> {
        let v1::UntrustKeyRequest { public_key } = request.into_inner();
        self.0
            .answer(move |core| {
                let key = key_from_wire("public_key", &public_key)?;
                let removed = trust::remove(&core.store, &key, core.clock.now_micros())?;
                Ok(v1::UntrustKeyResponse { header: Some(core.header()), removed })
            })
            .await
    }
}

/// Reads a public key in any supported form.
pub(super) fn key_from_wire(field: &'static str, text: &str) -> Result<PublicKey, Fault> {
    bounded(field, text)?;
    PublicKey::parse(text).map_err(|_| {
        Fault::field(field, "is not a public key; give the z6Mk… that `satchel verify` shows, or a did:key")
    })
}

fn create(core: &Core, request: v1::CreateExportRequest) -> Result<v1::CreateExportResponse, Fault> {
    let (request, exports) = (wanted(request)?, core.exports.clone());
    let operation = core.operations.start(&core.clock, v1::OperationKind::Export, move |reporter| {
        let tell = |progress| reporter.report(progress_to_wire(progress));
        match exports.create_telling(&request, &tell) {
            Ok(record) => Ok(Some(Reached::Export(export_to_wire(record)))),
            Err(ExportError::Cancelled) => Ok(None),
            Err(error) => Err(error.into()),
        }
    })?;
    Ok(v1::CreateExportResponse { operation: Some(operation), header: Some(core.header()) })
}

fn wanted(request: v1::CreateExportRequest) -> Result<ExportRequest, Fault> {
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
    let extent = extent(r#type, base_export_id)?;
    absolute("output", &output)?;
    // Clients that know no formats send zero, which means PAM.
    let format = if format == 0 { Format::Pam } else { format_from_wire("format", format)? };
    if attachments && format == Format::Memu {
        return Err(Fault::field("attachments", "must be false, as this format has no attachments"));
    }
    let conversations = !without_conversations;
    let selection = Selection { memories: chosen(filter)?, strip: strip_identifiers };
    let passphrase = (!passphrase.is_empty()).then_some(passphrase);
    let lock = Lock::parse(&age_recipients, passphrase)
        .map_err(|error| Fault::field("age_recipients", format!("cannot be used: {error}")))?;
    let output = output.into();
    Ok(ExportRequest { output, format, conversations, attachments, extent, selection, lock })
}

/// Returns the query for the requested memories. Without a status it selects every status, because an export contains
/// everything that was known.
fn chosen(filter: Option<v1::MemoryFilter>) -> Result<MemoryQuery, Fault> {
    let Some(filter) = filter else { return Ok(MemoryQuery::default()) };
    let any = filter.statuses.is_empty();
    for (field, set) in [
        ("filter.conversation_id", !filter.conversation_id.is_empty()),
        ("filter.content_hash", !filter.content_hash.is_empty()),
    ] {
        if set {
            return Err(Fault::field(field, "must be empty: exports are not chosen by it"));
        }
    }
    let mut query = filter_from_wire(Some(filter))?;
    if any {
        query.statuses.clear();
    }
    Ok(query)
}

/// Reads the keys that open an encrypted bundle; `None` if the client sent none.
pub(super) fn keys_from_wire(unlock: Option<v1::Unlock>) -> Result<Option<Keys>, Fault> {
    let Some(v1::Unlock { identities, passphrase }) = unlock else { return Ok(None) };
    let passphrase = (!passphrase.is_empty()).then_some(passphrase);
    let keys = Keys::parse(&identities, passphrase);
    keys.map(Some).map_err(|error| Fault::field("unlock", format!("cannot be used: {error}")))
}

fn extent(kind: i32, base: String) -> Result<Extent, Fault> {
    let base = (!base.is_empty()).then_some(base);
    match v1::ExportType::try_from(kind) {
        Ok(v1::ExportType::Incremental) => {
            base.as_deref().map_or(Ok(()), |base| bounded("base_export_id", base))?;
            Ok(Extent::Incremental { base })
        }
        Ok(v1::ExportType::Unspecified | v1::ExportType::Full) if base.is_some() => {
            Err(Fault::field("base_export_id", "must be empty, as a full export has no base"))
        }
        Ok(v1::ExportType::Unspecified | v1::ExportType::Full) => Ok(Extent::Full),
        Err(_) => Err(Fault::field("type", format!("holds {kind}, which is no known value"))),
    }
}

fn find(core: &Core, id: &str) -> Result<ExportRecord, Fault> {
    required("id", id)?;
    core.exports.get(id)?.ok_or_else(|| Fault::missing(Kind::Export, id))
}

fn list(core: &Core, mut request: v1::ListExportsRequest) -> Result<v1::ListExportsResponse, Fault> {
    let size = std::mem::take(&mut request.page_size);
    let token = std::mem::take(&mut request.page_token);
    let paging = core.paging("ListExports", &request, size, &token)?;
    let (exports, next) = fill(
        paging.rows,
        paging.store_cursor(),
        |after, limit| Ok(core.exports.list(after, limit)?),
        |record| Ok(export_to_wire(record)),
    )?;
    let next = next.map(|cursor| cursor.as_bytes().to_vec());
    Ok(v1::ListExportsResponse {
        exports,
        next_page_token: core.next_token(&paging, core.store.revision(), next),
        header: Some(core.header()),
    })
}

fn open(core: &Core, id: &str, offset: u64) -> Result<(File, u64), Fault> {
    let file = core.exports.open(&find(core, id)?)?;
    let size = file.metadata().map_err(Fault::internal)?.len();
    if offset > size {
        return Err(Fault::OffsetPastEnd { offset, size });
    }
    Ok((file, size))
}

fn start_verification(
    core: &Core,
    request: v1::VerifyExportRequest,
) -> Result<v1::VerifyExportResponse, Fault> {
    let v1::VerifyExportRequest { bundle, signer, strict, base_path, unlock } = request;
    let path = match bundle {
        Some(Bundle::Id(id)) => {
            let path = find(core, &id)?.path;
            Path::new(&path).exists().then_some(path.clone()).ok_or(Fault::BundleGone { path })?
        }
        Some(Bundle::Path(path)) => {
            absolute("path", &path)?;
            path
        }
        None => return Err(Fault::field("bundle", "must be an id or a path")),
    };
    bounded("signer", &signer)?;
    let signers = if signer.is_empty() { Vec::new() } else { vec![signer] };
    let base = (!base_path.is_empty()).then_some(base_path);
    base.as_deref().map_or(Ok(()), |base| absolute("base_path", base))?;
    let mut options = verify::Options {
        signers,
        base: base.map(Into::into),
        own_keys: core.exports.signers(),
        strict,
        keys: keys_from_wire(unlock)?,
        cancel: CancelToken::new(),
    };
    let operation = core.operations.start(&core.clock, v1::OperationKind::VerifyExport, move |reporter| {
        options.cancel = reporter.cancel().clone();
        match verify::path(Path::new(&path), &options) {
            Ok(report) => Ok(Some(Reached::Verification(report_to_wire(report)))),
            Err(VerifyError::Cancelled) => Ok(None),
            Err(error) => Err(Fault::unverified(&path, &error)),
        }
    })?;
    Ok(v1::VerifyExportResponse { operation: Some(operation), header: Some(core.header()) })
}
