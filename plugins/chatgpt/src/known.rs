//! What a conversation depends on beside its own text, so that one which an earlier run read need not be read again.

use satchel_importer::natural_key;

use crate::map::{Context, Records};

/// The note of a conversation: a key of all that was looked at, and the ids by which remarks may name it. None if it
/// looked for files, which a later export may bring or lack, or if a remark may be about any conversation.
pub(crate) fn note(records: &Records<'_>, context: &Context<'_>) -> Option<Vec<u8>> {
    if context.assets.were_asked() {
        return None;
    }
    let ids: Vec<&str> = records.named.into_iter().flatten().collect();
    if ids.iter().any(|id| id.contains('\n')) {
        return None;
    }
    let mut note = key(&ids, context)?;
    for id in ids {
        note.push('\n');
        note.push_str(id);
    }
    Some(note.into_bytes())
}

/// Whether all is as it was noted. The remarks on the conversation count as used then.
pub(crate) fn holds(note: &[u8], context: &Context<'_>) -> bool {
    let Ok(note) = std::str::from_utf8(note) else { return false };
    let mut lines = note.split('\n');
    let noted = lines.next();
    let ids: Vec<&str> = lines.collect();
    let holds = noted.is_some() && key(&ids, context).as_deref() == noted;
    if holds {
        context.remarks.mark_used(&ids);
    }
    holds
}

fn key(ids: &[&str], context: &Context<'_>) -> Option<String> {
    let remarks = context.remarks.about(ids)?;
    let library = context.assets.library.about(ids);
    let mut parts = vec![context.account, Some(&remarks), Some(&library)];
    parts.extend(ids.iter().copied().map(Some));
    Some(natural_key(&parts))
}
