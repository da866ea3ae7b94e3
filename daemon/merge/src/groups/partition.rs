//! Determines which parts belong together: those that have a message in common, directly or through other parts.

use std::collections::{BTreeMap, HashMap};

use super::{GroupPart, TitleKey};
use crate::{conversation::ConversationReport, disjoint_sets::DisjointSets};

/// The sort position of rows without a time: after all others.
const UNDATED: i64 = i64::MAX;

/// The facts about a part that are needed before the parts are read one by one.
#[derive(Clone, Debug)]
pub struct Outline {
    /// The messages that are not events, or all messages if all are events.
    rows: Vec<String>,
    /// Whether one of the messages is an event.
    pub(super) has_events: bool,
    /// The key of the title that the part would give.
    pub(super) title_key: TitleKey,
}

/// A message of a part.
#[derive(Clone, Copy, Debug)]
pub struct OutlineRow<'a> {
    /// Message id.
    pub id: &'a str,
    /// Whether it is an event.
    pub hidden: bool,
    /// Its own time, in microseconds.
    pub time: Option<i64>,
}

impl Outline {
    /// Creates the outline of a part with `report` and `rows`.
    pub fn of<'a>(report: &ConversationReport, rows: impl Iterator<Item = OutlineRow<'a>> + Clone) -> Self {
        let only_events = rows.clone().all(|row| row.hidden);
        let counted = rows.clone().filter(|row| only_events || !row.hidden);
        let begin = counted.clone().map(|row| (row.time.unwrap_or(UNDATED), row.id)).min();
        Self {
            rows: counted.map(|row| row.id.to_owned()).collect(),
            has_events: rows.clone().any(|row| row.hidden),
            title_key: TitleKey::of(report, begin.unwrap_or((UNDATED, ""))),
        }
    }

    /// Creates the outline of a part that is in memory.
    #[must_use]
    pub fn of_part((report, nodes): &GroupPart) -> Self {
        Self::of(
            report,
            nodes.iter().map(|node| OutlineRow { id: &node.id, hidden: node.hidden, time: node.time }),
        )
    }

    /// Returns when the part begins, and with which message.
    pub(super) fn begin(&self) -> (i64, &str) {
        self.title_key.begin()
    }
}

/// The sets of parts that belong together.
pub(super) struct Partition {
    /// The indexes of the parts, in order.
    pub(super) sets: Vec<Vec<usize>>,
    /// For each part, the number of sets of earlier parts with which it has a message in common.
    pub(super) joins: Vec<usize>,
}

/// Joins parts, one after the other.
pub(super) fn partition(outlines: &[Outline]) -> Partition {
    let mut group = DisjointSets::new(outlines.len());
    let mut joins = vec![0; outlines.len()];
    let mut owner: HashMap<&str, usize> = HashMap::new();
    for (at, outline) in outlines.iter().enumerate() {
        for row in &outline.rows {
            let other = *owner.entry(row).or_insert(at);
            joins[at] += usize::from(group.join(at, other));
        }
    }
    let mut sets: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for at in 0..outlines.len() {
        sets.entry(group.find(at)).or_default().push(at);
    }
    Partition { sets: sets.into_values().collect(), joins }
}
