//! `serve`: runs the daemon in the foreground.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use satchel_core::data_dir;
use satchel_server::{
    DRAIN_TIMEOUT, Ready, RunContext, RunError, config::Config, log::Log, supervisor::Supervisor,
};
use satchel_store::OpenEvent;
use satchel_watch::{WatchConfig, WatchSpec};
use serde::Serialize;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};

use super::{
    Context, Environment,
    args::{Cli, ServeArgs},
    client::{DaemonLocation, report_opening},
    error::CliError,
    exit::Exit,
    location::daemon_location,
    text,
};

/// What `--json` prints once the daemon answers.
#[derive(Debug, Serialize)]
struct Serving<'a> {
    socket: &'a Path,
    data_dir: &'a Path,
    pid: u32,
    /// The address for paired devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    listening: Option<SocketAddr>,
    /// The loopback address for gRPC-Web.
    #[serde(skip_serializing_if = "Option::is_none")]
    web: Option<SocketAddr>,
}

/// The signals that a daemon handles.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

/// The recipients of the signals.
struct ServeControl<'a> {
    settings: watch::Sender<Config>,
    stop: watch::Sender<bool>,
    stop_now: watch::Sender<bool>,
    supervisor: Supervisor,
    log: &'a Log,
}

/// Runs the daemon until SIGTERM or Ctrl-C.
///
/// # Errors
/// Fails if the data directory is in use or cannot be opened, or if the socket cannot be served.
pub(crate) async fn run(
    context: &mut Context,
    cli: &Cli,
    args: &ServeArgs,
    environment: &Environment,
) -> Result<Exit, CliError> {
    let config = context.location.local_config("serve runs a local daemon")?;
    let signals = Signals::listen()?;
    let supervisor = supervisor(environment);
    supervisor.status("opening the data directory");
    let data_dir = config.data_dir.clone();
    let log = std::mem::take(&mut context.log);
    let (settings, settings_receiver) = watch::channel(*config);
    let ((stop, mut stopped), (stop_now, stop_now_requested)) =
        (watch::channel(false), watch::channel(false));
    let run_context = RunContext {
        settings: settings_receiver,
        inherited_socket: inherited_socket(environment)?,
        supervisor: supervisor.clone(),
        watchdog: environment.watchdog,
        drain: DRAIN_TIMEOUT,
        stop_now: stop_now_requested,
        allow_read_only: false,
    };
    let (notifier, quiet) = (supervisor.clone(), context.out.quiet);
    let on_event = move |event: &OpenEvent| {
        if let OpenEvent::Rebuilding { .. } = event {
            notifier.status("rebuilding the database from the journal");
        }
        report_opening(event, quiet);
    };
    let mut announced = Ok(());
    let ready = |ready: Ready| {
        announced = announce(context, &ready, &data_dir);
        supervisor.ready(&format!("serving {}", data_dir.display()));
    };
    let stop_requested = async move { drop(stopped.wait_for(|stop| *stop).await) };
    let control = ServeControl { settings, stop, stop_now, supervisor: supervisor.clone(), log: &log };
    let reload = || reload_config(cli, args, environment);
    let served = tokio::select! {
        served = satchel_server::run_with(run_context, on_event, ready, stop_requested) => served,
        () = signals.handle(&control, reload) => Ok(()),
    };
    served.map_err(|error| store_error(&data_dir, error))?;
    announced.map(|()| Exit::Done)
}

/// Applies the options of `serve` on top of the configuration file.
pub(crate) fn apply_args(config: &mut Config, args: &ServeArgs) -> Result<(), CliError> {
    let ServeArgs { log_file, watch: folders, listen, web } = args;
    config.listen = listen.or(config.listen);
    config.web = web.or(config.web);
    if let Some(file) = log_file {
        // Only an empty path has no absolute form, and it cannot be opened either.
        let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
        data_dir::refuse_inside(&config.data_dir, &file).map_err(CliError::DataDir)?;
        config.log.file = Some(file);
    }
    add_watched_folders(&mut config.watching, folders)
}

fn reload_config(cli: &Cli, args: &ServeArgs, environment: &Environment) -> Result<Config, CliError> {
    match daemon_location(&cli.global, environment)? {
        DaemonLocation::DataDir(mut config) => {
            apply_args(&mut config, args)?;
            Ok(*config)
        }
        DaemonLocation::Socket(_) | DaemonLocation::Paired(_) => {
            Err(CliError::Usage("serve runs a local daemon".to_owned()))
        }
    }
}

