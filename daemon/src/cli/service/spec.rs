//! Describes what the service runs: the program and its arguments, without those that the daemon would choose by
//! default.

use std::path::PathBuf;

use crate::cli::{
    Environment,
    args::{Global, InstallArgs},
    error::CliError,
    location::{default_config, line_safe, location_words},
    path::absolute,
    text,
};

/// A daemon as the service manager starts it. Every path is absolute and is text without control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServiceSpec {
    pub(super) executable: String,
    /// The arguments after the name of the program.
    pub(super) words: Vec<String>,
    /// The socket to which clients connect.
    pub(super) socket: String,
}

impl ServiceSpec {
    /// Describes the daemon with these options, for a service manager that knows nothing of this shell's
    /// environment except HOME.
    ///
    /// # Errors
    /// Fails for paths that a unit file cannot contain.
    pub(super) fn from_args(
        global: &Global,
        args: &InstallArgs,
        environment: &Environment,
    ) -> Result<Self, CliError> {
        if global.server.is_some() {
            return Err(CliError::Usage(
                "the service runs a local daemon; omit --server and unset SATCHEL_SERVER".to_owned(),
            ));
        }
        let executable = environment
            .executable
            .as_deref()
            .ok_or_else(|| CliError::Usage("cannot determine the path of this program".to_owned()))?;
        let data_dir = default_config(global, environment)?.data_dir;
        let mut words = vec!["serve".to_owned()];
        words.extend(location_words(global, environment)?);
        for folder in &args.watch {
            words.extend(["--watch".to_owned(), line_safe(&absolute(folder)?)?]);
        }
        let socket = satchel_server::socket::listen_path(&data_dir, &environment.runtime_dir)
            .map_err(|source| CliError::Store { dir: data_dir, source: source.into() })?;
        Ok(Self { executable: line_safe(executable)?, words, socket: line_safe(&socket)? })
    }
}

/// A file of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServiceFile {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// A command that controls the service manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ManagerCommand {
    pub(super) words: Vec<String>,
    /// True if it must succeed.
    pub(super) required: bool,
}

impl ManagerCommand {
    /// Returns the command as a person would type it.
    pub(super) fn shell_line(&self) -> String {
        let quoted = self.words.iter().map(|word| text::shell_quoted(word));
        quoted.collect::<Vec<_>>().join(" ")
    }
}
