//! The union of a conversation, built report by report: each report costs as much as it is long, regardless of what
//! came before it.

use std::collections::{BTreeMap, HashMap};

use super::{Known, KnownNode, Planned, PlannedNode, Report, ReportedNode, Stamps, Tally, unite_reports};
use crate::{
    body::{Body, Digest16},
    stub,
    tree::{self, Node},
};

/// A node, and its body if that differs from the stored one.
type Held = (KnownNode, Option<Vec<u8>>);

/// The union of all reports that were added.
#[derive(Default)]
pub struct Union {
    report: Option<(Report, Stamps)>,
    nodes: Vec<Held>,
    index: HashMap<String, usize>,
}

/// How a report relates to the known state, if one of them comes only from an index.
enum Index {
    /// The report comes from an index, and the conversation itself is known.
    Less,
    /// The report is the conversation itself, and only an index entry was known.
    More,
    /// Both come from an index; the union of their facts.
    Both(stub::Facts),
}

/// What one report added.
#[derive(Debug, Default)]
pub struct Added {
    /// Counts of its messages.
    pub messages: Tally,
    /// Whether the union differs from what it was before.
    pub changed: bool,
    /// Bodies of the report that differ from those in the union, by message.
    pub spare: Vec<(String, Vec<u8>)>,
}

impl Union {
    /// Creates a union from the stored state.
    #[must_use]
    pub fn of(known: Known) -> Self {
        let Known { report, stamps, nodes } = known;
        let index = nodes.iter().enumerate().map(|(at, node)| (node.id.clone(), at)).collect();
        let nodes = nodes.into_iter().map(|node| (node, None)).collect();
        Self { report: Some((report, stamps)), nodes, index }
    }

    /// Adds a report. `stored` reads the body of a message from the store, if the store has it.
    ///
    /// # Errors
    /// Those of `stored`.
    pub fn add<E>(
        &mut self,
        report: Report,
        nodes: Vec<ReportedNode>,
        stored: &mut dyn FnMut(&str) -> Result<Option<Body>, E>,
    ) -> Result<Added, E> {
        let changed = match self.by_index(&report, nodes.is_empty()) {
            // The conversation itself is known.
            Some(Index::Less) => false,
            Some(Index::More) => {
                self.report = None;
                self.add_report(report)
            }
            Some(Index::Both(facts)) => {
                let before = self.report.clone();
                self.add_report(report);
                if let Some((report, _)) = &mut self.report {
                    report.raw_metadata = Some(stub::noted(report.raw_metadata.take(), &facts));
                }
                self.report != before
            }
            None => self.add_report(report),
        };
        let mut added = Added { changed, ..Added::default() };
        for node in nodes {
            if let Some(&at) = self.index.get(&node.id) {
                unite_nodes(&mut self.nodes[at], node, &mut added, stored)?;
            } else {
                added.messages.new += 1;
                self.index.insert(node.id.clone(), self.nodes.len());
                self.nodes.push(fresh(node));
            }
        }
        added.changed |= added.messages.new + added.messages.updated > 0;
        Ok(added)
    }

    /// Returns how a report relates to the known state, if one of the two comes only from an index. `bare`: the report
    /// has no messages.
    fn by_index(&self, report: &Report, bare: bool) -> Option<Index> {
        let (known, _) = self.report.as_ref()?;
        let of = |report, bare: bool| if bare { stub::told(report) } else { None };
        match (of(known, self.nodes.is_empty()), of(report, bare)) {
            (None, None) => None,
            (None, Some(_)) => Some(Index::Less),
            (Some(_), None) => Some(Index::More),
            (Some(known), Some(came)) => Some(Index::Both(stub::united(known, came))),
        }
    }

    fn add_report(&mut self, report: Report) -> bool {
        let stamp = stamp_of(&report);
        let Some((old, stamps)) = self.report.take() else {
            self.report = Some((report, Stamps::all(stamp)));
            return true;
        };
        let before = (old.clone(), stamps.clone());
        let after = unite_reports(old, stamps, report, stamp);
        let changed = before != after;
        self.report = Some(after);
        changed
    }

    /// Returns the union, with its nodes in tree order.
    #[must_use]
    pub fn planned(self) -> Planned {
        let (report, stamps) = self.report.unwrap_or_default();
        let nodes = placed(self.nodes, report.created_at.or(report.updated_at).unwrap_or(0));
        let messages = Tally::default();
        Planned { report, stamps, nodes, messages, changed: false, sole: false, spare: Vec::new() }
    }
}

/// Unites `report` with the `known` state. `stored` reads the body of a stored message.
///
/// # Errors
/// Those of `stored`.
pub fn unite<E>(
    report: Report,
    nodes: Vec<ReportedNode>,
    known: Option<Known>,
    stored: &mut dyn FnMut(&str) -> Result<Body, E>,
) -> Result<Planned, E> {
    let said = known.is_some().then(|| Said::of(&report, &nodes));
    let mut union = known.map(Union::of).unwrap_or_default();
    let added = union.add(report, nodes, &mut |id| stored(id).map(Some))?;
    Ok(ended(union, added, said.as_ref()))
}

