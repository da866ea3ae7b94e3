//! Checks the documents that scripts rely on, key by key and in order.

use std::path::Path;

use satchel_proto::v1;
use serde::Serialize;
use serde_json::Value;

use super::{admin, conversation, import, links, memory, peer, plugin, search};

/// Returns the keys of an object in the order in which they are printed.
fn keys(value: &impl Serialize) -> Vec<String> {
    let text = serde_json::to_string(value).unwrap();
    // Only keys at depth one count: a quote that opens a key follows `{` or `,` outside of any inner value.
    let (mut keys, mut depth, mut rest) = (Vec::new(), 0, text.as_str());
    while let Some(at) = rest.find(['{', '}', '[', ']', '"']) {
        let found = rest.as_bytes()[at];
        rest = &rest[at + 1..];
        match found {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {
                let end = rest.find('"').unwrap();
                let (word, after) = (&rest[..end], &rest[end + 1..]);
                if depth == 1 && after.starts_with(':') {
                    keys.push(word.to_owned());
                }
                rest = after;
            }
        }
    }
    keys
}

fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

#[test]
fn an_import_has_the_keys_of_its_contract() {
    let counts = v1::RecordCounts { found: 44, new: 12, updated: 1, unchanged: 30, skipped: 1 };
    let import = v1::Import {
        id: "i".to_owned(),
        status: v1::ImportStatus::CompletedWithSkips.into(),
        conversations: Some(counts),
        skipped: vec![v1::ImportIssue {
            kind: v1::IssueKind::Skip.into(),
            record: v1::RecordKind::Conversation.into(),
            locator: "conversations-001.json[17]".to_owned(),
            message: "mapping is null".to_owned(),
        }],
        warnings: vec![v1::ImportIssue::default()],
        revisions: Some(v1::RevisionRange { first: 52, last: 57 }),
        ..v1::Import::default()
    };
    let shown = import::Imports::new([&import], None);
    assert_eq!(keys(&shown), ["imports"]);
    let one = &shown.imports[0];
    assert_eq!(
        keys(one),
        [
            "id",
            "source",
            "source_checksum",
            "provider",
            "importer",
            "status",
            "conversations",
            "messages",
            "memories",
            "skipped",
            "more_skipped",
            "warnings",
            "warnings_total",
            "revisions",
            "elapsed_ms",
            "reason",
            "dry_run",
            "plugin",
            "plugin_signer",
            "plugin_unsigned",
            "plugin_sha256",
            "path",
            "files",
            "files_total",
            "bytes",
            "attachments",
            "started_at",
            "finished_at",
            "differences",
            "differences_total",
            "accounts",
            "standing",
            "signer",
            "partly_signed",
            "would_change",
            "forced",
            "machine",
        ]
    );
    assert_eq!(keys(&one.conversations), ["found", "new", "updated", "unchanged", "skipped"]);
    let value = json(one);
    assert_eq!(value["status"], "completed_with_skips");
    assert_eq!(value["revisions"], serde_json::json!([52, 57]));
    assert_eq!(
        value["skipped"][0],
        serde_json::json!({"kind": "conversation", "locator": "conversations-001.json[17]", "reason": "mapping is null"})
    );
    assert_eq!(value["warnings"][0], serde_json::json!({"locator": "", "message": ""}));
    assert!(value["provider"].is_null() && value["started_at"].is_null());
    assert_eq!(keys(&import::Issues::new("i", &import.skipped, true)), ["id", "issues", "more"]);
    let issue = json(&import::Issues::new("i", &import.skipped, true));
    assert_eq!(issue["issues"][0]["issue"], "skip");
    assert_eq!(issue["issues"][0]["kind"], "conversation");
}

#[test]
fn a_memory_is_the_pam_object_to_the_byte() {
    let pam = r#"{"id":"m","big":12345678901234567890,"precise":1.10,"content":"x"}"#;
    let full =
        v1::Memory { id: "m".to_owned(), pam_json: pam.to_owned(), version: 2, ..v1::Memory::default() };
    let cut = v1::Memory {
        id: "n".to_owned(),
        content: "start".to_owned(),
        status: v1::MemoryStatus::Active.into(),
        r#type: v1::MemoryType::Fact.into(),
        abridged: true,
        ..v1::Memory::default()
    };
    let memories = [full, cut];
    let header = v1::StoreHeader { store_id: "s".to_owned(), revision: 7 };
    let list = memory::Memories::new(&memories, true, &header);
    assert_eq!(keys(&list), ["memories", "more", "revision", "store_id"]);
    let text = serde_json::to_string(&list).unwrap();
    assert!(text.contains(pam), "{text}");
    assert_eq!(keys(&list.memories[1]), ["id", "type", "status", "content", "content_hash", "abridged"]);
    assert_eq!(
        keys(&memory::MemoryDocument::new(&memories[0], "")),
        ["memory", "version", "create_revision", "mod_revision", "stranger"]
    );
    let version = v1::MemoryVersion { memory: Some(memories[0].clone()), ..v1::MemoryVersion::default() };
    assert_eq!(
        keys(&memory::Version::new(&version)),
        ["version", "revision", "changed_at", "actor", "reason", "import_id", "memory"]
    );
}

