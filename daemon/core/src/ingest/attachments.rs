//! Stores the bytes of attachments under their hash, so that they remain when the export is gone.

use std::io::Read;

use satchel_pam::{
    conversation::Attachment,
    hash::Sha256Digest,
    record::{AttachmentRecord, Source, Warning},
};
use satchel_source::{Bundle, FileSet as _};
use satchel_store::Store;

use super::records::ImportItem;

/// The source and the destination of attachment bytes.
#[derive(Clone, Copy)]
pub(super) struct AttachmentStore<'a> {
    pub(super) store: &'a Store,
    pub(super) bundle: &'a Bundle,
    pub(super) dry_run: bool,
}

impl AttachmentStore<'_> {
    /// Stores the bytes of the attachment if they are available; results and warnings are appended to `notes`.
    pub(super) fn store(
        &self,
        file: AttachmentRecord,
        locator: &str,
        notes: &mut Vec<ImportItem>,
    ) -> Attachment {
        satchel_failpoints::reached("attachment requested");
        let AttachmentRecord { mut attachment, source } = file;
        let stored = match &source {
            None | Some(Source::Uri(_)) => None,
            Some(_) if self.dry_run => None,
            Some(Source::Bytes(bytes)) => Some(self.store.blob_put(&mut bytes.as_slice())),
            Some(Source::Path(path)) => match self.bundle.open(path, 0) {
                Ok(mut bytes) => Some(self.store.blob_put(&mut bytes as &mut dyn Read)),
                Err(error) => {
                    let message = format!("the bytes of the attachment {path:?} cannot be read: {error}");
                    notes.push(ImportItem::Warning(Warning { locator: locator.to_owned(), message }));
                    None
                }
            },
        };
        match stored {
            Some(Ok(blob)) => {
                attachment.reference =
                    Some(format!("attachments/{}", Sha256Digest::from_bytes(blob.sha256).to_hex()));
                attachment.size_bytes = Some(blob.len);
                notes.push(ImportItem::Stored);
            }
            Some(Err(error)) => {
                let message = format!("an attachment could not be stored: {error}");
                notes.push(ImportItem::Warning(Warning { locator: locator.to_owned(), message }));
            }
            None => {
                if let (None, Some(Source::Uri(uri))) = (&attachment.reference, source) {
                    attachment.reference = Some(uri);
                }
            }
        }
        attachment
    }
}
