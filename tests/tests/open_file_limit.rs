//! All work succeeds with a limit of 256 open files, and errors caused by a lack of free files are not remembered. It
//! is one process, because the limit applies to the process.

use std::{
    fs::{self, File},
    io::{Cursor, Write as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Resource, Rlimit, setrlimit};
use satchel_proto::{
    integers::{signed, unsigned},
    v1::{
        self, admin_service_client::AdminServiceClient,
        conversation_service_client::ConversationServiceClient, export_service_client::ExportServiceClient,
        import_service_client::ImportServiceClient,
    },
};
use satchel_tests::{operation, test_daemon::TestDaemon};
use tempfile::TempDir;
use zip::{ZipWriter, write::SimpleFileOptions};

const OPEN_FILE_LIMIT: u64 = 256;
const ZIPS: usize = 600;
/// Upper limit for the imports of a watched folder.
const WAIT_TIMEOUT: Duration = Duration::from_mins(5);

/// Returns an export of one conversation as a ZIP.
fn export_zip(number: usize) -> Result<Vec<u8>> {
    let json = format!(
        r#"[{{"title": "{number}", "create_time": 1746180000, "conversation_id": "{number}", "current_node": "q", "mapping": {{
        "q": {{"id": "q", "parent": null, "children": [], "message": {{"id": "{number}-q", "author": {{"role": "user"}},
        "create_time": 1746180000, "content": {{"content_type": "text", "parts": ["question {number}"]}}, "metadata": {{}},
        "recipient": "all"}}}}}}}}]"#
    );
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file("conversations.json", SimpleFileOptions::default())?;
    zip.write_all(json.as_bytes())?;
    Ok(zip.finish()?.into_inner())
}

fn folder_of_zips(path: &Path, from: usize) -> Result<PathBuf> {
    fs::create_dir(path)?;
    for number in from..from + ZIPS {
        fs::write(path.join(format!("{number:04}.zip")), export_zip(number)?)?;
    }
    Ok(path.to_owned())
}

fn zip_of_zips(path: &Path, from: usize) -> Result<PathBuf> {
    let mut zip = ZipWriter::new(File::create(path)?);
    for number in from..from + ZIPS {
        zip.start_file(format!("{number:04}.zip"), SimpleFileOptions::default())?;
        zip.write_all(&export_zip(number)?)?;
    }
    zip.finish()?;
    Ok(path.to_owned())
}

/// Returns how many new conversations an import added, over all its exports; fails if one of them did not complete.
fn new_conversations(job: &v1::Operation) -> Result<u64> {
    let mut conversations = 0;
    for import in job.imports() {
        ensure!(import.status() == v1::ImportStatus::Completed, "{import:?}");
        conversations += import.conversations.as_ref().map_or(0, |counts| counts.new);
    }
    Ok(unsigned(conversations))
}

async fn read_revision(daemon: &TestDaemon) -> Result<u64> {
    let mut client = ConversationServiceClient::new(daemon.channel.clone());
    let list = client.list_conversations(v1::ListConversationsRequest::default()).await?.into_inner();
    let header = list.header.context("a header")?;
    AdminServiceClient::new(daemon.channel.clone()).get_status(v1::GetStatusRequest {}).await?;
    Ok(unsigned(header.revision))
}

async fn export(daemon: &TestDaemon, name: &str) -> Result<v1::Export> {
    let output = daemon.folder.path().join(name);
    let request = v1::CreateExportRequest {
        output: output.to_str().context("UTF-8")?.to_owned(),
        ..v1::CreateExportRequest::default()
    };
    Ok(operation::export(&daemon.channel, request).await?)
}

