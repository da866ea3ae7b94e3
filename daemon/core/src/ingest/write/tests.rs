//! Batches: their size, and the records that remain of a cancelled import.

use std::path::Path;

use satchel_host::{Throttle, channel};
use satchel_pam::record::ConversationRecord;
use satchel_source::CancelToken;
use satchel_store::{Ledger, OpenOptions, Origin, Store};
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::{
    ingest::normalise::Normaliser,
    provenance::{ContributionKind, contributed_keys},
    write_lock::WriteLock,
};

fn store(dir: &Path) -> Store {
    Store::open(dir, OpenOptions::default(), &mut |_| {}).unwrap()
}

fn writer<'a>(
    store: &'a Store,
    (lock, cancel, pace): (&'a WriteLock, &CancelToken, &Throttle),
) -> Writer<'a> {
    let origin = Origin {
        import: Some(Uuid::new_v4()),
        actor: "p/1.0.0".to_owned(),
        reason: "import".to_owned(),
        at_micros: 1,
    };
    let session = Session::new(store, (lock, cancel.clone(), pace.clone()), origin, false);
    Writer::new(session, ImportMetadata::default())
}

fn receipt() -> ImportRecord {
    let none = json!({"found": 0, "new": 0, "updated": 0, "unchanged": 0, "skipped": 0});
    serde_json::from_value(json!({
        "id": Uuid::new_v4(), "job": "j", "source": "s", "path": "/s", "status": "completed",
        "conversations": none, "messages": none, "memories": none, "attachments": 0, "skipped": [],
        "warnings": [], "warnings_found": 0, "issue_pages": 0, "bytes": 0, "started_at": 1, "elapsed_ms": 0,
    }))
    .unwrap()
}

/// Returns the conversation with this number, either with an id of the provider's or grouped from rows.
fn conversation(number: usize, grouped: bool) -> ImportItem {
    let mut record: ConversationRecord = serde_json::from_value(json!({
        "id": format!("c{number}"), "created_at": 5,
        "messages": [{
            "id": format!("m{number}"), "role": "user", "created_at": 5, "content": {"type": "text", "text": "Hello"},
        }],
    }))
    .unwrap();
    if grouped {
        record.raw_metadata = satchel_pam::raw::RawObject::parse(r#"{"grouped_by":"time"}"#.to_owned()).ok();
    } else {
        record.provider_conversation_id = Some(record.id.clone());
    }
    let reader = Normaliser { platform: "p".to_owned(), extractor: "p/1.0.0".to_owned() };
    let conversation = reader.conversation(record, &mut |file| file.attachment).unwrap();
    assert_eq!(groups::is_grouped(&conversation), grouped);
    ImportItem::Conversation(Box::new(conversation))
}

/// Returns the number of revisions that forty conversations take.
fn revisions(asked: bool) -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let (lock, cancel, pace) = (WriteLock::default(), CancelToken::new(), Throttle::default());
    let (mut writer, mut record) = (writer(&store, (&lock, &cancel, &pace)), receipt());
    for number in 0..40 {
        if asked {
            pace.request_arrived();
        }
        writer.write(conversation(number, false), &mut record).unwrap();
    }
    writer.flush(&mut record).unwrap();
    assert_eq!(record.conversations.new, 40);
    let import = writer.session.origin.import.unwrap();
    assert_eq!(contributed_keys(&store, ContributionKind::Contributions, import).unwrap().len(), 40);
    let second = store.ledger_get(Ledger::Provenance, &format!("parts {import} 1")).unwrap();
    assert!(second.is_none(), "a page for each little batch");
    let [first, last] = record.revisions.unwrap();
    last - first + 1
}

#[test]
fn batches_are_small_while_somebody_asks() {
    assert_eq!(revisions(false), 1);
    assert!(revisions(true) > 1);
}

#[test]
fn a_cancelled_import_ends_with_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let (lock, cancel, pace) = (WriteLock::default(), CancelToken::new(), Throttle::default());
    let (mut writer, mut record) = (writer(&store, (&lock, &cancel, &pace)), receipt());
    let (sender, receiver) = channel::bounded(1 << 20);
    assert!(sender.send(conversation(1, false)).is_ok());
    drop(sender);
    cancel.cancel();
    let ended = writer.write_all(&receiver, &mut record, &mut |_| {});
    assert!(matches!(ended, Err(IngestError::Cancelled)), "{ended:?}");
}

#[test]
fn records_of_a_cancelled_import_are_attributed_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let (lock, cancel, pace) = (WriteLock::default(), CancelToken::new(), Throttle::default());
    let (mut writer, mut record) = (writer(&store, (&lock, &cancel, &pace)), receipt());
    writer.write(conversation(1, false), &mut record).unwrap();
    writer.write(conversation(2, true), &mut record).unwrap();
    cancel.cancel();
    assert!(matches!(writer.flush(&mut record), Err(IngestError::Cancelled)));
    assert_eq!((record.conversations.new, record.revisions), (1, Some([1, 1])));
    let import = writer.session.origin.import.unwrap();
    assert_eq!(contributed_keys(&store, ContributionKind::Contributions, import).unwrap().len(), 1);
}

#[test]
fn a_part_reported_again_counts_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let (lock, cancel, pace) = (WriteLock::default(), CancelToken::new(), Throttle::default());
    let (mut writer, mut record) = (writer(&store, (&lock, &cancel, &pace)), receipt());
    writer.session.lock().unwrap();
    writer.session.left_out.insert([7; 16]);
    writer.record_part([7; 16]);
    assert!(writer.session.left_out.is_empty());
    writer.flush(&mut record).unwrap();
}
