//! Runs the daemon as a systemd user unit, with a socket that starts it when a command needs it.

use std::path::Path;

use super::{
    MARKER,
    call::{Call, File},
    description::Description,
};
use crate::cli::error::CliError;

pub(super) const SERVICE: &str = "satchel.service";
pub(super) const SOCKET: &str = "satchel.socket";

/// Returns the unit files in `folder`.
///
/// # Errors
/// Fails for a program that systemd would not start.
pub(super) fn files(description: &Description, folder: &Path) -> Result<Vec<File>, CliError> {
    // systemd accepts none of these in the path of a program, however they are escaped.
    if description.executable.contains(['"', '\'', '\\']) {
        return Err(CliError::Usage(format!(
            "systemd starts no program whose path holds quotes or backslashes; move {:?} elsewhere",
            description.executable
        )));
    }
    Ok(vec![
        File { path: folder.join(SERVICE), text: service(description) },
        File { path: folder.join(SOCKET), text: socket(description) },
    ])
}

/// Returns the commands to run after the files were written.
pub(super) fn install(now: bool, changed: bool) -> Vec<Call> {
    let mut calls = vec![call(&["daemon-reload"]), call(&["enable", SERVICE, SOCKET])];
    if now && changed {
        // systemd recreates a socket only while no service uses it. Neither unit has to be running.
        calls.push(Call { must: false, ..call(&["stop", SERVICE, SOCKET]) });
    }
    if now {
        calls.push(call(&["start", SOCKET, SERVICE]));
    }
    calls
}

/// Returns the commands to run before the files are removed, and after.
pub(super) fn uninstall() -> (Vec<Call>, Vec<Call>) {
    (vec![call(&["disable", "--now", SERVICE, SOCKET])], vec![call(&["daemon-reload"])])
}

/// Returns the commands that ask whether the service starts by itself, and whether it is running.
pub(super) fn questions() -> (Call, Call) {
    (call(&["is-enabled", SERVICE]), call(&["is-active", SERVICE]))
}

fn call(words: &[&str]) -> Call {
    let words = ["systemctl", "--user"].iter().chain(words).map(|&word| word.to_owned());
    Call { words: words.collect(), must: true }
}

fn service(description: &Description) -> String {
    let Description { executable, words, .. } = description;
    let arguments = words.iter().map(|word| quoted(word, Place::Argument));
    let start: Vec<String> = [quoted(executable, Place::Program)].into_iter().chain(arguments).collect();
    let start = start.join(" ");
    format!(
        "{MARKER}
[Unit]
Description=Satchel, the memory of your conversations with AI assistants
Requires={SOCKET}
After={SOCKET}
# What fails again and again is not tried for ever, so that commands say why.
StartLimitIntervalSec=120
StartLimitBurst=5

[Service]
Type=notify
NotifyAccess=main
ExecStart={start}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=5
# A command line that is not right stays so.
RestartPreventExitStatus=2
WatchdogSec=60
# The database may have to be built again from the journal, however long that takes.
TimeoutStartSec=infinity
TimeoutStopSec=30
UMask=0077
# Imports wait for people, not the other way round.
Nice=5
IOSchedulingClass=best-effort
IOSchedulingPriority=6
# It has to leave room for others, whatever an export does to it.
MemoryHigh=1G
MemoryMax=2G
TasksMax=256
LimitNOFILE=8192
LimitCORE=0
# What closes off folders is left out, as exports lie anywhere; MemoryDenyWriteExecute too, as importers are compiled while it runs.
# What takes capabilities or mounts away needs rights that the manager of a user does not have.
NoNewPrivileges=yes
LockPersonality=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
KeyringMode=private
# It is reached by its socket alone, and reaches nobody.
RestrictAddressFamilies=AF_UNIX

[Install]
WantedBy=default.target
"
    )
}

fn socket(description: &Description) -> String {
    let path = description.socket.replace('%', "%%");
    format!(
        "{MARKER}
[Unit]
Description=Satchel's socket

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
enum Place {
    Program,
    Argument,
}

/// Quotes a word of a command line as systemd.service(5) parses it.
fn quoted(word: &str, place: Place) -> String {
    let mut out = String::from('"');
    for c in word.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '%' => out.push_str("%%"),
            '$' if place == Place::Argument => out.push_str("$$"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests;
