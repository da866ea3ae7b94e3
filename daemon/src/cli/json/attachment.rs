//! The documents of `attachments`.

use serde::Serialize;

/// `attachments list`.
#[derive(Debug, Serialize)]
pub(crate) struct Attachments<'a> {
    pub conversation_id: &'a str,
    pub attachments: Vec<Attachment<'a>>,
}

/// A file that came with a message.
#[derive(Debug, Serialize)]
pub(crate) struct Attachment<'a> {
    pub message_id: &'a str,
    #[serde(rename = "type")]
    pub kind: String,
    pub name: Option<&'a str>,
    pub mime_type: Option<&'a str>,
    pub size_bytes: Option<u64>,
    /// SHA-256 of the bytes, if they are stored.
    pub sha256: Option<&'a str>,
    pub stored: bool,
}

/// `attachments save`.
#[derive(Debug, Serialize)]
pub(crate) struct SavedAttachments<'a> {
    pub conversation_id: &'a str,
    pub saved: Vec<SavedAttachment<'a>>,
    /// Files that the conversation names, but whose bytes are not stored.
    pub not_stored: Vec<Attachment<'a>>,
}

/// A file that was saved.
#[derive(Debug, Serialize)]
pub(crate) struct SavedAttachment<'a> {
    pub path: String,
    pub sha256: &'a str,
    /// True if the file was there already.
    pub existed: bool,
}