#[test]
fn linked_memories_have_their_keys() {
    let relation = v1::MemoryLink {
        kind: v1::MemoryLinkKind::Relation.into(),
        memory_id: "m".to_owned(),
        relation_id: "r".to_owned(),
        relation_type: v1::RelationType::Supports.into(),
        direction: v1::Direction::In.into(),
        ..v1::MemoryLink::default()
    };
    let conversation = v1::MemoryLink {
        kind: v1::MemoryLinkKind::Conversation.into(),
        conversation_id: "c".to_owned(),
        ..v1::MemoryLink::default()
    };
    let row = v1::RelatedMemory { path: vec![relation, conversation], distance: 2, memory: None };
    let rows = [row];
    let memories = rows.iter().map(links::RelatedMemory::new).collect();
    let (more, truncated, revision, store_id) = (false, true, 7, "s");
    let shown = links::RelatedMemories { id: "i", memories, more, truncated, revision, store_id };
    assert_eq!(keys(&shown), ["id", "memories", "more", "truncated", "revision", "store_id"]);
    assert_eq!(keys(&shown.memories[0]), ["distance", "path", "memory"]);
    let step = ["kind", "memory_id", "relation_id", "relation_type", "direction", "conversation_id"];
    assert_eq!(keys(&shown.memories[0].path[0]), step);
    let value = json(&shown.memories[0].path[0]);
    assert_eq!((&value["kind"], &value["direction"]), (&"relation".into(), &"in".into()));
    assert!(json(&shown.memories[0].path[1])["relation_type"].is_null());

    let group = v1::DuplicateGroup { reason: v1::DuplicateReason::SameText.into(), ..Default::default() };
    let groups = vec![links::DuplicateGroup::new(&group)];
    let shown = links::DuplicateGroups { groups, more, truncated, revision, store_id };
    assert_eq!(keys(&shown), ["groups", "more", "truncated", "revision", "store_id"]);
    assert_eq!(keys(&shown.groups[0]), ["reason", "similarity", "total", "memories"]);
    assert_eq!(json(&shown.groups[0])["reason"], "same_text");

    let pair = v1::Contradiction { reason: v1::ContradictionReason::Superseded.into(), ..Default::default() };
    let contradictions = vec![links::Contradiction::new(&pair)];
    let shown = links::Contradictions { contradictions, more, revision, store_id };
    assert_eq!(keys(&shown), ["contradictions", "more", "revision", "store_id"]);
    assert_eq!(keys(&shown.contradictions[0]), ["reason", "settled", "relation", "first", "second"]);
    assert_eq!(json(&shown.contradictions[0])["reason"], "superseded");
}

#[test]
fn a_conversation_has_the_keys_of_pam() {
    let call = |input| v1::ToolCall { id: None, name: "search".to_owned(), input, output: None };
    let message = v1::Message {
        id: "a".to_owned(),
        role: v1::Role::Assistant.into(),
        content: Some(v1::Content {
            kind: v1::ContentKind::Multipart.into(),
            text: None,
            parts: vec![v1::ContentPart { kind: v1::PartKind::Code.into(), ..v1::ContentPart::default() }],
        }),
        attachments: vec![v1::Attachment {
            kind: v1::AttachmentKind::Image.into(),
            ..v1::Attachment::default()
        }],
        citations: vec![v1::Citation::default()],
        tool_calls: vec![
            call(None),
            call(Some(v1::tool_call::Input::InputText("bees".to_owned()))),
            call(Some(v1::tool_call::Input::InputJson("{\"q\":1.50}".to_owned()))),
        ],
        raw_metadata_json: Some("{\"a\":1}".to_owned()),
        ..v1::Message::default()
    };
    let row =
        v1::Conversation { id: "c".to_owned(), platform: "claude".to_owned(), ..v1::Conversation::default() };
    let (messages, header) = ([message], v1::StoreHeader::default());
    let rows = [row];
    let list = conversation::Conversations::new(&rows, false, &header);
    assert_eq!(keys(&list), ["conversations", "more", "revision", "store_id"]);
    let listed = [
        "id",
        "platform",
        "account",
        "title",
        "created_at",
        "updated_at",
        "message_count",
        "tags",
        "is_archived",
        "mod_revision",
    ];
    assert_eq!(keys(&list.conversations[0]), listed);
    let shown = conversation::ConversationDocument::new(&rows[0], &messages);
    assert_eq!(keys(&shown), ["conversation", "messages"]);
    let more = [
        "provider_conversation_id",
        "export_format_version",
        "model",
        "system_instruction",
        "participants",
        "active_leaf_id",
        "raw_metadata",
        "abridged",
    ];
    assert_eq!(keys(&shown.conversation), [&listed[..], &more[..]].concat());
    assert_eq!(
        keys(&shown.messages[0]),
        [
            "id",
            "provider_message_id",
            "role",
            "content",
            "created_at",
            "parent_id",
            "children_ids",
            "model",
            "is_thought",
            "token_count",
            "attachments",
            "citations",
            "tool_calls",
            "raw_metadata",
            "hidden",
            "on_active_branch",
            "abridged",
        ]
    );
    let value = json(&shown.messages[0]);
    assert_eq!((&value["role"], &value["content"]["type"]), (&"assistant".into(), &"multipart".into()));
    assert_eq!(value["content"]["parts"][0]["type"], "code");
    let inputs: Vec<&Value> = (0..3).map(|at| &value["tool_calls"][at]["input"]).collect();
    assert_eq!(inputs, [&Value::Null, &"bees".into(), &serde_json::json!({"q": 1.5})]);
    assert!(serde_json::to_string(&shown).unwrap().contains("{\"q\":1.50}"));
}

