//! Tests with parts of a list of rows, in any order.

use std::{collections::HashMap, convert::Infallible};

use satchel_pam::conversation::{Content, Role};

use super::*;
use crate::body::Body;

const MINUTE: i64 = 60_000_000;

fn node(minute: i64, parent: Option<i64>, event: bool) -> ReportedNode {
    let raw = if event { r#"{"hidden":true}"# } else { r#"{"k":1}"# };
    let body = Body {
        provider_message_id: None,
        role: if event { Role::System } else { Role::User },
        content: Some(Content::text(format!("at {minute}"))),
        created_at: Some(minute * MINUTE),
        model: None,
        is_thought: false,
        token_count: None,
        attachments: Vec::new(),
        citations: Vec::new(),
        tool_calls: Vec::new(),
        raw_metadata: RawObject::parse(raw.to_owned()).ok(),
    };
    ReportedNode::new(format!("m{minute}"), parent.map(|at| format!("m{at}")), &body).unwrap()
}

/// Builds a part with messages at these minutes; a negative minute is an event.
fn part(minutes: &[i64]) -> GroupPart {
    let mut parent = None;
    let mut nodes = Vec::new();
    for minute in minutes {
        nodes.push(node(minute.abs(), parent, *minute < 0));
        parent = Some(minute.abs());
    }
    let report = ConversationReport {
        title: Some(format!("from {}", minutes[0])),
        created_at: nodes[0].time,
        updated_at: nodes[nodes.len() - 1].time,
        ..ConversationReport::default()
    };
    (report, nodes)
}

fn components(platform: &str, parts: &[GroupPart]) -> Vec<GroupedConversation> {
    let outlines: Vec<Outline> = parts.iter().map(Outline::of_part).collect();
    super::components(platform, &outlines, &mut |at| Ok::<_, Infallible>(parts[at].clone())).unwrap()
}

/// Id, title, first minute, messages.
type Shown = (String, Option<String>, Option<i64>, Vec<String>);

fn shown(parts: Vec<GroupPart>) -> Vec<Shown> {
    let components = components("p", &parts);
    let shown = components.into_iter().map(|GroupedConversation { id, planned, .. }| {
        let nodes = planned.nodes.iter().map(|node| node.state.id.clone()).collect();
        (id, planned.report.title.clone(), planned.report.created_at.map(|at| at / MINUTE), nodes)
    });
    shown.collect()
}

#[test]
fn parts_that_share_a_message_are_one_conversation_in_any_order() {
    let parts = || vec![part(&[1, 2, 3]), part(&[3, 4, 5]), part(&[5, 6]), part(&[50, 51])];
    let first = shown(parts());
    assert_eq!(first.len(), 2);
    assert_eq!(first[0].0, id_from_first("p", None, "m1"));
    assert_eq!(first[0].1.as_deref(), Some("from 1"), "the title is the oldest part's");
    assert_eq!(first[0].3, ["m1", "m2", "m3", "m4", "m5", "m6"]);
    for order in [[3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]] {
        let mut all: Vec<Option<GroupPart>> = parts().into_iter().map(Some).collect();
        assert_eq!(shown(order.into_iter().filter_map(|at| all[at].take()).collect()), first);
    }
    let apart = shown(vec![part(&[1, 2, 3]), part(&[5, 6])]);
    assert_eq!(apart.len(), 2, "nothing joins them without what is between them");
}

#[test]
fn an_event_joins_no_parts_and_stays_in_the_older_conversation() {
    let first = shown(vec![part(&[20, -45]), part(&[-45, 60, 61])]);
    assert_eq!(first.len(), 2);
    assert_eq!(first[0].3, ["m20", "m45"]);
    assert_eq!(
        (first[1].2, first[1].3.as_slice()),
        (Some(60), ["m60".to_owned(), "m61".to_owned()].as_slice())
    );
    assert_eq!(shown(vec![part(&[-45, 60, 61]), part(&[20, -45])]), first);
}

#[test]
fn a_single_part_is_stored_unchanged() {
    let components = components("p", &[part(&[1, -2, 3])]);
    let (report, nodes) = part(&[1, -2, 3]);
    assert!(components[0].planned.equals(&report, &nodes));
    assert_eq!(components[0].planned.report, report);
    assert_eq!(components[0].id, conversation_id("p", None, &nodes));
}

#[test]
fn of_parts_with_the_same_beginning_the_newer_gives_the_title() {
    let titled = |title: &str, minutes: &[i64]| {
        let (report, nodes) = part(minutes);
        (ConversationReport { title: Some(title.to_owned()), ..report }, nodes)
    };
    let (older, newer) = (|| titled("Bread", &[1, 2]), || titled("Rye bread", &[1, 2, 3]));
    for parts in [vec![older(), newer()], vec![newer(), older()]] {
        assert_eq!(shown(parts)[0].1.as_deref(), Some("Rye bread"));
    }
}

/// Grows the conversation of `before` by `part`, without reading the earlier parts.
fn after(before: &GroupedConversation, part: &GroupPart) -> Option<GroupedConversation> {
    let bodies: HashMap<&str, &Vec<u8>> = before
        .planned
        .nodes
        .iter()
        .filter_map(|node| Some((node.state.id.as_str(), node.body.as_ref()?)))
        .collect();
    grow("p", before.planned.state(), &before.title_key, &[part], &mut |id| Body::decode(bodies[id])).unwrap()
}

#[test]
fn growing_gives_the_same_conversation_as_all_parts() {
    let mut parts: Vec<GroupPart> = vec![part(&[1, 2, 3])];
    for minutes in [&[2, 3, 4, 5][..], &[5, 6], &[1, 2, 3], &[4, 9]] {
        let before = components("p", &parts).remove(0);
        let part = part(minutes);
        let grown = after(&before, &part).unwrap();
        parts.push(part);
        let all = components("p", &parts).remove(0);
        assert_eq!((&grown.id, &grown.title_key), (&all.id, &all.title_key));
        assert!(grown.planned.state().same_content(&all.planned.state()), "{minutes:?}");
    }
}

#[test]
fn grow_refuses_parts_that_may_affect_other_conversations() {
    let before = components("p", &[part(&[5, 6, 7])]).remove(0);
    for (minutes, why) in
        [(&[1, 5][..], "another name"), (&[8, 9], "no row in common"), (&[7, -8], "an event")]
    {
        assert!(after(&before, &part(minutes)).is_none(), "{why}");
    }
}
