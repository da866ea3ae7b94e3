//! Where the daemon, its data directory and the files of the user are: from options, the environment and the configuration file.

use std::path::{Path, PathBuf};

use satchel_core::vault::SecretPrompt;
use satchel_host::CodeCache;
use satchel_server::config::Config;

use super::{
    Environment,
    args::{Cli, Command, Global},
    client::DaemonLocation,
    error::CliError,
    path, secret,
};

/// Returns where the daemon of a command is. The commands that manage paired daemons work on the data directory even if
/// one of these daemons is chosen for the others.
pub(super) fn command_location(cli: &Cli, environment: &Environment) -> Result<DaemonLocation, CliError> {
    if let Command::Pair(_) | Command::Servers(_) = &cli.command {
        let local = Global { server: None, ..cli.global.clone() };
        return daemon_location(&local, environment);
    }
    daemon_location(&cli.global, environment)
}

/// Returns where the daemon is, in order of precedence: flag, environment (which clap reads as the flag), file,
/// default.
pub(super) fn daemon_location(
    global: &Global,
    environment: &Environment,
) -> Result<DaemonLocation, CliError> {
    if let Some(server) = &global.server {
        return DaemonLocation::parse(server, || Ok(default_config(global, environment)?.data_dir));
    }
    let config = default_config(global, environment)?;
    let config = match config_file(global, environment) {
        Some(file) => config
            .with_file(&file, global.config.is_some())
            .map_err(|error| CliError::Config(error.into()))?,
        None => config,
    };
    Ok(DaemonLocation::DataDir(Box::new(config)))
}

/// Returns the settings without those of the configuration file.
pub(super) fn default_config(global: &Global, environment: &Environment) -> Result<Config, CliError> {
    let data_dir = match &global.data_dir {
        Some(dir) => dir.clone(),
        None => base_folder(environment.data_home.as_deref(), environment.home.as_deref(), ".local/share")
            .ok_or_else(|| {
                CliError::Usage("HOME is not set; specify the data directory with --data-dir".to_owned())
            })?,
    };
    let mut config = Config::new(path::absolute(&data_dir)?, environment.runtime_dir.clone());
    config.home.clone_from(&environment.home);
    config.allow_other_owner = global.allow_other_owner;
    config.code_cache = code_cache(environment);
    config.plugin_compiler.clone_from(&environment.executable);
    config.unlock.passphrase.clone_from(&environment.data_passphrase);
    let file = global.data_passphrase_file.as_deref().map(path::absolute).transpose()?;
    // A file given by name takes precedence over the environment.
    if file.is_some() {
        config.unlock.passphrase = None;
        config.unlock.passphrase_file = file;
    }
    config.unlock.prompt =
        (secret::is_interactive() && !global.json).then_some(secret::prompt_secret as SecretPrompt);
    Ok(config)
}

/// Returns where compiled importers are cached for all data directories of the user, and, in a different folder,
/// the key that seals them.
pub(super) fn code_cache(environment: &Environment) -> Option<CodeCache> {
    let home = environment.home.as_deref().filter(|home| home.is_absolute());
    let cache = base_folder(environment.cache_home.as_deref(), home, ".cache")?;
    let state = base_folder(environment.state_home.as_deref(), home, ".local/state")?;
    Some(CodeCache { folder: cache.join("importers"), key_file: state.join("code-cache.key") })
}

/// Returns the configuration file. The default file is read only if it exists; a file that was named must exist.
pub(super) fn config_file(global: &Global, environment: &Environment) -> Option<PathBuf> {
    let usual = || config_home(environment).map(|folder| folder.join("satchel/satchel.toml"));
    global.config.clone().or_else(usual)
}

/// Returns the folder of the user's configuration files.
pub(super) fn config_home(environment: &Environment) -> Option<PathBuf> {
    let named = environment.config_home.clone().filter(|path| path.is_absolute());
    named.or_else(|| environment.home.as_ref().map(|home| home.join(".config")))
}

/// Returns our folder inside one of the user's base folders. A relative path in the environment is ignored.
fn base_folder(named: Option<&Path>, home: Option<&Path>, below_home: &str) -> Option<PathBuf> {
    let named = named.filter(|path| path.is_absolute()).map(Path::to_owned);
    named.or_else(|| home.map(|home| home.join(below_home))).map(|folder| folder.join("satchel"))
}

