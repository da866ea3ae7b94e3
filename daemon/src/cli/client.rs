//! The connection to the daemon: the one that runs on the data directory, the one that was named, or one inside
//! this process.

mod paired;

use std::{
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use satchel_devices::Credentials;
use satchel_proto::v1::{
    GetStatusRequest, admin_service_client::AdminServiceClient,
    conversation_service_client::ConversationServiceClient, device_service_client::DeviceServiceClient,
    export_service_client::ExportServiceClient, import_service_client::ImportServiceClient,
    memory_service_client::MemoryServiceClient, operation_service_client::OperationServiceClient,
    peer_service_client::PeerServiceClient, plugin_service_client::PluginServiceClient,
    search_service_client::SearchServiceClient,
};
use satchel_server::{
    Ready, RunError,
    config::Config,
    connect::{ConnectError, connect, connect_socket},
};
use satchel_store::{OpenEvent, StoreError};
use tokio::{
    sync::{oneshot, watch},
    task::JoinHandle,
};
use tonic::transport::Channel;

pub(super) use paired::PairedServer;

use super::{error::CliError, output::Output};

/// How long to wait for another command to open a data directory that it has locked. A rebuild takes longer, and
/// waiting for it would look like a hang.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval between two checks whether another command is ready or done.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The scheme of `--server` for a socket.
const UNIX_SCHEME: &str = "unix:";

/// Where the daemon is.
#[derive(Clone, Debug)]
pub(crate) enum DaemonLocation {
    /// The socket that `--server` names.
    Socket(PathBuf),
    /// The paired daemon that `--server` names.
    Paired(PairedServer),
    /// The data directory of these settings.
    DataDir(Box<Config>),
}

impl DaemonLocation {
    /// Parses `--server`. The data directory, which has the keys of paired daemons, is only needed for their names.
    ///
    /// # Errors
    /// Fails for a text that is neither a socket nor a possible name.
    pub(crate) fn parse(
        server: &str,
        data_dir: impl FnOnce() -> Result<PathBuf, CliError>,
    ) -> Result<Self, CliError> {
        let unusable = || {
            CliError::Usage(format!(
                "--server {server:?} is neither the name of a paired daemon nor unix:PATH, with the path of a daemon's satchel.sock; \
                 `satchel servers list` lists the names"
            ))
        };
        if let Some(path) = server.strip_prefix(UNIX_SCHEME) {
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.is_empty() { Err(unusable()) } else { Ok(Self::Socket(path.into())) };
        }
        Credentials::check_name(server).map_err(|_| unusable())?;
        Ok(Self::Paired(PairedServer { name: server.to_owned(), data_dir: data_dir()? }))
    }

    /// Returns the configuration of a local data directory; `why` explains that the command needs one.
    pub(crate) fn local_config(&self, why: &str) -> Result<Box<Config>, CliError> {
        match self {
            Self::DataDir(config) => Ok(config.clone()),
            Self::Socket(_) | Self::Paired(_) => {
                Err(CliError::Usage(format!("{why}; omit --server and unset SATCHEL_SERVER")))
            }
        }
    }

    /// Returns whether files are sent over the connection, because the daemon cannot open those of this machine.
    pub(crate) fn is_paired(&self) -> bool {
        matches!(self, Self::Paired(_))
    }

    /// Returns whether paths refer to this machine.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self, Self::DataDir(_))
    }
}

/// An open connection.
pub(crate) struct DaemonClient {
    channel: Channel,
    in_process: Option<InProcessDaemon>,
    /// The operation that this command has started and that has not ended.
    started: watch::Sender<StartedOperation>,
}

/// The operation of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum StartedOperation {
    #[default]
    None,
    /// The daemon was asked to start it, and has not answered yet.
    Asked,
    /// It runs under this id.
    Running(String),
}

/// A daemon inside this process.
struct InProcessDaemon {
    stop: oneshot::Sender<()>,
    served: JoinHandle<Result<(), RunError>>,
}

