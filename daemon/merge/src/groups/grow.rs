//! Grows a conversation of rows by the new parts only, so that an import costs as much as the conversation is long, and
//! not as much as all earlier exports of it together.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use super::{
    GroupPart, GroupedConversation, PartOutcome,
    partition::{Outline, OutlineRow, Partition, partition},
    plan_id, with_title,
};
use crate::{
    body::Body,
    conversation::{ConversationReport, ConversationState, Union, UnionChange},
};

/// Sort key by which the title of a conversation is chosen; the least wins. The title is that of the part that begins
/// first, because importers derive a title from the first message. Between two parts with the same beginning the newer
/// wins, then the title that sorts first, so that the order of the parts does not matter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TitleKey {
    #[serde(rename = "n")]
    none: bool,
    #[serde(rename = "b")]
    begin: i64,
    #[serde(rename = "f")]
    first: String,
    #[serde(rename = "u")]
    updated: Reverse<Option<i64>>,
    #[serde(rename = "t")]
    pub(super) title: Option<String>,
}

impl TitleKey {
    /// Creates the key for the title of a part that begins with `first`.
    pub(super) fn of(report: &ConversationReport, (begin, first): (i64, &str)) -> Self {
        let title = report.title.clone();
        let updated = Reverse(report.updated_at.or(report.created_at));
        Self { none: title.is_none(), begin, first: first.to_owned(), updated, title }
    }

    /// Returns when the part begins, and with which message.
    pub(super) fn begin(&self) -> (i64, &str) {
        (self.begin, &self.first)
    }
}

/// Unites the `known` conversation with `parts`. Returns `None` if all stored parts have to be read again: if there are
/// events, which may belong to another conversation, if a part shares no row with it, or if a part changes the
/// conversation's id.
///
/// The conversation itself is the first of the parts in the result.
///
/// # Errors
/// Those of `stored`, which reads the body of a stored message.
pub fn grow<E>(
    platform: &str,
    known: ConversationState,
    titled: &TitleKey,
    parts: &[&GroupPart],
    stored: &mut dyn FnMut(&str) -> Result<Body, E>,
) -> Result<Option<GroupedConversation>, E> {
    if known.nodes.iter().any(|node| node.hidden) {
        return Ok(None);
    }
    let rows = known.nodes.iter().map(|node| OutlineRow { id: &node.id, hidden: false, time: node.time });
    let mut outlines = vec![Outline::of(&known.report, rows)];
    outlines.extend(parts.iter().map(|part| Outline::of_part(part)));
    let Partition { sets, joins } = partition(&outlines);
    if sets.len() > 1 || outlines.iter().any(|outline| outline.has_events) {
        return Ok(None);
    }
    let before = known.nodes.first().map(|node| node.id.clone());
    let mut union = Union::of(known);
    let mut places = vec![PartOutcome::new(0, joins[0], &UnionChange::default())];
    for (part, at) in parts.iter().zip(1..) {
        let (report, nodes) = (*part).clone();
        let added = union.add(report, nodes, &mut |id| stored(id).map(Some))?;
        places.push(PartOutcome::new(at, joins[at], &added));
    }
    let titled = outlines.drain(1..).map(|outline| outline.title_key).chain([titled.clone()]).min();
    let Some(titled) = titled else { return Ok(None) };
    let planned = with_title(union.planned(), &titled);
    if planned.nodes.first().map(|node| &node.state.id) != before.as_ref() {
        return Ok(None);
    }
    Ok(Some(GroupedConversation {
        id: plan_id(platform, &planned),
        parts: places,
        planned,
        title_key: titled,
    }))
}
