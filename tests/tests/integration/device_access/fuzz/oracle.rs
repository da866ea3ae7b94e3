//! What holds for each answer.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use satchel_server::grpc::status::ErrorReason;
use tonic::Code;
use tonic_types::StatusExt as _;

use super::{Requester, call::Answer};
use crate::device_access::records::Records;

/// Words of errors that no caller must see.
const TELLTALES: [&str; 4] = ["panicked", "unwrap()", "src/", ".rs:"];

/// Checks an answer. `written` are the records that the caller named in what it wrote.
pub(super) fn check(
    answer: &Answer,
    requester: &Requester,
    records: &Records,
    (request, written): (&[u8], &BTreeSet<&str>),
) -> Result<()> {
    for canary in records.canaries_in(&answer.all_bytes(), request) {
        let known = Records::visible_to(canary, requester.kind) || written.contains(canary);
        ensure!(known, "the answer tells of {canary}");
    }
    let Some(status) = &answer.status else { return Ok(()) };
    ensure!(!matches!(status.code(), Code::Internal | Code::Unknown), "{status:?}");
    let info = status.get_details_error_info().with_context(|| format!("no ErrorInfo: {status:?}"))?;
    let reason = ErrorReason::ALL.iter().find(|reason| reason.as_str() == info.reason);
    let reason = reason.with_context(|| format!("unknown reason: {status:?}"))?;
    ensure!(info.domain == "satchel.local" && reason.code() == status.code(), "{status:?}");
    ensure!(!status.message().is_empty(), "no message: {status:?}");
    let shown = TELLTALES.iter().find(|word| status.message().contains(**word));
    ensure!(shown.is_none_or(|word| contains(request, word)), "an internal matter is shown: {status:?}");
    Ok(())
}

fn contains(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|window| window == word.as_bytes())
}
