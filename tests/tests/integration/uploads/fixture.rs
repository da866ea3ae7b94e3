//! A client that uploads a file.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use satchel_pam::hash::Sha256Digest;
use satchel_proto::v1::{
    self, import_service_client::ImportServiceClient, upload_service_client::UploadServiceClient,
};
use satchel_tests::{operation, samples};
use tonic::{Status, transport::Channel};
use tonic_types::StatusExt as _;

pub(crate) const MIB: usize = 1 << 20;

/// A client of one caller.
#[derive(Clone)]
pub(crate) struct Uploader {
    pub(crate) channel: Channel,
    client: UploadServiceClient<Channel>,
}

impl Uploader {
    pub(crate) fn new(channel: &Channel) -> Self {
        let client = UploadServiceClient::new(channel.clone());
        Self { channel: channel.clone(), client }
    }

    pub(crate) async fn create(&mut self, name: &str, bytes: &[u8]) -> Result<v1::Upload, Status> {
        self.announce(name, bytes.len(), &Sha256Digest::of(bytes).to_hex()).await
    }

    pub(crate) async fn announce(
        &mut self,
        name: &str,
        size: usize,
        sha256: &str,
    ) -> Result<v1::Upload, Status> {
        let size_bytes = i64::try_from(size).map_err(|_| Status::internal("too large"))?;
        let request =
            v1::CreateUploadRequest { name: name.to_owned(), size_bytes, sha256: sha256.to_owned() };
        let created = self.client.create_upload(request).await?.into_inner();
        created.upload.ok_or_else(|| Status::internal("no upload"))
    }

    pub(crate) async fn write(&mut self, id: &str, offset: usize, data: &[u8]) -> Result<usize, Status> {
        let request = v1::WriteUploadRequest {
            id: id.to_owned(),
            offset: i64::try_from(offset).map_err(|_| Status::internal("too large"))?,
            data: data.to_vec(),
            crc32c: Some(crc32c::crc32c(data)),
        };
        self.write_request(request).await
    }

    pub(crate) async fn write_request(&mut self, request: v1::WriteUploadRequest) -> Result<usize, Status> {
        let committed = self.client.write_upload(request).await?.into_inner().committed_bytes;
        usize::try_from(committed).map_err(|_| Status::internal("a negative size"))
    }

    pub(crate) async fn get(&mut self, id: &str) -> Result<v1::Upload, Status> {
        let found = self.client.get_upload(v1::GetUploadRequest { id: id.to_owned() }).await?.into_inner();
        found.upload.ok_or_else(|| Status::internal("no upload"))
    }

    pub(crate) async fn cancel(&mut self, id: &str) -> Result<(), Status> {
        self.client.cancel_upload(v1::CancelUploadRequest { id: id.to_owned() }).await.map(drop)
    }

    /// Sends the rest of a file in chunks of `size`.
    pub(crate) async fn send(&mut self, id: &str, bytes: &[u8], size: usize) -> Result<()> {
        let mut at = usize::try_from(self.get(id).await?.committed_bytes)?;
        while at < bytes.len() {
            at = self.write(id, at, &bytes[at..bytes.len().min(at + size)]).await?;
        }
        Ok(())
    }

    /// Uploads a file and returns the id of the upload.
    pub(crate) async fn upload(&mut self, name: &str, bytes: &[u8]) -> Result<String> {
        let id = self.create(name, bytes).await?.id;
        self.send(&id, bytes, MIB).await?;
        Ok(id)
    }

    /// Imports an upload and returns the last state of the operation.
    pub(crate) async fn import(&self, request: v1::CreateImportRequest) -> Result<v1::Operation> {
        let started = ImportServiceClient::new(self.channel.clone()).create_import(request).await?;
        let started = started.into_inner().operation.context("an operation")?;
        Ok(operation::wait(&self.channel, &started.id).await?)
    }
}

/// Returns the request to import an upload.
pub(crate) fn import_of(id: &str) -> v1::CreateImportRequest {
    v1::CreateImportRequest { upload_id: id.to_owned(), ..v1::CreateImportRequest::default() }
}

/// Packs the export of a sample into an archive, and returns its bytes.
pub(crate) fn archive(folder: &Path, name: &str) -> Result<Vec<u8>> {
    let path = folder.join(name);
    samples::pack(&samples::sample("chatgpt", "attachments-by-every-name-rule"), &path)?;
    Ok(fs::read(path)?)
}

/// Returns bytes that look random.
pub(crate) fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[1]
    };
    (0..length).map(|_| next()).collect()
}

/// Returns the reason and the metadata of an error.
pub(crate) fn reason(status: &Status) -> (String, std::collections::HashMap<String, String>) {
    let details = status.get_error_details();
    details.error_info().map(|info| (info.reason.clone(), info.metadata.clone())).unwrap_or_default()
}

/// Returns the reason of an outcome that must be an error.
pub(crate) fn refused<T: std::fmt::Debug>(outcome: Result<T, Status>) -> Result<String> {
    let status = outcome.err().context("it is refused")?;
    Ok(reason(&status).0)
}
