//! The tool that lists changes.

use satchel_proto::v1::{ListChangesRequest, MemoryView};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    ToolError,
    read::{with_next, within},
};
use crate::{clients::Clients, records};

const DEFAULT_CHANGES: i32 = 50;
const MAX_CHANGES: i32 = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangesArguments {
    after_revision: i64,
    limit: Option<i32>,
    cursor: Option<String>,
}

/// Lists changes.
pub(super) async fn list(
    clients: &Clients,
    arguments: Result<ChangesArguments, ToolError>,
) -> Result<Value, ToolError> {
    let ChangesArguments { after_revision, limit, cursor } = arguments?;
    let request = ListChangesRequest {
        after_revision,
        page_size: within("limit", limit, DEFAULT_CHANGES, MAX_CHANGES)?,
        page_token: cursor.unwrap_or_default(),
        view: MemoryView::Basic.into(),
        ..ListChangesRequest::default()
    };
    let page = clients.changes().list_changes(request).await?.into_inner();
    let changes: Vec<Value> = page.changes.iter().filter_map(records::change).collect();
    let revision = page.header.map(|header| header.revision);
    Ok(with_next(json!({"revision": revision, "changes": changes}), &page.next_page_token))
}
