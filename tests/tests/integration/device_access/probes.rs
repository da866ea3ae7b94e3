//! What is sent to each method: requests that would reveal records if access were not checked.

use prost::Message;
use prost_types::{Duration, FieldMask};
use satchel_proto::v1::{self, DeviceRole, search_meaning::Source};

use crate::device_access::{
    callers::CallerKind,
    records::{MODEL, QUARANTINED, Records},
};

/// How a method is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Unary,
    ServerStream,
    /// A stream that does not end; it is read until it has caught up.
    EndlessStream,
    ClientStream,
}

/// An encoded request.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    pub(crate) shape: Shape,
    pub(crate) request: Vec<u8>,
}

fn unary(request: &impl Message) -> Probe {
    Probe { shape: Shape::Unary, request: request.encode_to_vec() }
}

/// Methods whose answers must have shown something to a caller, or the test would be void.
pub(crate) const REVEALING: &[(&str, CallerKind)] = &[
    ("/satchel.v1.MemoryService/GetMemory", CallerKind::AgentA),
    ("/satchel.v1.MemoryService/GetMemory", CallerKind::Reader),
    ("/satchel.v1.MemoryService/BatchGetMemories", CallerKind::AgentB),
    ("/satchel.v1.MemoryService/ListMemories", CallerKind::AgentA),
    ("/satchel.v1.MemoryService/ListMemories", CallerKind::ReaderOfPart),
    ("/satchel.v1.MemoryService/ListMemoryIds", CallerKind::AgentA),
    ("/satchel.v1.MemoryService/ListMemoryVersions", CallerKind::AgentA),
    ("/satchel.v1.MemoryService/ListRelations", CallerKind::AgentA),
    ("/satchel.v1.MemoryService/ListQuarantinedMemories", CallerKind::Owner),
    ("/satchel.v1.MemoryService/ListRelatedMemories", CallerKind::AgentA),
    ("/satchel.v1.MemoryService/ListRelatedMemories", CallerKind::Reader),
    ("/satchel.v1.MemoryService/ListDuplicateMemories", CallerKind::AgentA),
    ("/satchel.v1.MemoryService/ListDuplicateMemories", CallerKind::Reader),
    ("/satchel.v1.MemoryService/ListContradictions", CallerKind::AgentA),
    ("/satchel.v1.MemoryService/ListContradictions", CallerKind::Owner),
    ("/satchel.v1.ConversationService/GetConversation", CallerKind::ReaderOfPart),
    ("/satchel.v1.ConversationService/ListConversations", CallerKind::AgentWithConversations),
    ("/satchel.v1.ConversationService/ListMessages", CallerKind::Reader),
    ("/satchel.v1.SearchService/Search", CallerKind::AgentA),
    ("/satchel.v1.SearchService/Search", CallerKind::AgentB),
    ("/satchel.v1.SearchService/Search", CallerKind::AgentWithConversations),
    ("/satchel.v1.SearchService/Search", CallerKind::ReaderOfPart),
    ("/satchel.v1.SearchService/Search", CallerKind::Reader),
    ("/satchel.v1.SearchService/BuildContext", CallerKind::AgentA),
    ("/satchel.v1.SearchService/BuildContext", CallerKind::AgentB),
    ("/satchel.v1.SearchService/BuildContext", CallerKind::AgentWithConversations),
    ("/satchel.v1.SearchService/BuildContext", CallerKind::ReaderOfPart),
    ("/satchel.v1.SearchService/BuildContext", CallerKind::Reader),
    ("/satchel.v1.ImportService/GetImport", CallerKind::Owner),
    ("/satchel.v1.WatchService/WatchChanges", CallerKind::AgentA),
    ("/satchel.v1.WatchService/WatchChanges", CallerKind::ReaderOfPart),
    ("/satchel.v1.WatchService/ListChanges", CallerKind::AgentB),
    ("/satchel.v1.WatchService/ListChanges", CallerKind::AgentWithConversations),
];

