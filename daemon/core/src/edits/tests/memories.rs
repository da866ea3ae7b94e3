//! Histories of single memories: transitions, edits followed by exports, retractions, undo, repeated calls.

use std::collections::BTreeSet;

use satchel_pam::{
    lifecycle::allowed,
    memory::{Access, Visibility},
    relation::RelationType,
};
use satchel_store::MemoryQuery;

use super::*;

#[test]
fn every_pair_of_states_is_let_or_refused_as_pam_says() {
    for from in Status::ALL.iter().copied() {
        for to in Status::ALL.iter().copied() {
            let desk = Desk::new();
            let (id, other) = (desk.add("Keeps bees"), desk.add("Kept bees"));
            let become_it = |status: Status, by: &str| match status {
                Status::Superseded => desk.imports.edits().supersede_memory(&call(""), &id, "", Err(by)),
                _ => desk.status(&id, status),
            };
            if from != Status::Active {
                become_it(from, &other).unwrap();
            }
            let before = desk.memory(&id);
            let done = become_it(to, &other);
            assert_eq!(done.is_ok(), allowed(from, to).is_ok(), "{from} to {to}: {done:?}");
            if let Err(error) = done {
                assert!(
                    matches!(&error, EditError::Transition { arrow, .. } if (arrow.from, arrow.to) == (from, to))
                );
                assert_eq!(desk.memory(&id), before, "a refused call wrote");
            } else {
                assert_eq!(desk.memory(&id).status, to);
            }
            desk.sound().unwrap();
        }
    }
}

#[test]
fn an_edit_outlives_what_providers_say_before_and_after() {
    let desk = Desk::new();
    desk.bring(&[slot("a", 1, "I live in Bergen")]);
    let id = id_of("I live in Bergen");
    desk.edit(&id, &content("I live in Bergen, Nordnes")).unwrap();
    desk.edit(&id, &tags(&["home"])).unwrap();
    // A newer export replaced the line, and an older one contained it.
    desk.bring(&[slot("b", 9, "I live in Oslo"), slot("c", 0, "I live in Bergen")]);
    let memory = desk.memory(&id);
    assert_eq!(
        (memory.content.as_str(), memory.status, memory.tags.as_slice()),
        ("I live in Bergen, Nordnes", Status::Active, ["home".to_owned()].as_slice())
    );
    assert_eq!(memory.temporal.superseded_by, None);
    assert_eq!(desk.memory(&id_of("I live in Oslo")).status, Status::Active);
    desk.sound().unwrap();
}

#[test]
fn a_field_that_nobody_edited_still_follows_the_exports() {
    let desk = Desk::new();
    desk.bring(&[slot("a", 1, "I live in Bergen")]);
    let id = id_of("I live in Bergen");
    desk.edit(&id, &tags(&["home"])).unwrap();
    let before = desk.memory(&id).confidence.unwrap().current;
    desk.bring(&[slot("b", 5, "I live in Bergen")]);
    assert!(desk.memory(&id).confidence.unwrap().current > before, "it was seen again");
    desk.bring(&[slot("c", 9, "I live in Oslo")]);
    let memory = desk.memory(&id);
    assert_eq!((memory.status, memory.tags), (Status::Superseded, vec!["home".to_owned()]));
    desk.sound().unwrap();
}

