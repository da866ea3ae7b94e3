//! `keys`: encryption of the data directory, and the keys that open it.

use std::{
    io::{self, BufRead, Read as _, Write},
    path::Path,
};

use satchel_core::vault::{self, Secret, UnlockMethod, UnlockOptions, VaultError};
use satchel_server::config::Config;
use satchel_store::CheckProgress;
use serde::Serialize;

use super::{
    Context,
    args::{DataKeyArgs, EncryptionCommand},
    byte_progress::ByteProgress,
    error::CliError,
    exit::Exit,
    path,
    properties::Properties,
    purge,
    style::{Paint, TerminalStyle},
    text,
};

/// Maximum length, in bytes, of a phrase that is read.
const MAX_PHRASE: u64 = 1 << 10;

/// How often the phrase is asked for before giving up on a mistyped one.
const MAX_ATTEMPTS: usize = 3;

/// What `keys status --json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct EncryptionReport {
    encrypted: bool,
    /// False while the plain files are being replaced.
    complete: bool,
    opened_by: Vec<String>,
    recovery_phrase: bool,
}

/// What `keys encrypt --json` and `keys recovery --json` print.
#[derive(Debug, Serialize)]
struct PhraseJson<'a> {
    encrypted: bool,
    recovery_phrase: &'a str,
}

/// Runs one of the commands.
///
/// # Errors
/// Fails if the data directory cannot be opened with the given secret, if a daemon has it open, or if the file
/// system refuses.
pub(crate) async fn run(context: &mut Context, command: &EncryptionCommand) -> Result<Exit, CliError> {
    let config =
        context.location.local_config("the encryption of a data directory is managed on its own machine")?;
    match command {
        EncryptionCommand::Status => status(context, &config.data_dir)?,
        EncryptionCommand::Encrypt(lock) => encrypt(context, &config, lock).await?,
        EncryptionCommand::Change { lock, recovery, new_passphrase_file } => {
            let phrase = recovery.then(|| read_phrase(&config.unlock)).transpose()?;
            let chosen = UnlockOptions {
                passphrase: None,
                passphrase_file: new_passphrase_file.clone(),
                ..config.unlock.clone()
            };
            if lock.passphrase && new_passphrase_file.is_none() && config.unlock.prompt.is_none() {
                let problem =
                    "cannot prompt for the new passphrase without a terminal; use --new-passphrase-file FILE";
                return Err(CliError::Usage(problem.to_owned()));
            }
            let unlock_method = unlock_method(lock)?;
            vault::change(&config.data_dir, &unlock_method, &config.unlock, phrase.as_ref(), &chosen)
                .map_err(vault_error)?;
            status(context, &config.data_dir)?;
        }
        EncryptionCommand::Recovery => {
            let phrase = vault::renew_phrase(&config.data_dir, &config.unlock).map_err(vault_error)?;
            print_phrase(context, &phrase)?;
            verify_written_phrase(context, &config.unlock, &phrase).await?;
        }
    }
    Ok(Exit::Done)
}

fn status(context: &mut Context, data_dir: &Path) -> Result<(), CliError> {
    let report = match vault::status(data_dir).map_err(vault_error)? {
        None => EncryptionReport {
            encrypted: false,
            complete: true,
            opened_by: Vec::new(),
            recovery_phrase: false,
        },
        Some(vault::EncryptionStatus { complete, opened_by, recovery }) => {
            EncryptionReport { encrypted: true, complete, opened_by, recovery_phrase: recovery }
        }
    };
    if context.out.json {
        return context.out.json(&report);
    }
    context.out.print(&render(&report, context.out.style))?;
    if !report.encrypted {
        context.out.note("see `satchel keys encrypt --help` for how to encrypt it");
    }
    Ok(())
}

fn render(report: &EncryptionReport, style: TerminalStyle) -> String {
    let EncryptionReport { encrypted, complete, opened_by, recovery_phrase } = report;
    let mut properties = Properties::new();
    let state = match (encrypted, complete) {
        (false, _) => "not encrypted: anyone who can read the files can read your data",
        (true, false) => "encrypted; some unencrypted files remain, which the next start erases",
        (true, true) => "encrypted with XChaCha20-Poly1305",
    };
    properties.add("data", state);
    if *encrypted {
        properties.add("unlocked by", &text::one_line(&opened_by.join(", ")));
        properties.add("recovery", if *recovery_phrase { "recovery phrase" } else { "none" });
    }
    properties.render(style)
}