/// Unites all reports of a conversation; every message of the result has its body.
///
/// # Errors
/// Those of `parts`, which reads the reports.
pub fn unite_all<E>(
    parts: impl Iterator<Item = Result<(Report, Vec<ReportedNode>), E>>,
) -> Result<Option<Planned>, E> {
    let (mut union, mut last) = (Union::default(), None);
    for part in parts {
        let (report, nodes) = part?;
        let said = Said::of(&report, &nodes);
        last = Some((union.add(report, nodes, &mut |_| Ok::<_, E>(None))?, said));
    }
    Ok(last.map(|(added, said)| ended(union, added, Some(&said))))
}

/// Returns the plan with the counts of the last report. `said` is the content of that report; it is not needed for the
/// first report of a conversation.
fn ended(union: Union, added: Added, said: Option<&Said>) -> Planned {
    let mut planned = union.planned();
    let Added { messages, changed, spare } = added;
    planned.sole = said.is_none_or(|said| said.is_all(&planned));
    Planned { messages, changed, spare, ..planned }
}

impl Planned {
    /// Returns whether the plan is exactly what a report says, with nothing from other reports.
    #[must_use]
    pub fn is(&self, report: &Report, nodes: &[ReportedNode]) -> bool {
        // Most reports have fewer nodes and need no full comparison.
        nodes.len() == self.nodes.len() && Said::of(report, nodes).is_all(self)
    }
}

/// The content of a report, to compare with the union that it became part of.
struct Said {
    report: Report,
    nodes: BTreeMap<String, (Option<String>, Digest16)>,
}

impl Said {
    fn of(report: &Report, nodes: &[ReportedNode]) -> Self {
        let nodes = nodes.iter().map(|node| (node.id.clone(), (node.parent.clone(), node.digest)));
        Self { report: report.clone(), nodes: nodes.collect() }
    }

    fn is_all(&self, planned: &Planned) -> bool {
        self.report == planned.report
            && planned.stamps == Stamps::all(stamp_of(&self.report))
            && self.nodes.len() == planned.nodes.len()
            && planned.nodes.iter().all(|PlannedNode { known, .. }| {
                self.nodes.get(&known.id).is_some_and(|(parent, digest)| {
                    *digest == known.digest && known.parents.as_slice() == parent.as_slice()
                })
            })
    }
}

/// Returns when a report was made, by the export's own clock.
fn stamp_of(report: &Report) -> i64 {
    report.updated_at.or(report.created_at).unwrap_or(i64::MIN)
}

fn fresh(node: ReportedNode) -> Held {
    let ReportedNode { id, parent, time, role, hidden, thought, bytes, digest } = node;
    let parents = parent.into_iter().collect();
    (KnownNode { id, parents, time, role, hidden, thought, digest }, Some(bytes))
}

fn unite_nodes<E>(
    held: &mut Held,
    node: ReportedNode,
    added: &mut Added,
    stored: &mut dyn FnMut(&str) -> Result<Option<Body>, E>,
) -> Result<(), E> {
    if let Some(parent) = node.parent
        && let Err(place) = held.0.parents.binary_search(&parent)
    {
        held.0.parents.insert(place, parent);
        added.changed = true;
    }
    if node.digest == held.0.digest {
        added.messages.unchanged += 1;
        return Ok(());
    }
    let old = match &held.1 {
        Some(bytes) => Body::decode(bytes).ok(),
        None => stored(&held.0.id)?,
    };
    let (Some(old), Ok(came)) = (old, Body::decode(&node.bytes)) else { return Ok(()) };
    let union = old.union(&came);
    if union == old {
        added.messages.unchanged += 1;
        added.spare.push((node.id, node.bytes));
        return Ok(());
    }
    added.messages.updated += 1;
    if let Ok((bytes, digest)) = union.encode() {
        held.0.time = union.created_at;
        held.0.role = union.role;
        held.0.hidden = union.hidden();
        held.0.thought = union.is_thought;
        held.0.digest = digest;
        held.1 = Some(bytes);
    }
    if held.0.digest != node.digest {
        added.spare.push((node.id, node.bytes));
    }
    Ok(())
}

fn placed(all: Vec<Held>, fallback: i64) -> Vec<PlannedNode> {
    let view: Vec<Node<'_>> =
        all.iter().map(|(node, _)| Node { id: &node.id, parents: &node.parents, time: node.time }).collect();
    let places = tree::place(&view, fallback);
    let ids: Vec<String> = all.iter().map(|(node, _)| node.id.clone()).collect();
    let mut all: Vec<Option<Held>> = all.into_iter().map(Some).collect();
    places
        .into_iter()
        .filter_map(|place| {
            let (known, body) = all[place.node].take()?;
            let parent = place.parent.map(|at| ids[at].clone());
            Some(PlannedNode { known, parent, time: place.time, source: place.source, body })
        })
        .collect()
}
