//! A change of many memories of which only the first commit is stored, as after a crash or on a full disk.

use satchel_host::Throttle;
use satchel_merge::evidence::{EditAction, EditStep, MemoryField, MemoryPatch};
use satchel_pam::hash::ContentHash;
use satchel_source::CancelToken;
use uuid::Uuid;

use super::*;
use crate::{
    derived::{mark_pending, pending_by},
    ingest::session::Session,
    provenance::{EvidenceIndex, record_untrusted_signer, untrusted_signer},
    write_lock::WriteLock,
};

/// More memories than fit into one commit.
const MANY: usize = 450;
const WHY: &str = "tidy";

/// Returns a store of memories, and the ids of those that are to be deprecated.
fn many_memories() -> (Fixture, Vec<String>) {
    let fixture = Fixture::new();
    let ids = (0..MANY).map(|number| fixture.add(&format!("Fact {number}"))).collect();
    (fixture, ids)
}

/// Begins the change, and stops after its first commit.
fn interrupt(fixture: &Fixture, ids: &[String]) {
    let call = call(WHY);
    let mut act = Transaction::new(&fixture.store, &call, fixture.clock.now_micros());
    for id in ids {
        let shown = act.shown(id, "").unwrap().memory;
        act.set_status(&shown, Status::Deprecated, None).unwrap();
    }
    let (batches, _) = act.written().unwrap();
    assert!(batches.len() > 1, "one commit holds all changes");
    fixture.store.commit(batches[0].clone()).unwrap();
    assert!(ids.iter().any(|id| fixture.memory(id).status == Status::Active), "nothing is pending");
}

/// Checks that the whole change is visible, with its reason in every history.
fn check_complete(fixture: &Fixture, ids: &[String]) {
    for id in ids {
        let versions = fixture.store.memory_versions(id).unwrap();
        let last = versions.last().unwrap();
        assert_eq!(
            (last.memory.status, versions.len(), last.origin.reason.as_str()),
            (Status::Deprecated, 2, WHY)
        );
    }
    fixture.check().unwrap();
}

fn pending_mark(fixture: &Fixture) -> String {
    String::from_utf8(pending_by(&fixture.store).unwrap().unwrap_or_default()).unwrap()
}

fn set_mark(fixture: &Fixture, text: &str) {
    fixture.store.commit(Batch { changes: vec![mark_pending(text)], ..Batch::default() }).unwrap();
}

#[test]
fn an_interrupted_change_is_completed_and_the_import_stays_pending() {
    let (fixture, ids) = many_memories();
    set_mark(&fixture, "an import");
    interrupt(&fixture, &ids);
    assert!(
        !pending_mark(&fixture).contains(WHY),
        "an erasure does not reach the mark, so it must not hold the reason"
    );
    let fixture = fixture.restarted(false);
    check_complete(&fixture, &ids);
    assert_eq!(pending_mark(&fixture), "an import");
    let query = satchel_store::MemoryQuery { statuses: vec![Status::Deprecated], ..Default::default() };
    let all =
        BulkStatusChange { query, status: Status::Archived, dry_run: false, expected: Some(MANY as u64) };
    fixture.imports.edits().set_status_of_all(&call(""), &all).unwrap();
    assert_eq!(pending_mark(&fixture), "an import");
}

#[test]
fn an_import_first_completes_an_interrupted_change() {
    let (fixture, ids) = many_memories();
    interrupt(&fixture, &ids);
    let lock = WriteLock::default();
    let tools = (&lock, CancelToken::new(), Throttle::default());
    let mut session = Session::new(&fixture.store, tools, Origin::default(), false);
    session.lock().unwrap();
    check_complete(&fixture, &ids);
    assert_eq!(pending_mark(&fixture), "");
}

/// Returns a store with one memory, and steps of another store that change it twice and set another field.
fn steps_of_others() -> (Fixture, String, Vec<EditStep>) {
    let fixture = Fixture::new();
    let id = fixture.add("Drinks tea");
    let memory = fixture.memory(&id);
    let step = |at: i64, field, change: &dyn Fn(&mut Memory)| {
        let mut to = memory.clone();
        change(&mut to);
        let patch = MemoryPatch { fields: [field].into(), to, reverses_retraction: false };
        EditStep::new(Uuid::new_v4().to_string(), at, EditAction::Patch(Box::new(patch)))
    };
    let now = fixture.clock.now_micros();
    let write = |text: &str| {
        let text = text.to_owned();
        move |memory: &mut Memory| {
            memory.content_hash = ContentHash::of(&text);
            memory.content.clone_from(&text);
        }
    };
    let steps = vec![
        step(now + 10, MemoryField::Content, &write("Drinks green tea")),
        step(now + 20, MemoryField::Content, &write("Drinks black tea")),
        step(now + 30, MemoryField::Tags, &|memory| memory.tags = vec!["kitchen".to_owned()]),
    ];
    (fixture, id, steps)
}

/// Edits of other stores take a commit for each version. After a crash between any two of them, what is shown follows from all.
#[test]
fn a_merge_that_is_interrupted_after_any_commit_is_completed() {
    for committed in 1.. {
        let (fixture, id, steps) = steps_of_others();
        // A note that does not follow from the evidence, as an earlier state may have left it.
        let note = record_untrusted_signer(&fixture.store, &id, Some(&"z6MkX".to_owned()));
        let note = Batch { changes: note.unwrap().into_iter().collect(), ..Batch::default() };
        fixture.store.commit(note).unwrap();
        let call = call(WHY);
        let now = fixture.clock.now_micros();
        let merging = merge::merging((&fixture.store, &EvidenceIndex::default()), &call, now, steps).unwrap();
        let (batches, _) = merging.written().unwrap();
        assert!(batches.len() >= 3, "each version has a commit: {}", batches.len());
        if committed > batches.len() {
            break;
        }
        for batch in &batches[..committed] {
            fixture.store.commit(batch.clone()).unwrap();
        }
        let fixture = fixture.restarted(false);
        let shown = fixture.memory(&id);
        assert_eq!(
            (shown.content.as_str(), shown.tags.join(" ")),
            ("Drinks black tea", "kitchen".to_owned())
        );
        assert_eq!(pending_mark(&fixture), "");
        let signer = untrusted_signer(&fixture.store, &id).unwrap();
        assert!(committed == batches.len() || signer.is_none(), "{committed}: {signer:?}");
        fixture.check().unwrap();
    }
}

#[test]
fn the_mark_of_an_earlier_program_version_is_completed_too() {
    let (fixture, ids) = many_memories();
    interrupt(&fixture, &ids);
    let pending: serde_json::Value = serde_json::from_str(&pending_mark(&fixture)).unwrap();
    let (act, actor, at) = (&pending["act"], &pending["actor"], &pending["at"]);
    let earlier = serde_json::json!({"act": act, "actor": actor, "reason": WHY, "at": at});
    set_mark(&fixture, &earlier.to_string());
    let fixture = fixture.restarted(false);
    check_complete(&fixture, &ids);
    assert_eq!(pending_mark(&fixture), "");
}