async fn encrypt(context: &mut Context, config: &Config, lock: &DataKeyArgs) -> Result<(), CliError> {
    let dir = config.data_dir.clone();
    if vault::status(&dir).map_err(vault_error)?.is_some_and(|status| !status.complete) {
        vault::unlock(&dir, &config.unlock).map_err(vault_error)?;
        context.out.note(
            "completed the interrupted encryption; `satchel keys recovery` creates a new recovery phrase",
        );
        return status(context, &dir);
    }
    purge::refuse_set_aside_data(&dir, "encrypted")?;
    let (unlock_method, unlock) = (unlock_method(lock)?, config.unlock.clone());
    let (progress_sender, mut progress_receiver) =
        tokio::sync::watch::channel(CheckProgress { done: 0, total: 0 });
    let (phrase_sender, mut phrase) = tokio::sync::mpsc::channel(1);
    let (continue_sender, continue_receiver) = std::sync::mpsc::channel::<()>();
    let at_terminal = unlock.clone();
    let mut encrypting = tokio::task::spawn_blocking(move || {
        let mut progress = |progress| {
            // Nobody listens after the command has ended.
            progress_sender.send_replace(progress);
        };
        let mut shown = |phrase: &Secret| {
            // There is only one phrase, and the channel has capacity for one.
            if phrase_sender.try_send(phrase.clone()).is_err() {
                tracing::warn!(
                    "the recovery phrase cannot be shown; `satchel keys recovery` creates a new one"
                );
            }
            // Wait until the person has the phrase. If the command that showed it is gone, go on: the next start
            // would continue the encryption anyway.
            if continue_receiver.recv().is_err() {
                tracing::debug!("the command that shows the recovery phrase has ended");
            }
        };
        vault::encrypt(&dir, &unlock_method, &unlock, &mut progress, &mut shown)
    });
    let mut progress = ByteProgress::new(&context.out, "encrypting the data");
    let outcome = loop {
        tokio::select! {
            // The phrase must be shown before the plain files are erased.
            biased;
            Some(phrase) = phrase.recv() => {
                progress.finish();
                print_phrase(context, &phrase)?;
                verify_written_phrase(context, &at_terminal, &phrase).await?;
                progress = ByteProgress::new(&context.out, "erasing the unencrypted files");
                if continue_sender.send(()).is_err() {
                    // The encryption has stopped early; its outcome says why.
                    tracing::debug!("the encryption has already ended");
                }
            }
            outcome = &mut encrypting => break outcome,
            Ok(()) = progress_receiver.changed() => {
                let CheckProgress { done, total } = *progress_receiver.borrow_and_update();
                progress.update(&mut context.out, done, total);
            }
        }
    };
    progress.finish();
    let aborted = |error: tokio::task::JoinError| CliError::step("the encryption was aborted", error);
    outcome.map_err(aborted)?.map_err(vault_error)?;
    if !context.out.json {
        let mark = context.out.style.paint(Paint::Good, "✓");
        context.out.print(&format!("{mark} the data directory is encrypted\n"))?;
    }
    Ok(())
}

/// Shows the phrase, for the only time.
fn print_phrase(context: &mut Context, phrase: &Secret) -> Result<(), CliError> {
    if context.out.json {
        return context.out.json(&PhraseJson { encrypted: true, recovery_phrase: phrase.expose() });
    }
    context
        .out
        .print(&format!("recovery phrase, shown only once; write it down:\n\n  {}\n\n", phrase.expose()))?;
    context.out.note("it unlocks your data if the key is lost: `satchel keys change --recovery`");
    Ok(())
}

