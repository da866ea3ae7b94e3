//! Memories refer to the conversation that has their row, however conversations change.

mod many;

use satchel_registry::Plugins;
use std::{path::Path, sync::Arc};

use satchel_host::Throttle;
use satchel_pam::{
    conversation::ImportMetadata,
    memory::Memory,
    raw::RawObject,
    record::{ConversationRecord, Evidence, MessageRecord},
};
use satchel_source::{CancelToken, Limits};
use satchel_store::{Durability, MemoryQuery, OpenOptions, Origin};
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::{
    clock::SystemClock,
    ingest::{
        Imports, ledger,
        normalise::{KeyScope, Normaliser},
        records::{DeferredRecords, ImportItem},
        session::Session,
        undo::{UndoDirection, UndoRequest},
    },
    write_lock::WriteLock,
};

const MINUTE: i64 = 60_000_000;

struct Fixture {
    store: Store,
    imports: Imports,
    lock: WriteLock,
}

/// An export: conversations with messages at these minutes, and the minute of a message with a memory.
type Export<'a> = (&'a [&'a [i64]], Option<i64>);

impl Fixture {
    fn open(dir: &Path) -> Self {
        let store = Store::open(dir, OpenOptions::default(), &mut |_| {}).unwrap();
        let (plugins, clock) = (Arc::new(Plugins::built_in(None)), Arc::new(SystemClock));
        let limits = satchel_host::PluginLimits::default();
        let imports = Imports::new(store.clone(), plugins, clock, Limits::default(), limits).unwrap();
        Self { store, imports, lock: WriteLock::default() }
    }

    /// Imports an export; `settled`: the import does not die before memories are derived.
    fn import(&self, (conversations, remembered): Export<'_>, settled: bool) -> ImportRecord {
        self.import_remembering(conversations, remembered.as_slice(), settled)
    }

    /// Imports an export with a memory for the message at each of these minutes.
    fn import_remembering(
        &self,
        conversations: &[&[i64]],
        remembered: &[i64],
        settled: bool,
    ) -> ImportRecord {
        let reader = Normaliser { platform: "p".to_owned(), extractor: "p/1.0.0".to_owned() };
        let mut record = receipt(Uuid::new_v4());
        let origin = Origin {
            import: Uuid::parse_str(&record.id).ok(),
            actor: "p/1.0.0".to_owned(),
            reason: "import".to_owned(),
            at_micros: 1,
        };
        let lock = (&self.lock, CancelToken::new(), Throttle::default());
        let session = Session::new(&self.store, lock, origin, false);
        let mut writer = Writer::new(session, ImportMetadata::default());
        for minutes in conversations {
            let conversation = reader.conversation(rows(minutes), &mut |file| file.attachment).unwrap();
            let place = KeyScope::of(&conversation);
            writer.write(ImportItem::Conversation(Box::new(conversation)), &mut record).unwrap();
            for minute in remembered.iter().filter(|minute| minutes.contains(minute)) {
                let stored = reader.evidence(evidence(*minute), 0, &place);
                writer.write(ImportItem::Evidence(vec![stored]), &mut record).unwrap();
            }
        }
        writer.flush(&mut record).unwrap();
        if settled {
            writer.derive(DeferredRecords::default(), &mut record).unwrap();
        }
        ledger::put(&self.store, &record, Durability::Now).unwrap();
        assert!(record.conversations.balanced() && record.messages.balanced() && record.memories.balanced());
        record
    }

    fn undo_or_redo(&self, record: &ImportRecord, direction: UndoDirection) {
        let request = UndoRequest { id: &record.id, direction, dry_run: false, expected: None };
        self.imports.undo_or_redo(request, &CancelToken::new()).unwrap().unwrap();
    }

    fn memory(&self) -> Memory {
        let all = self.store.memories(&MemoryQuery::default(), None, 2, self.store.revision()).unwrap();
        assert_eq!(all.items.len(), 1);
        all.items.into_iter().next().unwrap().memory
    }

    /// Returns the minutes of the conversation that the memory refers to, after checking that it has the memory's
    /// message.
    fn around(&self) -> Vec<i64> {
        let memory = self.memory();
        let id = memory.provenance.conversation_ref.unwrap();
        let stored = self.store.conversation(&id, None).unwrap().unwrap();
        assert!(!stored.withdrawn, "the memory names a conversation that is shown no more");
        let message = memory.provenance.message_ref.unwrap();
        assert!(stored.heads.iter().any(|head| head.id == message));
        let sighting = &memory.metadata["satchel"]["evidence"][0];
        assert_eq!((&sighting["conversation"], &sighting["message"]), (&json!(id), &json!(message)));
        let known = conversation_record::known(&stored);
        known.nodes.iter().filter_map(|node| Some(node.time? / MINUTE)).collect()
    }
}

fn receipt(id: Uuid) -> ImportRecord {
    let none = json!({"found": 0, "new": 0, "updated": 0, "unchanged": 0, "skipped": 0});
    serde_json::from_value(json!({
        "id": id, "job": "j", "source": "s", "path": "/s", "status": "completed",
        "conversations": none, "messages": none, "memories": none, "attachments": 0, "skipped": [],
        "warnings": [], "warnings_found": 0, "issue_pages": 0, "bytes": 0, "started_at": 1, "elapsed_ms": 0,
    }))
    .unwrap()
}

/// Returns a conversation with messages at these minutes; a negative minute is an event.
fn rows(minutes: &[i64]) -> ConversationRecord {
    let message = |minute: &i64| -> MessageRecord {
        let (at, raw) = (minute.abs(), if *minute < 0 { json!({"hidden": true}) } else { json!({}) });
        serde_json::from_value(
            json!({"id": format!("m{at}"), "role": "user", "created_at": at * MINUTE, "raw_metadata": raw,
            "content": {"type": "text", "text": format!("at {at}")}}),
        )
        .unwrap()
    };
    ConversationRecord {
        id: format!("group {}", minutes[0]),
        created_at: minutes.first().map(|first| first * MINUTE),
        updated_at: minutes.last().map(|last| last * MINUTE),
        raw_metadata: RawObject::parse(r#"{"grouped_by":"time"}"#.to_owned()).ok(),
        messages: minutes.iter().map(message).collect(),
        ..ConversationRecord::default()
    }
}

fn evidence(minute: i64) -> Evidence {
    serde_json::from_value(json!({
        "id": format!("e{minute}"), "at": minute * MINUTE, "conversation": "?", "message": format!("m{minute}"),
        "extraction_method": "explicit_user_input",
        "claim": {"statement": {"content": "Likes rye bread", "memory_type": "preference"}},
    }))
    .unwrap()
}

#[test]
fn a_memory_follows_its_row_when_conversations_join_and_split() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(dir.path());
    fixture.import((&[&[5, 6, 7]], Some(6)), true);
    fixture.import((&[&[1, 2, 3]], None), true);
    assert_eq!(fixture.around(), [5, 6, 7]);
    let between = fixture.import((&[&[3, 4, 5]], None), true);
    assert_eq!(fixture.around(), [1, 2, 3, 4, 5, 6, 7]);
    fixture.undo_or_redo(&between, UndoDirection::Undo);
    assert_eq!(fixture.around(), [5, 6, 7]);
    fixture.undo_or_redo(&between, UndoDirection::Redo);
    assert_eq!(fixture.around(), [1, 2, 3, 4, 5, 6, 7]);
    let other = tempfile::tempdir().unwrap();
    let reversed = Fixture::open(other.path());
    for export in [(&[&[3, 4, 5][..]][..], None), (&[&[1, 2, 3]], None), (&[&[5, 6, 7]], Some(6))] {
        reversed.import(export, true);
    }
    assert_eq!(reversed.memory(), fixture.memory());
}

#[test]
fn the_next_import_derives_memories_that_an_interrupted_one_did_not() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(dir.path());
    fixture.import((&[&[5, 6, 7]], Some(5)), true);
    fixture.import((&[&[1, 5]], None), false);
    fixture.import((&[&[90]], None), true);
    assert_eq!(fixture.around(), [1, 5, 6, 7]);
}

#[test]
fn one_batch_joins_several_conversations() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(dir.path());
    fixture.import((&[&[5, 6], &[50, 51]], Some(50)), true);
    let both = fixture.import((&[&[1, 5], &[40, 50]], None), true);
    assert_eq!(both.conversations.updated, 2);
    assert_eq!(fixture.around(), [40, 50, 51]);
}