#[test]
fn a_retraction_never_comes_back_by_an_export() {
    let desk = Desk::new();
    desk.bring(&[stated("a", 1, "Keeps bees")]);
    let id = id_of("Keeps bees");
    desk.status(&id, Status::Retracted).unwrap();
    desk.bring(&[stated("b", 50, "Keeps bees"), slot("c", 60, "Keeps bees")]);
    assert_eq!(desk.memory(&id).status, Status::Retracted);
    let desk = desk.restarted(true);
    assert_eq!(desk.memory(&id).status, Status::Retracted);
    desk.bring(&[stated("d", 70, "Keeps bees")]);
    assert_eq!(desk.memory(&id).status, Status::Retracted);
    assert!(matches!(desk.edit(&id, &tags(&["x"])), Err(EditError::State { .. })));
    let access = Access { visibility: Visibility::Public, ..Access::default() };
    desk.edit(&id, &Draft { access: Some(access.clone()), ..Draft::default() }).unwrap();
    assert_eq!((desk.memory(&id).status, desk.memory(&id).access), (Status::Retracted, Some(access)));
    let again = desk.imports.edits().add_memory(&call(""), &content("keeps  BEES")).unwrap();
    assert!(again.existed && desk.memory(&id).status == Status::Retracted);
    desk.sound().unwrap();
}

#[test]
fn what_a_provider_removed_stays_if_the_person_wrote_it() {
    let desk = Desk::new();
    desk.bring(&[logged("a", 1, Edit::Add(item("Sails")))]);
    let id = id_of("Sails");
    desk.edit(&id, &content("Sails a dinghy")).unwrap();
    let target = Some("Sails".to_owned());
    desk.bring(&[logged("b", 5, Edit::Remove { line: None, target })]);
    assert_eq!(desk.memory(&id).status, Status::Active);
    desk.sound().unwrap();
}

#[test]
fn an_undo_brings_back_what_was_there_and_can_be_undone() {
    let desk = Desk::new();
    desk.bring(&[stated("a", 1, "Keeps bees")]);
    let id = id_of("Keeps bees");
    let before = desk.memory(&id);
    let act = desk.edit(&id, &content("Keeps no bees")).unwrap().act;
    let edited = desk.memory(&id);
    let undo = desk.imports.edits().undo_change(&call("a slip"), &act).unwrap();
    let back = desk.memory(&id);
    assert_eq!((back.content, back.status), (before.content, before.status));
    assert!(back.temporal.updated_at > edited.temporal.updated_at, "others must see that it changed");
    assert!(matches!(desk.imports.edits().undo_change(&call(""), &act), Err(EditError::State { .. })));
    desk.imports.edits().undo_change(&call(""), &undo.act).unwrap();
    assert_eq!(desk.memory(&id).content, "Keeps no bees");
    desk.sound().unwrap();
    let history = desk.store.memory_versions(&id).unwrap();
    let told: Vec<&str> = history.iter().map(|version| version.origin.reason.as_str()).collect();
    assert_eq!((history.len(), told[2]), (4, "a slip"));
    assert!(history[1..].iter().all(|version| version.origin.actor == "owner"));
}

#[test]
fn the_last_changes_are_undone_one_by_one() {
    let desk = Desk::new();
    let id = desk.add("Keeps bees");
    desk.edit(&id, &tags(&["one"])).unwrap();
    desk.edit(&id, &tags(&["two"])).unwrap();
    let undo = || desk.imports.edits().undo_last_change(&call(""), &id);
    undo().unwrap();
    assert_eq!(desk.memory(&id).tags, ["one"]);
    undo().unwrap();
    assert!(desk.memory(&id).tags.is_empty());
    undo().unwrap();
    assert!(
        !desk.store.memory_visible(satchel_store::record_key(&id)).unwrap(),
        "what was added is gone with the undo"
    );
    assert!(matches!(undo(), Err(EditError::State { .. })));
    desk.sound().unwrap();
    assert_eq!(desk.add("Keeps bees"), id);
    assert!(desk.memory(&id).tags.is_empty());
    desk.sound().unwrap();
}

#[test]
fn an_earlier_version_comes_back_even_from_a_retraction() {
    let desk = Desk::new();
    desk.bring(&[stated("a", 1, "Keeps bees")]);
    let id = id_of("Keeps bees");
    desk.status(&id, Status::Retracted).unwrap();
    desk.imports.edits().restore_memory_version(&call(""), &id, 1).unwrap();
    assert_eq!(desk.memory(&id).status, Status::Active);
    desk.bring(&[stated("b", 90, "Keeps bees")]);
    assert_eq!(desk.memory(&id).status, Status::Active);
    let unknown = desk.imports.edits().restore_memory_version(&call(""), &id, 77);
    assert!(matches!(unknown, Err(EditError::NoVersion { version: 77, .. })));
    desk.sound().unwrap();
}