/// Lets a person at a terminal confirm that they have the phrase, or skip that. Does not wait if there is no
/// terminal.
async fn verify_written_phrase(
    context: &mut Context,
    unlock: &UnlockOptions,
    phrase: &Secret,
) -> Result<(), CliError> {
    if unlock.prompt.is_none() || context.out.json {
        return Ok(());
    }
    let phrase = phrase.clone();
    let prompted = tokio::task::spawn_blocking(move || {
        prompt_for_phrase(&phrase, &mut io::stdin().lock(), &mut io::stderr())
    });
    let failed = CliError::file("read from", Path::new("the terminal"));
    let aborted = |error: tokio::task::JoinError| CliError::step("the prompt was aborted", error);
    prompted.await.map_err(aborted)?.map_err(failed)
}

/// Asks for the phrase until it is right, the line is empty, or it was wrong too often. This only checks what was
/// written on paper.
fn prompt_for_phrase(phrase: &Secret, input: &mut dyn BufRead, output: &mut dyn Write) -> io::Result<()> {
    for _ in 0..MAX_ATTEMPTS {
        write!(output, "type the phrase that you wrote down to check it, or press Enter to continue: ")?;
        output.flush()?;
        let mut line = String::new();
        input.take(MAX_PHRASE).read_line(&mut line)?;
        let words = |text: &str| text.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>();
        match words(&line) {
            none if none.is_empty() => return Ok(()),
            typed if typed == words(phrase.expose()) => return writeln!(output, "correct"),
            _ => writeln!(output, "that is not the phrase above; check what you wrote down")?,
        }
    }
    writeln!(output, "`satchel keys recovery` creates a new phrase")
}

fn unlock_method(lock: &DataKeyArgs) -> Result<UnlockMethod, CliError> {
    let DataKeyArgs { key_file, passphrase, key_store: _ } = lock;
    Ok(match (key_file, passphrase) {
        (Some(path), _) => UnlockMethod::KeyFile(path::absolute(path)?),
        (None, true) => UnlockMethod::Passphrase,
        (None, false) => UnlockMethod::KeyStore,
    })
}

/// Returns the recovery phrase, typed at the terminal or read from standard input.
pub(super) fn read_phrase(unlock: &UnlockOptions) -> Result<Secret, CliError> {
    if let Some(prompt) = unlock.prompt {
        let failed = |source| vault_error(VaultError::Terminal { source });
        return prompt("recovery phrase: ").map_err(failed);
    }
    let mut text = String::new();
    let read = io::stdin().take(MAX_PHRASE).read_to_string(&mut text);
    read.map_err(CliError::file("read", Path::new("standard input")))?;
    Ok(Secret::new(text))
}

fn vault_error(error: VaultError) -> CliError {
    match error {
        VaultError::AlreadyEncrypted | VaultError::NotEncrypted => CliError::Declined(error.to_string()),
        error => CliError::step("the command failed", error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_written_phrase_is_checked() {
        let phrase = Secret::new("able baker charlie".to_owned());
        let cases = [
            ("\n", 1, ""),
            ("Able  baker charlie\n", 1, "correct"),
            ("able baker\nable baker charlie\nrest\n", 2, "not the phrase"),
            ("a\nb\nc\nd\n", 3, "creates a new phrase"),
            ("", 1, ""),
        ];
        for (typed, prompts, expected) in cases {
            let (mut input, mut printed) = (typed.as_bytes(), Vec::new());
            prompt_for_phrase(&phrase, &mut input, &mut printed).expect("a text in memory");
            let printed = String::from_utf8_lossy(&printed);
            assert_eq!(printed.matches("press Enter").count(), prompts, "{typed:?}: {printed}");
            assert!(printed.contains(expected), "{typed:?}: {printed}");
        }
    }

    #[test]
    fn the_status_shows_what_unlocks_the_data() {
        let report = EncryptionReport {
            encrypted: true,
            complete: true,
            opened_by: vec!["key file /home/ana/data.key".to_owned()],
            recovery_phrase: true,
        };
        let expected = "\
data         encrypted with XChaCha20-Poly1305
unlocked by  key file /home/ana/data.key
recovery     recovery phrase
";
        assert_eq!(render(&report, TerminalStyle::plain(80)), expected);
        let plain = EncryptionReport {
            encrypted: false,
            complete: true,
            opened_by: Vec::new(),
            recovery_phrase: false,
        };
        assert!(render(&plain, TerminalStyle::plain(80)).contains("not encrypted"));
    }
}
