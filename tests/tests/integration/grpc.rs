//! The gRPC interface from a client's side: pages, trees, receipts, downloads, refusals.

use std::{collections::BTreeSet, os::unix::fs::MetadataExt};

use anyhow::{Context, Result, ensure};
use satchel_proto::{
    integers::signed,
    v1::{
        self, admin_service_client::AdminServiceClient,
        conversation_service_client::ConversationServiceClient, export_service_client::ExportServiceClient,
        import_service_client::ImportServiceClient, memory_service_client::MemoryServiceClient,
        operation_service_client::OperationServiceClient, plugin_service_client::PluginServiceClient,
    },
};
use satchel_tests::{
    generate, operation,
    test_daemon::{TestDaemon, chatgpt_export, chatgpt_fixture},
};
use tonic::{Code, Status};
use tonic_types::StatusExt;

fn reason(status: &Status) -> String {
    status.get_error_details().error_info().map(|info| info.reason.clone()).unwrap_or_default()
}

fn refused<T: std::fmt::Debug>(outcome: Result<T, Status>) -> Result<(Code, String)> {
    let status = outcome.err().context("the call is refused")?;
    Ok((status.code(), reason(&status)))
}

async fn all_conversations(daemon: &TestDaemon, page_size: i32) -> Result<Vec<v1::Conversation>> {
    let mut client = ConversationServiceClient::new(daemon.channel.clone());
    let mut all = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = v1::ListConversationsRequest { page_size, page_token, filter: None };
        let page = client.list_conversations(request).await?.into_inner();
        ensure!(page.conversations.len() <= usize::try_from(page_size)?);
        all.extend(page.conversations);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return Ok(all);
        }
    }
}

async fn messages(daemon: &TestDaemon, request: v1::ListMessagesRequest) -> Result<Vec<v1::Message>, Status> {
    let mut client = ConversationServiceClient::new(daemon.channel.clone());
    let mut all = Vec::new();
    let mut request = v1::ListMessagesRequest { page_size: 2, ..request };
    loop {
        let page = client.list_messages(request.clone()).await?.into_inner();
        all.extend(page.messages);
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            return Ok(all);
        }
    }
}

