//! `sync export` and `sync import`: changes that travel in a file.

use satchel_proto::{
    integers::unsigned,
    v1::{DownloadChangeFileRequest, ImportChangeFileRequest},
};

use super::json;
use crate::cli::{
    Context,
    args::{SyncExportArgs, SyncImportArgs},
    client::DaemonClient,
    error::CliError,
    exit::Exit,
    path,
    style::Paint,
    text, transfer,
};

/// Writes the changes that a peer lacks into a new file.
pub(super) async fn export(
    context: &mut Context,
    client: &DaemonClient,
    args: &SyncExportArgs,
) -> Result<Exit, CliError> {
    let SyncExportArgs { file, peer, full } = args;
    let output = path::absolute(file)?;
    let request = DownloadChangeFileRequest { peer: peer.clone(), full: *full };
    let summary = transfer::fetch_change_file(&mut context.out, client, request, &output).await?;
    let document = json::ExportedChangeFile::new(&output, peer, &summary);
    if context.out.json {
        context.out.json(&document)?;
        return Ok(Exit::Done);
    }
    let mark = context.out.style.paint(Paint::Good, "✓");
    let (changes, files) =
        (counted(summary.changes, "change", "changes"), counted(summary.files, "attachment", "attachments"));
    let size = text::bytes(unsigned(summary.size_bytes));
    let shown = text::one_line(&output.to_string_lossy());
    context.out.print(&format!(
        "{mark} {changes} and {files} for {:?} in {shown}, {size}\n",
        text::one_line(peer)
    ))?;
    context.out.note(if summary.changes == 0 {
        "as far as this store knows, the peer has everything already"
    } else {
        "only the peer can read the file: `satchel sync import FILE` there"
    });
    Ok(Exit::Done)
}

/// Takes the changes of a file that a peer has written.
pub(super) async fn import(
    context: &mut Context,
    client: &DaemonClient,
    args: &SyncImportArgs,
) -> Result<Exit, CliError> {
    let request = if context.location.is_paired() {
        let upload_id = transfer::send(&mut context.out, client, &args.file).await?;
        ImportChangeFileRequest { path: String::new(), upload_id }
    } else {
        let path = path::path_to_string(path::absolute(&args.file)?)?;
        ImportChangeFileRequest { path, upload_id: String::new() }
    };
    let spinner = context.out.spinner("importing changes");
    let imported = client.peers().import_change_file(request).await;
    spinner.finish_and_clear();
    let imported = imported?.into_inner();
    let document = json::ImportedChangeFile::new(&imported);
    let complete = imported.refused.is_empty() && imported.problem.is_empty();
    if context.out.json {
        context.out.json(&document)?;
    } else {
        let mark = context.out.style.paint(if complete { Paint::Good } else { Paint::Warn }, "✓");
        let (new, files) = (
            counted(imported.new_changes, "new change", "new changes"),
            counted(imported.new_files, "attachment", "attachments"),
        );
        let peer = imported.peer.as_ref().map(|peer| text::one_line(&peer.name)).unwrap_or_default();
        let written = context.calendar.minute(imported.created_at.as_ref());
        context.out.print(&format!("{mark} {new} and {files} from {peer:?}, written {written}\n"))?;
        if !imported.problem.is_empty() {
            context.out.note(&text::one_line(&imported.problem));
        }
    }
    Ok(if complete { Exit::Done } else { Exit::Failed })
}

fn counted(number: i64, one: &str, many: &str) -> String {
    text::count(unsigned(number), one, many)
}
