//! Histories of single memories: transitions, edits followed by exports, retractions, undo, repeated calls.

use std::collections::BTreeSet;

use satchel_pam::{
    lifecycle::check_transition,
    memory::{Access, Visibility},
    relation::RelationType,
};
use satchel_store::MemoryQuery;

use super::*;

#[test]
fn status_transitions_follow_pam() {
    for from in Status::ALL.iter().copied() {
        for to in Status::ALL.iter().copied() {
            let fixture = Fixture::new();
            let (id, other) = (fixture.add("Keeps bees"), fixture.add("Kept bees"));
            let set_status = |status: Status, by: &str| match status {
                Status::Superseded => fixture.imports.edits().supersede_memory(&call(""), &id, "", Err(by)),
                _ => fixture.status(&id, status),
            };
            if from != Status::Active {
                set_status(from, &other).unwrap();
            }
            let before = fixture.memory(&id);
            let done = set_status(to, &other);
            assert_eq!(done.is_ok(), check_transition(from, to).is_ok(), "{from} to {to}: {done:?}");
            if let Err(error) = done {
                assert!(
                    matches!(&error, EditError::Transition { error, .. } if (error.from, error.to) == (from, to))
                );
                assert_eq!(fixture.memory(&id), before, "a refused call wrote");
            } else {
                assert_eq!(fixture.memory(&id).status, to);
            }
            fixture.check().unwrap();
        }
    }
}

#[test]
fn an_edit_outlives_older_and_newer_exports() {
    let fixture = Fixture::new();
    fixture.import(&[slot("a", 1, "I live in Bergen")]);
    let id = id_of("I live in Bergen");
    fixture.edit(&id, &content("I live in Bergen, Nordnes")).unwrap();
    fixture.edit(&id, &tags(&["home"])).unwrap();
    // A newer export replaced the line, and an older one contained it.
    fixture.import(&[slot("b", 9, "I live in Oslo"), slot("c", 0, "I live in Bergen")]);
    let memory = fixture.memory(&id);
    assert_eq!(
        (memory.content.as_str(), memory.status, memory.tags.as_slice()),
        ("I live in Bergen, Nordnes", Status::Active, ["home".to_owned()].as_slice())
    );
    assert_eq!(memory.temporal.superseded_by, None);
    assert_eq!(fixture.memory(&id_of("I live in Oslo")).status, Status::Active);
    fixture.check().unwrap();
}

#[test]
fn unedited_fields_follow_the_exports() {
    let fixture = Fixture::new();
    fixture.import(&[slot("a", 1, "I live in Bergen")]);
    let id = id_of("I live in Bergen");
    fixture.edit(&id, &tags(&["home"])).unwrap();
    let before = fixture.memory(&id).confidence.unwrap().current;
    fixture.import(&[slot("b", 5, "I live in Bergen")]);
    assert!(
        fixture.memory(&id).confidence.unwrap().current > before,
        "confidence rises when the line is seen again"
    );
    fixture.import(&[slot("c", 9, "I live in Oslo")]);
    let memory = fixture.memory(&id);
    assert_eq!((memory.status, memory.tags), (Status::Superseded, vec!["home".to_owned()]));
    fixture.check().unwrap();
}

#[test]
fn exports_do_not_reverse_a_retraction() {
    let fixture = Fixture::new();
    fixture.import(&[stated("a", 1, "Keeps bees")]);
    let id = id_of("Keeps bees");
    fixture.status(&id, Status::Retracted).unwrap();
    fixture.import(&[stated("b", 50, "Keeps bees"), slot("c", 60, "Keeps bees")]);
    assert_eq!(fixture.memory(&id).status, Status::Retracted);
    let fixture = fixture.restarted(true);
    assert_eq!(fixture.memory(&id).status, Status::Retracted);
    fixture.import(&[stated("d", 70, "Keeps bees")]);
    assert_eq!(fixture.memory(&id).status, Status::Retracted);
    assert!(matches!(fixture.edit(&id, &tags(&["x"])), Err(EditError::State { .. })));
    let access = Access { visibility: Visibility::Public, ..Access::default() };
    fixture.edit(&id, &Draft { access: Some(access.clone()), ..Draft::default() }).unwrap();
    assert_eq!((fixture.memory(&id).status, fixture.memory(&id).access), (Status::Retracted, Some(access)));
    let again = fixture.imports.edits().add_memory(&call(""), &content("keeps  BEES")).unwrap();
    assert!(again.existed && fixture.memory(&id).status == Status::Retracted);
    fixture.check().unwrap();
}

