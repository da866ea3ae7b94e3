//! The supported service managers: the files they read, and the commands that control them.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{
    GENERATED_MARKER, launchd,
    spec::{ManagerCommand, ServiceFile, ServiceSpec},
    systemd,
};
use crate::cli::{Environment, error::CliError, location::config_home};

/// Returns whether a file with this text was written by us.
pub(super) fn written_by_us(text: &str) -> bool {
    text.contains(GENERATED_MARKER.trim_start_matches("# "))
}

/// The result of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CommandOutcome {
    pub(super) success: bool,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// Runs commands. Tests use an implementation that only records them.
pub(super) trait CommandRunner {
    /// Runs a command.
    ///
    /// # Errors
    /// Fails if the program does not exist or cannot be started.
    fn run(&mut self, call: &ManagerCommand) -> io::Result<CommandOutcome>;
}

/// Runs commands as processes.
pub(super) struct ProcessRunner;

impl CommandRunner for ProcessRunner {
    fn run(&mut self, call: &ManagerCommand) -> io::Result<CommandOutcome> {
        let (program, words) = call.words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let output = Command::new(program).args(words).stdin(Stdio::null()).output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        Ok(CommandOutcome {
            success: output.status.success(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        })
    }
}

/// The service manager of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServiceManager {
    Systemd { folder: PathBuf },
    Launchd { home: PathBuf, user: u32 },
}

impl ServiceManager {
    /// Returns the service manager of this machine.
    ///
    /// # Errors
    /// Fails if the environment does not say where its files are.
    pub(super) fn detect(environment: &Environment) -> Result<Self, CliError> {
        let no_home =
            || CliError::Usage("HOME is not set; services are installed in the home directory".to_owned());
        if cfg!(target_os = "macos") {
            let home = environment.home.clone().ok_or_else(no_home)?;
            return Ok(Self::Launchd { home, user: rustix::process::geteuid().as_raw() });
        }
        let folder = config_home(environment).ok_or_else(no_home)?.join("systemd/user");
        Ok(Self::Systemd { folder })
    }

    /// Returns the files of a service.
    ///
    /// # Errors
    /// Fails for paths that the files cannot contain.
    pub(super) fn files(&self, spec: &ServiceSpec) -> Result<Vec<ServiceFile>, CliError> {
        match self {
            Self::Systemd { folder } => systemd::files(spec, folder),
            Self::Launchd { home, .. } => launchd::files(spec, home),
        }
    }

    /// Returns the commands to run after the files were written.
    pub(super) fn install(&self, now: bool, changed: bool, files: &[ServiceFile]) -> Vec<ManagerCommand> {
        match self {
            Self::Systemd { .. } => systemd::install(now, changed),
            Self::Launchd { user, .. } => {
                let file = files.first().map_or(Path::new(""), |file| &file.path);
                launchd::install(now, changed, *user, &file.to_string_lossy())
            }
        }
    }

    /// Returns the commands to run before the files are removed, and after.
    pub(super) fn uninstall(&self) -> (Vec<ManagerCommand>, Vec<ManagerCommand>) {
        match self {
            Self::Systemd { .. } => systemd::uninstall(),
            Self::Launchd { user, .. } => (launchd::uninstall(*user), Vec::new()),
        }
    }

    /// Returns whether the service starts at login and whether it is running, in the words of the service manager;
    /// `None` if it does not say.
    pub(super) fn state(&self, runner: &mut dyn CommandRunner) -> (Option<String>, Option<String>) {
        let mut ask = |call: &ManagerCommand| {
            // The answer is on stdout, whatever the exit code.
            let outcome = runner.run(call).ok()?;
            let word = outcome.stdout.lines().next().unwrap_or_default().to_owned();
            Some((outcome.success, word))
        };
        match self {
            Self::Systemd { .. } => {
                let (enabled, active) = systemd::state_commands();
                let word = |(_, word): (bool, String)| Some(word).filter(|word| !word.is_empty());
                (ask(&enabled).and_then(word), ask(&active).and_then(word))
            }
            Self::Launchd { user, .. } => {
                let loaded = ask(&launchd::state_command(*user)).map(|(loaded, _)| loaded);
                let word = |yes: &str, no: &str| loaded.map(|l| if l { yes } else { no }.to_owned());
                (word("enabled", "disabled"), word("active", "inactive"))
            }
        }
    }

    /// Returns a hint for the person.
    pub(super) fn hint(&self) -> &'static str {
        match self {
            Self::Systemd { .. } => {
                "log: journalctl --user -u satchel; to keep it running after logout: loginctl enable-linger"
            }
            Self::Launchd { .. } => "log: ~/Library/Logs/satchel.log",
        }
    }
}
