//! The operating system's key store, which is unlocked with the user's session.

use std::{
    ffi::OsString,
    io::{self, Write as _},
    process::{Command, Stdio},
};

use zeroize::Zeroizing;

use super::Secret;

/// A store of named secrets, which keeps them until the user deletes them.
pub trait KeyStore: std::fmt::Debug + Send + Sync {
    /// Stores a secret under a name.
    ///
    /// # Errors
    /// There is no key store, or it refuses.
    fn put(&self, account: &str, secret: &Secret) -> io::Result<()>;
    /// Returns the secret with a name, or `None` if there is none.
    ///
    /// # Errors
    /// There is no key store, or it refuses.
    fn find(&self, account: &str) -> io::Result<Option<Secret>>;
}

/// The freedesktop Secret Service (GNOME Keyring, `KWallet`, `KeePassXC`), accessed through the program `secret-tool`
/// of libsecret. Secrets are passed through pipes, never as arguments, which other processes can read.
#[derive(Clone, Debug)]
pub struct SecretTool {
    program: OsString,
}

impl Default for SecretTool {
    fn default() -> Self {
        Self { program: OsString::from("secret-tool") }
    }
}

impl SecretTool {
    /// Creates a key store that runs a program with another name.
    #[must_use]
    pub fn at(program: OsString) -> Self {
        Self { program }
    }

    fn command(&self, action: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(action).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

const SERVICE: [&str; 2] = ["service", "satchel"];

impl KeyStore for SecretTool {
    fn put(&self, account: &str, secret: &Secret) -> io::Result<()> {
        let mut command = self.command("store");
        command.arg("--label=Satchel data key").args(SERVICE).args(["account", account]);
        let output = run(command, secret.expose())?;
        if output.status.success() { Ok(()) } else { Err(refused(&output.stderr)) }
    }

    fn find(&self, account: &str) -> io::Result<Option<Secret>> {
        let mut command = self.command("lookup");
        command.args(SERVICE).args(["account", account]);
        let output = run(command, "")?;
        let text = Zeroizing::new(output.stdout);
        match (output.status.success(), text.is_empty()) {
            // `secret-tool` fails without output if it has no such secret.
            (false, true) if output.stderr.is_empty() => Ok(None),
            (true, false) => match String::from_utf8(text.to_vec()) {
                Ok(text) => Ok(Some(Secret::new(text.trim_end().to_owned()))),
                Err(_) => Err(io::Error::other("the key store gave something that is no text")),
            },
            _ => Err(refused(&output.stderr)),
        }
    }
}

/// Runs a command and writes `input` to its stdin.
fn run(mut command: Command, input: &str) -> io::Result<std::process::Output> {
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::new(
            io::ErrorKind::NotFound,
            "the program `secret-tool` is not installed (package libsecret-tools), or this system has no Secret Service",
        ),
        _ => error,
    })?;
    if let Some(mut pipe) = child.stdin.take() {
        pipe.write_all(input.as_bytes())?;
    }
    child.wait_with_output()
}

fn refused(stderr: &[u8]) -> io::Error {
    let message = String::from_utf8_lossy(stderr);
    let message = message.trim();
    io::Error::other(if message.is_empty() { "it was refused".to_owned() } else { message.to_owned() })
}
