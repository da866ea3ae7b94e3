//! Starts all parts of the daemon and serves until it is stopped; called by `main` and every test.

use std::{
    future::{self, Future},
    os::unix::net::UnixListener,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use satchel_core::{
    clock::{self, Clock, ClockError, SystemClock},
    data_dir::{self, DataDirError},
    export::{Exports, Settings},
    ingest::{Imports, IngestError, purge},
    plugins::Plugins,
    reading,
    schedule::Regular,
    vault::{self, VaultError},
};
use satchel_source::chain;
use satchel_store::{OpenEvent, Store, StoreError};
use satchel_watch::{Watch, WatchError};
use tokio::{
    net::UnixStream,
    sync::{mpsc, watch},
};

use crate::{
    config::Config,
    connect::Inside,
    grpc::{self, Core, ServeError, operation::Operations, page::PageKey, recent::Recent},
    serve::{Listener, SocketError},
    supervisor::{self, Supervisor},
};

/// How long running imports may take to reach their next complete record when a process ends with its daemon. After
/// that the store is closed. A record takes milliseconds; an fsync on a busy disk, or compiling the importers, takes
/// seconds.
pub const DRAIN: Duration = Duration::from_secs(10);
/// Practically no limit: a process that continues after its daemon needs the data directory to be free.
const UNTIL_IT_ENDS: Duration = Duration::from_hours(24);
/// How often to check whether a scheduled export is due. Short commands that serve by themselves end before the first
/// check.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// The details that are reported once the daemon answers.
#[derive(Clone, Debug)]
pub struct Ready {
    /// The path of its socket.
    pub socket: PathBuf,
    /// Notices about the opening of the store.
    pub notices: Vec<String>,
    /// The only connector to the daemon, if the disk cannot hold a socket.
    pub inside: Option<Inside>,
}

/// The connections of a daemon to the process that it runs in.
pub struct Outside {
    /// The settings. Every value that is sent later, changed or not, causes a reload: settings that may change at run
    /// time are applied, and the watched folders are scanned again.
    pub settings: watch::Receiver<Config>,
    /// The socket that the service manager created.
    pub inherited: Option<UnixListener>,
    /// The service manager, which is told that the daemon is alive.
    pub supervisor: Supervisor,
    /// How long the service manager waits for a sign of life.
    pub watchdog: Option<Duration>,
    /// How long a stop waits for running imports.
    pub drain: Duration,
    /// Becomes true when the stop must not wait any longer.
    pub hurry: watch::Receiver<bool>,
    /// Whether to serve read-only if nothing can be written. A daemon should end instead, and be started again when
    /// writing is possible.
    pub reading: bool,
}

/// The reason why the daemon does not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The data directory cannot be created or must not be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The clock of the machine is wrong.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store cannot be unlocked.
    #[error(transparent)]
    Vault(VaultError),
    /// The ledger of imports failed.
    #[error(transparent)]
    Ingest(#[from] IngestError),
    /// The watched folders failed.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// The socket failed.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// Serving failed.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// A bug.
    #[error("a task of the daemon broke off; please report this")]
    Panicked,
}

impl From<VaultError> for RunError {
    /// Converts the error. An error of the store stays a store error, for example that the store is in use, whichever
    /// module finds it.
    fn from(error: VaultError) -> Self {
        match error {
            VaultError::Store(error) => Self::Store(error),
            error => Self::Vault(error),
        }
    }
}

/// Opens the data directory, serves it on its socket, and stops in order when `stop` completes: first it refuses new
/// calls, then it ends imports, then it closes the store.
///
/// # Errors
/// If the directory belongs to another user or is in use, the store cannot be opened, or the socket cannot be served.
pub async fn run(
    config: Config,
    notice: impl FnMut(&OpenEvent) + Send + 'static,
    ready: impl FnOnce(Ready),
    stop: impl Future<Output = ()> + Send,
) -> Result<(), RunError> {
    let (_settings, settings) = watch::channel(config);
    let (_hurry, hurry) = watch::channel(false);
    let supervisor = Supervisor::default();
    let drain = UNTIL_IT_ENDS;
    let outside =
        Outside { settings, inherited: None, supervisor, watchdog: None, drain, hurry, reading: true };
    run_under(outside, notice, ready, stop).await
}

/// Does the same as [`run`], for a daemon that a service manager or a terminal controls.
///
/// # Errors
/// As for [`run`].
pub async fn run_under(
    outside: Outside,
    notice: impl FnMut(&OpenEvent) + Send + 'static,
    ready: impl FnOnce(Ready),
    stop: impl Future<Output = ()> + Send,
) -> Result<(), RunError> {
    let Outside { mut settings, inherited, supervisor, watchdog, drain, hurry, reading } = outside;
    let config = settings.borrow_and_update().clone();
    let (data_dir, runtime_dir) = (config.data_dir.clone(), config.runtime_dir.clone());
    let watching = config.watching.active;
    let regular = config.regular.clone();
    let opened = tokio::task::spawn_blocking(move || open(&config, reading, notice))
        .await
        .map_err(|_| RunError::Panicked)?;
    let (core, notices) = opened?;
    let door = match inherited {
        Some(socket) => Door::Socket(Listener::inherit(socket, &data_dir, &runtime_dir)?),
        None if core.store.is_open_to_read() => Door::inside(),
        None => Door::Socket(Listener::bind(&data_dir, &runtime_dir)?),
    };
    ready(Ready { socket: door.path().to_owned(), notices, inside: door.way() });
    let (watch, imports, store) = (core.watch.clone(), core.imports.clone(), core.store.clone());
    let (exports, operations) = (core.exports.clone(), core.operations.clone());
    if watching {
        watch.start();
    }
    let stop = async {
        stop.await;
        // End the work while open calls finish.
        imports.refuse();
        operations.cancel_all();
    };
    let served = tokio::select! {
        served = door.serve(core, stop, hurried(hurry.clone())) => served,
        () = follow(&mut settings, &imports, &watch) => Ok(()),
        () = tell_alive(&supervisor, watchdog, &store) => Ok(()),
        // An export that is being written finishes by itself; the store is closed after it.
        () = export_regularly(exports, regular) => Ok(()),
    };
    let work = (watch.clone(), imports.clone(), operations.clone());
    close(work, store.clone(), drain, hurry).await?;
    Ok(served?)
}

/// The entry for clients.
enum Door {
    Socket(Listener),
    /// Only for clients in this process, because the socket's folder cannot be written.
    Inside(Inside, mpsc::Receiver<UnixStream>),
}

impl Door {
    fn inside() -> Self {
        let (way, arrivals) = Inside::new();
        Self::Inside(way, arrivals)
    }

    fn path(&self) -> &Path {
        match self {
            Self::Socket(listener) => listener.path(),
            Self::Inside(..) => Path::new(""),
        }
    }

    fn way(&self) -> Option<Inside> {
        match self {
            Self::Socket(_) => None,
            Self::Inside(way, _) => Some(way.clone()),
        }
    }

    async fn serve(
        self,
        core: Core,
        stop: impl Future<Output = ()> + Send,
        hurry: impl Future<Output = ()> + Send,
    ) -> Result<(), ServeError> {
        match self {
            Self::Socket(listener) => grpc::serve(core, listener, stop, hurry).await,
            Self::Inside(_, arrivals) => grpc::serve_inside(core, arrivals, stop, hurry).await,
        }
    }
}

/// Waits until running imports reach their next complete record and other work ends, unless `hurry` is set, and closes
/// the store.
async fn close(
    (watch, imports, operations): (Watch, Imports, Operations),
    store: Store,
    drain: Duration,
    hurry: watch::Receiver<bool>,
) -> Result<(), RunError> {
    let drained = tokio::task::spawn_blocking(move || {
        watch.stop();
        let (began, imported) = (Instant::now(), imports.stop(drain));
        operations.stop(drain.saturating_sub(began.elapsed())) && imported
    });
    let drained = tokio::select! {
        drained = drained => drained.map_err(|_| RunError::Panicked)?,
        () = hurried(hurry) => false,
    };
    if !drained {
        tracing::warn!(
            "an import or another operation still runs; the whole records of an import stay, and importing again completes it"
        );
    }
    Ok(tokio::task::spawn_blocking(move || store.close()).await.map_err(|_| RunError::Panicked)??)
}

/// Applies the settings that may change at run time, at each reload. Never returns.
async fn follow(settings: &mut watch::Receiver<Config>, imports: &Imports, watch: &Watch) {
    while settings.changed().await.is_ok() {
        let config = settings.borrow_and_update().clone();
        imports.set_limits(config.intake);
        if config.watching.active {
            watch.reconfigure(&config.watching.folders);
            watch.rescan();
        }
    }
    future::pending::<()>().await;
}

/// Tells the service manager that the runtime responds and the store's writer is not stuck. Never returns.
async fn tell_alive(supervisor: &Supervisor, watchdog: Option<Duration>, store: &Store) {
    let Some(limit) = watchdog else { return future::pending().await };
    let probe = || async {
        let store = store.clone();
        // The digest is read under the same lock as writes, so it waits for a commit that hangs.
        if tokio::task::spawn_blocking(move || store.state_digest()).await.is_err() {
            tracing::error!("the store cannot be asked whether it is well");
            future::pending::<()>().await;
        }
    };
    supervisor::keep_alive(supervisor, limit, probe).await;
}

async fn hurried(mut hurry: watch::Receiver<bool>) {
    if hurry.wait_for(|hurry| *hurry).await.is_err() {
        // The sender was dropped, so `hurry` can no longer be set.
        future::pending::<()>().await;
    }
}

/// Creates the scheduled exports, if there is a schedule. A failed export is logged and tried again. Never returns.
async fn export_regularly(exports: Exports, plan: Option<Regular>) {
    let Some(plan) = plan else { return future::pending().await };
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let (exports, plan) = (exports.clone(), plan.clone());
        match tokio::task::spawn_blocking(move || exports.regular(&plan)).await {
            Ok(Ok(Some(record))) => tracing::info!(id = record.export_id, path = record.path, "exported"),
            Ok(Ok(None)) => {}
            Ok(Err(error)) => tracing::error!(error = chain(&error), "the scheduled export was not made"),
            Err(error) => tracing::error!(%error, "the scheduled export broke off"),
        }
    }
}

