//! `config`: checks the configuration file, and shows the settings in effect.

use std::path::PathBuf;

use satchel_server::config::Config;
use serde::Serialize;

use super::{
    Environment,
    args::{ConfigCommand, Global},
    client::DaemonLocation,
    error::CliError,
    exit::Exit,
    location::{config_file, daemon_location, default_config},
    output::Output,
    text,
};

/// What `config check --json` prints.
#[derive(Debug, Serialize)]
struct Checked {
    valid: bool,
    /// Null if there is no file, so that the defaults apply.
    file: Option<PathBuf>,
    problem: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// Fails if the configuration cannot be used, except if the command was to check exactly that.
pub(super) fn run(
    command: ConfigCommand,
    global: &Global,
    environment: &Environment,
    out: &mut Output,
) -> Result<Exit, CliError> {
    // A daemon on another machine has its own configuration.
    let global = &Global { server: None, ..global.clone() };
    match command {
        ConfigCommand::Check => check(global, environment, out),
        ConfigCommand::Show { defaults: true } => show(&default_config(global, environment)?, out),
        ConfigCommand::Show { defaults: false } => match daemon_location(global, environment)? {
            DaemonLocation::DataDir(config) => show(&config, out),
            DaemonLocation::Socket(_) | DaemonLocation::Paired(_) => {
                Err(CliError::Usage("omit --server".to_owned()))
            }
        },
    }
}

fn check(global: &Global, environment: &Environment, out: &mut Output) -> Result<Exit, CliError> {
    let file = config_file(global, environment).filter(|file| global.config.is_some() || file.exists());
    let problem = match daemon_location(global, environment) {
        Ok(_) => None,
        Err(CliError::Config(problem)) => Some(satchel_source::chain(problem.as_ref())),
        Err(other) => return Err(other),
    };
    let exit = if problem.is_none() { Exit::Done } else { Exit::CheckFailed };
    if out.json {
        out.json(&Checked { valid: problem.is_none(), file, problem })?;
        return Ok(exit);
    }
    let line = match (problem, file) {
        (Some(problem), _) => text::clean(&problem).trim_end().to_owned(),
        (None, Some(file)) => format!("{} is valid", text::one_line(&file.display().to_string())),
        (None, None) => "there is no configuration file; the defaults apply".to_owned(),
    };
    out.print(&format!("{line}\n"))?;
    Ok(exit)
}

fn show(config: &Config, out: &mut Output) -> Result<Exit, CliError> {
    if out.json {
        out.json(&config.to_file())?;
        return Ok(Exit::Done);
    }
    let text = toml::to_string_pretty(&config.to_file())
        .map_err(|error| CliError::step("cannot write the settings as TOML", error))?;
    out.print(&text::clean(&text))?;
    Ok(Exit::Done)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use clap::Parser as _;
    use std::fs;

    use super::*;
    use crate::cli::args::{Cli, Command};

    fn typed(words: &[&str], config: &str, json: bool) -> (Result<Exit, CliError>, String) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join(".config/satchel")).unwrap();
        fs::write(folder.path().join(".config/satchel/satchel.toml"), config).unwrap();
        let environment = Environment { home: Some(folder.path().to_owned()), ..Environment::default() };
        let cli = Cli::try_parse_from([&["satchel", "config"], words].concat()).unwrap();
        let (mut out, results, _) = Output::in_memory(json);
        let Command::Config(command) = cli.command else { return (Ok(Exit::Usage), String::new()) };
        let exit = run(command, &cli.global, &environment, &mut out);
        (exit, results.text().replace(folder.path().to_str().unwrap(), "~"))
    }

    #[test]
    fn a_broken_configuration_fails_the_check_with_its_reason() {
        let (exit, text) = typed(&["check"], "[store]\ncach-mib = 5\n", false);
        assert_eq!(exit.unwrap(), Exit::CheckFailed);
        assert_eq!(
            text,
            "the configuration \"~/.config/satchel/satchel.toml\" has the unknown key \"cach-mib\" in line 2; did you mean \"cache-mib\"?\n"
        );
        let (exit, text) = typed(&["check"], "", true);
        assert_eq!(exit.unwrap(), Exit::Done);
        assert!(text.contains("\"valid\": true"), "{text}");
    }

    #[test]
    fn shown_settings_are_a_valid_configuration() {
        let (exit, text) = typed(&["show"], "[store]\ncache-mib = 5\n", false);
        assert_eq!(exit.unwrap(), Exit::Done);
        assert!(text.contains("[store]\ncache-mib = 5\n"), "{text}");
        let (_, defaults) = typed(&["show", "--defaults"], "nonsense", false);
        assert!(defaults.contains("cache-mib = 32"), "{defaults}");
        assert_eq!(typed(&["check"], &defaults, false).0.unwrap(), Exit::Done);
    }
}
