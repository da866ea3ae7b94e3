//! A change of many memories of which only the first commit is stored, as after a crash or on a full disk.

use satchel_host::Throttle;
use satchel_source::CancelToken;

use super::*;
use crate::{
    derived::{mark_pending, pending_by},
    ingest::session::Session,
    write_lock::WriteLock,
};

/// More memories than fit into one commit.
const MANY: usize = 450;
const WHY: &str = "tidy";

/// Returns a store of memories, and the ids of those that are to be deprecated.
fn laid() -> (Desk, Vec<String>) {
    let desk = Desk::new();
    let ids = (0..MANY).map(|number| desk.add(&format!("Fact {number}"))).collect();
    (desk, ids)
}

/// Begins the change, and stops after its first commit.
fn cut(desk: &Desk, ids: &[String]) {
    let call = call(WHY);
    let mut act = Transaction::new(&desk.store, &call, desk.clock.now_micros());
    for id in ids {
        let shown = act.shown(id, "").unwrap().memory;
        act.set_status(&shown, Status::Deprecated, None).unwrap();
    }
    let (batches, _) = act.written().unwrap();
    assert!(batches.len() > 1, "one commit holds it all");
    desk.store.commit(batches[0].clone()).unwrap();
    assert!(ids.iter().any(|id| desk.memory(id).status == Status::Active), "nothing is owed");
}

/// Checks that the whole change is visible, with its reason in every history.
fn stands(desk: &Desk, ids: &[String]) {
    for id in ids {
        let versions = desk.store.memory_versions(id).unwrap();
        let last = versions.last().unwrap();
        assert_eq!(
            (last.memory.status, versions.len(), last.origin.reason.as_str()),
            (Status::Deprecated, 2, WHY)
        );
    }
    desk.sound().unwrap();
}

fn mark(desk: &Desk) -> String {
    String::from_utf8(pending_by(&desk.store).unwrap().unwrap_or_default()).unwrap()
}

fn set_mark(desk: &Desk, text: &str) {
    desk.store.commit(Batch { changes: vec![mark_pending(text)], ..Batch::default() }).unwrap();
}

#[test]
fn it_is_completed_also_if_an_import_owed_something_before_which_is_owed_still() {
    let (desk, ids) = laid();
    set_mark(&desk, "an import");
    cut(&desk, &ids);
    assert!(!mark(&desk).contains(WHY), "what a person typed stands where an erasure does not reach");
    let desk = desk.restarted(false);
    stands(&desk, &ids);
    assert_eq!(mark(&desk), "an import");
    let query = satchel_store::MemoryQuery { statuses: vec![Status::Deprecated], ..Default::default() };
    let all =
        BulkStatusChange { query, status: Status::Archived, dry_run: false, expected: Some(MANY as u64) };
    desk.imports.edits().set_status_of_all(&call(""), &all).unwrap();
    assert_eq!(mark(&desk), "an import");
}

#[test]
fn an_import_completes_it_before_it_writes() {
    let (desk, ids) = laid();
    cut(&desk, &ids);
    let lock = WriteLock::default();
    let tools = (&lock, CancelToken::new(), Throttle::default());
    let mut session = Session::new(&desk.store, tools, Origin::default(), false);
    session.lock().unwrap();
    stands(&desk, &ids);
    assert_eq!(mark(&desk), "");
}

#[test]
fn one_that_an_earlier_version_of_the_program_noted_is_completed_too() {
    let (desk, ids) = laid();
    cut(&desk, &ids);
    let owed: serde_json::Value = serde_json::from_str(&mark(&desk)).unwrap();
    let (act, actor, at) = (&owed["act"], &owed["actor"], &owed["at"]);
    let earlier = serde_json::json!({"act": act, "actor": actor, "reason": WHY, "at": at});
    set_mark(&desk, &earlier.to_string());
    let desk = desk.restarted(false);
    stands(&desk, &ids);
    assert_eq!(mark(&desk), "");
}