fn open(
    config: &Config,
    reading: bool,
    mut notice: impl FnMut(&OpenEvent),
) -> Result<(Core, Vec<String>), RunError> {
    let data_dir = config.data_dir.clone();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    clock::check(clock.now_micros())?;
    data_dir::take(&data_dir, config.allow_other_owner)?;
    let mut notices = Vec::new();
    let options = vault::open_options(&config.data_dir, &config.unlock, config.cache_bytes)?;
    let seal = options.seal.clone();
    let mut opened = || {
        let mut report = |event: OpenEvent| {
            notice(&event);
            notices.extend(told(&event));
        };
        if !reading {
            return Store::open(&data_dir, options.clone(), &mut report);
        }
        let (store, only) = reading::open(&data_dir, options.clone(), &mut report)?;
        notices
            .extend(only.map(|why| format!("what is stored is only read, as nothing can be written: {why}")));
        Ok(store)
    };
    let store = opened()?;
    let store = purge::complete(&data_dir, store, seal.as_ref(), &mut opened)?;
    vault::confirm(&data_dir);
    let plugins = Arc::new(Plugins::built_in(config.code_cache.clone()));
    let limits = satchel_host::Limits::default();
    let imports =
        Imports::new(store.clone(), Arc::clone(&plugins), Arc::clone(&clock), config.intake.clone(), limits)?;
    let watch =
        Watch::new(store.clone(), imports.clone(), Arc::clone(&clock), data_dir.clone(), &config.watching)?;
    let keys = data_dir.join("keys");
    let settings = Settings {
        renewal: config.renewal,
        did: config.owner_did.clone(),
        type_registry: config.type_registry.clone(),
    };
    let exports = Exports::configured(store.clone(), Arc::clone(&clock), keys, settings);
    let signers = exports.clone();
    imports.know_signers(move || signers.signers());
    let fading = config.fading.clone();
    let started_at = clock.now_micros();
    let page_key = PageKey::kept_in(&data_dir.join("keys"));
    Ok((
        Core {
            store,
            plugins,
            imports,
            operations: Operations::default(),
            watch,
            exports,
            clock,
            page_key,
            data_dir,
            started_at,
            fading,
            recent: Recent::default(),
        },
        notices,
    ))
}

/// Returns a notice for the user about the opening of the store.
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
