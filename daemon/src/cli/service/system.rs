//! The supported service managers: the files they read, and the commands that control them.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{
    MARKER,
    call::{Call, File},
    description::Description,
    launchd, systemd,
};
use crate::cli::{Environment, error::CliError, folder_of_config};

/// Returns whether a file with this text was written by us.
pub(super) fn ours(text: &str) -> bool {
    text.contains(MARKER.trim_start_matches("# "))
}

/// The result of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) success: bool,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// Runs commands. Tests use an implementation that only records them.
pub(super) trait Runner {
    /// Runs a command.
    ///
    /// # Errors
    /// Fails if the program does not exist or cannot be started.
    fn run(&mut self, call: &Call) -> io::Result<Outcome>;
}

/// Runs commands as processes.
pub(super) struct Processes;

impl Runner for Processes {
    fn run(&mut self, call: &Call) -> io::Result<Outcome> {
        let (program, words) = call.words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let output = Command::new(program).args(words).stdin(Stdio::null()).output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        Ok(Outcome {
            success: output.status.success(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        })
    }
}

/// The service manager of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum System {
    Systemd { folder: PathBuf },
    Launchd { home: PathBuf, user: u32 },
}

impl System {
    /// Returns the service manager of this machine.
    ///
    /// # Errors
    /// Fails if the environment does not say where its files are.
    pub(super) fn here(environment: &Environment) -> Result<Self, CliError> {
        let no_home = || CliError::Usage("no HOME is set; services belong to a user's home".to_owned());
        if cfg!(target_os = "macos") {
            let home = environment.home.clone().ok_or_else(no_home)?;
            return Ok(Self::Launchd { home, user: rustix::process::geteuid().as_raw() });
        }
        let folder = folder_of_config(environment).ok_or_else(no_home)?.join("systemd/user");
        Ok(Self::Systemd { folder })
    }

    /// Returns the files of a service.
    ///
    /// # Errors
    /// Fails for paths that the files cannot contain.
    pub(super) fn files(&self, description: &Description) -> Result<Vec<File>, CliError> {
        match self {
            Self::Systemd { folder } => systemd::files(description, folder),
            Self::Launchd { home, .. } => launchd::files(description, home),
        }
    }

    /// Returns the commands to run after the files were written.
    pub(super) fn install(&self, now: bool, changed: bool, files: &[File]) -> Vec<Call> {
        match self {
            Self::Systemd { .. } => systemd::install(now, changed),
            Self::Launchd { user, .. } => {
                let file = files.first().map_or(Path::new(""), |file| &file.path);
                launchd::install(now, changed, *user, &file.to_string_lossy())
            }
        }
    }

    /// Returns the commands to run before the files are removed, and after.
    pub(super) fn uninstall(&self) -> (Vec<Call>, Vec<Call>) {
        match self {
            Self::Systemd { .. } => systemd::uninstall(),
            Self::Launchd { user, .. } => (launchd::uninstall(*user), Vec::new()),
        }
    }

    /// Returns whether the service starts at login and whether it is running, in the words of the service manager;
    /// `None` if it does not say.
    pub(super) fn state(&self, runner: &mut dyn Runner) -> (Option<String>, Option<String>) {
        let mut ask = |call: &Call| {
            // The answer is on stdout, whatever the exit code.
            let outcome = runner.run(call).ok()?;
            let word = outcome.stdout.lines().next().unwrap_or_default().to_owned();
            Some((outcome.success, word))
        };
        match self {
            Self::Systemd { .. } => {
                let (enabled, active) = systemd::questions();
                let word = |(_, word): (bool, String)| Some(word).filter(|word| !word.is_empty());
                (ask(&enabled).and_then(word), ask(&active).and_then(word))
            }
            Self::Launchd { user, .. } => {
                let loaded = ask(&launchd::question(*user)).map(|(loaded, _)| loaded);
                let word = |yes: &str, no: &str| loaded.map(|l| if l { yes } else { no }.to_owned());
                (word("enabled", "disabled"), word("active", "inactive"))
            }
        }
    }

    /// Returns a hint for the person.
    pub(super) fn hint(&self) -> &'static str {
        match self {
            Self::Systemd { .. } => {
                "its log: journalctl --user -u satchel; to run also while you are logged out: loginctl enable-linger"
            }
            Self::Launchd { .. } => "its log: ~/Library/Logs/satchel.log",
        }
    }
}