impl DaemonClient {
    /// Connects to the daemon of `place`. If none runs on the data directory, starts one in this process, on the
    /// same socket, for as long as the client exists.
    ///
    /// # Errors
    /// Fails if the daemon does not answer or the data directory cannot be opened.
    pub(crate) async fn open(location: &DaemonLocation, out: &mut Output) -> Result<Self, CliError> {
        match location {
            DaemonLocation::Socket(socket) => {
                let address = format!("{UNIX_SCHEME}{}", socket.display());
                let unreachable =
                    |source: ConnectError| CliError::Unreachable { address, source: source.into() };
                Ok(Self::new(connect_socket(socket).await.map_err(unreachable)?, None))
            }
            DaemonLocation::Paired(server) => Ok(Self::new(paired::connect(server, out).await?, None)),
            DaemonLocation::DataDir(config) => Self::local(config, out).await,
        }
    }

    async fn local(config: &Config, out: &mut Output) -> Result<Self, CliError> {
        let dir = config.data_dir.as_path();
        let waited = tokio::time::Instant::now();
        loop {
            match connect(dir).await {
                Ok(channel) => return Ok(Self::new(channel, None)),
                Err(ConnectError::NotRunning { .. }) => {}
                Err(error) => return Err(store_error(dir, error)),
            }
            match Self::start_in_process(config, out).await {
                // Another command is opening the data directory right now, and will serve this one too.
                Err(RunError::Store(StoreError::Locked { .. })) if waited.elapsed() < STARTUP_TIMEOUT => {
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
                outcome => return outcome.map_err(|error| store_error(dir, error)),
            }
        }
    }

    async fn start_in_process(config: &Config, out: &mut Output) -> Result<Self, RunError> {
        let (stop, stopped) = oneshot::channel();
        let (ready_sender, ready_receiver) = oneshot::channel();
        let ready = move |ready: Ready| {
            if ready_sender.send(ready).is_err() {
                tracing::debug!("the command ended before its daemon was ready");
            }
        };
        let stopped = async move {
            // Dropping the sender also means stop.
            if stopped.await.is_err() {
                tracing::debug!("the command ended without a stop");
            }
        };
        let dir = config.data_dir.clone();
        let quiet = out.quiet;
        // Devices and browsers connect to daemons only, not to a command that ends soon.
        let config = Config { listen: None, web: None, ..config.clone() };
        let served = tokio::spawn(satchel_server::run(
            config,
            move |event| report_opening(event, quiet),
            ready,
            stopped,
        ));
        let inside = match ready_receiver.await {
            Ok(ready) => {
                ready.notices.iter().for_each(|notice| out.note(&super::text::one_line(notice)));
                ready.in_process
            }
            // The daemon ended instead of becoming ready.
            Err(_) => {
                return Err(served
                    .await
                    .unwrap_or(Err(RunError::Panicked))
                    .err()
                    .unwrap_or(RunError::Panicked));
            }
        };
        let hosted = Some(InProcessDaemon { stop, served });
        let connected = match inside {
            Some(inside) => inside.connect().await,
            None => connect(&dir).await,
        };
        let channel = connected.map_err(|error| {
            tracing::debug!(%error, "our own socket");
            RunError::Panicked
        })?;
        Ok(Self::new(channel, hosted))
    }

    fn new(channel: Channel, in_process: Option<InProcessDaemon>) -> Self {
        Self { channel, in_process, started: watch::Sender::default() }
    }

    /// Returns the operation that this command has started.
    pub(super) fn started(&self) -> &watch::Sender<StartedOperation> {
        &self.started
    }

    pub(super) fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Returns whether the daemon is a separate process.
    pub(crate) fn is_daemon(&self) -> bool {
        self.in_process.is_none()
    }

    pub(crate) fn memories(&self) -> MemoryServiceClient<Channel> {
        MemoryServiceClient::new(self.channel.clone())
    }

    pub(crate) fn conversations(&self) -> ConversationServiceClient<Channel> {
        ConversationServiceClient::new(self.channel.clone())
    }

    pub(crate) fn search(&self) -> SearchServiceClient<Channel> {
        SearchServiceClient::new(self.channel.clone())
    }

    pub(crate) fn imports(&self) -> ImportServiceClient<Channel> {
        ImportServiceClient::new(self.channel.clone())
    }

    pub(crate) fn operations(&self) -> OperationServiceClient<Channel> {
        OperationServiceClient::new(self.channel.clone())
    }

    pub(crate) fn exports(&self) -> ExportServiceClient<Channel> {
        ExportServiceClient::new(self.channel.clone())
    }

    pub(crate) fn plugins(&self) -> PluginServiceClient<Channel> {
        PluginServiceClient::new(self.channel.clone())
    }

    pub(crate) fn devices(&self) -> DeviceServiceClient<Channel> {
        DeviceServiceClient::new(self.channel.clone())
    }

    pub(crate) fn peers(&self) -> PeerServiceClient<Channel> {
        PeerServiceClient::new(self.channel.clone())
    }

    pub(crate) fn admin(&self) -> AdminServiceClient<Channel> {
        AdminServiceClient::new(self.channel.clone())
    }

    /// Waits until the operations of other commands have ended that use the daemon inside this process: they would
    /// be cut off with it.
    pub(crate) async fn wait_for_other_operations(&self, out: &mut Output) {
        let mut noted = false;
        while self.in_process.is_some() {
            match self.admin().get_status(GetStatusRequest {}).await {
                Ok(status) if status.get_ref().running_operations > 0 => {}
                _ => return,
            }
            if !noted {
                out.note("waiting for another command that uses the daemon of this command");
                noted = true;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Closes the connection; a daemon inside this process shuts down in an orderly way.
    ///
    /// # Errors
    /// Fails if that daemon could not close its store.
    pub(crate) async fn close(self, location: &DaemonLocation) -> Result<(), CliError> {
        let Self { channel, in_process: hosted, started: _ } = self;
        // An open connection would delay the shutdown.
        drop(channel);
        let (Some(InProcessDaemon { stop, served }), DaemonLocation::DataDir(config)) = (hosted, location)
        else {
            return Ok(());
        };
        if stop.send(()).is_err() {
            tracing::debug!("the daemon of this command ended before it");
        }
        let ended = served.await.unwrap_or(Err(RunError::Panicked));
        ended.map_err(|error| store_error(&config.data_dir, error))
    }
}

/// Prints on stderr why opening a store takes long. Other notices are printed when the daemon is ready.
pub(super) fn report_opening(event: &OpenEvent, quiet: bool) {
    if let (OpenEvent::Rebuilding { .. }, false) = (event, quiet)
        && let Err(error) =
            writeln!(std::io::stderr(), "rebuilding the database from the journal; this may take a while")
    {
        tracing::debug!(%error, "stderr is closed");
    }
}

fn store_error(dir: &Path, error: impl std::error::Error + Send + Sync + 'static) -> CliError {
    CliError::Store { dir: dir.to_owned(), source: error.into() }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_socket_or_the_name_of_a_paired_daemon() {
        let parse = |server: &str| DaemonLocation::parse(server, || Ok("/data".into()));
        let path = |server: &str| match parse(server).unwrap() {
            DaemonLocation::Socket(path) => path,
            DaemonLocation::Paired(server) => server.data_dir.join(server.name),
            DaemonLocation::DataDir(_) => PathBuf::new(),
        };
        assert_eq!(path("unix:/run/satchel.sock"), PathBuf::from("/run/satchel.sock"));
        assert_eq!(path("unix:///run/satchel.sock"), PathBuf::from("/run/satchel.sock"));
        assert_eq!(path("home"), PathBuf::from("/data/home"));
        for wrong in ["ana.example:7000", "unix:", "", "../home", "/home", ".home", "Home\u{1b}"] {
            let error = parse(wrong).unwrap_err();
            assert!(matches!(error, CliError::Usage(_)), "{error}");
        }
    }
}
