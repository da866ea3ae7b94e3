//! The program `satchel`: reads command line and environment, and leaves the rest to the library.

use std::{env, ffi::OsString, io::Write, path::PathBuf, process::ExitCode};

use clap::Parser;
use satchel_daemon::cli::{
    self, Environment,
    args::{Cli, ColorWhen, Command},
};
use tracing_subscriber::{EnvFilter, filter::LevelFilter};

fn main() -> ExitCode {
    // Whatever this program writes, libraries' caches and temporary files too, is its user's alone.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let cli = Cli::parse();
    let environment = environment();
    start_tracing(&cli, environment.no_color);
    match cli::run(&cli, &environment) {
        Ok(exit) => exit.into(),
        Err(error) => {
            if let Err(closed) = std::io::stderr().write_all(error.report().as_bytes()) {
                tracing::debug!(error = %closed, "stderr is closed");
            }
            error.exit().into()
        }
    }
}

fn environment() -> Environment {
    let path = |name: &str| set(name).map(PathBuf::from);
    Environment {
        home: path("HOME"),
        data_home: path("XDG_DATA_HOME"),
        config_home: path("XDG_CONFIG_HOME"),
        runtime_dir: path("XDG_RUNTIME_DIR").filter(|path| path.is_absolute()).unwrap_or_else(env::temp_dir),
        no_color: set("NO_COLOR").is_some(),
    }
}

/// A variable that is empty counts as absent.
fn set(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// Logs to stderr: what `SATCHEL_LOG` says, else by `-v` and `-q`. A daemon tells more than a command.
fn start_tracing(cli: &Cli, no_color: bool) {
    let level = match (cli.global.quiet, cli.global.verbose, &cli.command) {
        (true, ..) => "error",
        (false, 0, Command::Serve(_)) | (false, 1, _) => "info",
        (false, 0, _) => "warn",
        (false, ..) => "debug",
    };
    let directives = env::var("SATCHEL_LOG").unwrap_or_else(|_| format!("warn,satchel={level}"));
    let filter =
        EnvFilter::builder().with_default_directive(LevelFilter::WARN.into()).parse_lossy(directives);
    let color = match cli.global.color {
        ColorWhen::Always => true,
        ColorWhen::Never => false,
        ColorWhen::Auto => !no_color && std::io::IsTerminal::is_terminal(&std::io::stderr()),
    };
    // An event that cannot be written is let go. To tell of it on the same closed stderr would panic in whatever thread
    // the event comes from, and sled waits for ever for one of its own that dies so.
    tracing_subscriber::fmt()
        .log_internal_errors(false)
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(color)
        .init();
}
