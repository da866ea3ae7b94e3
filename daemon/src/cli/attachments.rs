//! `attachments …`

mod file_name;
mod save;

use satchel_proto::{
    integers::unsigned,
    v1::{self, MessageSelection},
};

use super::{
    Context,
    args::{Attachments, IdOrLast},
    client::DaemonClient,
    conversations,
    error::CliError,
    exit::Exit,
    json, labels, pagination,
    style::Paint,
    table::{Cell, Column, Table},
    text,
};

/// Messages fetched per request.
const PAGE_SIZE: i32 = 500;
/// What [`v1::Attachment::ref`] begins with if the bytes are stored.
const STORED_PREFIX: &str = "attachments/";
/// Characters of a SHA-256 in the table. `--only` accepts them.
const SHORT_SHA256: usize = 12;

/// A file that came with a message.
struct MessageAttachment {
    message_id: String,
    attachment: v1::Attachment,
}

impl MessageAttachment {
    /// Returns the SHA-256 of the bytes; `None` if they are not stored.
    fn sha256(&self) -> Option<&str> {
        self.attachment.r#ref.as_deref()?.strip_prefix(STORED_PREFIX)
    }

    fn name(&self) -> Option<&str> {
        self.attachment.name.as_deref().filter(|name| !name.is_empty())
    }

    fn json(&self) -> json::attachment::Attachment<'_> {
        let sha256 = self.sha256();
        json::attachment::Attachment {
            message_id: &self.message_id,
            kind: labels::attachment_kind(self.attachment.kind),
            name: self.name(),
            mime_type: self.attachment.mime_type.as_deref(),
            size_bytes: unsigned(self.attachment.size_bytes),
            sha256,
            stored: sha256.is_some(),
        }
    }
}

/// Runs one of the commands.
///
/// # Errors
/// Returns the errors of the daemon, and fails for an id that matches no conversation or several, and if a file cannot be
/// written.
pub(crate) async fn run(
    context: &mut Context,
    client: &DaemonClient,
    command: &Attachments,
) -> Result<Exit, CliError> {
    match command {
        Attachments::List(id) => list(context, client, id).await,
        Attachments::Save(args) => save::run(context, client, args).await,
    }
}

async fn list(context: &mut Context, client: &DaemonClient, id: &IdOrLast) -> Result<Exit, CliError> {
    let id = conversations::resolve_or_newest(client, id.given()).await?;
    let attachments = fetch(client, &id).await?;
    if context.out.json {
        let attachments = attachments.iter().map(MessageAttachment::json).collect();
        context.out.json(&json::attachment::Attachments { conversation_id: &id, attachments })?;
        return Ok(Exit::Done);
    }
    if attachments.is_empty() {
        context.out.note("no files came with this conversation");
        return Ok(Exit::Done);
    }
    context.out.print(&table(&attachments).render(context.out.style))?;
    if attachments.iter().any(|attachment| attachment.sha256().is_none()) {
        context.out.note("files without a SHA-256 were named by the export, but not in it");
    }
    Ok(Exit::Done)
}

fn table(attachments: &[MessageAttachment]) -> Table {
    let mut table = Table::new([
        Column::new("name").shrinks_to(20),
        Column::new("type").optional(2),
        Column::right("size").optional(1),
        Column::new("sha256"),
        Column::new("message").optional(3),
    ]);
    for row in attachments {
        let size = unsigned(row.attachment.size_bytes).map(text::bytes).unwrap_or_default();
        let sha256 = row.sha256().map_or("—", |sha256| sha256.get(..SHORT_SHA256).unwrap_or(sha256));
        table.row([
            Cell::new(row.name().unwrap_or("(unnamed)")),
            Cell::painted(&labels::attachment_kind(row.attachment.kind), Paint::Dim),
            Cell::new(&size),
            Cell::new(sha256),
            Cell::painted(&text::short_id(&row.message_id), Paint::Dim),
        ]);
    }
    table
}

/// Returns the files of all branches, in the order of the messages.
async fn fetch(client: &DaemonClient, conversation_id: &str) -> Result<Vec<MessageAttachment>, CliError> {
    let (mut attachments, mut page_token) = (Vec::new(), String::new());
    loop {
        let page = conversations::message_page(
            client,
            conversation_id,
            MessageSelection::Tree,
            false,
            (PAGE_SIZE, page_token),
        )
        .await?;
        for message in page.rows {
            attachments.extend(
                message
                    .attachments
                    .into_iter()
                    .map(|attachment| MessageAttachment { message_id: message.id.clone(), attachment }),
            );
        }
        if page.next.is_empty() {
            return Ok(attachments);
        }
        page_token = page.next;
    }
}

/// Returns whether `given` names the file: by its name, or by the beginning of its SHA-256.
fn matches(attachment: &MessageAttachment, given: &str) -> bool {
    let sha256 = attachment.sha256().filter(|_| given.len() >= pagination::MIN_PREFIX_LENGTH);
    attachment.name() == Some(given) || sha256.is_some_and(|sha256| pagination::starts_with(sha256, given))
}
