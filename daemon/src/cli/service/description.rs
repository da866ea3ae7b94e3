//! Describes what the service runs: the program and its arguments, without those that the daemon would choose by
//! default.

use std::path::{Path, PathBuf};

use crate::cli::{
    Environment, absolute,
    args::{Global, InstallArgs},
    config_file, defaults,
    error::CliError,
};

/// A daemon as the service manager starts it. Every path is absolute and is text without control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Description {
    pub(super) executable: String,
    /// The arguments after the name of the program.
    pub(super) words: Vec<String>,
    /// The socket to which clients connect.
    pub(super) socket: String,
}

impl Description {
    /// Describes the daemon with these options, for a service manager that knows nothing of this shell's
    /// environment except HOME.
    ///
    /// # Errors
    /// Fails for paths that a unit file cannot contain.
    pub(super) fn of(
        global: &Global,
        args: &InstallArgs,
        environment: &Environment,
    ) -> Result<Self, CliError> {
        if global.server.is_some() {
            return Err(CliError::Usage(
                "the service runs a daemon here; leave --server and SATCHEL_SERVER out".to_owned(),
            ));
        }
        let executable = environment
            .executable
            .as_deref()
            .ok_or_else(|| CliError::Usage("the system does not say where this program lies".to_owned()))?;
        let data_dir = defaults(global, environment)?.data_dir;
        let mut words = vec!["serve".to_owned()];
        if usual(environment, ".local/share/satchel").as_deref() != Some(data_dir.as_path()) {
            words.extend(["--data-dir".to_owned(), plain(&data_dir)?]);
        }
        if let Some(file) = config_to_name(global, environment)? {
            words.extend(["--config".to_owned(), plain(&file)?]);
        }
        for folder in &args.watch {
            words.extend(["--watch".to_owned(), plain(&absolute(folder)?)?]);
        }
        let socket = satchel_server::serve::listening_path(&data_dir, &environment.runtime_dir)
            .map_err(|source| CliError::Store { dir: data_dir, source: source.into() })?;
        Ok(Self { executable: plain(executable)?, words, socket: plain(&socket)? })
    }
}

/// Returns the configuration file if the daemon would not find it by itself.
fn config_to_name(global: &Global, environment: &Environment) -> Result<Option<PathBuf>, CliError> {
    let Some(file) = config_file(global, environment) else { return Ok(None) };
    let file = absolute(&file)?;
    let found = usual(environment, ".config/satchel/satchel.toml").as_deref() == Some(file.as_path());
    // A configuration file that is named must exist when the daemon starts.
    Ok(Some(file).filter(|file| !found && (global.config.is_some() || file.exists())))
}

/// Returns the default location of a file for a process that has HOME and no other variables.
fn usual(environment: &Environment, below_home: &str) -> Option<PathBuf> {
    environment.home.as_ref().map(|home| home.join(below_home))
}

/// Returns a path as text that cannot break out of its line.
pub(super) fn plain(path: &Path) -> Result<String, CliError> {
    let refused = |why: &str| {
        CliError::Usage(format!("the path {path:?} cannot stand in a service's file: it {why}; use another"))
    };
    let text = path.to_str().ok_or_else(|| refused("is not UTF-8"))?;
    if text.contains(char::is_control) {
        return Err(refused("holds a line's end or another control character"));
    }
    Ok(text.to_owned())
}
