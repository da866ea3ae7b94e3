//! A daemon that watches a folder, and exports for it.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use satchel_proto::{
    integers::{signed, unsigned},
    v1::{
        self, ImportStatus, admin_service_client::AdminServiceClient,
        import_service_client::ImportServiceClient,
    },
};
use satchel_server::config::Config;
use satchel_tests::{samples::pack, test_daemon::TestDaemon};
use satchel_watch::{WatchIntervals, WatchSpec};
use tempfile::TempDir;

/// Upper limit for any wait, even on a machine that does other work.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_mins(2);
/// Pause between two polls of the daemon.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(20);

pub(crate) fn short_timing() -> WatchIntervals {
    WatchIntervals {
        quiet: Duration::from_millis(60),
        rescan: Duration::from_millis(400),
        poll: Duration::from_millis(100),
        health_check: Duration::from_millis(100),
        retry: Duration::from_millis(100),
    }
}

/// A daemon and the folder that it watches.
pub(crate) struct WatchFixture {
    pub(crate) daemon: TestDaemon,
    pub(crate) downloads: PathBuf,
}

pub(crate) fn configure_watching(config: &mut Config, downloads: &Path) {
    config.watching.active = true;
    config.watching.intervals = short_timing();
    config.watching.folders = vec![WatchSpec::with_defaults(downloads.to_owned())];
}

impl WatchFixture {
    pub(crate) async fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        fs::create_dir(folder.path().join("downloads"))?;
        Self::start_in(folder).await
    }

    pub(crate) async fn start_in(folder: TempDir) -> Result<Self> {
        let downloads = folder.path().join("downloads");
        let daemon = TestDaemon::start_with(folder, |config| configure_watching(config, &downloads)).await?;
        Ok(Self { daemon, downloads })
    }

    pub(crate) async fn restart(self) -> Result<Self> {
        Self::start_in(self.daemon.stop().await?).await
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.downloads.join(name)
    }

    pub(crate) fn channel(&self) -> tonic::transport::Channel {
        self.daemon.channel.clone()
    }

    pub(crate) fn client(&self) -> ImportServiceClient<tonic::transport::Channel> {
        ImportServiceClient::new(self.daemon.channel.clone())
    }

    pub(crate) async fn source(&self) -> Result<v1::Source> {
        let sources =
            self.client().list_sources(v1::ListSourcesRequest::default()).await?.into_inner().sources;
        sources.into_iter().next().context("a watched folder")
    }

    pub(crate) async fn imports(&self) -> Result<Vec<v1::Import>> {
        let mut all = Vec::new();
        let mut page_token = String::new();
        loop {
            let request = v1::ListImportsRequest { page_size: 500, page_token, ..Default::default() };
            let page = self.client().list_imports(request).await?.into_inner();
            all.extend(page.imports);
            page_token = page.next_page_token;
            if page_token.is_empty() {
                return Ok(all);
            }
        }
    }

    /// Waits until the state of the folder matches `wanted`.
    pub(crate) async fn wait_until(&self, wanted: impl Fn(&v1::Source) -> bool) -> Result<v1::Source> {
        let end = Instant::now() + WAIT_TIMEOUT;
        loop {
            let source = self.source().await?;
            if source.scanned && wanted(&source) {
                return Ok(source);
            }
            if Instant::now() > end {
                bail!("timed out: {source:?}");
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Waits until `count` files are imported and nothing is left to do.
    pub(crate) async fn wait_for_imported(&self, count: u64) -> Result<v1::Source> {
        self.wait_until(|source| source.imported == signed(count) && idle(source)).await
    }

    /// Waits long enough for the daemon to scan the folder at least twice more.
    pub(crate) async fn wait_for_rescans(&self) {
        tokio::time::sleep(short_timing().rescan * 3).await;
    }

    /// Checks that there are `count` imports and that each completed.
    pub(crate) async fn assert_completed(&self, count: usize) -> Result<()> {
        let imports = self.imports().await?;
        let odd: Vec<_> = imports
            .iter()
            .filter(|import| import.status() != ImportStatus::Completed)
            .map(|import| (import.source.clone(), import.status(), import.reason.clone()))
            .collect();
        assert_eq!(odd, []);
        assert_eq!(imports.len(), count, "{:?}", imports.iter().map(|one| &one.source).collect::<Vec<_>>());
        Ok(())
    }

    pub(crate) async fn problems(&self) -> Result<Vec<v1::Problem>> {
        let mut admin = AdminServiceClient::new(self.daemon.channel.clone());
        Ok(admin.get_status(v1::GetStatusRequest {}).await?.into_inner().problems)
    }

    pub(crate) async fn stats(&self) -> Result<v1::GetStatsResponse> {
        let mut admin = AdminServiceClient::new(self.daemon.channel.clone());
        Ok(admin.get_stats(v1::GetStatsRequest {}).await?.into_inner())
    }

    pub(crate) async fn conversation_count(&self) -> Result<u64> {
        Ok(unsigned(self.stats().await?.conversations))
    }
}

pub(crate) fn idle(source: &v1::Source) -> bool {
    source.reading.is_empty() && source.queued == 0 && source.waiting_total == 0
}

/// Returns a ChatGPT export of one conversation; another number gives another conversation.
pub(crate) fn chatgpt_file(number: usize) -> Vec<u8> {
    let begin = 1_746_180_000 + 100 * number;
    let node = |id: &str, parent: Option<&str>, children: &[&str], role: &str, at: usize| {
        serde_json::json!({
            "id": id, "parent": parent, "children": children,
            "message": {
                "id": format!("{number}-{id}"), "author": {"role": role}, "create_time": begin + at,
                "content": {"content_type": "text", "parts": [format!("{id} of {number}")]},
                "status": "finished_successfully", "weight": 1.0, "metadata": {}, "recipient": "all",
            },
        })
    };
    let conversation = serde_json::json!({
        "title": format!("Conversation {number}"), "create_time": begin, "update_time": begin + 50,
        "conversation_id": format!("68148001-7a10-800f-9c51-{number:012}"), "current_node": "answer",
        "mapping": {
            "root": {"id": "root", "message": null, "parent": null, "children": ["question"]},
            "question": node("question", Some("root"), &["answer"], "user", 1),
            "answer": node("answer", Some("question"), &[], "assistant", 2),
        },
    });
    serde_json::to_vec(&[conversation]).unwrap_or_default()
}

/// Returns the same export as a ZIP.
pub(crate) fn chatgpt_zip(number: usize) -> Result<Vec<u8>> {
    let (folder, place) = (tempfile::tempdir()?, tempfile::tempdir()?);
    fs::write(folder.path().join("conversations.json"), chatgpt_file(number))?;
    let zip = place.path().join("export.zip");
    pack(folder.path(), &zip)?;
    Ok(fs::read(zip)?)
}