#[test]
fn an_edited_memory_stays_after_its_provider_removes_it() {
    let fixture = Fixture::new();
    fixture.import(&[logged("a", 1, Edit::Add(item("Sails")))]);
    let id = id_of("Sails");
    fixture.edit(&id, &content("Sails a dinghy")).unwrap();
    let target = Some("Sails".to_owned());
    fixture.import(&[logged("b", 5, Edit::Remove { line: None, target })]);
    assert_eq!(fixture.memory(&id).status, Status::Active);
    fixture.check().unwrap();
}

#[test]
fn an_undo_restores_the_memory_and_can_be_undone() {
    let fixture = Fixture::new();
    fixture.import(&[stated("a", 1, "Keeps bees")]);
    let id = id_of("Keeps bees");
    let before = fixture.memory(&id);
    let act = fixture.edit(&id, &content("Keeps no bees")).unwrap().act;
    let edited = fixture.memory(&id);
    let undo = fixture.imports.edits().undo_change(&call("a slip"), &act).unwrap();
    let back = fixture.memory(&id);
    assert_eq!((back.content, back.status), (before.content, before.status));
    assert!(back.temporal.updated_at > edited.temporal.updated_at, "others must see that it changed");
    assert!(matches!(fixture.imports.edits().undo_change(&call(""), &act), Err(EditError::State { .. })));
    fixture.imports.edits().undo_change(&call(""), &undo.act).unwrap();
    assert_eq!(fixture.memory(&id).content, "Keeps no bees");
    fixture.check().unwrap();
    let history = fixture.store.memory_versions(&id).unwrap();
    let reasons: Vec<&str> = history.iter().map(|version| version.origin.reason.as_str()).collect();
    assert_eq!((history.len(), reasons[2]), (4, "a slip"));
    assert!(history[1..].iter().all(|version| version.origin.actor == "owner"));
}

#[test]
fn the_last_changes_are_undone_one_by_one() {
    let fixture = Fixture::new();
    let id = fixture.add("Keeps bees");
    fixture.edit(&id, &tags(&["one"])).unwrap();
    fixture.edit(&id, &tags(&["two"])).unwrap();
    let undo = || fixture.imports.edits().undo_last_change(&call(""), &id);
    undo().unwrap();
    assert_eq!(fixture.memory(&id).tags, ["one"]);
    undo().unwrap();
    assert!(fixture.memory(&id).tags.is_empty());
    undo().unwrap();
    assert!(
        !fixture.store.memory_visible(satchel_store::record_key(&id)).unwrap(),
        "the undo removes the added memory"
    );
    assert!(matches!(undo(), Err(EditError::State { .. })));
    fixture.check().unwrap();
    assert_eq!(fixture.add("Keeps bees"), id);
    assert!(fixture.memory(&id).tags.is_empty());
    fixture.check().unwrap();
}

#[test]
fn an_earlier_version_can_be_restored_after_a_retraction() {
    let fixture = Fixture::new();
    fixture.import(&[stated("a", 1, "Keeps bees")]);
    let id = id_of("Keeps bees");
    fixture.status(&id, Status::Retracted).unwrap();
    fixture.imports.edits().restore_memory_version(&call(""), &id, 1).unwrap();
    assert_eq!(fixture.memory(&id).status, Status::Active);
    fixture.import(&[stated("b", 90, "Keeps bees")]);
    assert_eq!(fixture.memory(&id).status, Status::Active);
    let unknown = fixture.imports.edits().restore_memory_version(&call(""), &id, 77);
    assert!(matches!(unknown, Err(EditError::NoVersion { version: 77, .. })));
    fixture.check().unwrap();
}