/// Returns the options with which a process that has HOME and no other variables uses the same data directory and configuration.
///
/// # Errors
/// Fails for paths that are not one line of text.
pub(super) fn location_words(global: &Global, environment: &Environment) -> Result<Vec<String>, CliError> {
    let data_dir = default_config(global, environment)?.data_dir;
    let mut words = Vec::new();
    if default_path(environment, ".local/share/satchel").as_deref() != Some(data_dir.as_path()) {
        words.extend(["--data-dir".to_owned(), line_safe(&data_dir)?]);
    }
    if let Some(file) = explicit_config(global, environment)? {
        words.extend(["--config".to_owned(), line_safe(&file)?]);
    }
    Ok(words)
}

/// Returns the configuration file if such a process would not find it by itself.
fn explicit_config(global: &Global, environment: &Environment) -> Result<Option<PathBuf>, CliError> {
    let Some(file) = config_file(global, environment) else { return Ok(None) };
    let file = path::absolute(&file)?;
    let found = default_path(environment, ".config/satchel/satchel.toml").as_deref() == Some(file.as_path());
    // A configuration file that is named must exist when the daemon starts.
    Ok(Some(file).filter(|file| !found && (global.config.is_some() || file.exists())))
}

/// Returns the default location of a file for a process that has HOME and no other variables.
fn default_path(environment: &Environment, below_home: &str) -> Option<PathBuf> {
    environment.home.as_ref().map(|home| home.join(below_home))
}

/// Returns a path as text that cannot break out of its line.
pub(super) fn line_safe(path: &Path) -> Result<String, CliError> {
    let refused = |why: &str| CliError::Usage(format!("the path {path:?} cannot be used here: it {why}"));
    let text = path.to_str().ok_or_else(|| refused("is not valid UTF-8"))?;
    if text.contains(char::is_control) {
        return Err(refused("contains a line break or another control character"));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::exit::Exit;

    fn dir(words: &[&str], environment: &Environment) -> PathBuf {
        let cli = Cli::try_parse_from([&["satchel", "status"], words].concat()).unwrap();
        match daemon_location(&cli.global, environment).unwrap() {
            DaemonLocation::DataDir(config) => config.data_dir,
            DaemonLocation::Socket(path) => path,
            DaemonLocation::Paired(server) => server.data_dir.join(server.name),
        }
    }

    #[test]
    fn options_take_precedence_over_the_environment_and_the_defaults() {
        let mut environment = Environment { home: Some("/nobody/ana".into()), ..Environment::default() };
        assert_eq!(dir(&[], &environment), PathBuf::from("/nobody/ana/.local/share/satchel"));
        environment.data_home = Some("/nobody/data".into());
        assert_eq!(dir(&[], &environment), PathBuf::from("/nobody/data/satchel"));
        environment.data_home = Some("relative".into());
        assert_eq!(dir(&[], &environment), PathBuf::from("/nobody/ana/.local/share/satchel"));
        assert_eq!(dir(&["--data-dir", "/d"], &environment), PathBuf::from("/d"));
        assert_eq!(dir(&["--server", "unix:/s"], &environment), PathBuf::from("/s"));
        assert_eq!(dir(&["--server", "home", "--data-dir", "/d"], &environment), PathBuf::from("/d/home"));
        let cli = Cli::try_parse_from(["satchel", "status"]).unwrap();
        assert!(matches!(daemon_location(&cli.global, &Environment::default()), Err(CliError::Usage(_))));
    }

    #[test]
    fn a_configuration_file_that_is_named_must_exist() {
        let environment = Environment { home: Some("/nobody".into()), ..Environment::default() };
        let cli = Cli::try_parse_from(["satchel", "status", "--config", "/nobody/satchel.toml"]).unwrap();
        let error = daemon_location(&cli.global, &environment).unwrap_err();
        assert_eq!(error.exit(), Exit::Failed);
        assert!(error.report().contains("/nobody/satchel.toml"), "{}", error.report());
    }
}