#[test]
fn a_successor_and_its_relation_come_and_go_together() {
    let desk = Desk::new();
    desk.bring(&[stated("a", 1, "Lives in Bergen")]);
    let old = id_of("Lives in Bergen");
    let done = desk
        .imports
        .edits()
        .supersede_memory(&call("moved"), &old, "", Ok(&content("Lives in Oslo")))
        .unwrap();
    let new = id_of("Lives in Oslo");
    assert_eq!(desk.memory(&old).temporal.superseded_by.as_deref(), Some(new.as_str()));
    let edge = desk.store.relation(&done.relations[0], None).unwrap().unwrap();
    assert_eq!((edge.relation.from, edge.relation.to, edge.withdrawn), (new.clone(), old.clone(), false));
    let refused = desk.imports.edits().withdraw_relation(&call(""), &done.relations[0]);
    assert!(matches!(refused, Err(EditError::State { .. })), "{refused:?}");
    let round = desk.imports.edits().supersede_memory(&call(""), &new, "", Err(&old));
    assert!(matches!(round, Err(EditError::State { .. })), "a circle of successors: {round:?}");
    let itself = desk.imports.edits().supersede_memory(&call(""), &new, "", Err(&new));
    assert!(matches!(itself, Err(EditError::State { .. })));
    desk.sound().unwrap();
    desk.status(&old, Status::Archived).unwrap();
    desk.sound().unwrap();
    desk.imports.edits().restore_memory_version(&call(""), &old, 1).unwrap();
    assert!(desk.store.relation(&done.relations[0], None).unwrap().unwrap().withdrawn);
    desk.sound().unwrap();
    desk.imports.edits().undo_change(&call(""), &done.act).unwrap();
    assert!(!desk.store.memory_visible(satchel_store::record_key(&new)).unwrap());
    desk.sound().unwrap();
}

#[test]
fn an_etag_that_is_not_the_newest_is_refused_with_the_newest() {
    let desk = Desk::new();
    let id = desk.add("Keeps bees");
    let seen = etag(&desk.store.memory(&id, None).unwrap().unwrap());
    desk.imports.edits().edit_memory(&call(""), &id, &seen, &tags(&["one"])).unwrap();
    let now = etag(&desk.store.memory(&id, None).unwrap().unwrap());
    let stale = desk.imports.edits().edit_memory(&call(""), &id, &seen, &tags(&["two"])).unwrap_err();
    assert!(matches!(&stale, EditError::Changed { etag, .. } if *etag == now), "{stale:?}");
    desk.imports.edits().set_memory_status(&call(""), &id, &now, Status::Archived).unwrap();
}

#[test]
fn a_call_that_is_repeated_gets_the_same_answer_also_after_a_restart() {
    let desk = Desk::new();
    let named = |body: &str| EditContext {
        request: Some(RequestKey { id: "7f0c".to_owned(), body: body.to_owned() }),
        ..call("")
    };
    let first = desk.imports.edits().add_memory(&named("x"), &content("Keeps bees")).unwrap();
    let again = desk.imports.edits().add_memory(&named("x"), &content("Keeps bees")).unwrap();
    assert_eq!((first.clone(), first.existed), (again, false));
    let revision = desk.store.revision();
    let desk = desk.restarted(false);
    let after = desk.imports.edits().add_memory(&named("x"), &content("Keeps bees")).unwrap();
    assert_eq!((after, desk.store.revision()), (first, revision));
    let other = desk.imports.edits().add_memory(&named("y"), &content("Keeps geese"));
    assert!(matches!(other, Err(EditError::RequestReused(_))), "{other:?}");
    // A day later the request id can be used again.
    desk.clock.0.fetch_add(25 * 3_600 * SECOND, Ordering::Relaxed);
    assert!(!desk.imports.edits().add_memory(&named("y"), &content("Keeps geese")).unwrap().existed);
}

