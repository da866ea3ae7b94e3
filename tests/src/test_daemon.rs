//! A daemon for one test: it runs in this process on its own data directory and is called over its socket.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use satchel_proto::v1::{self, import_service_client::ImportServiceClient};
use satchel_server::{RunError, config::Config};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{sync::oneshot, task::JoinHandle};
use tonic::transport::Channel;

use crate::{operation, test_core};

/// Largest answer that the harness accepts, in bytes: the default limit of a client.
pub const MAX_RESPONSE_BYTES: usize = 4 << 20;

/// A running daemon.
pub struct TestDaemon {
    /// The folder of the daemon; it contains the data directory and the files of the test.
    pub folder: TempDir,
    /// A connection to the daemon.
    pub channel: Channel,
    /// The address for gRPC-Web, if the daemon has one.
    pub web: Option<SocketAddr>,
    stop: oneshot::Sender<()>,
    running: JoinHandle<Result<(), RunError>>,
}

impl TestDaemon {
    /// Starts a daemon on an empty data directory.
    ///
    /// # Errors
    /// If the daemon does not start.
    pub async fn start() -> Result<Self> {
        Self::start_in(tempfile::tempdir()?).await
    }

    /// Starts a daemon on the data directory in `folder`.
    ///
    /// # Errors
    /// If the daemon does not start.
    pub async fn start_in(folder: TempDir) -> Result<Self> {
        Self::start_with(folder, |_| {}).await
    }

    /// Starts a daemon on the data directory in `folder`, with the configuration changed by `set`.
    ///
    /// # Errors
    /// If the daemon does not start.
    pub async fn start_with(folder: TempDir, set: impl FnOnce(&mut Config)) -> Result<Self> {
        let mut config = Config::new(data_dir(&folder), folder.path().to_owned());
        // Compiling the importers again for each test would take most of its time.
        config.code_cache = Some(test_core::code_cache());
        set(&mut config);
        let (stop, stopped) = oneshot::channel::<()>();
        let (ready, started) = oneshot::channel();
        let running = tokio::spawn(satchel_server::run(
            config,
            |_| {},
            move |address| drop(ready.send(address)),
            async move { drop(stopped.await) },
        ));
        let Ok(ready) = started.await else {
            running.await??;
            anyhow::bail!("the daemon ended before it was ready");
        };
        let channel = satchel_server::connect::connect(&data_dir(&folder)).await?;
        Ok(Self { folder, channel, web: ready.web, stop, running })
    }

    /// Stops the daemon cleanly; its folder remains.
    ///
    /// # Errors
    /// If the daemon ends with an error.
    pub async fn stop(self) -> Result<TempDir> {
        drop(self.channel);
        if self.stop.send(()).is_err() {
            // The daemon has already ended; the next line returns its outcome.
        }
        self.running.await??;
        Ok(self.folder)
    }

    /// Returns the data directory.
    #[must_use]
    pub fn data_dir(&self) -> PathBuf {
        data_dir(&self.folder)
    }

    /// Imports `path` and follows the operation until it has ended.
    ///
    /// # Errors
    /// If a call fails.
    pub async fn import(&self, path: &Path) -> Result<v1::Operation> {
        self.import_with(path, None).await
    }

    /// Like [`TestDaemon::import`]; if `apply` is set, the bundle at `path` is merged.
    ///
    /// # Errors
    /// If a call fails.
    pub async fn import_with(&self, path: &Path, apply: Option<v1::ApplyRules>) -> Result<v1::Operation> {
        let mut client = ImportServiceClient::new(self.channel.clone());
        let path = path.to_str().context("the path is UTF-8")?.to_owned();
        let request = v1::CreateImportRequest { path, apply, ..v1::CreateImportRequest::default() };
        let started = client.create_import(request).await?.into_inner().operation.context("an operation")?;
        Ok(operation::wait(&self.channel, &started.id).await?)
    }
}

fn data_dir(folder: &TempDir) -> PathBuf {
    folder.path().join("data")
}

/// Writes a ChatGPT export with `conversations` conversations into `folder`. Each has a question, two answers to it of
/// which the second was kept, and a question below that one. The texts identify conversation and message.
///
/// # Errors
/// If the files cannot be written.
pub fn chatgpt_export(folder: &Path, conversations: usize) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let all: Vec<Value> = (0..conversations).map(chatgpt_conversation).collect();
    fs::write(folder.join("conversations.json"), serde_json::to_vec(&all)?)?;
    Ok(folder.to_owned())
}

fn chatgpt_conversation(number: usize) -> Value {
    let begin = 1_746_180_000 + 100 * number;
    let node = |id: &str, parent: Option<&str>, children: &[&str], role: &str, at: usize| {
        json!({
            "id": id, "parent": parent, "children": children,
            "message": {
                "id": format!("{number}-{id}"), "author": {"role": role}, "create_time": begin + at,
                "content": {"content_type": "text", "parts": [format!("{id} of {number}")]},
                "status": "finished_successfully", "weight": 1.0, "metadata": {}, "recipient": "all",
            },
        })
    };
    json!({
        "title": format!("Conversation {number}"), "create_time": begin, "update_time": begin + 50,
        "conversation_id": format!("68148001-7a10-800f-9c51-{number:012}"), "current_node": "follow-up",
        "mapping": {
            "root": {"id": "root", "message": null, "parent": null, "children": ["question"]},
            "question": node("question", Some("root"), &["first", "second"], "user", 1),
            "first": node("first", Some("question"), &[], "assistant", 2),
            "second": node("second", Some("question"), &["follow-up"], "assistant", 3),
            "follow-up": node("follow-up", Some("second"), &[], "user", 4),
        },
    })
}

/// Returns the input of a fixture of the ChatGPT importer.
#[must_use]
pub fn chatgpt_fixture(behaviour: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/chatgpt/fixtures").join(behaviour).join("input")
}
