//! The programs and lines on the manual's page about clients, run as they are printed there: pairing, lists, an upload,
//! an import, a recorded conversation, a signed bundle, changes as they happen, and revocation.

mod grpcurl;
mod page;
mod workspace;

use std::{
    collections::BTreeMap,
    fs::{self, File},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use anyhow::{Context as _, Result, ensure};
use satchel_proto::v1::{
    self, CreateMemoryRequest, DeviceRole, ListConversationsRequest, ListMemoriesRequest, Memory,
    PairingState, RevokeDeviceRequest, VerifyExportRequest,
    conversation_service_client::ConversationServiceClient, device_service_client::DeviceServiceClient,
    memory_service_client::MemoryServiceClient, verify_export_request::Bundle,
};
use satchel_tests::{
    generate::{self, GeneratedCounts},
    operation,
    test_core::demo_folder,
    test_daemon::TestDaemon,
    test_device::{create_pairing, listening_daemon, policy},
};
use zip::{CompressionMethod, ZipArchive, ZipWriter, write::SimpleFileOptions};

use super::{output_text, python, validate};
use workspace::{RunningProgram, Workspace};

/// The name of the paired client.
const DEVICE: &str = "kitchen";
/// Size of the uploaded export in bytes: more than two chunks.
const EXPORT_BYTES: u64 = 2_500_000;
/// Number of wrong codes after which the daemon closes a window for pairing.
const ALLOWED_FAILURES: usize = 5;

#[tokio::test(flavor = "multi_thread")]
async fn the_python_programs_of_the_manual_work() -> Result<()> {
    let Some(workspace) = Workspace::python()? else { return Ok(()) };
    Box::pin(programs_work(&workspace)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_node_programs_of_the_manual_work() -> Result<()> {
    let Some(workspace) = Workspace::node()? else { return Ok(()) };
    Box::pin(programs_work(&workspace)).await
}

async fn programs_work(workspace: &Workspace) -> Result<()> {
    let daemon = listening_daemon().await?;
    daemon.import(&demo_folder().join("claude-export")).await?;
    Box::pin(lists_over_the_socket(workspace, &daemon)).await?;
    Box::pin(refuses_another_daemon(workspace, &daemon)).await?;
    let address = Box::pin(pairs(workspace, &daemon)).await?;
    Box::pin(works_until_it_is_revoked(workspace, &daemon, &address)).await?;
    daemon.stop().await?;
    Ok(())
}

async fn memories(daemon: &TestDaemon) -> Result<Vec<Memory>> {
    let request = ListMemoriesRequest { page_size: 1_000, ..ListMemoriesRequest::default() };
    Ok(MemoryServiceClient::new(daemon.channel.clone()).list_memories(request).await?.into_inner().memories)
}

async fn conversations(daemon: &TestDaemon) -> Result<Vec<v1::Conversation>> {
    let request = ListConversationsRequest { page_size: 1_000, ..ListConversationsRequest::default() };
    let mut client = ConversationServiceClient::new(daemon.channel.clone());
    Ok(client.list_conversations(request).await?.into_inner().conversations)
}

async fn lists_over_the_socket(workspace: &Workspace, daemon: &TestDaemon) -> Result<()> {
    let socket = daemon.data_dir().join("satchel.sock").display().to_string();
    let output = workspace.run("local", &[&socket]).await?;
    ensure!(output.status.success(), "{}", output_text(&output));
    let stored = memories(daemon).await?;
    ensure!(!stored.is_empty(), "nothing to list");
    let text = output_text(&output);
    for memory in stored {
        ensure!(text.contains(&format!("{} {}", memory.id, memory.content)), "{memory:?} is not in {text}");
    }
    Ok(())
}

/// Tries a code at the address of another daemon as often as would close a window there, if the token were sent.
async fn refuses_another_daemon(workspace: &Workspace, daemon: &TestDaemon) -> Result<()> {
    let other = listening_daemon().await?;
    let code = create_pairing(daemon, DEVICE, policy(DeviceRole::Owner)).await?.code;
    let window = create_pairing(&other, "phone", policy(DeviceRole::Owner)).await?;
    let address = window.addresses.first().context("an address")?;
    for _ in 0..ALLOWED_FAILURES {
        let output = workspace.run("pair", &[&code, address]).await?;
        let text = output_text(&output);
        ensure!(
            !output.status.success() && text.contains("is not the daemon that showed this code"),
            "{text}"
        );
    }
    let request = v1::GetPairingRequest { id: window.pairing.context("a window")?.id };
    let found = DeviceServiceClient::new(other.channel.clone()).get_pairing(request).await?.into_inner();
    let state = found.pairing.context("a window")?.state();
    ensure!(state == PairingState::Open, "a token was sent to another daemon: {state:?}");
    other.stop().await?;
    Ok(())
}

/// Pairs, and returns the address of the daemon.
async fn pairs(workspace: &Workspace, daemon: &TestDaemon) -> Result<String> {
    let window = create_pairing(daemon, DEVICE, policy(DeviceRole::Owner)).await?;
    let address = window.addresses.first().context("an address")?.clone();
    let output = workspace.run("pair", &[&window.code, &address]).await?;
    ensure!(
        output.status.success() && output_text(&output).contains(&format!("paired as {DEVICE}")),
        "{}",
        output_text(&output)
    );
    let mode = fs::metadata(workspace.path("key.pem"))?.permissions().mode();
    ensure!(mode & 0o777 == 0o600, "others may read the key: {mode:o}");
    Ok(address)
}

async fn works_until_it_is_revoked(workspace: &Workspace, daemon: &TestDaemon, address: &str) -> Result<()> {
    let (listed_memories, listed_conversations) = (memories(daemon).await?, conversations(daemon).await?);
    let generated = write_export(&workspace.path("export.zip"))?;
    let arguments = [address, "export.zip", "bundle.zip"];
    let mut program = workspace.start("client", &arguments)?;
    ensure!(program.line("memories: ").await? == listed_memories.len().to_string());
    for conversation in &listed_conversations {
        let line = program.line("conversation: ").await?;
        ensure!(
            line == format!("{} {}", conversation.id, conversation.title()),
            "{line} is not {conversation:?}"
        );
    }
    let line = program.line("imported: ").await?;
    let imported = format!("export.zip {} conversations ", generated.conversations);
    ensure!(line.starts_with(&imported), "{line} is not {imported}");
    let recorded = program.line("recorded: ").await?;
    program.line("downloaded: ").await?;
    verifies(daemon, &workspace.path("bundle.zip"), &recorded).await?;
    program.line(&format!("change: conversation {recorded}")).await?;
    sees_a_change_and_the_end(daemon, &mut program).await?;
    let (status, errors) = program.ended().await?;
    ensure!(!status.success() && errors.contains("PERMISSION_DENIED"), "the stream ended with {errors}");
    let output = workspace.run("client", &arguments).await?;
    let text = output_text(&output);
    ensure!(!output.status.success() && text.contains("PERMISSION_DENIED"), "a revoked device reads {text}");
    ensure!(text.contains("revoked") && !text.contains("memories: "), "{text}");
    Ok(())
}

/// Packs a generated export without compression, so that it has as many chunks as bytes promise.
fn write_export(path: &Path) -> Result<GeneratedCounts> {
    let folder = tempfile::tempdir()?;
    let counts = generate::chatgpt(folder.path(), EXPORT_BYTES, 17)?;
    let mut archive = ZipWriter::new(File::create(path)?);
    for entry in fs::read_dir(folder.path())? {
        let entry = entry?;
        let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        archive.start_file(entry.file_name().to_string_lossy(), stored)?;
        std::io::copy(&mut File::open(entry.path())?, &mut archive)?;
    }
    archive.finish()?;
    ensure!(fs::metadata(path)?.len() > 2 << 20, "the export has too few chunks");
    Ok(counts)
}

/// Checks a downloaded bundle as its reader would: by the daemon, and by the official SDK if it is installed.
async fn verifies(daemon: &TestDaemon, bundle: &Path, recorded: &str) -> Result<()> {
    let path = bundle.to_str().context("the path is UTF-8")?.to_owned();
    let request = VerifyExportRequest {
        bundle: Some(Bundle::Path(path.clone())),
        strict: true,
        ..VerifyExportRequest::default()
    };
    let verified = operation::verify(&daemon.channel, request).await?;
    ensure!(verified.valid && verified.signer.starts_with("z6Mk"), "{verified:?}");
    let archive = ZipArchive::new(File::open(bundle)?)?;
    let names: Vec<String> =
        archive.file_names().map(|name| name.map(Into::into)).collect::<Result<_, _>>()?;
    ensure!(
        names.iter().any(|name| name.contains(recorded)),
        "the recorded conversation is not in {names:?}"
    );
    if let Some(python) = python()? {
        let descriptions = BTreeMap::from([(path, "a download".to_owned())]);
        tokio::task::spawn_blocking(move || validate::validate(&python, &descriptions)).await??;
    }
    Ok(())
}

async fn sees_a_change_and_the_end(daemon: &TestDaemon, program: &mut RunningProgram) -> Result<()> {
    let memory = Memory { content: "Moved the hives in spring".to_owned(), ..Memory::default() };
    let request = CreateMemoryRequest { memory: Some(memory), ..CreateMemoryRequest::default() };
    let mut owner = MemoryServiceClient::new(daemon.channel.clone());
    let created = owner.create_memory(request).await?.into_inner().memory.context("a memory")?;
    program.line(&format!("change: memory {}", created.id)).await?;
    let request = RevokeDeviceRequest { device: DEVICE.to_owned(), reason: "lost".to_owned() };
    DeviceServiceClient::new(daemon.channel.clone()).revoke_device(request).await?;
    Ok(())
}
