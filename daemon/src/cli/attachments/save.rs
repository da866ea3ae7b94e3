//! `attachments save`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use satchel_core::data_dir;
use satchel_proto::v1::DownloadAttachmentRequest;

use super::{MessageAttachment, SHORT_SHA256, fetch, file_name, matches};
use crate::cli::{
    Context,
    args::SaveAttachments,
    client::{DaemonClient, DaemonLocation},
    conversations,
    error::CliError,
    exit::Exit,
    json::attachment::{SavedAttachment, SavedAttachments},
    path, text, transfer,
};
use satchel_server::transfer::sha256_of;

/// Numbers that are tried for a file whose name is taken.
const MAX_NUMBER: usize = 10_000;

/// Saves the files.
///
/// # Errors
/// Fails if `--only` names no file, and if a file cannot be fetched or written.
pub(super) async fn run(
    context: &mut Context,
    client: &DaemonClient,
    args: &SaveAttachments,
) -> Result<Exit, CliError> {
    let id = conversations::resolve(client, &args.id.id).await?;
    let selected = select(fetch(client, &id).await?, &args.only)?;
    let folder = path::absolute(&args.output)?;
    if let DaemonLocation::DataDir(config) = &context.location {
        data_dir::refuse_inside(&config.data_dir, &folder).map_err(CliError::DataDir)?;
    }
    fs::create_dir_all(&folder).map_err(CliError::file("create the folder", &folder))?;
    let mut saved = Vec::new();
    for attachment in &selected {
        let Some(sha256) = attachment.sha256() else { continue };
        if saved.iter().any(|saved: &SavedAttachment<'_>| saved.sha256 == sha256) {
            continue;
        }
        let (path, existed) = save(context, client, (&id, attachment, sha256), &folder).await?;
        if !context.out.json {
            let what = if existed { "is there already" } else { "saved" };
            context.out.print(&format!("{} {what}\n", text::one_line(&path.to_string_lossy())))?;
        }
        saved.push(SavedAttachment { path: path::path_to_string(path)?, sha256, existed });
    }
    report(context, &id, saved, &selected)
}

/// Prints the document, or notes about files that are not stored.
fn report(
    context: &mut Context,
    conversation_id: &str,
    saved: Vec<SavedAttachment<'_>>,
    selected: &[MessageAttachment],
) -> Result<Exit, CliError> {
    let missing = selected.iter().filter(|attachment| attachment.sha256().is_none());
    if context.out.json {
        let not_stored = missing.map(MessageAttachment::json).collect();
        context.out.json(&SavedAttachments { conversation_id, saved, not_stored })?;
        return Ok(Exit::Done);
    }
    if selected.is_empty() {
        context.out.note("no files came with this conversation");
    }
    for attachment in missing {
        let name = text::one_line(attachment.name().unwrap_or("(unnamed)"));
        context.out.note(&format!("{name} is not stored: the export that named it did not contain it"));
    }
    Ok(Exit::Done)
}

/// Returns the files that `only` names, or all if it is empty.
fn select(all: Vec<MessageAttachment>, only: &[String]) -> Result<Vec<MessageAttachment>, CliError> {
    for given in only {
        if !all.iter().any(|attachment| matches(attachment, given)) {
            return Err(CliError::Usage(format!(
                "no file of the conversation has the name {given:?} or a SHA-256 that starts with it; \
                 `satchel attachments list` lists them"
            )));
        }
    }
    let chosen = |attachment: &MessageAttachment| {
        only.is_empty() || only.iter().any(|given| matches(attachment, given))
    };
    Ok(all.into_iter().filter(chosen).collect())
}

/// Saves one file, and returns its path and whether it was there already.
async fn save(
    context: &mut Context,
    client: &DaemonClient,
    (conversation_id, attachment, sha256): (&str, &MessageAttachment, &str),
    folder: &Path,
) -> Result<(PathBuf, bool), CliError> {
    let fallback = sha256.get(..SHORT_SHA256).unwrap_or("attachment");
    let name = file_name::safe(attachment.name().unwrap_or_default(), fallback);
    let request = DownloadAttachmentRequest {
        conversation_id: conversation_id.to_owned(),
        message_id: attachment.message_id.clone(),
        sha256: sha256.to_owned(),
        ..DownloadAttachmentRequest::default()
    };
    for number in 1..=MAX_NUMBER {
        let name = if number == 1 { name.clone() } else { file_name::numbered(&name, number) };
        let path = folder.join(&name);
        if !path.try_exists().map_err(CliError::file("read", &path))? && !path.is_symlink() {
            transfer::fetch_attachment(&mut context.out, client, request, &path).await?;
            return Ok((path, false));
        }
        if path.is_file() && sha256_of(&path).is_ok_and(|found| found == sha256) {
            return Ok((path, true));
        }
    }
    Err(CliError::Declined(format!(
        "{folder:?} has {MAX_NUMBER} files with the name {name:?}; choose another folder"
    )))
}