fn supervisor(environment: &Environment) -> Supervisor {
    let Some(address) = &environment.notify_socket else { return Supervisor::default() };
    Supervisor::connect(address).unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot notify the service manager");
        Supervisor::default()
    })
}

fn inherited_socket(environment: &Environment) -> Result<Option<std::os::unix::net::UnixListener>, CliError> {
    let socket = environment.inherited.as_ref().map(std::os::unix::net::UnixListener::try_clone);
    socket.transpose().map_err(|error| CliError::step("cannot use the socket of the service manager", error))
}

impl Signals {
    fn listen() -> Result<Self, CliError> {
        let listen = |kind, name| {
            signal(kind).map_err(|error| CliError::step(format!("cannot listen for {name}"), error))
        };
        Ok(Self {
            terminate: listen(SignalKind::terminate(), "SIGTERM")?,
            interrupt: listen(SignalKind::interrupt(), "SIGINT")?,
            hang_up: listen(SignalKind::hangup(), "SIGHUP")?,
        })
    }

    /// Handles signals as they arrive. Never returns.
    async fn handle(mut self, control: &ServeControl<'_>, reload: impl Fn() -> Result<Config, CliError>) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => control.stop("sigterm"),
                _ = self.interrupt.recv() => control.stop("ctrl-c"),
                _ = self.hang_up.recv() => control.reload(reload()),
            }
        }
    }
}

impl ServeControl<'_> {
    /// Stops in an orderly way on the first signal, and at once on the second.
    fn stop(&self, signal: &'static str) {
        if *self.stop.borrow() {
            tracing::info!(signal, "stopping immediately");
            self.stop_now.send_replace(true);
        } else {
            tracing::info!(signal, "stopping");
            self.supervisor.stopping();
            self.stop.send_replace(true);
        }
    }

    fn reload(&self, read: Result<Config, CliError>) {
        if *self.stop.borrow() {
            return;
        }
        self.supervisor.reloading();
        match read {
            Ok(config) => self.apply(config),
            Err(error) => {
                let error = satchel_source::chain(&error);
                tracing::error!(error, "cannot reload the configuration; the previous one stays in effect");
            }
        }
        self.supervisor.reloaded();
    }

    fn apply(&self, config: Config) {
        let changes = self.settings.borrow().changes(&config);
        self.log.set_level(config.log.level);
        tracing::info!(changed = ?changes.immediate, "configuration reloaded");
        if !changes.on_restart.is_empty() {
            tracing::warn!(keys = ?changes.on_restart, "these settings take effect after a restart");
        }
        // Sent even if nothing has changed, so that watched folders are checked again.
        self.settings.send_replace(config);
    }
}

/// A daemon watches folders; those named on the command line must exist.
fn add_watched_folders(watching: &mut WatchConfig, folders: &[PathBuf]) -> Result<(), CliError> {
    watching.active = true;
    for dir in folders {
        let path = std::fs::canonicalize(dir).map_err(CliError::file("watch", dir))?;
        if !path.is_dir() {
            let source = std::io::ErrorKind::NotADirectory.into();
            return Err(CliError::File { action: "watch", path, source });
        }
        watching.flags.push(WatchSpec::with_defaults(path));
    }
    Ok(())
}

fn announce(context: &mut Context, ready: &Ready, data_dir: &Path) -> Result<(), CliError> {
    let pid = std::process::id();
    for notice in &ready.notices {
        context.out.note(&text::one_line(notice));
    }
    if context.out.json {
        return context.out.json(&Serving {
            socket: &ready.socket,
            data_dir,
            pid,
            listening: ready.listening,
            web: ready.web,
        });
    }
    let (socket, dir) = (ready.socket.display().to_string(), data_dir.display().to_string());
    let line =
        format!("serving {} on unix:{} (process {pid})\n", text::one_line(&dir), text::one_line(&socket));
    context.out.print(&line)?;
    if let Some(address) = ready.listening {
        context.out.note(&format!(
            "paired devices connect to {address}; pair one with `satchel devices pair --as NAME`"
        ));
    }
    if let Some(address) = ready.web {
        context.out.note(&format!(
            "gRPC-Web is served on http://{address}, and MCP on http://{address}/mcp, to callers with a token"
        ));
    }
    context.out.note("press Ctrl-C to stop it");
    Ok(())
}

fn store_error(dir: &Path, error: RunError) -> CliError {
    CliError::Store { dir: dir.to_owned(), source: error.into() }
}