#[test]
fn answers_that_nobody_may_ask_for_any_more_are_not_kept() {
    let desk = Desk::new();
    let named = |number: usize| EditContext {
        request: Some(RequestKey { id: format!("request-{number}"), body: number.to_string() }),
        ..call("")
    };
    let add = |number: usize| {
        desk.imports.edits().add_memory(&named(number), &content(&format!("Fact {number}"))).unwrap()
    };
    let kept = || desk.store.ledger_list(satchel_store::Ledger::Request, None, 100).unwrap().items;
    (0..40).for_each(|number| drop(add(number)));
    assert_eq!(kept().len(), 40);
    desk.clock.0.fetch_add(23 * 3_600 * SECOND, Ordering::Relaxed);
    add(40);
    assert_eq!(kept().len(), 41, "a day has not gone by");
    desk.clock.0.fetch_add(3_600 * SECOND, Ordering::Relaxed);
    (41..44).for_each(|number| drop(add(number)));
    let names: BTreeSet<String> = kept().into_iter().map(|entry| entry.id).collect();
    assert_eq!(names, (40..44).map(|number| format!("request-{number}")).collect());
    // An expired request id can be used again, and its answer is stored then.
    let again = add(3);
    assert!(again.existed, "the memory is there, the answer was not");
    assert_eq!(add(3), again);
}

#[test]
fn a_bulk_change_needs_the_count_that_was_seen_and_is_undone_at_once() {
    let desk = Desk::new();
    let ids: Vec<String> = (0..900).map(|number| desk.add(&format!("Fact {number}"))).collect();
    let query = MemoryQuery { statuses: vec![Status::Active], ..MemoryQuery::default() };
    let bulk = |dry_run, expected| BulkStatusChange {
        query: query.clone(),
        status: Status::Archived,
        dry_run,
        expected,
    };
    let before = desk.shown();
    let seen = desk.imports.edits().set_status_of_all(&call(""), &bulk(true, None)).unwrap();
    assert_eq!((seen.matched, desk.shown() == before), (900, true));
    for wrong in [None, Some(899)] {
        desk.imports.edits().set_status_of_all(&call(""), &bulk(false, wrong)).unwrap_err();
    }
    assert_eq!(desk.shown(), before);
    let done = desk.imports.edits().set_status_of_all(&call("tidy"), &bulk(false, Some(900))).unwrap();
    assert!(ids.iter().all(|id| desk.memory(id).status == Status::Archived));
    assert!(!crate::derived::is_pending(&desk.store).unwrap());
    desk.sound().unwrap();
    let alone = desk.imports.edits().undo_last_change(&call(""), &ids[0]).unwrap_err().to_string();
    assert!(alone.contains(&done.act), "{alone}");
    desk.imports.edits().undo_change(&call(""), &done.act).unwrap();
    assert!(ids.iter().all(|id| desk.memory(id).status == Status::Active));
    desk.sound().unwrap();
}

#[test]
fn relations_are_drawn_and_taken_back_for_good() {
    let desk = Desk::new();
    let (from, to) = (desk.add("Keeps bees"), desk.add("Sells honey"));
    let new = NewRelation { from, to, relation_type: RelationType::Supports, confidence: Some(0.5) };
    let drawn = desk.imports.edits().draw_relation(&call(""), &new).unwrap();
    assert!(desk.imports.edits().draw_relation(&call(""), &new).unwrap().existed);
    let id = &drawn.relations[0];
    desk.sound().unwrap();
    let gone = desk.imports.edits().withdraw_relation(&call(""), id).unwrap();
    assert!(matches!(desk.imports.edits().withdraw_relation(&call(""), id), Err(EditError::NoRelation(_))));
    desk.sound().unwrap();
    desk.imports.edits().undo_change(&call(""), &gone.act).unwrap();
    assert!(!desk.store.relation(id, None).unwrap().unwrap().withdrawn);
    desk.sound().unwrap();
    let supersedes = NewRelation { relation_type: RelationType::Supersedes, ..new.clone() };
    assert!(matches!(
        desk.imports.edits().draw_relation(&call(""), &supersedes),
        Err(EditError::Invalid { .. })
    ));
    let itself = NewRelation { to: new.from.clone(), ..new };
    assert!(matches!(desk.imports.edits().draw_relation(&call(""), &itself), Err(EditError::Invalid { .. })));
}

