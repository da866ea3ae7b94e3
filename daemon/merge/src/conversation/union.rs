//! The union of a conversation, built report by report: each report costs as much as it is long, regardless of what
//! came before it.

use std::collections::{BTreeMap, HashMap};

use super::{
    ConversationPlan, ConversationReport, ConversationState, FieldTimestamps, MessageCounts, NodeState,
    PlannedNode, ReportedNode, unite_reports,
};
use crate::{
    body::{Body, Digest16},
    stub,
    tree::{self, TreeNode},
};

/// A node, and its body if that differs from the stored one.
type UnionNode = (NodeState, Option<Vec<u8>>);

/// The union of all reports that were added.
#[derive(Default)]
pub struct Union {
    report: Option<(ConversationReport, FieldTimestamps)>,
    nodes: Vec<UnionNode>,
    index: HashMap<String, usize>,
}

/// How a report relates to the known state, if one of them comes only from an index.
enum StubRelation {
    /// The report comes from an index, and the conversation itself is known.
    ReportIsStub,
    /// The report is the conversation itself, and only an index entry was known.
    StateIsStub,
    /// Both come from an index; the union of their facts.
    Both(stub::Facts),
}

/// What one report added.
#[derive(Debug, Default)]
pub struct UnionChange {
    /// Counts of its messages.
    pub messages: MessageCounts,
    /// Whether the union differs from what it was before.
    pub changed: bool,
    /// Bodies of the report that differ from those in the union, by message.
    pub differing_bodies: Vec<(String, Vec<u8>)>,
}

impl Union {
    /// Creates a union from the stored state.
    #[must_use]
    pub fn of(known: ConversationState) -> Self {
        let ConversationState { report, timestamps: stamps, nodes } = known;
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
        report: ConversationReport,
        nodes: Vec<ReportedNode>,
        stored: &mut dyn FnMut(&str) -> Result<Option<Body>, E>,
    ) -> Result<UnionChange, E> {
        let changed = match self.stub_relation(&report, nodes.is_empty()) {
            // The conversation itself is known.
            Some(StubRelation::ReportIsStub) => false,
            Some(StubRelation::StateIsStub) => {
                self.report = None;
                self.add_report(report)
            }
            Some(StubRelation::Both(facts)) => {
                let before = self.report.clone();
                self.add_report(report);
                if let Some((report, _)) = &mut self.report {
                    report.raw_metadata = Some(stub::with_facts(report.raw_metadata.take(), &facts));
                }
                self.report != before
            }
            None => self.add_report(report),
        };
        let mut added = UnionChange { changed, ..UnionChange::default() };
        for node in nodes {
            if let Some(&at) = self.index.get(&node.id) {
                unite_nodes(&mut self.nodes[at], node, &mut added, stored)?;
            } else {
                added.messages.new += 1;
                self.index.insert(node.id.clone(), self.nodes.len());
                self.nodes.push(new_node(node));
            }
        }
        added.changed |= added.messages.new + added.messages.updated > 0;
        Ok(added)
    }

    /// Returns how a report relates to the known state, if one of the two comes only from an index. `without_messages`: the report
    /// has no messages.
    fn stub_relation(&self, report: &ConversationReport, without_messages: bool) -> Option<StubRelation> {
        let (known, _) = self.report.as_ref()?;
        let of =
            |report, without_messages: bool| if without_messages { stub::facts_of(report) } else { None };
        match (of(known, self.nodes.is_empty()), of(report, without_messages)) {
            (None, None) => None,
            (None, Some(_)) => Some(StubRelation::ReportIsStub),
            (Some(_), None) => Some(StubRelation::StateIsStub),
            (Some(known), Some(new)) => Some(StubRelation::Both(stub::union(known, new))),
        }
    }