#[test]
fn a_successor_and_its_relation_change_together() {
    let fixture = Fixture::new();
    fixture.import(&[stated("a", 1, "Lives in Bergen")]);
    let old = id_of("Lives in Bergen");
    let done = fixture
        .imports
        .edits()
        .supersede_memory(&call("moved"), &old, "", Ok(&content("Lives in Oslo")))
        .unwrap();
    let new = id_of("Lives in Oslo");
    assert_eq!(fixture.memory(&old).temporal.superseded_by.as_deref(), Some(new.as_str()));
    let edge = fixture.store.relation(&done.relations[0], None).unwrap().unwrap();
    assert_eq!((edge.relation.from, edge.relation.to, edge.withdrawn), (new.clone(), old.clone(), false));
    let refused = fixture.imports.edits().withdraw_relation(&call(""), &done.relations[0]);
    assert!(matches!(refused, Err(EditError::State { .. })), "{refused:?}");
    let circle = fixture.imports.edits().supersede_memory(&call(""), &new, "", Err(&old));
    assert!(matches!(circle, Err(EditError::State { .. })), "a circle of successors: {circle:?}");
    let itself = fixture.imports.edits().supersede_memory(&call(""), &new, "", Err(&new));
    assert!(matches!(itself, Err(EditError::State { .. })));
    fixture.check().unwrap();
    fixture.status(&old, Status::Archived).unwrap();
    fixture.check().unwrap();
    fixture.imports.edits().restore_memory_version(&call(""), &old, 1).unwrap();
    assert!(fixture.store.relation(&done.relations[0], None).unwrap().unwrap().withdrawn);
    fixture.check().unwrap();
    fixture.imports.edits().undo_change(&call(""), &done.act).unwrap();
    assert!(!fixture.store.memory_visible(satchel_store::record_key(&new)).unwrap());
    fixture.check().unwrap();
}

#[test]
fn an_outdated_etag_is_refused_with_the_current_one() {
    let fixture = Fixture::new();
    let id = fixture.add("Keeps bees");
    let seen = etag(&fixture.store.memory(&id, None).unwrap().unwrap());
    fixture.imports.edits().edit_memory(&call(""), &id, &seen, &tags(&["one"])).unwrap();
    let now = etag(&fixture.store.memory(&id, None).unwrap().unwrap());
    let stale = fixture.imports.edits().edit_memory(&call(""), &id, &seen, &tags(&["two"])).unwrap_err();
    assert!(matches!(&stale, EditError::Changed { etag, .. } if *etag == now), "{stale:?}");
    fixture.imports.edits().set_memory_status(&call(""), &id, &now, Status::Archived).unwrap();
}

#[test]
fn a_repeated_call_gets_the_same_answer_even_after_a_restart() {
    let fixture = Fixture::new();
    let named = |body: &str| EditContext {
        request: Some(RequestKey { id: "7f0c".to_owned(), body: body.to_owned() }),
        ..call("")
    };
    let first = fixture.imports.edits().add_memory(&named("x"), &content("Keeps bees")).unwrap();
    let again = fixture.imports.edits().add_memory(&named("x"), &content("Keeps bees")).unwrap();
    assert_eq!((first.clone(), first.existed), (again, false));
    let revision = fixture.store.revision();
    let fixture = fixture.restarted(false);
    let after = fixture.imports.edits().add_memory(&named("x"), &content("Keeps bees")).unwrap();
    assert_eq!((after, fixture.store.revision()), (first, revision));
    let other = fixture.imports.edits().add_memory(&named("y"), &content("Keeps geese"));
    assert!(matches!(other, Err(EditError::RequestReused(_))), "{other:?}");
    // A day later the request id can be used again.
    fixture.clock.0.fetch_add(25 * 3_600 * SECOND, Ordering::Relaxed);
    assert!(!fixture.imports.edits().add_memory(&named("y"), &content("Keeps geese")).unwrap().existed);
}

