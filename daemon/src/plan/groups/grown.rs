//! A conversation of rows that an export goes on with: it grows by what is new, so that an import costs what the conversation
//! is long, and not what all exports ever said of it.

use std::{cmp::Reverse, collections::HashSet};

use serde::{Deserialize, Serialize};

use super::{Component, Part, begin, entitled, name_of};
use crate::plan::{
    body::Body,
    conversation::{Known, ReportedNode, unite},
};

/// By what the title of a conversation was chosen; the least counts: that of the part that begins first, as importers make
/// one of the first thing that is said; of two that begin alike the newer's, and then the one that sorts first, so that the
/// order of the parts does not matter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Titled {
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

impl Titled {
    pub(super) fn of(part: &Part) -> Self {
        let (begin, first) = begin(part);
        let title = part.0.title.clone();
        let updated = Reverse(part.0.updated_at.or(part.0.created_at));
        Self { none: title.is_none(), begin, first: first.to_owned(), updated, title }
    }
}

/// What the conversation that is `known` comes to with `part`; none: all parts have to be looked at. So it is with events,
/// which may belong to another conversation, with a part that shares no row, and with one that gives it another name.
///
/// # Errors
/// Those of `stored`, which reads the body of a stored message.
pub fn grown<E>(
    platform: &str,
    known: Known,
    titled: &Titled,
    part: &Part,
    stored: &mut dyn FnMut(&str) -> Result<Body, E>,
) -> Result<Option<Component>, E> {
    if !goes_on(&known, &part.1) {
        return Ok(None);
    }
    let before = known.nodes.first().map(|node| node.id.clone());
    let titled = Titled::of(part).min(titled.clone());
    let (report, nodes) = part.clone();
    let planned = entitled(unite(report, nodes, Some(known), stored)?, &titled);
    if planned.nodes.first().map(|node| &node.known.id) != before.as_ref() {
        return Ok(None);
    }
    Ok(Some(Component { id: name_of(platform, &planned), parts: vec![0, 1], planned, titled }))
}

fn goes_on(known: &Known, nodes: &[ReportedNode]) -> bool {
    let ids: HashSet<&str> = known.nodes.iter().map(|node| node.id.as_str()).collect();
    let events = known.nodes.iter().any(|node| node.hidden) || nodes.iter().any(|node| node.body.hidden());
    !events && nodes.iter().any(|node| ids.contains(node.id.as_str()))
}
