//! Wires the rooms together and serves until told to stop; what `main` and every test call.

use std::{
    fs::{self, DirBuilder},
    future::Future,
    io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use satchel_store::{OpenEvent, OpenOptions, Store, StoreError};

use crate::{
    clock::{Clock, SystemClock},
    config::Config,
    export::Exports,
    grpc::{self, Core, ServeError, page::PageKey},
    ingest::{Imports, IngestError},
    plugins::Plugins,
    serve::{Listener, SocketError},
    watch::{Watch, WatchError},
};

/// Told once the daemon answers.
#[derive(Clone, Debug)]
pub struct Ready {
    /// Where it listens.
    pub socket: PathBuf,
    /// What is worth knowing about the opening of the store.
    pub notices: Vec<String>,
}

/// Why the daemon does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The data directory cannot be made or is open to others.
    #[error("the data directory {path:?} cannot be used")]
    DataDir { path: PathBuf, source: io::Error },
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The ledger of imports.
    #[error(transparent)]
    Ingest(#[from] IngestError),
    /// The watched folders.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// The socket.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The serving.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// A bug.
    #[error("a task of the daemon broke off; please report this")]
    Panicked,
}

/// Opens the data directory, serves it on its socket and stops in order when `stop` ends: first no new calls, then
/// imports, then the store.
///
/// # Errors
/// When the directory is another's or in use, the store does not open, or the socket cannot be served.
pub async fn run(
    config: Config,
    notice: impl FnMut(&OpenEvent) + Send + 'static,
    ready: impl FnOnce(Ready),
    stop: impl Future<Output = ()> + Send,
) -> Result<(), RunError> {
    let runtime_dir = config.runtime_dir.clone();
    let data_dir = config.data_dir.clone();
    let watching = config.watching.active;
    let opened =
        tokio::task::spawn_blocking(move || open(&config, notice)).await.map_err(|_| RunError::Panicked)?;
    let (core, notices) = opened?;
    let listener = Listener::bind(&data_dir, &runtime_dir)?;
    ready(Ready { socket: listener.path().to_owned(), notices });
    let (watch, imports, store) = (core.watch.clone(), core.imports.clone(), core.store.clone());
    if watching {
        watch.start();
    }
    let served = grpc::serve(core, listener, stop).await;
    let closed = tokio::task::spawn_blocking(move || {
        watch.stop();
        imports.stop();
        store.close()
    });
    closed.await.map_err(|_| RunError::Panicked)??;
    Ok(served?)
}

fn open(config: &Config, mut notice: impl FnMut(&OpenEvent)) -> Result<(Core, Vec<String>), RunError> {
    let data_dir = config.data_dir.clone();
    let failed = |source| RunError::DataDir { path: data_dir.clone(), source };
    private_folder(&data_dir).map_err(failed)?;
    let mut notices = Vec::new();
    let options = OpenOptions { cache_bytes: config.cache_bytes, ..OpenOptions::default() };
    let store = Store::open(&data_dir, options, &mut |event| {
        notice(&event);
        notices.extend(told(&event));
    })?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let plugins = Arc::new(Plugins::built_in(Some(data_dir.join("cache"))));
    let limits = satchel_host::Limits::default();
    let imports =
        Imports::new(store.clone(), Arc::clone(&plugins), Arc::clone(&clock), config.intake.clone(), limits)?;
    let watch =
        Watch::new(store.clone(), imports.clone(), Arc::clone(&clock), data_dir.clone(), &config.watching)?;
    let exports = Exports::new(store.clone(), Arc::clone(&clock), data_dir.join("keys"));
    let started_at = clock.now_micros();
    let page_key = PageKey::kept_in(&data_dir.join("keys"));
    Ok((Core { store, plugins, imports, watch, exports, clock, page_key, data_dir, started_at }, notices))
}

/// Makes the folder ours alone, or finds it so.
fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// What a person should know of how the store opened.
fn told(event: &OpenEvent) -> Option<String> {
    match event {
        OpenEvent::Rebuilding { reason } => {
            Some(format!("the database is built again from the journal: {reason}"))
        }
        OpenEvent::TailCut { bytes } => Some(format!(
            "{bytes} unfinished bytes at the end of the journal were cut; nothing in them had been confirmed"
        )),
        OpenEvent::Damaged(damage) => {
            Some(format!("the journal is damaged: {damage}; nothing is written until it is restored"))
        }
        _ => None,
    }
}