#[test]
fn answers_to_expired_request_ids_are_deleted() {
    let fixture = Fixture::new();
    let named = |number: usize| EditContext {
        request: Some(RequestKey { id: format!("request-{number}"), body: number.to_string() }),
        ..call("")
    };
    let add = |number: usize| {
        fixture.imports.edits().add_memory(&named(number), &content(&format!("Fact {number}"))).unwrap()
    };
    let kept = || fixture.store.ledger_list(satchel_store::Ledger::Request, None, 100).unwrap().items;
    (0..40).for_each(|number| drop(add(number)));
    assert_eq!(kept().len(), 40);
    fixture.clock.0.fetch_add(23 * 3_600 * SECOND, Ordering::Relaxed);
    add(40);
    assert_eq!(kept().len(), 41, "a day has not gone by");
    fixture.clock.0.fetch_add(3_600 * SECOND, Ordering::Relaxed);
    (41..44).for_each(|number| drop(add(number)));
    let names: BTreeSet<String> = kept().into_iter().map(|entry| entry.id).collect();
    assert_eq!(names, (40..44).map(|number| format!("request-{number}")).collect());
    // An expired request id can be used again, and its answer is stored then.
    let again = add(3);
    assert!(again.existed, "the memory exists, but its answer had expired");
    assert_eq!(add(3), again);
}

#[test]
fn a_bulk_change_needs_the_expected_count_and_one_undo_reverts_it() {
    let fixture = Fixture::new();
    let ids: Vec<String> = (0..900).map(|number| fixture.add(&format!("Fact {number}"))).collect();
    let query = MemoryQuery { statuses: vec![Status::Active], ..MemoryQuery::default() };
    let bulk = |dry_run, expected| BulkStatusChange {
        query: query.clone(),
        status: Status::Archived,
        dry_run,
        expected,
    };
    let before = fixture.shown();
    let seen = fixture.imports.edits().set_status_of_all(&call(""), &bulk(true, None)).unwrap();
    assert_eq!((seen.matched, fixture.shown() == before), (900, true));
    for wrong in [None, Some(899)] {
        fixture.imports.edits().set_status_of_all(&call(""), &bulk(false, wrong)).unwrap_err();
    }
    assert_eq!(fixture.shown(), before);
    let done = fixture.imports.edits().set_status_of_all(&call("tidy"), &bulk(false, Some(900))).unwrap();
    assert!(ids.iter().all(|id| fixture.memory(id).status == Status::Archived));
    assert!(!crate::derived::is_pending(&fixture.store).unwrap());
    fixture.check().unwrap();
    let alone = fixture.imports.edits().undo_last_change(&call(""), &ids[0]).unwrap_err().to_string();
    assert!(alone.contains(&done.act), "{alone}");
    fixture.imports.edits().undo_change(&call(""), &done.act).unwrap();
    assert!(ids.iter().all(|id| fixture.memory(id).status == Status::Active));
    fixture.check().unwrap();
}

#[test]
fn relations_can_be_drawn_and_withdrawn() {
    let fixture = Fixture::new();
    let (from, to) = (fixture.add("Keeps bees"), fixture.add("Sells honey"));
    let new = NewRelation { from, to, relation_type: RelationType::Supports, confidence: Some(0.5) };
    let drawn = fixture.imports.edits().draw_relation(&call(""), &new).unwrap();
    assert!(fixture.imports.edits().draw_relation(&call(""), &new).unwrap().existed);
    let id = &drawn.relations[0];
    fixture.check().unwrap();
    let gone = fixture.imports.edits().withdraw_relation(&call(""), id).unwrap();
    assert!(matches!(
        fixture.imports.edits().withdraw_relation(&call(""), id),
        Err(EditError::NoRelation(_))
    ));
    fixture.check().unwrap();
    fixture.imports.edits().undo_change(&call(""), &gone.act).unwrap();
    assert!(!fixture.store.relation(id, None).unwrap().unwrap().withdrawn);
    fixture.check().unwrap();
    let supersedes = NewRelation { relation_type: RelationType::Supersedes, ..new.clone() };
    assert!(matches!(
        fixture.imports.edits().draw_relation(&call(""), &supersedes),
        Err(EditError::Invalid { .. })
    ));
    let itself = NewRelation { to: new.from.clone(), ..new };
    assert!(matches!(
        fixture.imports.edits().draw_relation(&call(""), &itself),
        Err(EditError::Invalid { .. })
    ));
}

