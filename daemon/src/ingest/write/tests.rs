//! How large batches are.

use satchel_pam::record::ConversationRecord;
use satchel_store::OpenOptions;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::ingest::normalise::Reader;

fn conversation(number: usize) -> ConversationRecord {
    serde_json::from_value(json!({
        "id": format!("c{number}"), "provider_conversation_id": format!("c{number}"),
        "messages": [{"id": format!("m{number}"), "role": "user", "content": {"type": "text", "text": "Hello"}}],
    }))
    .unwrap()
}

/// Revisions that forty conversations take.
fn revisions(asked: bool) -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), OpenOptions::default(), &mut |_| {}).unwrap();
    let reader = Reader { platform: "p".to_owned(), extractor: "p/1.0.0".to_owned() };
    let none = json!({"found": 0, "new": 0, "updated": 0, "unchanged": 0, "skipped": 0});
    let mut record: ImportRecord = serde_json::from_value(json!({
        "id": Uuid::new_v4(), "job": "j", "source": "s", "path": "/s", "status": "completed",
        "conversations": none, "messages": none, "memories": none, "attachments": 0, "skipped": [],
        "warnings": [], "warnings_found": 0, "issue_pages": 0, "bytes": 0, "started_at": 1, "elapsed_ms": 0,
    }))
    .unwrap();
    let origin =
        Origin { import: None, actor: "p/1.0.0".to_owned(), reason: "import".to_owned(), at_micros: 1 };
    let (pen, pace) = (Pen::default(), Pace::default());
    let pen = (&pen, CancelToken::new(), pace.clone());
    let mut writer = Writer::new(&store, pen, origin, ImportMetadata::default(), false);
    for number in 0..40 {
        let conversation = reader.conversation(conversation(number), &mut |file| file.attachment).unwrap();
        if asked {
            pace.asked();
        }
        writer.take(Normalised::Conversation(Box::new(conversation)), &mut record).unwrap();
    }
    writer.flush(&mut record).unwrap();
    assert_eq!(record.conversations.new, 40);
    let [first, last] = record.revisions.unwrap();
    last - first + 1
}

#[test]
fn batches_are_small_while_somebody_asks() {
    assert_eq!(revisions(false), 1);
    assert!(revisions(true) > 1);
}