#[test]
fn what_pam_does_not_let_stand_is_refused_and_named() {
    let desk = Desk::new();
    let id = desk.add("Keeps bees");
    let field = |draft: &Draft| match desk.edit(&id, draft) {
        Err(EditError::Invalid { field, .. }) => field,
        other => format!("{other:?}"),
    };
    assert_eq!(field(&tags(&["Not A Tag"])), "memory.tags[0]");
    assert_eq!(field(&content("  ")), "content");
    let custom = Draft { kind: Some((MemoryType::Custom, None)), ..Draft::default() };
    assert_eq!(field(&custom), "memory.custom_type");
    let hive = Draft { kind: Some((MemoryType::Custom, Some("hive".to_owned()))), ..Draft::default() };
    desk.edit(&id, &hive).unwrap();
    assert_eq!(desk.memory(&id).custom_type.as_deref(), Some("hive"));
    desk.sound().unwrap();
}

#[test]
fn what_is_replaced_once_more_is_replaced_since_then() {
    let desk = Desk::new();
    let (old, new) = (desk.add("Lives in Bergen"), desk.add("Lives in Oslo"));
    let replace = || desk.imports.edits().supersede_memory(&call(""), &old, "", Err(&new)).unwrap();
    let first = replace();
    desk.imports.edits().undo_change(&call(""), &first.act).unwrap();
    desk.clock.0.fetch_add(60 * SECOND, Ordering::Relaxed);
    let again = replace();
    desk.sound().unwrap();
    let edge = desk.store.relation(&again.relations[0], None).unwrap().unwrap();
    assert!(!edge.withdrawn && edge.relation.created_at.micros() >= START + 60 * SECOND, "{edge:?}");
}

#[test]
fn what_is_added_again_replaces_and_is_related_as_before() {
    for by_replacing in [false, true] {
        let desk = Desk::new();
        desk.bring(&[stated("w1", 1, "Lives in Bergen"), stated("w2", 2, "Sails")]);
        let (old, sails) = (id_of("Lives in Bergen"), id_of("Sails"));
        let draft = content("Lives in Oslo");
        let added = desk.imports.edits().add_memory(&call(""), &draft).unwrap();
        let oslo = added.memories[0].clone();
        desk.imports.edits().supersede_memory(&call(""), &old, "", Err(&oslo)).unwrap();
        let new = NewRelation {
            from: oslo.clone(),
            to: sails,
            relation_type: RelationType::RelatedTo,
            confidence: None,
        };
        desk.imports.edits().draw_relation(&call(""), &new).unwrap();
        desk.imports.edits().undo_change(&call(""), &added.act).unwrap();
        desk.sound().unwrap();
        assert_eq!(desk.memory(&old).status, Status::Active);
        if by_replacing {
            desk.imports.edits().supersede_memory(&call(""), &old, "", Ok(&draft)).unwrap();
        } else {
            desk.imports.edits().add_memory(&call(""), &draft).unwrap();
        }
        let memory = desk.memory(&old);
        assert_eq!((memory.status, memory.temporal.superseded_by), (Status::Superseded, Some(oslo)));
        assert_eq!(desk.shown().1.len(), 2, "both relations came back");
        desk.sound().unwrap();
    }
}
