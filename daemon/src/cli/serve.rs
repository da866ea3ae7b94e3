//! `serve`: runs the daemon in the foreground.

use std::path::{Path, PathBuf};

use satchel_core::data_dir;
use satchel_server::{DRAIN, Outside, Ready, RunError, config::Config, log::Log, supervisor::Supervisor};
use satchel_store::OpenEvent;
use satchel_watch::{WatchSpec, Watching};
use serde::Serialize;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};

use super::{
    Context, Environment,
    args::{Cli, ServeArgs},
    error::CliError,
    exit::Exit,
    link::{Place, tell_opening},
    place, text,
};

/// What `--json` prints once the daemon answers.
#[derive(Debug, Serialize)]
struct Serving<'a> {
    socket: &'a Path,
    data_dir: &'a Path,
    pid: u32,
}

/// The signals that a daemon handles.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

/// The recipients of the signals.
struct Steering<'a> {
    settings: watch::Sender<Config>,
    stop: watch::Sender<bool>,
    hurry: watch::Sender<bool>,
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
    let Place::Local(config) = context.place.clone() else {
        return Err(CliError::Usage(
            "serve runs a daemon here; leave --server and SATCHEL_SERVER out".to_owned(),
        ));
    };
    let signals = Signals::listen()?;
    let supervisor = supervisor(environment);
    supervisor.status("opening the data directory");
    let data_dir = config.data_dir.clone();
    let log = std::mem::take(&mut context.log);
    let (settings, followed) = watch::channel(*config);
    let ((stop, mut stopped), (hurry, hurried)) = (watch::channel(false), watch::channel(false));
    let outside = Outside {
        settings: followed,
        inherited: inherited(environment)?,
        supervisor: supervisor.clone(),
        watchdog: environment.watchdog,
        drain: DRAIN,
        hurry: hurried,
        reading: false,
    };
    let (teller, quiet) = (supervisor.clone(), context.out.quiet);
    let notice = move |event: &OpenEvent| {
        if let OpenEvent::Rebuilding { .. } = event {
            teller.status("building the database again from the journal");
        }
        tell_opening(event, quiet);
    };
    let mut told = Ok(());
    let ready = |ready: Ready| {
        told = announce(context, &ready, &data_dir);
        supervisor.ready(&format!("serving {}", data_dir.display()));
    };
    let stop_asked = async move { drop(stopped.wait_for(|stop| *stop).await) };
    let steering = Steering { settings, stop, hurry, supervisor: supervisor.clone(), log: &log };
    let reread = || settings_again(cli, args, environment);
    let served = tokio::select! {
        served = satchel_server::run_under(outside, notice, ready, stop_asked) => served,
        () = signals.steer(&steering, reread) => Ok(()),
    };
    served.map_err(|error| failed(&data_dir, error))?;
    told.map(|()| Exit::Done)
}

/// Applies the options of `serve` on top of the configuration file.
pub(crate) fn overlay(config: &mut Config, args: &ServeArgs) -> Result<(), CliError> {
    let ServeArgs { log_file, watch: folders } = args;
    if let Some(file) = log_file {
        // Only an empty path has no absolute form, and it cannot be opened either.
        let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
        data_dir::refuse_inside(&config.data_dir, &file).map_err(CliError::DataDir)?;
        config.log.file = Some(file);
    }
    watched(&mut config.watching, folders)
}

fn settings_again(cli: &Cli, args: &ServeArgs, environment: &Environment) -> Result<Config, CliError> {
    match place(&cli.global, environment)? {
        Place::Local(mut config) => {
            overlay(&mut config, args)?;
            Ok(*config)
        }
        Place::Named(_) => Err(CliError::Usage("serve runs a daemon here".to_owned())),
    }
}

fn supervisor(environment: &Environment) -> Supervisor {
    let Some(address) = &environment.notify_socket else { return Supervisor::default() };
    Supervisor::at(address).unwrap_or_else(|error| {
        tracing::warn!(%error, "the service manager cannot be told anything");
        Supervisor::default()
    })
}

fn inherited(environment: &Environment) -> Result<Option<std::os::unix::net::UnixListener>, CliError> {
    let socket = environment.inherited.as_ref().map(std::os::unix::net::UnixListener::try_clone);
    socket.transpose().map_err(|error| CliError::Step {
        what: "cannot take the socket of the service manager".to_owned(),
        source: error.into(),
    })
}

impl Signals {
    fn listen() -> Result<Self, CliError> {
        let listen = |kind, name| {
            signal(kind).map_err(|error| CliError::Step {
                what: format!("cannot listen for {name}"),
                source: error.into(),
            })
        };
        Ok(Self {
            terminate: listen(SignalKind::terminate(), "SIGTERM")?,
            interrupt: listen(SignalKind::interrupt(), "SIGINT")?,
            hang_up: listen(SignalKind::hangup(), "SIGHUP")?,
        })
    }

    /// Handles signals as they arrive. Never returns.
    async fn steer(mut self, steering: &Steering<'_>, reread: impl Fn() -> Result<Config, CliError>) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => steering.stop("sigterm"),
                _ = self.interrupt.recv() => steering.stop("ctrl-c"),
                _ = self.hang_up.recv() => steering.reload(reread()),
            }
        }
    }
}

impl Steering<'_> {
    /// Stops in an orderly way on the first signal, and at once on the second.
    fn stop(&self, signal: &'static str) {
        if *self.stop.borrow() {
            tracing::info!(signal, "stopping at once");
            self.hurry.send_replace(true);
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
                tracing::error!(error, "the configuration cannot be read again; the one before stays");
            }
        }
        self.supervisor.reloaded();
    }

    fn apply(&self, config: Config) {
        let changes = self.settings.borrow().changes(&config);
        self.log.set_level(config.log.level);
        tracing::info!(changed = ?changes.now, "configuration read again");
        if !changes.later.is_empty() {
            tracing::warn!(keys = ?changes.later, "these settings apply at the next start");
        }
        // Sent even if nothing has changed, so that watched folders are checked again.
        self.settings.send_replace(config);
    }
}

/// A daemon watches folders; those named on the command line must exist.
fn watched(watching: &mut Watching, folders: &[PathBuf]) -> Result<(), CliError> {
    watching.active = true;
    for dir in folders {
        let path = std::fs::canonicalize(dir).map_err(|source| CliError::File {
            action: "watch",
            path: dir.clone(),
            source,
        })?;
        if !path.is_dir() {
            let source = std::io::ErrorKind::NotADirectory.into();
            return Err(CliError::File { action: "watch", path, source });
        }
        watching.flags.push(WatchSpec::of(path));
    }
    Ok(())
}

fn announce(context: &mut Context, ready: &Ready, data_dir: &Path) -> Result<(), CliError> {
    let pid = std::process::id();
    for notice in &ready.notices {
        context.out.note(&text::one_line(notice));
    }
    if context.out.json {
        return context.out.json(&Serving { socket: &ready.socket, data_dir, pid });
    }
    let (socket, dir) = (ready.socket.display().to_string(), data_dir.display().to_string());
    let line =
        format!("serving {} on unix:{} (process {pid})\n", text::one_line(&dir), text::one_line(&socket));
    context.out.print(&line)?;
    context.out.note("Ctrl-C stops it in order");
    Ok(())
}

fn failed(dir: &Path, error: RunError) -> CliError {
    CliError::Store { dir: dir.to_owned(), source: error.into() }
}