/// Queries for what all records have, for what only hidden ones have, and misspelt ones, for suggestions.
fn searches(records: &Records) -> Vec<Probe> {
    let queries = [
        "canary",
        "remembers OR said OR about",
        "canari~",
        "privat*",
        "tag:tag-private-x",
        "in:memories",
        "in:titles",
        "in:messages",
        "conversation:conversation-id",
        "canarx",
        "nobodx",
        "quarantinex",
    ];
    let search = |query: &str| v1::SearchRequest {
        query: query.to_owned(),
        include_hidden: true,
        facets: (1..=7).collect(),
        explain: true,
        wait_until_current: true,
        ..v1::SearchRequest::default()
    };
    let near = |source, model: &str| {
        let meaning = v1::SearchMeaning { model: model.to_owned(), source: Some(source) };
        unary(&v1::SearchRequest { meaning: Some(meaning), page_size: 1_000, ..search("canary") })
    };
    let vector = |values: &[f32]| Source::Vector(v1::SearchVector { values: values.to_vec() });
    let near = [near(vector(&[1.0, 0.4]), MODEL), near(vector(&[1.0]), MODEL), near(vector(&[1.0, 0.4]), "")]
        .into_iter()
        .chain(records.all_ids().map(|id| near(Source::MemoryId(id.to_owned()), "")));
    let grouped = v1::SearchRequest { group_by_conversation: true, page_size: 1, ..search("canary") };
    queries.iter().map(|query| unary(&search(query))).chain([unary(&grouped)]).chain(near).collect()
}

/// Requests with a budget for all records, and with one for a few, so that others are counted.
fn contexts() -> Vec<Probe> {
    let queries =
        ["canary", "remembers OR said OR about", "privat*", "tag:tag-private-x", "type:fact", "quarantinex"];
    let context = |query: &str, token_budget| v1::BuildContextRequest {
        query: query.to_owned(),
        token_budget,
        include_messages: true,
        include_instructions: true,
        wait_until_current: true,
        ..v1::BuildContextRequest::default()
    };
    let budgets = |query: &&str| [unary(&context(query, 50_000)), unary(&context(query, 150))];
    queries.iter().flat_map(budgets).collect()
}

