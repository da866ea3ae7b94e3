use std::{collections::HashMap, convert::Infallible};

use proptest::prelude::*;
use satchel_pam::conversation::Content;

use super::*;

/// A store in a map: the state that the next `unite` starts from.
#[derive(Clone, Default)]
struct TestStore {
    known: Option<ConversationState>,
    bodies: HashMap<String, Body>,
}

impl TestStore {
    fn import(&mut self, report: ConversationReport, nodes: Vec<ReportedNode>) -> ConversationPlan {
        let bodies = self.bodies.clone();
        let planned =
            unite(report, nodes, self.known.take(), &mut |id| Ok::<_, Infallible>(bodies[id].clone()));
        let Ok(planned) = planned;
        for node in &planned.nodes {
            if let Some(bytes) = &node.body {
                self.bodies.insert(node.state.id.clone(), Body::decode(bytes).expect("our own bytes"));
            }
        }
        let nodes = planned.nodes.iter().map(|node| node.state.clone()).collect();
        self.known = Some(ConversationState {
            report: planned.report.clone(),
            timestamps: planned.timestamps.clone(),
            nodes,
        });
        planned
    }
}

fn node(id: u8, parent: Option<u8>, text: &str, time: Option<i64>) -> ReportedNode {
    let body = Body {
        provider_message_id: Some(format!("p{id}")),
        role: Role::User,
        content: (!text.is_empty()).then(|| Content::text(text)),
        created_at: time,
        model: None,
        is_thought: false,
        token_count: None,
        attachments: Vec::new(),
        citations: Vec::new(),
        tool_calls: Vec::new(),
        raw_metadata: None,
    };
    ReportedNode::new(format!("n{id}"), parent.map(|up| format!("n{up}")), &body).expect("a plain body")
}

fn report(title: Option<&str>, updated: i64) -> ConversationReport {
    ConversationReport {
        title: title.map(str::to_owned),
        created_at: Some(5),
        updated_at: Some(updated),
        ..ConversationReport::default()
    }
}

#[test]
fn an_empty_body_never_replaces_a_full_one() {
    let mut store = TestStore::default();
    store.import(report(Some("t"), 1), vec![node(1, None, "the whole answer", Some(1))]);
    let planned = store.import(report(None, 2), vec![node(1, None, "", Some(1))]);
    assert_eq!(planned.messages, MessageCounts { unchanged: 1, ..MessageCounts::default() });
    assert_eq!(store.bodies["n1"].content, Some(Content::text("the whole answer")));
    assert_eq!(planned.report.title.as_deref(), Some("t"));
}

#[test]
fn a_node_missing_from_a_newer_export_stays() {
    let mut store = TestStore::default();
    store.import(report(None, 1), vec![node(1, None, "q", Some(1)), node(2, Some(1), "a", Some(2))]);
    let planned =
        store.import(report(None, 2), vec![node(1, None, "q", Some(1)), node(3, Some(1), "b", Some(3))]);
    assert_eq!(planned.nodes.len(), 3);
    assert_eq!(planned.messages, MessageCounts { new: 1, unchanged: 1, updated: 0 });
}

#[test]
fn the_newest_title_wins_and_a_repeated_report_changes_nothing() {
    let mut store = TestStore::default();
    store.import(report(Some("new"), 9), vec![node(1, None, "q", Some(1))]);
    let planned = store.import(report(Some("old and longer"), 3), vec![node(1, None, "q", Some(1))]);
    assert_eq!(planned.report.title.as_deref(), Some("new"));
    let planned = store.import(report(Some("new"), 9), vec![node(1, None, "q", Some(1))]);
    assert!(!planned.changed);
}

type Export = (Option<&'static str>, i64, Vec<(u8, Option<u8>, &'static str, Option<i64>)>);

fn exports() -> impl Strategy<Value = Vec<Export>> {
    let nodes = prop::collection::btree_map(
        0_u8..6,
        (
            prop::option::of(0_u8..6),
            prop::sample::select(vec!["", "a", "bb", "cc"]),
            prop::option::of(0_i64..4),
        ),
        1..6,
    )
    .prop_map(|nodes| {
        nodes.into_iter().map(|(id, (up, text, time))| (id, up.filter(|up| *up != id), text, time)).collect()
    });
    let export = (prop::option::of(prop::sample::select(vec!["x", "yy", "zz"])), 0_i64..3, nodes);
    prop::collection::vec(export, 1..5)
}

fn import_all(exports: &[Export]) -> TestStore {
    let mut store = TestStore::default();
    for (title, updated, nodes) in exports {
        let nodes = nodes.iter().map(|(id, up, text, time)| node(*id, *up, text, *time)).collect();
        store.import(report(*title, *updated), nodes);
    }
    store
}

type ShownNode = (Vec<String>, Option<i64>, Option<Content>);

fn shown(store: &TestStore) -> (Option<ConversationReport>, BTreeMap<String, ShownNode>) {
    let known = store.known.clone();
    let nodes = known.iter().flat_map(|known| &known.nodes).map(|node| {
        (node.id.clone(), (node.parents.clone(), node.time, store.bodies[&node.id].content.clone()))
    });
    (known.as_ref().map(|known| known.report.clone()), nodes.collect())
}

proptest! {
    #[test]
    fn the_order_of_arrival_never_matters(exports in exports(), turn in 0_usize..4) {
        let one = import_all(&exports);
        let mut other = exports.clone();
        other.reverse();
        let pivot = turn % other.len();
        other.rotate_left(pivot);
        prop_assert_eq!(shown(&one), shown(&import_all(&other)));
        let twice: Vec<Export> = exports.iter().chain(&exports).cloned().collect();
        prop_assert_eq!(shown(&one), shown(&import_all(&twice)));
    }
}
