//! A daemon that is killed repeatedly while exports wait imports all of them, and stores none of their records twice.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use satchel_proto::{
    integers::{signed, unsigned},
    v1::{
        self, ImportStatus, admin_service_client::AdminServiceClient,
        import_service_client::ImportServiceClient,
    },
};
use satchel_server::config::Config;
use satchel_tests::{
    generate::Rng,
    test_core::code_cache,
    test_daemon::{TestDaemon, chatgpt_export},
};
use satchel_watch::WatchSpec;

/// Set in the child: the folder with the data directory and the downloads.
const FOLDER: &str = "SATCHEL_TEST_WATCH_KILL";
const EXPORTS: usize = 20;
const ROUNDS: u64 = 6;
/// Upper limit for any wait, even on a machine that does other work.
const WAIT_TIMEOUT: Duration = Duration::from_mins(2);

fn configure_watching(config: &mut Config, folder: &Path) {
    config.watching.active = true;
    config.watching.intervals.quiet = Duration::from_millis(50);
    config.watching.folders = vec![WatchSpec::with_defaults(folder.join("downloads"))];
}

/// Not a separate test: it runs in the child process of the test below until it is killed.
#[tokio::test(flavor = "multi_thread")]
async fn child_that_watches() -> Result<()> {
    let Some(folder) = std::env::var_os(FOLDER) else { return Ok(()) };
    let folder = Path::new(&folder);
    let mut config = Config::new(folder.join("data"), folder.to_owned());
    config.code_cache = Some(code_cache());
    configure_watching(&mut config, folder);
    Ok(satchel_server::run(config, |_| {}, |_| {}, std::future::pending()).await?)
}

fn spawn_child(folder: &Path) -> Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--exact", "killed_watch::child_that_watches", "--test-threads", "1"]).env(FOLDER, folder);
    Ok(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_daemon_imports_each_of_twenty_exports() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().to_owned();
    for place in ["data", "downloads"] {
        fs::create_dir(path.join(place))?;
    }
    // Each export contains everything in the previous one, so that a record stored twice would be noticed.
    for number in 0..EXPORTS {
        let export = chatgpt_export(&path.join("made"), 10 * (number + 1))?;
        let name = path.join(format!("downloads/conversations-{number:03}.json"));
        fs::rename(export.join("conversations.json"), name)?;
    }
    let mut rng = Rng::new(7);
    for _ in 0..ROUNDS {
        let mut victim = spawn_child(&path)?;
        // The random moment is the point of the test: before, during and after the imports.
        std::thread::park_timeout(Duration::from_millis(rng.below(600)));
        victim.kill()?;
        victim.wait()?;
    }
    let daemon = TestDaemon::start_with(folder, |config| configure_watching(config, &path)).await?;
    let mut client = ImportServiceClient::new(daemon.channel.clone());
    let end = Instant::now() + WAIT_TIMEOUT;
    loop {
        let sources = client.list_sources(v1::ListSourcesRequest::default()).await?.into_inner().sources;
        let source = sources.first().context("a watched folder")?;
        if source.imported == signed(EXPORTS as u64) && source.reading.is_empty() {
            break;
        }
        ensure!(Instant::now() < end, "timed out: {source:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let request = v1::ListImportsRequest { page_size: 500, ..v1::ListImportsRequest::default() };
    for import in client.list_imports(request).await?.into_inner().imports {
        let cut = import.status() == ImportStatus::Failed && import.reason.contains("the program stopped");
        ensure!(cut || import.status() == ImportStatus::Completed, "{import:?}");
    }
    let mut admin = AdminServiceClient::new(daemon.channel.clone());
    let stats = admin.get_stats(v1::GetStatsRequest {}).await?.into_inner();
    assert_eq!(unsigned(stats.conversations), 10 * EXPORTS as u64);
    daemon.stop().await?;
    Ok(())
}
