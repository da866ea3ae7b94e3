//! Runs the daemon as a launchd agent on macOS.

use std::path::Path;

use plist::{Dictionary, Value};

use super::{
    GENERATED_MARKER,
    spec::{ManagerCommand, ServiceFile, ServiceSpec},
};
use crate::cli::{error::CliError, location::line_safe};

pub(super) const LABEL: &str = "local.satchel";

/// Returns the property list of the agent in `home`.
///
/// # Errors
/// Fails if the property list cannot contain `home`.
pub(super) fn files(spec: &ServiceSpec, home: &Path) -> Result<Vec<ServiceFile>, CliError> {
    let path = home.join("Library/LaunchAgents").join(format!("{LABEL}.plist"));
    // This folder always exists; launchd does not create any.
    let logs = home.join("Library/Logs");
    let text = agent(spec, &line_safe(&logs)?)
        .map_err(|source| CliError::step("cannot write the property list", source))?;
    Ok(vec![ServiceFile { path, text }])
}

/// Returns the commands to run after the file was written. At the next login, launchd finds the file by itself.
pub(super) fn install(now: bool, changed: bool, user: u32, file: &str) -> Vec<ManagerCommand> {
    if !now {
        return Vec::new();
    }
    // An agent that is already loaded cannot be loaded again, and does not need to be.
    let mut calls = if changed { uninstall(user) } else { Vec::new() };
    calls.push(call(&["bootstrap", &format!("gui/{user}"), file], changed));
    calls.push(call(&["kickstart", &format!("gui/{user}/{LABEL}")], true));
    calls
}

/// Returns the commands to run before the file is removed.
pub(super) fn uninstall(user: u32) -> Vec<ManagerCommand> {
    vec![call(&["bootout", &format!("gui/{user}/{LABEL}")], false)]
}

/// Returns the command that asks whether the agent is loaded, and therefore running.
pub(super) fn state_command(user: u32) -> ManagerCommand {
    call(&["print", &format!("gui/{user}/{LABEL}")], false)
}

fn call(words: &[&str], required: bool) -> ManagerCommand {
    let words = ["launchctl"].iter().chain(words).map(|&word| word.to_owned());
    ManagerCommand { words: words.collect(), required }
}

fn agent(spec: &ServiceSpec, logs: &str) -> Result<String, plist::Error> {
    let ServiceSpec { executable, words, socket: _ } = spec;
    // launchd has no journal: the daemon writes a log of bounded size, and only errors that end it early go to the
    // other file.
    let log = ["--log-file".to_owned(), format!("{logs}/satchel.log")];
    let words = [executable].into_iter().chain(words).chain(&log).cloned().map(Value::String);
    let mut keep_alive = Dictionary::new();
    keep_alive.insert("SuccessfulExit".to_owned(), Value::Boolean(false));
    let entries = [
        ("Label", Value::String(LABEL.to_owned())),
        ("ProgramArguments", Value::Array(words.collect())),
        ("RunAtLoad", Value::Boolean(true)),
        ("KeepAlive", Value::Dictionary(keep_alive)),
        ("ProcessType", Value::String("Background".to_owned())),
        ("LowPriorityIO", Value::Boolean(true)),
        ("Nice", Value::Integer(5.into())),
        // Decimal for 077.
        ("Umask", Value::Integer(63.into())),
        ("ExitTimeOut", Value::Integer(30.into())),
        ("StandardErrorPath", Value::String(format!("{logs}/satchel.err"))),
    ];
    let agent: Dictionary = entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let mut xml = Vec::new();
    Value::Dictionary(agent).to_writer_xml(&mut xml)?;
    let xml = String::from_utf8_lossy(&xml).into_owned();
    let marker = format!("<!-- {} -->", GENERATED_MARKER.trim_start_matches("# "));
    // In XML, a comment may be anywhere except before the declaration.
    Ok(match xml.split_once('\n') {
        Some((declaration, rest)) => format!("{declaration}\n{marker}\n{rest}\n"),
        None => xml,
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_property_list_round_trips_any_path() {
        let spec = ServiceSpec {
            executable: "/Apps & <more>/satchel".to_owned(),
            words: ["serve", "--data-dir", "/Users/ana/\"data\" ü $HOME"].map(str::to_owned).to_vec(),
            socket: "/s".to_owned(),
        };
        let [file] = files(&spec, Path::new("/Users/ana")).unwrap().try_into().unwrap();
        assert_eq!(file.path, Path::new("/Users/ana/Library/LaunchAgents/local.satchel.plist"));
        assert!(super::super::system::written_by_us(&file.text), "{}", file.text);
        let read = Value::from_reader_xml(file.text.as_bytes()).unwrap().into_dictionary().unwrap();
        let words: Vec<&str> =
            read["ProgramArguments"].as_array().unwrap().iter().filter_map(Value::as_string).collect();
        assert_eq!(
            words,
            [
                "/Apps & <more>/satchel",
                "serve",
                "--data-dir",
                "/Users/ana/\"data\" ü $HOME",
                "--log-file",
                "/Users/ana/Library/Logs/satchel.log"
            ]
        );
        assert_eq!(read["Label"].as_string(), Some(LABEL));
        assert_eq!(read["Umask"].as_signed_integer(), Some(0o077));
        let keep_alive = read["KeepAlive"].as_dictionary().unwrap();
        assert_eq!(keep_alive["SuccessfulExit"].as_boolean(), Some(false));
    }

    #[test]
    fn a_changed_agent_is_reloaded() {
        let words =
            |calls: Vec<ManagerCommand>| calls.iter().map(|call| call.words[1].clone()).collect::<Vec<_>>();
        assert_eq!(words(install(true, true, 501, "/f")), ["bootout", "bootstrap", "kickstart"]);
        assert_eq!(words(install(true, false, 501, "/f")), ["bootstrap", "kickstart"]);
        assert!(install(false, true, 501, "/f").is_empty());
    }
}