/// Verifies, downloads and applies an export, undoes that import, and makes a backup.
async fn verify_apply_undo_and_back_up(daemon: &TestDaemon, made: &v1::Export) -> Result<()> {
    let mut exports = ExportServiceClient::new(daemon.channel.clone());
    let bundle = Some(v1::verify_export_request::Bundle::Id(made.id.clone()));
    let request = v1::VerifyExportRequest { bundle, ..v1::VerifyExportRequest::default() };
    let verdict = operation::verify(&daemon.channel, request).await?;
    ensure!(verdict.valid && verdict.conversations == made.conversations, "{verdict:?}");
    let request = v1::DownloadExportRequest { id: made.id.clone(), offset: 0 };
    let mut pieces = exports.download_export(request).await?.into_inner();
    while pieces.message().await?.is_some() {}

    let job = daemon.import_with(Path::new(&made.path), Some(v1::ApplyRules::default())).await?;
    let applied = job.imports().first().context("an import")?;
    ensure!(applied.status() == v1::ImportStatus::Completed, "{applied:?}");
    let request = v1::UndoImportRequest { id: applied.id.clone(), dry_run: false, expected_records: None };
    operation::undo(&daemon.channel, request).await?;

    let output = daemon.folder.path().join("backup").to_str().context("UTF-8")?.to_owned();
    let request = v1::CreateBackupRequest { output };
    operation::backup(&daemon.channel, request).await?;
    Ok(())
}

/// Watches a folder of archives until all of them are imported.
async fn watch_until_imported(daemon: &TestDaemon, folder: &Path) -> Result<()> {
    let path = folder.to_str().context("UTF-8")?.to_owned();
    let mut client = ImportServiceClient::new(daemon.channel.clone());
    client.add_source(v1::AddSourceRequest { path, ..Default::default() }).await?;
    let wanted = conversation_count(daemon).await? + ZIPS as u64;
    let begun = Instant::now();
    while conversation_count(daemon).await? < wanted {
        ensure!(begun.elapsed() < WAIT_TIMEOUT, "not all archives are imported");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

async fn conversation_count(daemon: &TestDaemon) -> Result<u64> {
    let mut client = AdminServiceClient::new(daemon.channel.clone());
    Ok(unsigned(client.get_stats(v1::GetStatsRequest {}).await?.into_inner().conversations))
}

/// Opens files until no more can be opened.
fn exhaust_file_descriptors() -> Vec<File> {
    let mut all = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        all.push(file);
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_works_with_256_open_files_and_recovers_from_exhaustion() -> Result<()> {
    setrlimit(Resource::Nofile, Rlimit { current: Some(OPEN_FILE_LIMIT), maximum: Some(OPEN_FILE_LIMIT) })?;
    let ground = TempDir::new()?;
    let (folder, zip, late, watched) = (
        folder_of_zips(&ground.path().join("folder"), 0)?,
        zip_of_zips(&ground.path().join("zips.zip"), ZIPS)?,
        folder_of_zips(&ground.path().join("late"), 2 * ZIPS)?,
        folder_of_zips(&ground.path().join("watched"), 3 * ZIPS)?,
    );
    let daemon = TestDaemon::start_with(TempDir::new()?, |config| config.watching.active = true).await?;
    // The daemon has accepted the connection, which uses one file.
    read_revision(&daemon).await?;

    // No importer is loaded yet, so every first step of an import fails.
    let held = exhaust_file_descriptors();
    ensure!(held.len() > 100, "files were still available");
    let job = daemon.import(&late).await;
    if let Ok(job) = &job {
        ensure!(job.imports().iter().all(|import| import.status() == v1::ImportStatus::Failed), "{job:?}");
    }
    ensure!(read_revision(&daemon).await? == 0, "the failed import stored something");
    drop(held);
    ensure!(
        new_conversations(&daemon.import(&late).await?)? == ZIPS as u64,
        "the same import once files are available again"
    );

    ensure!(new_conversations(&daemon.import(&folder).await?)? == ZIPS as u64, "a folder of archives");
    ensure!(new_conversations(&daemon.import(&zip).await?)? == ZIPS as u64, "an archive of archives");
    let made = export(&daemon, "all.zip").await?;
    ensure!(made.conversations == signed(3 * ZIPS as u64));
    verify_apply_undo_and_back_up(&daemon, &made).await?;
    watch_until_imported(&daemon, &watched).await?;

    // Once more after everything has been in use.
    let revision = read_revision(&daemon).await?;
    let held = exhaust_file_descriptors();
    ensure!(read_revision(&daemon).await? == revision);
    drop(held);
    ensure!(export(&daemon, "again.zip").await?.conversations == signed(4 * ZIPS as u64));
    daemon.stop().await?;
    Ok(())
}
