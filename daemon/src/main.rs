//! The program `satchel`: reads the command line and the environment, and calls the library.

use std::{env, ffi::OsString, io::Write, os::unix::net::UnixListener, path::PathBuf, process::ExitCode};

use clap::Parser;
use listenfd::ListenFd;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use satchel_core::vault::Secret;
use satchel_daemon::cli::{
    self, Environment,
    args::{Cli, Command},
};
use satchel_server::{socket, supervisor};

/// A daemon runs for weeks between imports of gigabytes, so freed memory has to be returned to the system.
/// `.cargo/config.toml` sets how soon.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    allow_open_files();
    // Everything that this program writes, including caches of libraries and temporary files, is accessible only to
    // its user.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return print_usage_error(&error),
    };
    let mut environment = environment();
    if let Command::Serve(_) = &cli.command {
        environment.inherited = inherited_socket();
    }
    match cli::run(&cli, &environment) {
        Ok(exit) => exit.into(),
        Err(error) => {
            print_error(&if cli.global.json { error.report_json() } else { error.report() });
            error.exit().into()
        }
    }
}

/// Raises the limit on open files to the maximum for this user. By default a session allows 1,024, for the sake of
/// programs that index a table by file descriptor.
fn allow_open_files() {
    let limits = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limits.maximum, ..limits }) {
        tracing::debug!(%error, "the limit on open files stays as it is");
    }
}

/// Handles a command line that cannot be parsed, or that asks for help.
fn print_usage_error(error: &clap::Error) -> ExitCode {
    let json = env::args_os().skip(1).take_while(|word| word != "--").any(|word| word == "--json");
    if error.use_stderr() && json {
        print_error(&cli::error::usage_json(&error.render().to_string()));
        return cli::exit::Exit::Usage.into();
    }
    if let Err(closed) = error.print() {
        tracing::debug!(error = %closed, "the output is closed");
    }
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

fn print_error(report: &str) {
    if let Err(closed) = std::io::stderr().write_all(report.as_bytes()) {
        tracing::debug!(error = %closed, "stderr is closed");
    }
}

fn environment() -> Environment {
    let path = |name: &str| non_empty_var(name).map(PathBuf::from);
    let text = |name: &str| env::var(name).ok();
    Environment {
        home: path("HOME"),
        claude_config_dir: path("CLAUDE_CONFIG_DIR"),
        codex_home: path("CODEX_HOME"),
        gemini_cli_home: path("GEMINI_CLI_HOME"),
        search_path: non_empty_var("PATH"),
        data_home: path("XDG_DATA_HOME"),
        config_home: path("XDG_CONFIG_HOME"),
        cache_home: path("XDG_CACHE_HOME"),
        state_home: path("XDG_STATE_HOME"),
        runtime_dir: socket::default_runtime_dir(path("XDG_RUNTIME_DIR").as_deref(), &env::temp_dir()),
        no_color: non_empty_var("NO_COLOR").is_some()
            || non_empty_var("TERM").is_some_and(|term| term == "dumb"),
        pager: env::var_os("PAGER"),
        less: non_empty_var("LESS"),
        data_passphrase: text("SATCHEL_DATA_PASSPHRASE").filter(|text| !text.is_empty()).map(Secret::new),
        passphrase: text("SATCHEL_PASSPHRASE").filter(|passphrase| !passphrase.is_empty()),
        log: text("SATCHEL_LOG"),
        journal_stream: text("JOURNAL_STREAM"),
        notify_socket: non_empty_var("NOTIFY_SOCKET"),
        watchdog: supervisor::watchdog_timeout(
            text("WATCHDOG_USEC").as_deref(),
            text("WATCHDOG_PID").as_deref(),
            std::process::id(),
        ),
        inherited: None,
        executable: env::current_exe().ok(),
    }
}

/// Returns a variable; an empty one counts as absent.
fn non_empty_var(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns the socket that the service manager opened for this very process.
fn inherited_socket() -> Option<UnixListener> {
    let this_pid = std::process::id().to_string();
    if env::var("LISTEN_PID").is_ok_and(|pid| pid == this_pid) {
        // An error here is reported when the daemon finds the address of its socket in use.
        return ListenFd::from_env().take_unix_listener(0).ok().flatten();
    }
    None
}
