//! `serve`: the daemon in the foreground.

use std::path::Path;

use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

use super::{
    Context,
    args::ServeArgs,
    error::CliError,
    exit::Exit,
    link::{Place, tell_opening},
    text,
};
use crate::{
    Ready, RunError,
    watch::{WatchSpec, Watching},
};

/// What `--json` prints once the daemon answers.
#[derive(Debug, Serialize)]
struct Serving<'a> {
    socket: &'a Path,
    data_dir: &'a Path,
    pid: u32,
}

/// Runs the daemon until SIGTERM or Ctrl-C.
///
/// # Errors
/// When the data directory is in use or does not open, or the socket cannot be served.
pub(crate) async fn run(context: &mut Context, args: &ServeArgs) -> Result<Exit, CliError> {
    let Place::Local(mut config) = context.place.clone() else {
        return Err(CliError::Usage(
            "serve runs a daemon here; leave --server and SATCHEL_SERVER out".to_owned(),
        ));
    };
    watch(&mut config.watching, args)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| CliError::Step {
        what: "cannot listen for SIGTERM".to_owned(),
        source: error.into(),
    })?;
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => tracing::info!("sigterm"),
            pressed = tokio::signal::ctrl_c() => tracing::info!(?pressed, "ctrl-c"),
        }
    };
    let data_dir = config.data_dir.clone();
    let mut told = Ok(());
    let quiet = context.out.quiet;
    let ready = |ready: Ready| told = announce(context, &ready, &data_dir);
    let served = crate::run(*config, move |event| tell_opening(event, quiet), ready, stop).await;
    served.map_err(|error| failed(&data_dir, error))?;
    told.map(|()| Exit::Done)
}

/// A daemon watches; what is named here must be there.
fn watch(watching: &mut Watching, args: &ServeArgs) -> Result<(), CliError> {
    watching.active = true;
    for dir in &args.watch {
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
