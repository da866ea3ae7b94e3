//! Runs the daemon as a systemd user unit, with a socket that starts it when a command needs it.

use std::path::Path;

use super::{
    GENERATED_MARKER,
    spec::{ManagerCommand, ServiceFile, ServiceSpec},
};
use crate::cli::error::CliError;

pub(super) const SERVICE: &str = "satchel.service";
pub(super) const SOCKET: &str = "satchel.socket";

/// Returns the unit files in `folder`.
///
/// # Errors
/// Fails for a program that systemd would not start.
pub(super) fn files(spec: &ServiceSpec, folder: &Path) -> Result<Vec<ServiceFile>, CliError> {
    // systemd accepts none of these in the path of a program, however they are escaped.
    if spec.executable.contains(['"', '\'', '\\']) {
        return Err(CliError::Usage(format!(
            "systemd cannot start a program whose path contains quotes or backslashes; move {:?} elsewhere",
            spec.executable
        )));
    }
    Ok(vec![
        ServiceFile { path: folder.join(SERVICE), text: service(spec) },
        ServiceFile { path: folder.join(SOCKET), text: socket(spec) },
    ])
}

/// Returns the commands to run after the files were written.
pub(super) fn install(now: bool, changed: bool) -> Vec<ManagerCommand> {
    let mut calls = vec![call(&["daemon-reload"]), call(&["enable", SERVICE, SOCKET])];
    if now && changed {
        // systemd recreates a socket only while no service uses it. Neither unit has to be running.
        calls.push(ManagerCommand { required: false, ..call(&["stop", SERVICE, SOCKET]) });
    }
    if now {
        calls.push(call(&["start", SOCKET, SERVICE]));
    }
    calls
}

/// Returns the commands to run before the files are removed, and after.
pub(super) fn uninstall() -> (Vec<ManagerCommand>, Vec<ManagerCommand>) {
    (vec![call(&["disable", "--now", SERVICE, SOCKET])], vec![call(&["daemon-reload"])])
}

/// Returns the commands that ask whether the service starts by itself, and whether it is running.
pub(super) fn state_commands() -> (ManagerCommand, ManagerCommand) {
    (call(&["is-enabled", SERVICE]), call(&["is-active", SERVICE]))
}

fn call(words: &[&str]) -> ManagerCommand {
    let words = ["systemctl", "--user"].iter().chain(words).map(|&word| word.to_owned());
    ManagerCommand { words: words.collect(), required: true }
}

fn service(spec: &ServiceSpec) -> String {
    let ServiceSpec { executable, words, .. } = spec;
    let arguments = words.iter().map(|word| quoted(word, WordPosition::Argument));
    let start: Vec<String> =
        [quoted(executable, WordPosition::Program)].into_iter().chain(arguments).collect();
    let start = start.join(" ");
    format!(
        "{GENERATED_MARKER}
[Unit]
Description=Satchel daemon
Requires={SOCKET}
After={SOCKET}
# Stop restarting after repeated failures, so that commands report the error.
StartLimitIntervalSec=120
StartLimitBurst=5

[Service]
Type=notify
NotifyAccess=main
ExecStart={start}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=5
# A restart does not fix an invalid command line.
RestartPreventExitStatus=2
WatchdogSec=60
# The database may have to be rebuilt from the journal, however long that takes.
TimeoutStartSec=infinity
TimeoutStopSec=30
UMask=0077
# Imports run with low priority.
Nice=5
IOSchedulingClass=best-effort
IOSchedulingPriority=6
# Bound the memory, whatever an export contains.
MemoryHigh=1G
MemoryMax=2G
TasksMax=256
LimitNOFILE=8192
LimitCORE=0
# Folders are not restricted, because exports may be anywhere. MemoryDenyWriteExecute is not set, because importers are compiled at
# run time. Restricting capabilities or mounts needs rights that a user's service manager does not have.
NoNewPrivileges=yes
LockPersonality=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
KeyringMode=private
# The daemon only uses its Unix socket, no network.
RestrictAddressFamilies=AF_UNIX

[Install]
WantedBy=default.target
"
    )
}

fn socket(spec: &ServiceSpec) -> String {
    let path = spec.socket.replace('%', "%%");
    format!(
        "{GENERATED_MARKER}
[Unit]
Description=Satchel daemon socket

[Socket]
ListenStream={path}
SocketMode=0600
DirectoryMode=0700
RemoveOnStop=yes

[Install]
WantedBy=sockets.target
"
    )
}

/// The position of a word: systemd expands variables in arguments, but not in the path of the program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WordPosition {
    Program,
    Argument,
}

/// Quotes a word of a command line as systemd.service(5) parses it.
fn quoted(word: &str, position: WordPosition) -> String {
    let mut out = String::from('"');
    for c in word.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '%' => out.push_str("%%"),
            '$' if position == WordPosition::Argument => out.push_str("$$"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests;
