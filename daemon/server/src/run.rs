//! Starts all parts of the daemon and serves until it is stopped; called by `main` and every test.

mod open;

use std::{
    future::{self, Future},
    io,
    net::SocketAddr,
    os::unix::net::UnixListener,
    path::{Path, PathBuf},
    pin::{Pin, pin},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use satchel_core::{
    clock::{Clock, ClockError},
    data_dir::DataDirError,
    export::Exports,
    ingest::{Imports, IngestError},
    provenance::ProvenanceError,
    schedule::ScheduledExports,
    uploads::Uploads,
    vault::VaultError,
};
use satchel_devices::DevicesError;
use satchel_embedder::EndpointConfigError;
use satchel_indexer::Indexer;
use satchel_source::chain;
use satchel_store::{OpenEvent, OpenOptions, Revision, Store, StoreError};
use satchel_watch::{Watch, WatchError};
use tokio::{
    net::{TcpListener, UnixStream},
    sync::{mpsc, watch},
};

use crate::{
    config::{Config, LoopbackAddress},
    connect::InProcessConnector,
    devices::Devices,
    grpc::{
        self, NetworkListeners, ServeError, ServerState, TlsListener, WebListener, operation::Operations,
    },
    peers::{Peers, PeersError},
    socket::{Listener, SocketError},
    supervisor::{self, Supervisor},
};

#[cfg(test)]
pub(crate) use self::open::open;

/// How long running imports may take to reach their next complete record when a process ends with its daemon. After
/// that the store is closed. A record takes milliseconds; an fsync on a busy disk, or compiling the importers, takes
/// seconds.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Practically no limit: a process that continues after its daemon needs the data directory to be free.
const NO_DRAIN_LIMIT: Duration = Duration::from_hours(24);
/// How often to check whether the daemon's certificate is due for renewal, which it is after eight months.
const RENEWAL_CHECK_INTERVAL: Duration = Duration::from_hours(12);
/// How often to remove uploads and exports for devices that have expired.
const EXPIRY_CHECK_INTERVAL: Duration = Duration::from_mins(10);
/// How often to check whether a scheduled export is due. Short commands that serve by themselves end before the first
/// check.
const SCHEDULE_CHECK_INTERVAL: Duration = Duration::from_secs(30);

/// How long to wait before the store is tried to be opened again.
const REOPEN_INTERVAL: Duration = Duration::from_secs(1);

/// The details that are reported once the daemon accepts calls.
#[derive(Clone, Debug)]
pub struct Ready {
    /// The path of its socket.
    pub socket: PathBuf,
    /// Notices about the opening of the store.
    pub notices: Vec<String>,
    /// The address on which it accepts devices, with its port.
    pub listening: Option<SocketAddr>,
    /// The loopback address on which it accepts gRPC-Web, with its port.
    pub web: Option<SocketAddr>,
    /// The only way to connect to the daemon, if the disk cannot hold a socket.
    pub in_process: Option<InProcessConnector>,
}

/// What the process passes to the daemon that runs in it.
pub struct RunContext {
    /// The settings. Every value that is sent later, changed or not, causes a reload: settings that may change at run
    /// time are applied, and the watched folders are scanned again.
    pub settings: watch::Receiver<Config>,
    /// The socket that the service manager created.
    pub inherited_socket: Option<UnixListener>,
    /// The service manager, which receives notifications about the state of the daemon.
    pub supervisor: Supervisor,
    /// How long the service manager waits for a heartbeat.
    pub watchdog: Option<Duration>,
    /// How long a stop waits for running imports.
    pub drain: Duration,
    /// Becomes true when the stop must not wait any longer.
    pub stop_now: watch::Receiver<bool>,
    /// Whether to serve read-only if nothing can be written. A daemon should end instead, and be started again when
    /// writing is possible.
    pub allow_read_only: bool,
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
    /// An interrupted erasure cannot be completed.
    #[error(transparent)]
    Purge(#[from] ProvenanceError),
    /// The watched folders failed.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// The socket failed.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The server for embeddings cannot be used.
    #[error("[embeddings] cannot be used")]
    Embeddings(#[from] EndpointConfigError),
    /// The devices cannot be read.
    #[error(transparent)]
    Devices(#[from] DevicesError),
    /// The peers cannot be read.
    #[error(transparent)]
    Peers(Box<PeersError>),
    /// The port for devices cannot be opened.
    #[error("cannot listen on {address}; choose another address with --listen or [server] listen")]
    Listen { address: SocketAddr, source: io::Error },
    /// The port for gRPC-Web cannot be opened.
    #[error("cannot listen on {address} for gRPC-Web; choose another port with --web or [server] web")]
    ListenWeb { address: SocketAddr, source: io::Error },
    /// Serving failed.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// A bug.
    #[error("a task of the daemon panicked; please report this")]
    Panicked,
}

impl RunError {
    /// Returns whether the store or a port is held by something that will end.
    fn is_temporary(&self) -> bool {
        match self {
            Self::Store(error) => matches!(error, StoreError::Locked { .. }),
            Self::Listen { source, .. } | Self::ListenWeb { source, .. } => {
                source.kind() == io::ErrorKind::AddrInUse
            }
            _ => false,
        }
    }
}

impl From<PeersError> for RunError {
    fn from(error: PeersError) -> Self {
        Self::Peers(Box::new(error))
    }
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
    let (_stop_sender, stop_now) = watch::channel(false);
    let supervisor = Supervisor::default();
    let drain = NO_DRAIN_LIMIT;
    let context = RunContext {
        settings,
        inherited_socket: None,
        supervisor,
        watchdog: None,
        drain,
        stop_now,
        allow_read_only: true,
    };
    run_with(context, notice, ready, stop).await
}

/// Does the same as [`run`], for a daemon that a service manager or a terminal controls.
///
/// # Errors
/// As for [`run`].
pub async fn run_with(
    context: RunContext,
    notice: impl FnMut(&OpenEvent) + Send + 'static,
    ready: impl FnOnce(Ready),
    stop: impl Future<Output = ()> + Send,
) -> Result<(), RunError> {
    let mut daemon = Daemon {
        context,
        notice: Arc::new(Mutex::new(notice)),
        ready: Some(ready),
        bound: Bound::default(),
        opened: None,
    };
    let mut stop = pin!(stop);
    loop {
        match daemon.serve_store(stop.as_mut()).await {
            Ok(Ended::Stop) => return Ok(()),
            Ok(Ended::Reopen) => {
                tracing::info!("the store is opened again, to erase what a peer has erased");
            }
            // A call that was cut off may still hold the store or the port for a while.
            Err(error) if daemon.opened.is_some() && error.is_temporary() => {
                tracing::warn!(error = chain(&error), "the store cannot be opened again yet");
                tokio::select! {
                    () = stop.as_mut() => return Ok(()),
                    () = tokio::time::sleep(REOPEN_INTERVAL) => {}
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Why the store was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// The daemon is to stop.
    Stop,
    /// Something is to be erased from the disk, for which the store has to be opened again.
    Reopen,
}

/// The addresses that were bound when the store was opened first: they stay the same.
#[derive(Clone, Copy, Debug, Default)]
struct Bound {
    address: Option<SocketAddr>,
    web: Option<SocketAddr>,
}

/// A daemon, as long as its process lives.
struct Daemon<N, R> {
    context: RunContext,
    notice: Arc<Mutex<N>>,
    /// Called when the daemon accepts calls for the first time.
    ready: Option<R>,
    bound: Bound,
    /// With which settings the store was opened first, and how it was unlocked: nobody is asked for a passphrase again, and settings that
    /// take effect at a restart do not take effect before.
    opened: Option<(Config, OpenOptions)>,
}

impl<N, R> Daemon<N, R>
where
    N: FnMut(&OpenEvent) + Send + 'static,
    R: FnOnce(Ready),
{
    /// Opens the store, serves it until `stop` or until something is to be erased, and closes it.
    async fn serve_store(
        &mut self,
        stop: Pin<&mut (impl Future<Output = ()> + Send)>,
    ) -> Result<Ended, RunError> {
        let RunContext { settings, inherited_socket, supervisor, watchdog, drain, stop_now, allow_read_only } =
            &mut self.context;
        let latest = settings.borrow_and_update().clone();
        let (config, options) = match self.opened.clone() {
            None => (latest, None),
            Some((config, options)) => {
                // Those that take effect at once do so again.
                settings.mark_changed();
                (config, Some(options))
            }
        };
        let (data_dir, runtime_dir) = (config.data_dir.clone(), config.runtime_dir.clone());
        let watch_enabled = config.watching.active;
        let export_schedule = config.export_schedule.clone();
        // Before the store, so that a wrong address is told at once.
        let tcp = listen(self.bound.address.or(config.listen)).await?;
        let address =
            tcp.as_ref().map(TcpListener::local_addr).transpose().map_err(listen_error(config.listen))?;
        let web = listen_for_web(&config, self.bound.web).await?;
        let web_address = web.as_ref().map(WebListener::address);
        self.bound = Bound { address, web: web_address };
        let (notice, read_only) = (Arc::clone(&self.notice), *allow_read_only);
        let notice = move |event: &OpenEvent| (notice.lock().unwrap_or_else(PoisonError::into_inner))(event);
        let kept = config.clone();
        let opening = tokio::task::spawn_blocking(move || {
            open::open_with(&config, read_only, address, options, notice)
        });
        // Completing an erasure takes as long as rewriting the store.
        let opened = with_heartbeat(supervisor, *watchdog, opening).await.map_err(|_| RunError::Panicked)?;
        let (state, notices, options) = opened?;
        self.opened = Some((kept, options));
        let transport = match inherited_socket {
            Some(socket) => {
                let socket = socket.try_clone().map_err(|source| SocketError::Io {
                    action: "use the inherited socket of",
                    path: data_dir.clone(),
                    source,
                })?;
                Transport::Socket(Listener::inherit(socket, &data_dir, &runtime_dir)?)
            }
            None if state.store.opened_read_only() => Transport::in_process(),
            None => Transport::Socket(Listener::bind(&data_dir, &runtime_dir)?),
        };
        let tls = match (tcp, state.devices.authority()) {
            (Some(tcp), Some(authority)) => Some(TlsListener::new(tcp, authority.server_config()?)),
            _ => None,
        };
        let (in_process, devices) = (transport.connector(), state.devices.clone());
        let socket = transport.path().to_owned();
        if let Some(ready) = self.ready.take() {
            ready(Ready { socket, notices, in_process, listening: address, web: web_address });
        }
        let (watch, imports, store) = (state.watch.clone(), state.imports.clone(), state.store.clone());
        let (exports, operations) = (state.exports.clone(), state.operations.clone());
        let (indexer, embedder) = (state.indexer.clone(), state.embedder.clone());
        let (clock, uploads) = (Arc::clone(&state.clock), (state.uploads.clone(), Arc::clone(&state.clock)));
        if watch_enabled {
            watch.start();
            start_indexer(indexer.clone());
            if let Some(embedder) = &embedder {
                embedder.start(store.clone(), imports.clone());
            }
        }
        let (peers, revisions) = (state.peers.clone(), state.revisions.clone());
        let mut ended = Ended::Stop;
        let stop = async {
            tokio::select! {
                () = stop => {}
                () = peers.erasure_due(&operations), if watch_enabled => ended = Ended::Reopen,
            }
            // End the work while open calls finish.
            imports.refuse();
            operations.cancel_all();
            peers.stop();
        };
        let served = tokio::select! {
            served = transport.serve(state, NetworkListeners { tls, web }, stop, stop_now_requested(stop_now.clone())) => served,
            () = follow_peers(peers.clone(), revisions, watch_enabled) => Ok(()),
            () = renew_certificate(devices.clone(), clock) => Ok(()),
            () = remove_expired(uploads, exports.clone()) => Ok(()),
            () = apply_reloads(settings, &imports, &watch) => Ok(()),
            () = feed_watchdog(supervisor, *watchdog, &store) => Ok(()),
            // An export that is being written finishes by itself; the store is closed after it.
            () = run_scheduled_exports(exports, export_schedule) => Ok(()),
        };
        let work = (watch.clone(), imports.clone(), operations.clone());
        devices.flush();
        // A search in a call that is still open keeps its snapshot.
        let peers_to_save = peers.clone();
        let stop_followers = move || {
            if let Some(embedder) = &embedder {
                embedder.stop();
            }
            indexer.stop();
            peers_to_save.save_contacts(true);
        };
        if tokio::task::spawn_blocking(stop_followers).await.is_err() {
            tracing::error!("stopping the search index panicked");
        }
        peers.stop();
        let closing = drain_and_close(work, store.clone(), *drain, stop_now.clone());
        with_heartbeat(supervisor, *watchdog, closing).await?;
        served?;
        Ok(ended)
    }
}

/// Tells the service manager that the daemon is alive while `work` runs, during which the store cannot be asked.
async fn with_heartbeat<T>(
    supervisor: &Supervisor,
    watchdog: Option<Duration>,
    work: impl Future<Output = T>,
) -> T {
    let Some(limit) = watchdog else { return work.await };
    tokio::select! {
        done = work => done,
        never = supervisor::heartbeat_loop(supervisor, limit, || future::ready(())) => never,
    }
}

/// Keeps the store in step with its peers, in a daemon. Commands that serve by themselves exchange changes only when they are asked to.
/// Never returns.
async fn follow_peers(peers: Peers, revisions: watch::Receiver<Revision>, enabled: bool) {
    if enabled {
        peers.run(revisions).await;
    }
    future::pending::<()>().await;
}

/// Begins to follow the journal with the search index. Commands that serve by themselves do so only if somebody searches.
fn start_indexer(indexer: Indexer) {
    tokio::task::spawn_blocking(move || {
        if let Err(error) = indexer.start() {
            tracing::error!(error = chain(&error), "the search index cannot be opened");
        }
    });
}

/// The way in which clients connect.
enum Transport {
    Socket(Listener),
    /// Only for clients in this process, because the socket's folder cannot be written.
    InProcess(InProcessConnector, mpsc::Receiver<UnixStream>),
}

impl Transport {
    fn in_process() -> Self {
        let (connector, streams) = InProcessConnector::new();
        Self::InProcess(connector, streams)
    }

    fn path(&self) -> &Path {
        match self {
            Self::Socket(listener) => listener.path(),
            Self::InProcess(..) => Path::new(""),
        }
    }

    fn connector(&self) -> Option<InProcessConnector> {
        match self {
            Self::Socket(_) => None,
            Self::InProcess(connector, _) => Some(connector.clone()),
        }
    }

    async fn serve(
        self,
        state: ServerState,
        network: NetworkListeners,
        stop: impl Future<Output = ()> + Send,
        stop_now: impl Future<Output = ()> + Send,
    ) -> Result<(), ServeError> {
        match self {
            Self::Socket(listener) => grpc::serve(state, listener, network, stop, stop_now).await,
            Self::InProcess(_, streams) => grpc::serve_in_process(state, streams, stop, stop_now).await,
        }
    }
}

/// Waits until running imports reach their next complete record and other work ends, unless `stop_now` is set, and closes
/// the store.
async fn drain_and_close(
    (watch, imports, operations): (Watch, Imports, Operations),
    store: Store,
    drain: Duration,
    stop_now: watch::Receiver<bool>,
) -> Result<(), RunError> {
    let drain_task = tokio::task::spawn_blocking(move || {
        watch.stop();
        let (began, imported) = (Instant::now(), imports.stop(drain));
        operations.stop(drain.saturating_sub(began.elapsed())) && imported
    });
    let drained = tokio::select! {
        drained = drain_task => drained.map_err(|_| RunError::Panicked)?,
        () = stop_now_requested(stop_now) => false,
    };
    if !drained {
        tracing::warn!(
            "an import or another operation is still running; complete records of an import are kept, and importing again completes it"
        );
    }
    Ok(tokio::task::spawn_blocking(move || store.close()).await.map_err(|_| RunError::Panicked)??)
}

/// Applies the settings that may change at run time, at each reload. Never returns.
async fn apply_reloads(settings: &mut watch::Receiver<Config>, imports: &Imports, watch: &Watch) {
    while settings.changed().await.is_ok() {
        let config = settings.borrow_and_update().clone();
        imports.set_limits(config.import_limits);
        imports.set_secret_handling(config.secrets);
        if config.watching.active {
            watch.reconfigure(&config.watching.folders);
            watch.rescan();
        }
    }
    future::pending::<()>().await;
}

/// Opens the port for devices, if there is to be one.
async fn listen(address: Option<SocketAddr>) -> Result<Option<TcpListener>, RunError> {
    let Some(wanted) = address else { return Ok(None) };
    TcpListener::bind(wanted).await.map(Some).map_err(listen_error(address))
}

/// Opens the port for gRPC-Web, if there is to be one.
async fn listen_for_web(config: &Config, bound: Option<SocketAddr>) -> Result<Option<WebListener>, RunError> {
    let Some(address) = config.web else { return Ok(None) };
    let address = bound.and_then(|bound| LoopbackAddress::try_from(bound).ok()).unwrap_or(address);
    let bound = WebListener::bind(address, config.web_origins.clone()).await;
    bound.map(Some).map_err(|source| RunError::ListenWeb { address: address.get(), source })
}

fn listen_error(address: Option<SocketAddr>) -> impl FnOnce(io::Error) -> RunError {
    let address = address.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0)));
    move |source| RunError::Listen { address, source }
}

/// Renews the daemon's certificate when it is due. Never returns.
async fn renew_certificate(devices: Devices, clock: Arc<dyn Clock>) {
    loop {
        tokio::time::sleep(RENEWAL_CHECK_INTERVAL).await;
        match devices.authority().map(|authority| authority.renew_if_due(clock.now_micros())) {
            Some(Ok(true)) => tracing::info!("the daemon's certificate was renewed"),
            Some(Err(error)) => {
                tracing::error!(error = chain(&error), "cannot renew the daemon's certificate");
            }
            Some(Ok(false)) | None => {}
        }
    }
}

/// Removes uploads and exports for devices that are too old. Never returns.
async fn remove_expired((uploads, clock): (Uploads, Arc<dyn Clock>), exports: Exports) {
    loop {
        let (uploads, exports, now) = (uploads.clone(), exports.clone(), clock.now_micros());
        let removing = tokio::task::spawn_blocking(move || {
            uploads.remove_expired(now);
            exports.remove_old_downloads(SystemTime::now());
        });
        if let Err(error) = removing.await {
            tracing::error!(%error, "removing expired files of devices panicked");
        }
        tokio::time::sleep(EXPIRY_CHECK_INTERVAL).await;
    }
}

/// Sends heartbeats to the service manager while the runtime responds and the store's writer is not stuck. Never returns.
async fn feed_watchdog(supervisor: &Supervisor, watchdog: Option<Duration>, store: &Store) {
    let Some(limit) = watchdog else { return future::pending().await };
    let probe = || async {
        let store = store.clone();
        // The digest is read under the same lock as writes, so it waits for a commit that hangs.
        if tokio::task::spawn_blocking(move || store.state_digest()).await.is_err() {
            tracing::error!("cannot check the state of the store");
            future::pending::<()>().await;
        }
    };
    supervisor::heartbeat_loop(supervisor, limit, probe).await;
}

async fn stop_now_requested(mut stop_now: watch::Receiver<bool>) {
    if stop_now.wait_for(|stop_now| *stop_now).await.is_err() {
        // The sender was dropped, so `stop_now` can no longer be set.
        future::pending::<()>().await;
    }
}

/// Creates the scheduled exports, if there is a schedule. A failed export is logged and tried again. Never returns.
async fn run_scheduled_exports(exports: Exports, schedule: Option<ScheduledExports>) {
    let Some(schedule) = schedule else { return future::pending().await };
    loop {
        tokio::time::sleep(SCHEDULE_CHECK_INTERVAL).await;
        let (exports, schedule) = (exports.clone(), schedule.clone());
        match tokio::task::spawn_blocking(move || exports.run_schedule(&schedule)).await {
            Ok(Ok(Some(record))) => tracing::info!(id = record.export_id, path = record.path, "exported"),
            Ok(Ok(None)) => {}
            Ok(Err(error)) => tracing::error!(error = chain(&error), "the scheduled export failed"),
            Err(error) => tracing::error!(%error, "the scheduled export panicked"),
        }
    }
}