#[test]
fn exports_and_plugins_have_their_keys() {
    let export =
        v1::Export { id: "e".to_owned(), r#type: v1::ExportType::Full.into(), ..v1::Export::default() };
    let shown = admin::Export::new(&export);
    assert_eq!(
        keys(&shown),
        [
            "export_id",
            "export_type",
            "base_export_id",
            "since",
            "memories",
            "conversations",
            "relations",
            "checksum",
            "revision",
            "path",
            "export_date",
            "withheld",
            "bytes",
            "signer",
            "manifest_sha256",
            "format",
            "reason",
            "warnings",
            "applied",
            "selected_by",
            "stripped",
            "encrypted",
            "machine",
        ]
    );
    assert_eq!((&json(&shown)["export_type"], &json(&shown)["since"]), (&"full".into(), &Value::Null));
    assert_eq!(
        keys(&plugin::Installation::new(&v1::PluginInstallation::default())),
        [
            "installed",
            "already_installed",
            "sha256",
            "bytes",
            "signer",
            "key_trusted",
            "replaces_version",
            "downgrade",
            "replaces_built_in",
            "similar_to",
            "reads_differently",
            "earlier_imports",
            "manifest",
        ]
    );
    assert_eq!(
        keys(&plugin::Plugin::new(&v1::Plugin::default())),
        [
            "name",
            "version",
            "platform",
            "importer_version",
            "formats",
            "built_in",
            "sha256",
            "state",
            "signer",
            "unsigned",
            "replaces_built_in",
            "replaced_by",
            "bytes",
            "installed_at",
            "failures",
            "last_failure",
            "manifest",
        ]
    );
}

#[test]
fn the_status_has_its_keys() {
    let (status, stored) = (v1::GetStatusResponse::default(), v1::GetStatsResponse::default());
    let shown = admin::Status::new(&status, &stored, false);
    assert_eq!(
        keys(&shown),
        [
            "version",
            "data_dir",
            "daemon",
            "pid",
            "started_at",
            "store_id",
            "revision",
            "running_jobs",
            "memories",
            "conversations",
            "messages",
            "relations",
            "journal_bytes",
            "database_bytes",
            "blob_bytes",
            "problems",
            "sources",
            "disabled_plugins",
            "quarantined_memories",
            "device_addresses",
            "devices",
            "peers",
            "peers_in_step",
            "search_index",
            "embeddings",
        ]
    );
    assert_eq!(keys(&shown.memories), ["total", "by_status", "by_type", "by_platform"]);
}

#[test]
fn a_context_has_its_keys() {
    let item = v1::ContextItem {
        kind: v1::SearchHitKind::Memory.into(),
        id: "m".to_owned(),
        platform: "claude".to_owned(),
        memory_type: v1::MemoryType::Fact.into(),
        memory_status: v1::MemoryStatus::Active.into(),
        confidence: Some(0.5),
        text: "Bakes bread".to_owned(),
        tokens: 40,
        ..v1::ContextItem::default()
    };
    let shown = search::PromptContext {
        text: "",
        instructions: Vec::new(),
        items: vec![search::ContextItem::new(&item)],
        tokens_used: 90,
        omitted: 0,
        revision: 7,
        store_id: "s",
    };
    assert_eq!(
        keys(&shown),
        ["text", "instructions", "items", "tokens_used", "omitted", "revision", "store_id"]
    );
    assert_eq!(
        keys(&shown.items[0]),
        [
            "kind",
            "id",
            "conversation_id",
            "title",
            "platform",
            "role",
            "type",
            "status",
            "date",
            "confidence",
            "text",
            "cut",
            "tokens",
        ]
    );
    let value = json(&shown.items[0]);
    assert_eq!((&value["type"], &value["status"]), (&"fact".into(), &"active".into()));
    assert!(value["role"].is_null() && value["conversation_id"].is_null() && value["date"].is_null());
}

#[test]
fn peers_and_conflicts_have_the_keys_of_their_contract() {
    let wire = v1::Peer {
        name: "desk".to_owned(),
        direction: v1::PeerDirection::Outgoing.into(),
        state: v1::PeerState::Ok.into(),
        in_step: true,
        origin: "o".to_owned(),
        ..v1::Peer::default()
    };
    let shown = peer::Peer::new(&wire);
    assert_eq!(
        keys(&shown),
        [
            "name",
            "direction",
            "state",
            "in_step",
            "behind",
            "ahead",
            "last_contact",
            "last_error",
            "addresses",
            "fingerprint",
            "device_id",
            "received_changes",
            "sent_changes",
            "origin",
            "attachments",
            "selection",
        ]
    );
    let value = json(&shown);
    let unset = serde_json::json!({"platforms": [], "tags": [], "types": [], "denied_tags": [], "created_since": null,
        "created_before": null, "exportable_only": false});
    assert_eq!(value["selection"], unset);
    assert_eq!((&value["direction"], &value["state"]), (&"outgoing".into(), &"ok".into()));
    assert!(value["last_contact"].is_null() && value["last_error"].is_null());
    assert_eq!(keys(&peer::Peers { peers: vec![shown] }), ["peers"]);
    assert_eq!(keys(&peer::PeerDocument { peer: peer::Peer::new(&wire) }), ["peer"]);
    assert_eq!(keys(&peer::RemovedPeer { removed: "desk" }), ["removed"]);
    let summary = v1::ChangeFileSummary { changes: 3, files: 1, size_bytes: 900 };
    let exported = peer::ExportedChangeFile::new(Path::new("/stick/for-desk.age"), "desk", &summary);
    assert_eq!(keys(&exported), ["file", "peer", "changes", "files", "size_bytes"]);
    let imported = v1::ImportChangeFileResponse {
        refused: vec![v1::RefusedChange { origin: "o".to_owned(), counter: 7, problem: "p".to_owned() }],
        ..v1::ImportChangeFileResponse::default()
    };
    let imported = peer::ImportedChangeFile::new(&imported);
    assert_eq!(
        keys(&imported),
        ["peer", "created_at", "new_changes", "repeated_changes", "new_files", "refused", "problem"]
    );
    assert_eq!(keys(&imported.refused[0]), ["origin", "counter", "problem"]);
    let status = v1::GetSyncStatusResponse { conflicts: 2, ..v1::GetSyncStatusResponse::default() };
    let peers = [wire];
    let by_desk = v1::ConflictingEdit { origin: "o".to_owned(), ..v1::ConflictingEdit::default() };
    let value = v1::ConflictingValue { edits: vec![by_desk], ..v1::ConflictingValue::default() };
    let conflicts =
        [v1::Conflict { values: vec![value], ..v1::Conflict::default() }, v1::Conflict::default()];
    let status = peer::SyncStatus::new(&status, &peers, &conflicts);
    assert_eq!(
        keys(&status),
        ["peers", "digest", "origin", "conflicts", "pending_erasures", "withheld_changes"]
    );
    assert_eq!(
        keys(&status.peers[0]),
        ["name", "in_step", "behind", "ahead", "last_contact", "last_error", "state", "conflicts"]
    );
    assert_eq!(
        (&json(&status)["conflicts"], &json(&status)["peers"][0]["conflicts"]),
        (&2.into(), &1.into())
    );
    let conflict = v1::Conflict {
        memory_id: "m".to_owned(),
        field: "content".to_owned(),
        values: vec![v1::ConflictingValue {
            value_json: "\"one\"".to_owned(),
            edits: vec![v1::ConflictingEdit::default()],
        }],
    };
    let conflicts = peer::Conflicts { conflicts: vec![peer::Conflict::new(&conflict)] };
    assert_eq!(keys(&conflicts), ["conflicts"]);
    let value = json(&conflicts);
    let first = &value["conflicts"][0];
    assert_eq!(first["values"][0]["value"], "one");
    assert_eq!(keys(&conflicts.conflicts[0]), ["memory_id", "field", "values"]);
    assert!(first["values"][0]["edits"][0]["changed_at"].is_null());
}