#[test]
fn invalid_fields_are_refused_and_named() {
    let fixture = Fixture::new();
    let id = fixture.add("Keeps bees");
    let field = |draft: &Draft| match fixture.edit(&id, draft) {
        Err(EditError::Invalid { field, .. }) => field,
        other => format!("{other:?}"),
    };
    assert_eq!(field(&tags(&["Not A Tag"])), "memory.tags[0]");
    assert_eq!(field(&content("  ")), "content");
    let custom = Draft { kind: Some((MemoryType::Custom, None)), ..Draft::default() };
    assert_eq!(field(&custom), "memory.custom_type");
    let hive = Draft { kind: Some((MemoryType::Custom, Some("hive".to_owned()))), ..Draft::default() };
    fixture.edit(&id, &hive).unwrap();
    assert_eq!(fixture.memory(&id).custom_type.as_deref(), Some("hive"));
    fixture.check().unwrap();
}

#[test]
fn a_memory_superseded_again_gets_the_new_time() {
    let fixture = Fixture::new();
    let (old, new) = (fixture.add("Lives in Bergen"), fixture.add("Lives in Oslo"));
    let replace = || fixture.imports.edits().supersede_memory(&call(""), &old, "", Err(&new)).unwrap();
    let first = replace();
    fixture.imports.edits().undo_change(&call(""), &first.act).unwrap();
    fixture.clock.0.fetch_add(60 * SECOND, Ordering::Relaxed);
    let again = replace();
    fixture.check().unwrap();
    let edge = fixture.store.relation(&again.relations[0], None).unwrap().unwrap();
    assert!(!edge.withdrawn && edge.relation.created_at.micros() >= START + 60 * SECOND, "{edge:?}");
}

#[test]
fn a_memory_added_again_gets_its_relations_back() {
    for by_replacing in [false, true] {
        let fixture = Fixture::new();
        fixture.import(&[stated("w1", 1, "Lives in Bergen"), stated("w2", 2, "Sails")]);
        let (old, sails) = (id_of("Lives in Bergen"), id_of("Sails"));
        let draft = content("Lives in Oslo");
        let added = fixture.imports.edits().add_memory(&call(""), &draft).unwrap();
        let oslo = added.memories[0].clone();
        fixture.imports.edits().supersede_memory(&call(""), &old, "", Err(&oslo)).unwrap();
        let new = NewRelation {
            from: oslo.clone(),
            to: sails,
            relation_type: RelationType::RelatedTo,
            confidence: None,
        };
        fixture.imports.edits().draw_relation(&call(""), &new).unwrap();
        fixture.imports.edits().undo_change(&call(""), &added.act).unwrap();
        fixture.check().unwrap();
        assert_eq!(fixture.memory(&old).status, Status::Active);
        if by_replacing {
            fixture.imports.edits().supersede_memory(&call(""), &old, "", Ok(&draft)).unwrap();
        } else {
            fixture.imports.edits().add_memory(&call(""), &draft).unwrap();
        }
        let memory = fixture.memory(&old);
        assert_eq!((memory.status, memory.temporal.superseded_by), (Status::Superseded, Some(oslo)));
        assert_eq!(fixture.shown().1.len(), 2, "both relations came back");
        fixture.check().unwrap();
    }
}