/// Returns the requests for a method; `None` for a method without a row.
#[expect(clippy::too_many_lines, reason = "a table")]
pub(crate) fn probes(path: &str, records: &Records) -> Option<Vec<Probe>> {
    let method = path.strip_prefix("/satchel.v1.")?;
    let ids =
        ["private", "shared-a", "shared-b", "shared-nobody", "public", "once-public", "of-part", QUARANTINED];
    let ids = || ids.iter().map(|name| records.id(name).to_owned());
    let text = str::to_owned;
    let conversations = || records.conversations.values().cloned();
    let everything = v1::MemoryFilter { statuses: (1..=5).collect(), ..v1::MemoryFilter::default() };
    Some(match method {
        "MemoryService/GetMemory" => ids()
            .map(|id| {
                unary(&v1::GetMemoryRequest {
                    id,
                    view: v1::MemoryView::PamJson.into(),
                    as_of_revision: None,
                })
            })
            .collect(),
        "MemoryService/BatchGetMemories" => {
            let view = v1::MemoryView::PamJson.into();
            vec![unary(&v1::BatchGetMemoriesRequest { ids: ids().collect(), view, as_of_revision: None })]
        }
        "MemoryService/ListMemories" => {
            let list = |filter, order: v1::MemoryOrder| {
                unary(&v1::ListMemoriesRequest {
                    filter: Some(filter),
                    order: order.into(),
                    view: v1::MemoryView::PamJson.into(),
                    page_size: 2,
                    ..v1::ListMemoriesRequest::default()
                })
            };
            let all = v1::ListMemoriesRequest {
                filter: Some(everything.clone()),
                view: v1::MemoryView::PamJson.into(),
                page_size: 1_000,
                ..v1::ListMemoriesRequest::default()
            };
            let tagged = v1::MemoryFilter { tags_any: vec![text("tag-private-x")], ..everything.clone() };
            let account =
                v1::MemoryFilter { accounts: vec![text("account canary-private.")], ..everything.clone() };
            let conversation =
                v1::MemoryFilter { conversation_id: text("conversation-id"), ..everything.clone() };
            let platform = v1::MemoryFilter { platforms: vec![text("elsewhere")], ..everything };
            vec![
                unary(&all),
                list(tagged, v1::MemoryOrder::IdAsc),
                list(account, v1::MemoryOrder::CreatedAsc),
                list(conversation, v1::MemoryOrder::UpdatedDesc),
                list(platform, v1::MemoryOrder::IdAsc),
            ]
        }
        "MemoryService/ListMemoryIds" => {
            let prefix =
                |prefix: &str| v1::ListMemoryIdsRequest { prefix: text(prefix), ..Default::default() };
            vec![unary(&prefix("")), unary(&prefix("memory-p"))]
        }
        "MemoryService/ListMemoryVersions" => ids()
            .map(|id| {
                let view = v1::MemoryView::PamJson.into();
                unary(&v1::ListMemoryVersionsRequest { id, view, ..Default::default() })
            })
            .collect(),
        "MemoryService/CreateMemory" => {
            // Equal to a memory that most callers do not see.
            let memory = v1::Memory { content: text("Remembers canary-private."), ..Default::default() };
            vec![unary(&v1::CreateMemoryRequest { memory: Some(memory), ..Default::default() })]
        }
        "MemoryService/UpdateMemory" => hidden(records)
            .map(|id| {
                let memory = v1::Memory { id, summary: Some(text("new")), ..v1::Memory::default() };
                unary(&v1::UpdateMemoryRequest {
                    memory: Some(memory),
                    update_mask: Some(FieldMask { paths: vec![text("summary")] }),
                    etag: text("\"wrong\""),
                    ..Default::default()
                })
            })
            .collect(),
        "MemoryService/SetMemoryStatus" => hidden(records)
            .map(|id| {
                let status = v1::MemoryStatus::Archived.into();
                unary(&v1::SetMemoryStatusRequest {
                    id,
                    status,
                    etag: text("\"wrong\""),
                    ..Default::default()
                })
            })
            .collect(),
        "MemoryService/SupersedeMemory" => hidden(records)
            .map(|old_id| {
                let by = v1::supersede_memory_request::Replacement::ExistingId(text(records.id("public")));
                let etag = text("\"wrong\"");
                unary(&v1::SupersedeMemoryRequest {
                    old_id,
                    etag,
                    replacement: Some(by),
                    ..Default::default()
                })
            })
            .collect(),
        "MemoryService/BulkSetStatus" => vec![unary(&v1::BulkSetStatusRequest {
            filter: Some(everything),
            status: v1::MemoryStatus::Archived.into(),
            dry_run: true,
            ..Default::default()
        })],
        "MemoryService/RestoreMemoryVersion" => hidden(records)
            .map(|id| {
                let version = v1::MemoryVersionRef { id, version: 99 };
                let target = Some(v1::restore_memory_version_request::Target::MemoryVersion(version));
                unary(&v1::RestoreMemoryVersionRequest { target, ..Default::default() })
            })
            .collect(),
        "MemoryService/ListQuarantinedMemories" => [1, 2, 3]
            .map(|state| {
                unary(&v1::ListQuarantinedMemoriesRequest {
                    state,
                    view: v1::MemoryView::PamJson.into(),
                    page_size: 1_000,
                    ..Default::default()
                })
            })
            .into(),
        "MemoryService/ReviewMemories" => vec![unary(&v1::ReviewMemoriesRequest {
            ids: vec![text(records.id(QUARANTINED))],
            decision: v1::ReviewDecision::Reject.into(),
            ..Default::default()
        })],
        "MemoryService/CreateRelation" => vec![unary(&v1::CreateRelationRequest {
            relation: Some(v1::Relation {
                from_id: text(records.id("private")),
                to_id: text(records.id("public")),
                r#type: v1::RelationType::RelatedTo.into(),
                ..v1::Relation::default()
            }),
            ..Default::default()
        })],
        "MemoryService/WithdrawRelation" => {
            vec![unary(&v1::WithdrawRelationRequest { id: text("no-relation"), ..Default::default() })]
        }
        "MemoryService/ListRelations" => {
            let mut probes: Vec<Probe> = ids()
                .map(|memory_id| unary(&v1::ListRelationsRequest { memory_id, ..Default::default() }))
                .collect();
            probes.push(unary(&v1::ListRelationsRequest::default()));
            probes
        }
        "MemoryService/ListRelatedMemories" => ids()
            .map(|id| {
                let view = v1::MemoryView::PamJson.into();
                unary(&v1::ListRelatedMemoriesRequest { id, depth: 5, view, ..Default::default() })
            })
            .collect(),
        "MemoryService/ListDuplicateMemories" => [None, Some(0.5)]
            .map(|threshold| {
                let view = v1::MemoryView::PamJson.into();
                unary(&v1::ListDuplicateMemoriesRequest { threshold, view, ..Default::default() })
            })
            .into(),
        "MemoryService/ListContradictions" => [false, true]
            .map(|include_settled| {
                let view = v1::MemoryView::PamJson.into();
                unary(&v1::ListContradictionsRequest { include_settled, view, ..Default::default() })
            })
            .into(),
        "SearchService/Search" => searches(records),
        "SearchService/BuildContext" => contexts(),
        "EmbeddingService/ListEmbeddingModels" => vec![unary(&v1::ListEmbeddingModelsRequest::default())],
        "EmbeddingService/ListMissingEmbeddings" => {
            let missing = |model: &str| {
                let (model, page_size) = (model.to_owned(), 1_000);
                unary(&v1::ListMissingEmbeddingsRequest { model, page_size, ..Default::default() })
            };
            vec![missing("another"), missing(MODEL)]
        }
        "EmbeddingService/PutEmbeddings" => ids()
            .map(|memory_id| {
                let content_hash = text("sha256:0");
                let embedding = v1::MemoryEmbedding { memory_id, content_hash, vector: vec![1.0] };
                let (model, embeddings) = (text(MODEL), vec![embedding]);
                unary(&v1::PutEmbeddingsRequest { model, embeddings, ..Default::default() })
            })
            .collect(),
        "ConversationService/GetConversation" => conversations()
            .map(|id| unary(&v1::GetConversationRequest { id, as_of_revision: None }))
            .collect(),
        "ConversationService/ListConversations" => {
            let filter = v1::ConversationFilter { title_contains: text("canary"), ..Default::default() };
            vec![
                unary(&v1::ListConversationsRequest::default()),
                unary(&v1::ListConversationsRequest { filter: Some(filter), ..Default::default() }),
            ]
        }
        "ConversationService/GetConversationStats" => {
            let grouping = |group_by| v1::GetConversationStatsRequest { group_by, ..Default::default() };
            (0..=4).map(|group_by| unary(&grouping(group_by))).collect()
        }
        "ConversationService/ListConversationIds" => vec![unary(&v1::ListConversationIdsRequest::default())],
        "ConversationService/ListMessages" => conversations()
            .map(|conversation_id| {
                unary(&v1::ListMessagesRequest {
                    conversation_id,
                    include_hidden: true,
                    include_thoughts: true,
                    include_raw_metadata: true,
                    ..Default::default()
                })
            })
            .collect(),
        "ConversationService/RecordConversation" => {
            let incomplete = v1::RecordConversationRequest::default();
            let complete = v1::RecordConversationRequest {
                agent_id: text("agent"),
                user_id: text("user"),
                ..v1::RecordConversationRequest::default()
            };
            vec![unary(&incomplete), unary(&complete)]
        }
        "ConversationService/AppendMessages" => conversations()
            .flat_map(|conversation_id| {
                let message = |role: v1::Role| v1::NewMessage {
                    role: role.into(),
                    text: text("appended"),
                    ..v1::NewMessage::default()
                };
                let append = |messages, parent_id| {
                    unary(&v1::AppendMessagesRequest {
                        conversation_id: conversation_id.clone(),
                        messages,
                        parent_id,
                        ..v1::AppendMessagesRequest::default()
                    })
                };
                [
                    append(Vec::new(), String::new()),
                    append(vec![message(v1::Role::User)], text("no-message")),
                    append(vec![message(v1::Role::User)], String::new()),
                ]
            })
            .collect(),
        "ImportService/CreateImport" => {
            vec![unary(&v1::CreateImportRequest { path: text("/nowhere"), ..Default::default() })]
        }
        "ImportService/UploadImport" => {
            vec![Probe { shape: Shape::ClientStream, ..unary(&v1::UploadImportRequest { part: None }) }]
        }
        "UploadService/CreateUpload" => {
            vec![unary(&v1::CreateUploadRequest { name: text("../x"), size_bytes: 1, sha256: text("") })]
        }
        "UploadService/WriteUpload" => {
            let request = v1::WriteUploadRequest { id: text("nothing"), data: vec![1], ..Default::default() };
            vec![unary(&request)]
        }
        "UploadService/GetUpload" => vec![unary(&v1::GetUploadRequest { id: text("nothing") })],
        "UploadService/CancelUpload" => vec![unary(&v1::CancelUploadRequest { id: text("nothing") })],
        "AttachmentService/DownloadAttachment" => conversations()
            .map(|conversation_id| {
                let request = v1::DownloadAttachmentRequest {
                    conversation_id,
                    message_id: text("nothing"),
                    sha256: "0".repeat(64),
                    ..Default::default()
                };
                Probe { shape: Shape::ServerStream, ..unary(&request) }
            })
            .collect(),
        "ImportService/GetImport" => vec![unary(&v1::GetImportRequest { id: records.import.clone() })],
        "ImportService/ListImports" => vec![unary(&v1::ListImportsRequest::default())],
        "ImportService/ListImportIssues" => {
            vec![unary(&v1::ListImportIssuesRequest { id: records.import.clone(), ..Default::default() })]
        }
        "ImportService/ListSources" => vec![unary(&v1::ListSourcesRequest::default())],
        "ImportService/AddSource" => {
            vec![unary(&v1::AddSourceRequest { path: text("/nowhere"), ..Default::default() })]
        }
        "ImportService/RemoveSource" => vec![unary(&v1::RemoveSourceRequest { path: text("/nowhere") })],
        "ImportService/UndoImport" => vec![unary(&v1::UndoImportRequest {
            id: records.import.clone(),
            dry_run: true,
            ..Default::default()
        })],
        "ImportService/RedoImport" => vec![unary(&v1::RedoImportRequest {
            id: records.import.clone(),
            dry_run: true,
            ..Default::default()
        })],
        "OperationService/GetOperation" => {
            vec![unary(&v1::GetOperationRequest { id: records.import.clone() })]
        }
        "OperationService/ListOperations" => vec![unary(&v1::ListOperationsRequest::default())],
        "OperationService/WatchOperation" => vec![Probe {
            shape: Shape::ServerStream,
            ..unary(&v1::WatchOperationRequest { id: records.import.clone(), min_interval: None })
        }],
        "OperationService/CancelOperation" => {
            vec![unary(&v1::CancelOperationRequest { id: records.import.clone() })]
        }
        "PluginService/ListPlugins" => vec![unary(&v1::ListPluginsRequest::default())],
        "PluginService/GetPlugin" => {
            vec![unary(&v1::GetPluginRequest { name: text("chatgpt"), version: String::new() })]
        }
        "PluginService/InstallPlugin" => {
            vec![Probe { shape: Shape::ClientStream, ..unary(&v1::InstallPluginRequest { part: None }) }]
        }
        "PluginService/SetPluginEnabled" => {
            vec![unary(&v1::SetPluginEnabledRequest { name: text("nothing"), ..Default::default() })]
        }
        "PluginService/RemovePlugin" => {
            vec![unary(&v1::RemovePluginRequest { name: text("nothing"), ..Default::default() })]
        }
        "PluginService/ListPluginAuthors" => vec![unary(&v1::ListPluginAuthorsRequest::default())],
        "PluginService/TrustPluginAuthor" => {
            vec![unary(&v1::TrustPluginAuthorRequest { public_key: text("no key") })]
        }
        "PluginService/UntrustPluginAuthor" => {
            vec![unary(&v1::UntrustPluginAuthorRequest { public_key: text("no key") })]
        }
        "ExportService/CreateExport" => {
            vec![unary(&v1::CreateExportRequest { output: text("relative"), ..Default::default() })]
        }
        "ExportService/GetExport" => vec![unary(&v1::GetExportRequest { id: text("nothing") })],
        "ExportService/ListExports" => vec![unary(&v1::ListExportsRequest::default())],
        "ExportService/DownloadExport" => vec![Probe {
            shape: Shape::ServerStream,
            ..unary(&v1::DownloadExportRequest { id: text("nothing"), offset: 0 })
        }],
        "ExportService/VerifyExport" => vec![unary(&v1::VerifyExportRequest::default())],
        "ExportService/GetSigningKeys" => vec![unary(&v1::GetSigningKeysRequest {})],
        "ExportService/ListTrustedKeys" => vec![unary(&v1::ListTrustedKeysRequest::default())],
        // It must not replace a key that exists: there is none, so this is refused.
        "ExportService/RotateSigningKey" => vec![unary(&v1::RotateSigningKeyRequest { new_identity: true })],
        "ExportService/TrustKey" => vec![unary(&v1::TrustKeyRequest { public_key: text("no key") })],
        "ExportService/UntrustKey" => vec![unary(&v1::UntrustKeyRequest { public_key: text("no key") })],
        "AdminService/GetStatus" => vec![unary(&v1::GetStatusRequest {})],
        "AdminService/GetStats" => vec![unary(&v1::GetStatsRequest {})],
        "AdminService/CreateBackup" => vec![unary(&v1::CreateBackupRequest { output: text("relative") })],
        "AdminService/VerifyStore" => vec![unary(&v1::VerifyStoreRequest {})],
        "AdminService/GetPurgePlan" => {
            let target = v1::get_purge_plan_request::Target::MemoryId(text(records.id("private")));
            vec![unary(&v1::GetPurgePlanRequest { target: Some(target), keep_memories: false })]
        }
        "DeviceService/CreatePairing" => vec![unary(&v1::CreatePairingRequest::default())],
        "DeviceService/GetPairing" => vec![unary(&v1::GetPairingRequest { id: text("0") })],
        "DeviceService/CancelPairing" => vec![unary(&v1::CancelPairingRequest { id: text("0") })],
        "DeviceService/ListDevices" => {
            vec![unary(&v1::ListDevicesRequest { include_revoked: true, ..Default::default() })]
        }
        "DeviceService/UpdateDevice" => {
            vec![unary(&v1::UpdateDeviceRequest { device: text("nothing"), ..Default::default() })]
        }
        "DeviceService/RevokeDevice" => {
            vec![unary(&v1::RevokeDeviceRequest { device: text("nothing"), ..Default::default() })]
        }
        "DeviceService/CreateToken" => {
            let policy = v1::DevicePolicy { role: DeviceRole::Owner.into(), ..Default::default() };
            let request = v1::CreateTokenRequest { name: text("t"), policy: Some(policy), expire_time: None };
            vec![unary(&request)]
        }
        "DeviceService/GetCallerIdentity" => vec![unary(&v1::GetCallerIdentityRequest {})],
        "DeviceService/RenewCertificate" => vec![unary(&v1::RenewCertificateRequest::default())],
        "DeviceService/ListAuditEvents" => vec![unary(&v1::ListAuditEventsRequest::default())],
        "PairingService/CompletePairing" => {
            // A request that is no certificate request does not use up a try.
            vec![unary(&v1::CompletePairingRequest { token: vec![0; 5], ..Default::default() })]
        }
        "SyncService/GetFrontier" => vec![unary(&v1::GetFrontierRequest::default())],
        "SyncService/WatchFrontier" => {
            vec![Probe { shape: Shape::ServerStream, ..unary(&v1::WatchFrontierRequest {}) }]
        }
        "SyncService/DownloadChanges" => {
            let request = v1::DownloadChangesRequest { frontier: Some(v1::Frontier::default()) };
            vec![Probe { shape: Shape::ServerStream, ..unary(&request) }]
        }
        "SyncService/ListMissingPayloads" => vec![unary(&v1::ListMissingPayloadsRequest::default())],
        "SyncService/DownloadPayloads" => {
            let origin = "0a1b2c3d-0000-4000-8000-000000000001".to_owned();
            let ranges = vec![v1::ChangeRange { origin, first: 1, last: 1 }];
            let request = v1::DownloadPayloadsRequest { ranges };
            vec![Probe { shape: Shape::ServerStream, ..unary(&request) }]
        }
        "SyncService/DownloadWithheldRanges" => {
            let request = v1::DownloadWithheldRangesRequest {};
            vec![Probe { shape: Shape::ServerStream, ..unary(&request) }]
        }
        "SyncService/UploadWithheldRanges" => {
            let origin = "0a1b2c3d-0000-4000-8000-000000000001".to_owned();
            let ranges = vec![v1::ChangeRange { origin, first: 1, last: 1 }];
            let request = v1::UploadWithheldRangesRequest { ranges };
            vec![Probe { shape: Shape::ClientStream, ..unary(&request) }]
        }
        "SyncService/ListMissingFiles" => vec![unary(&v1::ListMissingFilesRequest::default())],
        "SyncService/DownloadFile" => {
            vec![Probe {
                shape: Shape::ServerStream,
                ..unary(&v1::DownloadFileRequest { sha256: text("x") })
            }]
        }
        "SyncService/UploadFile" => {
            vec![Probe { shape: Shape::ClientStream, ..unary(&v1::UploadFileRequest::default()) }]
        }
        "SyncService/UploadChanges" => {
            vec![Probe { shape: Shape::ClientStream, ..unary(&v1::UploadChangesRequest::default()) }]
        }
        "PeerService/AddPeer" => vec![unary(&v1::AddPeerRequest::default())],
        "PeerService/ListPeers" => vec![unary(&v1::ListPeersRequest::default())],
        "PeerService/UpdatePeer" => {
            vec![unary(&v1::UpdatePeerRequest { peer: text("x"), paused: Some(true), ..Default::default() })]
        }
        "PeerService/RemovePeer" => vec![unary(&v1::RemovePeerRequest { peer: text("x") })],
        "PeerService/SyncPeers" => vec![unary(&v1::SyncPeersRequest::default())],
        "PeerService/DownloadChangeFile" => vec![Probe {
            shape: Shape::ServerStream,
            ..unary(&v1::DownloadChangeFileRequest { peer: text("x"), full: false })
        }],
        "PeerService/ImportChangeFile" => {
            vec![unary(&v1::ImportChangeFileRequest { path: text("/x"), upload_id: String::new() })]
        }
        "PeerService/GetSyncStatus" => vec![unary(&v1::GetSyncStatusRequest { digest: true })],
        "PeerService/ListConflicts" => vec![unary(&v1::ListConflictsRequest::default())],
        "WatchService/WatchChanges" => vec![Probe {
            shape: Shape::EndlessStream,
            ..unary(&v1::WatchChangesRequest {
                after_revision: Some(0),
                view: v1::MemoryView::PamJson.into(),
                progress_interval: Some(Duration { seconds: 1, nanos: 0 }),
                ..Default::default()
            })
        }],
        "WatchService/ListChanges" => vec![unary(&v1::ListChangesRequest {
            view: v1::MemoryView::PamJson.into(),
            page_size: 1_000,
            ..Default::default()
        })],
        _ => return None,
    })
}

/// Returns the ids of memories that some callers do not see.
fn hidden(records: &Records) -> impl Iterator<Item = String> {
    ["private", "shared-b", "once-public", QUARANTINED].into_iter().map(|name| records.id(name).to_owned())
}