    fn add_report(&mut self, report: ConversationReport) -> bool {
        let stamp = report_time(&report);
        let Some((old, stamps)) = self.report.take() else {
            self.report = Some((report, FieldTimestamps::all(stamp)));
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
    pub fn planned(self) -> ConversationPlan {
        let (report, stamps) = self.report.unwrap_or_default();
        let nodes = place_nodes(self.nodes, report.created_at.or(report.updated_at).unwrap_or(0));
        let messages = MessageCounts::default();
        ConversationPlan {
            report,
            timestamps: stamps,
            nodes,
            messages,
            changed: false,
            equals_report: false,
            differing_bodies: Vec::new(),
        }
    }
}

/// Unites `report` with the `known` state. `stored` reads the body of a stored message.
///
/// # Errors
/// Those of `stored`.
pub fn unite<E>(
    report: ConversationReport,
    nodes: Vec<ReportedNode>,
    known: Option<ConversationState>,
    stored: &mut dyn FnMut(&str) -> Result<Body, E>,
) -> Result<ConversationPlan, E> {
    let content = known.is_some().then(|| ReportContent::of(&report, &nodes));
    let mut union = known.map(Union::of).unwrap_or_default();
    let added = union.add(report, nodes, &mut |id| stored(id).map(Some))?;
    Ok(finish_plan(union, added, content.as_ref()))
}

/// Unites all reports of a conversation; every message of the result has its body.
///
/// # Errors
/// Those of `parts`, which reads the reports.
pub fn unite_all<E>(
    parts: impl Iterator<Item = Result<(ConversationReport, Vec<ReportedNode>), E>>,
) -> Result<Option<ConversationPlan>, E> {
    let (mut union, mut last) = (Union::default(), None);
    for part in parts {
        let (report, nodes) = part?;
        let content = ReportContent::of(&report, &nodes);
        last = Some((union.add(report, nodes, &mut |_| Ok::<_, E>(None))?, content));
    }
    Ok(last.map(|(added, content)| finish_plan(union, added, Some(&content))))
}

/// Returns the plan with the counts of the last report. `content` is the content of that report; it is not needed for the
/// first report of a conversation.
fn finish_plan(union: Union, added: UnionChange, content: Option<&ReportContent>) -> ConversationPlan {
    let mut planned = union.planned();
    let UnionChange { messages, changed, differing_bodies: spare } = added;
    planned.equals_report = content.is_none_or(|content| content.equals(&planned));
    ConversationPlan { messages, changed, differing_bodies: spare, ..planned }
}

impl ConversationPlan {
    /// Returns whether the plan is exactly what a report says, with nothing from other reports.
    #[must_use]
    pub fn equals(&self, report: &ConversationReport, nodes: &[ReportedNode]) -> bool {
        // Most reports have fewer nodes and need no full comparison.
        nodes.len() == self.nodes.len() && ReportContent::of(report, nodes).equals(self)
    }
}

/// The content of a report, to compare with the union that it became part of.
struct ReportContent {
    report: ConversationReport,
    nodes: BTreeMap<String, (Option<String>, Digest16)>,
}

impl ReportContent {
    fn of(report: &ConversationReport, nodes: &[ReportedNode]) -> Self {
        let nodes = nodes.iter().map(|node| (node.id.clone(), (node.parent.clone(), node.digest)));
        Self { report: report.clone(), nodes: nodes.collect() }
    }

    fn equals(&self, planned: &ConversationPlan) -> bool {
        self.report == planned.report
            && planned.timestamps == FieldTimestamps::all(report_time(&self.report))
            && self.nodes.len() == planned.nodes.len()
            && planned.nodes.iter().all(|PlannedNode { state: known, .. }| {
                self.nodes.get(&known.id).is_some_and(|(parent, digest)| {
                    *digest == known.digest && known.parents.as_slice() == parent.as_slice()
                })
            })
    }
}

/// Returns when a report was made, by the export's own clock.
fn report_time(report: &ConversationReport) -> i64 {
    report.updated_at.or(report.created_at).unwrap_or(i64::MIN)
}

fn new_node(node: ReportedNode) -> UnionNode {
    let ReportedNode { id, parent, time, role, hidden, thought, bytes, digest } = node;
    let parents = parent.into_iter().collect();
    (NodeState { id, parents, time, role, hidden, thought, digest }, Some(bytes))
}

fn unite_nodes<E>(
    stored_node: &mut UnionNode,
    node: ReportedNode,
    added: &mut UnionChange,
    stored: &mut dyn FnMut(&str) -> Result<Option<Body>, E>,
) -> Result<(), E> {
    if let Some(parent) = node.parent
        && let Err(place) = stored_node.0.parents.binary_search(&parent)
    {
        stored_node.0.parents.insert(place, parent);
        added.changed = true;
    }
    if node.digest == stored_node.0.digest {
        added.messages.unchanged += 1;
        return Ok(());
    }
    let old = match &stored_node.1 {
        Some(bytes) => Body::decode(bytes).ok(),
        None => stored(&stored_node.0.id)?,
    };
    let (Some(old), Ok(new)) = (old, Body::decode(&node.bytes)) else { return Ok(()) };
    let union = old.union(&new);
    if union == old {
        added.messages.unchanged += 1;
        added.differing_bodies.push((node.id, node.bytes));
        return Ok(());
    }
    added.messages.updated += 1;
    if let Ok((bytes, digest)) = union.encode() {
        stored_node.0.time = union.created_at;
        stored_node.0.role = union.role;
        stored_node.0.hidden = union.hidden();
        stored_node.0.thought = union.is_thought;
        stored_node.0.digest = digest;
        stored_node.1 = Some(bytes);
    }
    if stored_node.0.digest != node.digest {
        added.differing_bodies.push((node.id, node.bytes));
    }
    Ok(())
}

fn place_nodes(all: Vec<UnionNode>, fallback: i64) -> Vec<PlannedNode> {
    let view: Vec<TreeNode<'_>> = all
        .iter()
        .map(|(node, _)| TreeNode { id: &node.id, parents: &node.parents, time: node.time })
        .collect();
    let places = tree::place(&view, fallback);
    let ids: Vec<String> = all.iter().map(|(node, _)| node.id.clone()).collect();
    let mut all: Vec<Option<UnionNode>> = all.into_iter().map(Some).collect();
    places
        .into_iter()
        .filter_map(|place| {
            let (known, body) = all[place.node].take()?;
            let parent = place.parent.map(|at| ids[at].clone());
            Some(PlannedNode { state: known, parent, time: place.time, source: place.source, body })
        })
        .collect()
}
