//! Passphrases and identities: read from a file, the environment or the terminal, never from the command line, and
//! never shown.

use std::{
    io::{BufRead as _, BufReader, IsTerminal as _, Read as _},
    path::Path,
};

use satchel_core::{plain_file, vault::Secret};
use satchel_proto::v1::Unlock;

use super::{
    args::{PassphraseArgs, UnlockArgs},
    error::CliError,
};

/// Maximum size of a file with identities or a passphrase, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Returns the passphrase for a new file. At the terminal, it is asked for twice.
///
/// # Errors
/// Fails if the file cannot be read, if there is no terminal, or if the passphrases do not match.
pub(crate) fn new_passphrase(
    args: &PassphraseArgs,
    environment: Option<&str>,
) -> Result<Option<String>, CliError> {
    let given = configured_passphrase(args, environment)?;
    if given.is_some() || !args.passphrase {
        return Ok(given);
    }
    let first = prompt("passphrase: ")?;
    let again = prompt("repeat passphrase: ")?;
    confirm_match(first, &again).map(Some)
}

/// Returns the passphrase if both entries are equal. An empty one is rejected: to the daemon it would mean none,
/// and the export would not be encrypted.
fn confirm_match(first: String, again: &str) -> Result<String, CliError> {
    if first.is_empty() {
        return Err(CliError::Usage("the passphrase is empty; nothing was exported".to_owned()));
    }
    if again != first {
        return Err(CliError::Usage("the passphrases do not match".to_owned()));
    }
    Ok(first)
}

/// Returns what opens a file; `None` if nothing was given.
///
/// # Errors
/// As [`new_passphrase`], and if a file with identities cannot be read.
pub(crate) fn unlock(args: &UnlockArgs, environment: Option<&str>) -> Result<Option<Unlock>, CliError> {
    let mut passphrase = configured_passphrase(&args.passphrase, environment)?;
    if passphrase.is_none() && args.passphrase.passphrase {
        passphrase = Some(prompt("passphrase: ")?);
    }
    // A passphrase in the environment is used even without `--passphrase`.
    let passphrase = passphrase.or_else(|| environment.map(str::to_owned)).unwrap_or_default();
    let identities = args.identity.iter().map(|path| read_text(path)).collect::<Result<Vec<_>, _>>()?;
    Ok((!passphrase.is_empty() || !identities.is_empty()).then_some(Unlock { identities, passphrase }))
}

/// Returns the passphrase from a file or, with `--passphrase`, from the environment.
fn configured_passphrase(
    args: &PassphraseArgs,
    environment: Option<&str>,
) -> Result<Option<String>, CliError> {
    if let Some(path) = &args.passphrase_file {
        let mut line = String::new();
        let read = plain_file::open_argument(path)
            .and_then(|file| BufReader::new(file.take(MAX_FILE_BYTES)).read_line(&mut line));
        read.map_err(CliError::file("read", path))?;
        let line = line.trim_end_matches(['\n', '\r']);
        if line.is_empty() {
            return Err(CliError::Usage(format!("the first line of {} is empty", path.display())));
        }
        return Ok(Some(line.to_owned()));
    }
    Ok(environment.filter(|_| args.passphrase).map(str::to_owned))
}

fn read_text(path: &Path) -> Result<String, CliError> {
    let mut text = String::new();
    let read =
        plain_file::open_argument(path).and_then(|file| file.take(MAX_FILE_BYTES).read_to_string(&mut text));
    read.map_err(CliError::file("read", path))?;
    Ok(text)
}

fn prompt(prompt: &str) -> Result<String, CliError> {
    if !std::io::stdin().is_terminal() {
        let advice = "cannot prompt for the passphrase without a terminal; use --passphrase-file FILE, or set SATCHEL_PASSPHRASE";
        return Err(CliError::Usage(advice.to_owned()));
    }
    let step = |error: std::io::Error| CliError::step("cannot prompt for the passphrase", error);
    rpassword::prompt_password(prompt).map_err(step)
}

/// Returns whether a person uses the terminal.
pub(crate) fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Prompts at the terminal for a secret of the data directory, without echoing the input.
pub(crate) fn prompt_secret(prompt: &str) -> std::io::Result<Secret> {
    rpassword::prompt_password(prompt).map(Secret::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_passphrase_is_none_and_refused() {
        assert!(confirm_match(String::new(), "").is_err_and(|error| error.to_string().contains("is empty")));
        assert!(confirm_match("twelve hives".to_owned(), "twelve hive").is_err());
        assert_eq!(
            confirm_match("twelve hives".to_owned(), "twelve hives").ok().as_deref(),
            Some("twelve hives")
        );
    }
}
