//! `conflicts`: the fields of memories to which edits in several stores gave different values.

use satchel_proto::v1::{Conflict, ListConflictsRequest, ListConflictsResponse};

use super::json;
use crate::cli::{
    Context,
    args::Paging,
    client::DaemonClient,
    error::CliError,
    exit::Exit,
    pagination::{self, Listing, ResultPage},
    style::{Paint, TerminalStyle},
    text,
    time::Calendar,
};

/// Lists the conflicts.
///
/// # Errors
/// Returns the error of the daemon.
pub(in crate::cli) async fn run(
    context: &mut Context,
    client: &DaemonClient,
    paging: Paging,
) -> Result<Exit, CliError> {
    let found = fetch(client, paging.max_rows()).await?;
    if context.out.json {
        let conflicts = found.rows.iter().map(json::Conflict::new).collect();
        context.out.json(&json::Conflicts { conflicts })?;
    } else if found.rows.is_empty() {
        context.out.note("there are no conflicts");
    } else {
        let (style, calendar) = (context.out.style, context.calendar.clone());
        let shown: String = found.rows.iter().map(|conflict| render(conflict, style, &calendar)).collect();
        context.out.print_paged(&shown)?;
        context.out.note("an edit of the field settles a conflict: `satchel memories edit ID …`");
    }
    context.note_remaining(found.remaining);
    Ok(Exit::Done)
}

/// Returns all conflicts.
///
/// # Errors
/// Returns the error of the daemon.
pub(super) async fn all(client: &DaemonClient) -> Result<Vec<Conflict>, CliError> {
    Ok(fetch(client, None).await?.rows)
}

async fn fetch(client: &DaemonClient, max_rows: Option<usize>) -> Result<Listing<Conflict>, CliError> {
    pagination::collect_rows(max_rows, async |page_size, page_token| {
        let request = ListConflictsRequest { page_size, page_token };
        let ListConflictsResponse { conflicts, next_page_token, .. } =
            client.peers().list_conflicts(request).await?.into_inner();
        Ok(ResultPage { rows: conflicts, next: next_page_token })
    })
    .await
}

fn render(conflict: &Conflict, style: TerminalStyle, calendar: &Calendar) -> String {
    let Conflict { memory_id, field, values } = conflict;
    let mut shown = format!(
        "{}  {}\n",
        style.paint(Paint::Id, &text::one_line(memory_id)),
        style.paint(Paint::Strong, &text::one_line(field))
    );
    for value in values {
        let edited = value.edits.first();
        let time = calendar.minute(edited.and_then(|edit| edit.changed_at.as_ref()));
        let peer = edited.map(|edit| text::one_line(&edit.peer)).filter(|name| !name.is_empty());
        let peer = peer.map(|name| style.paint(Paint::Dim, &format!("  {name}"))).unwrap_or_default();
        shown.push_str(&format!("  {time}  {}{peer}\n", text::one_line(&value.value_json)));
    }
    shown
}