fn texts(messages: &[v1::Message]) -> Vec<&str> {
    messages.iter().filter_map(|message| message.content.as_ref()?.text.as_deref()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_is_imported_with_a_receipt_that_balances() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let export = chatgpt_export(&daemon.folder.path().join("export"), 12)?;
    let job = daemon.import(&export).await?;
    assert_eq!(job.state(), v1::OperationState::Succeeded);
    let import = job.imports().first().context("one import")?;
    assert_eq!((import.status(), import.platform.as_str()), (v1::ImportStatus::Completed, "chatgpt"));
    let counts = import.conversations.context("counts")?;
    assert_eq!((counts.found, counts.new), (12, 12));
    let counts = import.messages.context("counts")?;
    assert_eq!((counts.found, counts.new + counts.updated + counts.unchanged + counts.skipped), (48, 48));
    let range = import.revisions.context("the import has revisions")?;

    let mut client = ImportServiceClient::new(daemon.channel.clone());
    let again = client.get_import(v1::GetImportRequest { id: import.id.clone() }).await?.into_inner();
    assert_eq!(again.receipt.as_ref().map(|found| &found.messages), Some(&import.messages));
    assert!(again.header.context("a header")?.revision >= range.last);
    let listed = client.list_imports(v1::ListImportsRequest::default()).await?.into_inner();
    assert_eq!(listed.imports.len(), 1);

    let second = daemon.import(&export).await?;
    let second = second.imports().first().context("one import")?;
    assert_eq!(second.status(), v1::ImportStatus::Unchanged);
    let daemon = TestDaemon::start_in(daemon.stop().await?).await?;
    let mut client = ImportServiceClient::new(daemon.channel.clone());
    let found = client.get_import(v1::GetImportRequest { id: second.id.clone() }).await?.into_inner();
    assert_eq!(found.receipt.as_ref(), Some(second));
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn watching_an_ended_operation_sends_one_message() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let export = chatgpt_export(&daemon.folder.path().join("export"), 1)?;
    let job = daemon.import(&export).await?;
    let mut client = OperationServiceClient::new(daemon.channel.clone());
    let import = job.imports().first().context("one import")?.id.clone();
    for id in [job.id.clone(), import] {
        let mut answers =
            client.watch_operation(v1::WatchOperationRequest { id, min_interval: None }).await?.into_inner();
        let only = answers.message().await?.and_then(|answer| answer.operation).context("one message")?;
        assert_eq!((only.id.as_str(), only.state()), (job.id.as_str(), v1::OperationState::Succeeded));
        assert!(answers.message().await?.is_none());
    }
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_of_an_earlier_run_is_returned_with_all_its_receipts() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    // The exports of two providers in one folder become two imports of one job; one of them skips something.
    let both = daemon.folder.path().join("both");
    generate::claude(&both.join("one"), 2_000, 1)?;
    let conversations = chatgpt_export(&both.join("two"), 3)?.join("conversations.json");
    let text = std::fs::read_to_string(&conversations)?;
    std::fs::write(&conversations, text.trim_end().trim_end_matches(']').to_owned() + ",7]")?;
    let job = daemon.import(&both).await?;
    ensure!(
        job.imports().len() == 2 && job.imports().iter().any(|import| !import.skipped.is_empty()),
        "{job:?}"
    );
    let daemon = TestDaemon::start_in(daemon.stop().await?).await?;
    let mut client = OperationServiceClient::new(daemon.channel.clone());
    for id in [job.id.clone(), job.imports()[0].id.clone()] {
        let request = v1::WatchOperationRequest { id, min_interval: None };
        let answer = client.watch_operation(request).await?.into_inner().message().await?;
        let returned = answer.and_then(|answer| answer.operation).context("one message")?;
        assert_eq!((&returned.id, returned.imports()), (&job.id, job.imports()));
    }
    let id = "00000000-0000-4000-8000-000000000000".to_owned();
    let request = v1::WatchOperationRequest { id, min_interval: None };
    assert_eq!(refused(client.watch_operation(request).await)?.0, Code::NotFound);
    daemon.stop().await?;
    Ok(())
}

/// More conversations than any machine imports while a test makes two calls.
const LONG_IMPORT_CONVERSATIONS: usize = 20_000;

async fn start_long_import(daemon: &TestDaemon) -> Result<v1::Operation> {
    let export = chatgpt_export(&daemon.folder.path().join("long"), LONG_IMPORT_CONVERSATIONS)?;
    let path = export.to_str().context("UTF-8")?.to_owned();
    let mut client = ImportServiceClient::new(daemon.channel.clone());
    let request = v1::CreateImportRequest { path, ..Default::default() };
    client.create_import(request).await?.into_inner().operation.context("an operation")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_import_keeps_complete_records() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let id = start_long_import(&daemon).await?.id;
    let mut client = OperationServiceClient::new(daemon.channel.clone());
    let mut answers = client
        .watch_operation(v1::WatchOperationRequest { id: id.clone(), min_interval: None })
        .await?
        .into_inner();
    let mut last = None;
    while let Some(answer) = answers.message().await? {
        let job = answer.operation.context("an operation")?;
        if job.imports().iter().any(|import| import.conversations.is_some_and(|counts| counts.new > 0)) {
            client.cancel_operation(v1::CancelOperationRequest { id: id.clone() }).await?;
        }
        last = Some(job);
    }
    let job = last.context("a last message")?;
    let import = job.imports().first().context("one import")?;
    assert_eq!((job.state(), import.status()), (v1::OperationState::Cancelled, v1::ImportStatus::Cancelled));
    let stats =
        AdminServiceClient::new(daemon.channel.clone()).get_stats(v1::GetStatsRequest {}).await?.into_inner();
    assert!(stats.conversations > 0 && stats.messages == 4 * stats.conversations, "{stats:?}");
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn watching_an_operation_ends_with_an_error_when_the_daemon_stops() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let id = start_long_import(&daemon).await?.id;
    let mut client = OperationServiceClient::new(daemon.channel.clone());
    let mut answers =
        client.watch_operation(v1::WatchOperationRequest { id, min_interval: None }).await?.into_inner();
    answers.message().await?.context("the state at once")?;
    let watcher = tokio::spawn(async move {
        loop {
            match answers.message().await {
                Ok(Some(_)) => {}
                ended => return ended,
            }
        }
    });
    let folder = daemon.stop().await?;
    assert_eq!(refused(watcher.await?)?, (Code::Unavailable, "SHUTTING_DOWN".to_owned()));
    // The ledger does not list the import as running, and the next daemon accepts work.
    let daemon = TestDaemon::start_in(folder).await?;
    let running =
        v1::ListImportsRequest { statuses: vec![v1::ImportStatus::Running.into()], ..Default::default() };
    assert!(
        ImportServiceClient::new(daemon.channel.clone())
            .list_imports(running)
            .await?
            .into_inner()
            .imports
            .is_empty()
    );
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn all_pages_show_one_revision_during_imports() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    daemon.import(&chatgpt_export(&daemon.folder.path().join("one"), 9)?).await?;
    let mut client = ConversationServiceClient::new(daemon.channel.clone());
    let request = v1::ListConversationsRequest { page_size: 4, ..Default::default() };
    let first = client.list_conversations(request.clone()).await?.into_inner();
    daemon.import(&chatgpt_export(&daemon.folder.path().join("two"), 30)?).await?;

    let revision = first.header.context("a header")?.revision;
    let mut seen: Vec<String> = first.conversations.into_iter().map(|line| line.id).collect();
    let mut page_token = first.next_page_token;
    while !page_token.is_empty() {
        let next = v1::ListConversationsRequest { page_token, ..request.clone() };
        let page = client.list_conversations(next).await?.into_inner();
        assert_eq!(page.header.context("a header")?.revision, revision);
        seen.extend(page.conversations.into_iter().map(|line| line.id));
        page_token = page.next_page_token;
    }
    assert_eq!((seen.len(), seen.iter().collect::<BTreeSet<_>>().len()), (9, 9));
    assert_eq!(all_conversations(&daemon, 7).await?.len(), 30);
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_token_is_bound_to_its_list_and_survives_a_restart() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    daemon.import(&chatgpt_export(&daemon.folder.path().join("export"), 5)?).await?;
    let mut client = ConversationServiceClient::new(daemon.channel.clone());
    let request = v1::ListConversationsRequest { page_size: 2, ..Default::default() };
    let page_token = client.list_conversations(request).await?.into_inner().next_page_token;
    let filter = v1::ConversationFilter { platforms: vec!["chatgpt".to_owned()], ..Default::default() };
    let other_filter =
        v1::ListConversationsRequest { page_size: 2, page_token: page_token.clone(), filter: Some(filter) };
    let invalid = (Code::InvalidArgument, "PAGE_TOKEN_INVALID".to_owned());
    assert_eq!(refused(client.list_conversations(other_filter).await)?, invalid);
    let other_list = v1::ListMemoriesRequest { page_token: page_token.clone(), ..Default::default() };
    let mut memories = MemoryServiceClient::new(daemon.channel.clone());
    assert_eq!(refused(memories.list_memories(other_list).await)?, invalid);

    let daemon = TestDaemon::start_in(daemon.stop().await?).await?;
    let mut client = ConversationServiceClient::new(daemon.channel.clone());
    // The page size may change between pages.
    let rest = v1::ListConversationsRequest { page_size: 100, page_token, filter: None };
    assert_eq!(client.list_conversations(rest).await?.into_inner().conversations.len(), 3);
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_is_shown_as_a_tree_and_by_branch() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    daemon.import(&chatgpt_export(&daemon.folder.path().join("export"), 1)?).await?;
    let id = all_conversations(&daemon, 10).await?.first().context("one conversation")?.id.clone();
    let request = v1::ListMessagesRequest { conversation_id: id.clone(), ..Default::default() };

    let tree = messages(&daemon, request.clone()).await?;
    assert_eq!(texts(&tree), ["question of 0", "first of 0", "second of 0", "follow-up of 0"]);
    let active: Vec<_> = tree.iter().map(|message| message.on_active_branch).collect();
    assert_eq!(active, [true, false, true, true]);

    let selection = v1::MessageSelection::ActiveBranch.into();
    let branch = messages(&daemon, v1::ListMessagesRequest { selection, ..request.clone() }).await?;
    assert_eq!(texts(&branch), ["question of 0", "second of 0", "follow-up of 0"]);

    let selection = v1::MessageSelection::Branch.into();
    let leaf_id = tree[1].id.clone();
    let branch = messages(&daemon, v1::ListMessagesRequest { selection, leaf_id, ..request.clone() }).await?;
    assert_eq!(texts(&branch), ["question of 0", "first of 0"]);

    let unknown = v1::ListMessagesRequest { selection, leaf_id: "none".to_owned(), ..request.clone() };
    assert_eq!(refused(messages(&daemon, unknown).await)?, (Code::NotFound, "MESSAGE_NOT_FOUND".to_owned()));
    let pointless = v1::ListMessagesRequest { leaf_id: tree[1].id.clone(), ..request };
    assert_eq!(refused(messages(&daemon, pointless).await)?.1, "FIELD_INVALID");

    let mut client = ConversationServiceClient::new(daemon.channel.clone());
    let shown =
        client.get_conversation(v1::GetConversationRequest { id, as_of_revision: None }).await?.into_inner();
    let shown = shown.conversation.context("a conversation")?;
    assert_eq!((shown.message_count, shown.active_leaf_id.as_ref()), (4, Some(&tree[3].id)));
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn memories_are_listed_filtered_and_shown_with_their_history() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    daemon.import(&chatgpt_fixture("memory-bio-writes")).await?;
    let mut client = MemoryServiceClient::new(daemon.channel.clone());
    let listed = client.list_memories(v1::ListMemoriesRequest::default()).await?.into_inner().memories;
    let first = listed.first().context("a memory")?;
    assert!(
        listed.iter().all(|memory| memory.status() == v1::MemoryStatus::Active && memory.access.is_none())
    );

    let filter = v1::MemoryFilter { platforms: vec!["claude".to_owned()], ..Default::default() };
    let none = v1::ListMemoriesRequest { filter: Some(filter), ..Default::default() };
    assert!(client.list_memories(none).await?.into_inner().memories.is_empty());

    let view = v1::MemoryView::PamJson.into();
    let shown = client
        .get_memory(v1::GetMemoryRequest { id: first.id.clone(), view, as_of_revision: None })
        .await?
        .into_inner();
    let shown = shown.memory.context("a memory")?;
    let json: serde_json::Value = serde_json::from_str(&shown.pam_json)?;
    assert_eq!(json["content"].as_str(), Some(shown.content.as_str()));

    let request = v1::ListMemoryVersionsRequest { id: first.id.clone(), ..Default::default() };
    let versions = client.list_memory_versions(request).await?.into_inner().versions;
    let oldest = versions.last().context("a version")?;
    assert_eq!((oldest.version, oldest.actor.starts_with("chatgpt")), (1, true));

    let ids = vec![first.id.clone(), "none".to_owned(), first.id.clone()];
    let batch = client
        .batch_get_memories(v1::BatchGetMemoriesRequest { ids, view: 0, as_of_revision: None })
        .await?
        .into_inner();
    assert_eq!((batch.memories.len(), batch.not_found), (1, vec!["none".to_owned()]));
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_records_and_invalid_fields_are_refused_with_their_reason() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let mut memories = MemoryServiceClient::new(daemon.channel.clone());
    let mut imports = ImportServiceClient::new(daemon.channel.clone());
    let mut exports = ExportServiceClient::new(daemon.channel.clone());
    let id = || "none".to_owned();
    let missing = |reason: &str| (Code::NotFound, reason.to_owned());
    let invalid = (Code::InvalidArgument, "FIELD_INVALID".to_owned());
    let get = v1::GetMemoryRequest { id: id(), view: 0, as_of_revision: None };
    assert_eq!(refused(memories.get_memory(get).await)?, missing("MEMORY_NOT_FOUND"));
    assert_eq!(
        refused(imports.get_import(v1::GetImportRequest { id: id() }).await)?,
        missing("IMPORT_NOT_FOUND")
    );
    assert_eq!(
        refused(exports.get_export(v1::GetExportRequest { id: id() }).await)?,
        missing("EXPORT_NOT_FOUND")
    );
    let negative = v1::ListMemoriesRequest { page_size: -1, ..Default::default() };
    assert_eq!(refused(memories.list_memories(negative).await)?, invalid);
    let many = v1::BatchGetMemoriesRequest { ids: vec![id(); 501], view: 0, as_of_revision: None };
    assert_eq!(refused(memories.batch_get_memories(many).await)?, invalid);
    let relative = v1::CreateImportRequest { path: "a.zip".to_owned(), ..Default::default() };
    assert_eq!(refused(imports.create_import(relative).await)?, invalid);
    let unknown = v1::CreateImportRequest {
        path: "/a.zip".to_owned(),
        platform: "nobody".to_owned(),
        ..Default::default()
    };
    assert_eq!(refused(imports.create_import(unknown).await)?, invalid);
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_over_the_limit_is_refused() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let mut client = MemoryServiceClient::new(daemon.channel.clone());
    let outcome = client
        .get_memory(v1::GetMemoryRequest { id: "x".repeat(5 << 20), view: 0, as_of_revision: None })
        .await;
    assert_eq!(outcome.err().map(|status| status.code()), Some(Code::ResourceExhausted));
    // The connection still works.
    AdminServiceClient::new(daemon.channel.clone()).get_status(v1::GetStatusRequest {}).await?;
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_resumes_at_an_offset() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    daemon.import(&chatgpt_export(&daemon.folder.path().join("export"), 20)?).await?;
    let mut client = ExportServiceClient::new(daemon.channel.clone());
    for name in ["bundle.zip", "bundle"] {
        let output = daemon.folder.path().join(name);
        let request = v1::CreateExportRequest {
            output: output.to_str().context("UTF-8")?.to_owned(),
            ..v1::CreateExportRequest::default()
        };
        let made = operation::export(&daemon.channel, request.clone()).await?;
        assert_eq!(made.conversations, 20);
        let exists = (Code::FailedPrecondition, "OUTPUT_EXISTS".to_owned());
        assert_eq!(refused(operation::export(&daemon.channel, request).await)?, exists);

        let whole = download(&mut client, &made.id, 0).await?;
        let half = whole.len() / 2;
        assert_eq!(download(&mut client, &made.id, half as u64).await?, whole[half..]);
        assert!(download(&mut client, &made.id, whole.len() as u64).await?.is_empty());
        let past = v1::DownloadExportRequest { id: made.id.clone(), offset: signed(whole.len() as u64 + 1) };
        let past_end = (Code::OutOfRange, "OFFSET_PAST_END".to_owned());
        assert_eq!(refused(client.download_export(past).await)?, past_end);
        assert!(whole.starts_with(b"PK"));
    }
    let listed = client.list_exports(v1::ListExportsRequest::default()).await?.into_inner().exports;
    assert_eq!(listed.len(), 2);
    std::fs::remove_file(daemon.folder.path().join("bundle.zip"))?;
    let deleted = listed.iter().find(|export| export.path.ends_with("bundle.zip")).context("the ZIP")?;
    let again = v1::DownloadExportRequest { id: deleted.id.clone(), offset: 0 };
    assert_eq!(refused(client.download_export(again).await)?.1, "BUNDLE_GONE");
    daemon.stop().await?;
    Ok(())
}

type ExportClient = ExportServiceClient<tonic::transport::Channel>;

async fn download(client: &mut ExportClient, id: &str, offset: u64) -> Result<Vec<u8>> {
    let request = v1::DownloadExportRequest { id: id.to_owned(), offset: signed(offset) };
    let mut pieces = client.download_export(request).await?.into_inner();
    let mut bytes = Vec::new();
    while let Some(piece) = pieces.message().await? {
        let chunk = piece.chunk.context("a chunk")?;
        ensure!(chunk.offset == signed(offset + bytes.len() as u64) && chunk.data.len() <= 1 << 20);
        ensure!(crc32c::crc32c(&chunk.data) == chunk.crc32c);
        bytes.extend(chunk.data);
        ensure!(piece.total_size >= signed(offset + bytes.len() as u64));
    }
    Ok(bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_is_verified_by_id_and_by_path() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    daemon.import(&chatgpt_export(&daemon.folder.path().join("export"), 3)?).await?;
    let output = daemon.folder.path().join("bundle");
    let path = output.to_str().context("UTF-8")?.to_owned();
    let request = v1::CreateExportRequest { output: path.clone(), ..Default::default() };
    let made = operation::export(&daemon.channel, request).await?;
    let by_path = |path: &str| Some(v1::verify_export_request::Bundle::Path(path.to_owned()));

    let valid = v1::SignatureState::Valid;
    let by_id = Some(v1::verify_export_request::Bundle::Id(made.id.clone()));
    for bundle in [by_id.clone(), by_path(&path)] {
        let request = v1::VerifyExportRequest {
            bundle,
            signer: made.signer.clone(),
            strict: true,
            ..Default::default()
        };
        let report = operation::verify(&daemon.channel, request).await?;
        assert!(report.valid && report.issues.is_empty() && report.issues_total == 0, "{report:?}");
        assert_eq!((report.signature(), report.manifest()), (valid, valid));
        assert_eq!((report.signer.as_str(), report.conversations), (made.signer.as_str(), 3));
    }

    let store = output.join("memory-store.json");
    let whole = std::fs::read_to_string(&store)?;
    std::fs::write(&store, whole.replacen("\"export_id\"", "\"export_ID\"", 1))?;
    let request = v1::VerifyExportRequest { bundle: by_id.clone(), ..Default::default() };
    let report = operation::verify(&daemon.channel, request).await?;
    assert_eq!((report.valid, report.manifest()), (false, v1::SignatureState::Invalid));
    assert_eq!(report.issues.first().map(v1::VerifyIssue::severity), Some(v1::Severity::Error));
    assert!(report.issues_total >= signed(report.issues.len() as u64) && report.issues_total > 0);

    let check = async |bundle, signer: &str| {
        let request = v1::VerifyExportRequest { bundle, signer: signer.to_owned(), ..Default::default() };
        refused(operation::verify(&daemon.channel, request).await)
    };
    let invalid = (Code::InvalidArgument, "FIELD_INVALID".to_owned());
    assert_eq!(check(None, "").await?, invalid);
    assert_eq!(check(by_path("bundle"), "").await?, invalid);
    assert_eq!(check(by_path(&path), "zebra").await?, invalid);
    let absent = daemon.folder.path().join("gone");
    let missing = (Code::NotFound, "PATH_NOT_FOUND".to_owned());
    assert_eq!(check(by_path(absent.to_str().context("UTF-8")?), "").await?, missing);
    let other = daemon.folder.path().join("export");
    let no_bundle = (Code::FailedPrecondition, "BUNDLE_UNREADABLE".to_owned());
    assert_eq!(check(by_path(other.to_str().context("UTF-8")?), "").await?, no_bundle);
    std::fs::remove_dir_all(&output)?;
    assert_eq!(check(by_id, "").await?.1, "BUNDLE_GONE");
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn status_stats_and_plugins_are_served() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    daemon.import(&chatgpt_export(&daemon.folder.path().join("export"), 3)?).await?;
    let mut client = AdminServiceClient::new(daemon.channel.clone());
    let status = client.get_status(v1::GetStatusRequest {}).await?.into_inner();
    assert_eq!((status.problems.len(), status.pid), (0, signed(std::process::id())));
    assert_eq!(std::path::Path::new(&status.data_dir), daemon.data_dir());
    let counted = client.get_stats(v1::GetStatsRequest {}).await?.into_inner();
    assert_eq!((counted.conversations, counted.messages), (3, 12));
    let mut plugins = PluginServiceClient::new(daemon.channel.clone());
    let listed = plugins.list_plugins(v1::ListPluginsRequest::default()).await?.into_inner().plugins;
    assert!(listed.iter().any(|plugin| plugin.platform == "chatgpt" && plugin.sha256.len() == 64));
    let (mut paged, mut page_token) = (Vec::new(), String::new());
    loop {
        let page =
            plugins.list_plugins(v1::ListPluginsRequest { page_size: 4, page_token }).await?.into_inner();
        ensure!(page.plugins.len() <= 4, "{page:?}");
        paged.extend(page.plugins);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    assert!(paged == listed && listed.len() > 4);
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn health_and_reflection_list_every_service() -> Result<()> {
    use tonic_health::pb::{
        HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
    };
    use tonic_reflection::pb::v1::{
        ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
        server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
    };
    use tonic_reflection::pb::v1alpha::{
        self, server_reflection_client::ServerReflectionClient as OldReflectionClient,
        server_reflection_request::MessageRequest as OldRequest,
        server_reflection_response::MessageResponse as OldResponse,
    };
    let daemon = TestDaemon::start().await?;
    let ask = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut reflection = ServerReflectionClient::new(daemon.channel.clone());
    let mut answers = reflection.server_reflection_info(tokio_stream::once(ask)).await?.into_inner();
    let answer = answers.message().await?.and_then(|answer| answer.message_response).context("an answer")?;
    let MessageResponse::ListServicesResponse(services) = answer else { anyhow::bail!("another answer") };
    let services: Vec<String> = services.service.into_iter().map(|service| service.name).collect();
    let ours: BTreeSet<&str> =
        services.iter().map(String::as_str).filter(|name| name.starts_with("satchel.v1.")).collect();
    let declared = satchel_proto::METHODS.iter().filter_map(|method| method.path.split('/').nth(1)).collect();
    assert_eq!(ours, declared);

    // The request of clients that use the version before v1.
    let ask = v1alpha::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(OldRequest::FileContainingSymbol(
            "satchel.v1.MemoryService.ListMemories".into(),
        )),
    };
    let mut reflection = OldReflectionClient::new(daemon.channel.clone());
    let mut old = reflection.server_reflection_info(tokio_stream::once(ask)).await?.into_inner();
    let answer = old.message().await?.and_then(|answer| answer.message_response).context("an answer")?;
    assert!(matches!(answer, OldResponse::FileDescriptorResponse(_)), "{answer:?}");
    drop(old);

    let mut health = HealthClient::new(daemon.channel.clone());
    for service in ours {
        let status =
            health.check(HealthCheckRequest { service: service.to_owned() }).await?.into_inner().status();
        assert_eq!(status, ServingStatus::Serving, "{service}");
    }
    drop(answers);
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_socket_is_private_and_removed_with_the_daemon() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let socket = daemon.data_dir().join("satchel.sock");
    assert_eq!(std::fs::metadata(&socket)?.mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(daemon.data_dir())?.mode() & 0o777, 0o700);
    let folder = daemon.stop().await?;
    assert!(!socket.exists());
    let outcome = satchel_server::connect::connect(&folder.path().join("data")).await;
    assert!(matches!(outcome, Err(satchel_server::connect::ConnectError::NotRunning { .. })));
    Ok(())
}
