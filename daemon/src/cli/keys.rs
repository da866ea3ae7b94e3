//! `keys`: encryption of the data directory, and the keys that open it.

use std::{
    io::{self, BufRead, Read as _, Write},
    path::Path,
};

use satchel_core::vault::{self, Opener, Secret, Unlock, VaultError};
use satchel_server::config::Config;
use satchel_store::CheckProgress;
use serde::Serialize;

use super::{
    Context,
    args::{LockArgs, Locking},
    error::CliError,
    exit::Exit,
    facts::Facts,
    link::Place,
    look::{Look, Paint},
    purge,
    steps::Steps,
    text,
};

/// Maximum length, in bytes, of a phrase that is read.
const MAX_PHRASE: u64 = 1 << 10;

/// How often the phrase is asked for before giving up on a mistyped one.
const TRIES: usize = 3;

/// What `keys status --json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Told {
    encrypted: bool,
    /// False while the plain files are being replaced.
    complete: bool,
    opened_by: Vec<String>,
    recovery_phrase: bool,
}

/// What `keys encrypt --json` and `keys recovery --json` print.
#[derive(Debug, Serialize)]
struct Phrase<'a> {
    encrypted: bool,
    recovery_phrase: &'a str,
}

/// Runs one of the commands.
///
/// # Errors
/// Fails if the data directory cannot be opened with the given secret, if a daemon has it open, or if the file
/// system refuses.
pub(crate) async fn run(context: &mut Context, command: &Locking) -> Result<Exit, CliError> {
    let Place::Local(config) = context.place.clone() else {
        return Err(CliError::Usage("what opens the data directory is looked after on its own machine; leave --server and SATCHEL_SERVER out".to_owned()));
    };
    match command {
        Locking::Status => status(context, &config.data_dir)?,
        Locking::Encrypt(lock) => encrypt(context, &config, lock).await?,
        Locking::Change { lock, recovery, new_passphrase_file } => {
            let phrase = recovery.then(|| phrase(&config.unlock)).transpose()?;
            let chosen = Unlock {
                passphrase: None,
                passphrase_file: new_passphrase_file.clone(),
                ..config.unlock.clone()
            };
            if lock.passphrase && new_passphrase_file.is_none() && !config.unlock.terminal {
                let problem = "there is no terminal to ask for the new passphrase; name a file with --new-passphrase-file";
                return Err(CliError::Usage(problem.to_owned()));
            }
            let opener = opener(lock)?;
            vault::change(&config.data_dir, &opener, &config.unlock, phrase.as_ref(), &chosen)
                .map_err(refused)?;
            status(context, &config.data_dir)?;
        }
        Locking::Recovery => {
            let phrase = vault::renew_phrase(&config.data_dir, &config.unlock).map_err(refused)?;
            show(context, &phrase)?;
            written_down(context, &config.unlock, &phrase).await?;
        }
    }
    Ok(Exit::Done)
}

fn status(context: &mut Context, data_dir: &Path) -> Result<(), CliError> {
    let told = match vault::status(data_dir).map_err(refused)? {
        None => Told { encrypted: false, complete: true, opened_by: Vec::new(), recovery_phrase: false },
        Some(vault::Status { complete, opened_by, recovery }) => {
            Told { encrypted: true, complete, opened_by, recovery_phrase: recovery }
        }
    };
    if context.out.json {
        return context.out.json(&told);
    }
    context.out.print(&render(&told, context.out.look))?;
    if !told.encrypted {
        context.out.note("`satchel keys encrypt --help` says how to encrypt it");
    }
    Ok(())
}

fn render(told: &Told, look: Look) -> String {
    let Told { encrypted, complete, opened_by, recovery_phrase } = told;
    let mut facts = Facts::new();
    let state = match (encrypted, complete) {
        (false, _) => "not encrypted: whoever can read the files can read what you said",
        (true, false) => "encrypted; plain files are still being erased, the next start goes on",
        (true, true) => "encrypted with XChaCha20-Poly1305",
    };
    facts.add("data", state);
    if *encrypted {
        facts.add("opened by", &text::one_line(&opened_by.join(", ")));
        facts.add("recovery", if *recovery_phrase { "a phrase on paper" } else { "none" });
    }
    facts.render(look)
}

async fn encrypt(context: &mut Context, config: &Config, lock: &LockArgs) -> Result<(), CliError> {
    let dir = config.data_dir.clone();
    if vault::status(&dir).map_err(refused)?.is_some_and(|status| !status.complete) {
        vault::unlock(&dir, &config.unlock).map_err(refused)?;
        context.out.note(
            "encryption was cut off, and is done now; `satchel keys recovery` shows a new recovery phrase",
        );
        return status(context, &dir);
    }
    purge::nothing_beside(&dir, "encrypted")?;
    let (opener, unlock) = (opener(lock)?, config.unlock.clone());
    let (tell, mut told) = tokio::sync::watch::channel(CheckProgress { done: 0, total: 0 });
    let (tell_phrase, mut phrase) = tokio::sync::mpsc::channel(1);
    let (go_on, wait) = std::sync::mpsc::channel::<()>();
    let at_terminal = unlock.clone();
    let mut work = tokio::task::spawn_blocking(move || {
        let mut progress = |progress| {
            // Nobody listens after the command has ended.
            tell.send_replace(progress);
        };
        let mut shown = |phrase: &Secret| {
            // There is only one phrase, and the channel has capacity for one.
            if tell_phrase.try_send(phrase.clone()).is_err() {
                tracing::warn!("nobody hears the recovery phrase; `satchel keys recovery` makes another");
            }
            // Wait until the person has the phrase. If the command that showed it is gone, go on: the next start
            // would continue the encryption anyway.
            if wait.recv().is_err() {
                tracing::debug!("nobody waited for the recovery phrase");
            }
        };
        vault::encrypt(&dir, &opener, &unlock, &mut progress, &mut shown)
    });
    let mut steps = Steps::new(&context.out, "sealing what is stored");
    let outcome = loop {
        tokio::select! {
            // The phrase must be shown before the plain files are erased.
            biased;
            Some(phrase) = phrase.recv() => {
                steps.end();
                show(context, &phrase)?;
                written_down(context, &at_terminal, &phrase).await?;
                steps = Steps::new(&context.out, "erasing what was plain");
                if go_on.send(()).is_err() {
                    // The encryption has stopped early; its outcome says why.
                    tracing::debug!("nobody waits to go on");
                }
            }
            outcome = &mut work => break outcome,
            Ok(()) = told.changed() => {
                let CheckProgress { done, total } = *told.borrow_and_update();
                steps.at(&mut context.out, done, total);
            }
        }
    };
    steps.end();
    let broken = |error: tokio::task::JoinError| CliError::Step {
        what: "the encryption broke off".to_owned(),
        source: error.into(),
    };
    outcome.map_err(broken)?.map_err(refused)?;
    if !context.out.json {
        let mark = context.out.look.paint(Paint::Good, "✓");
        context.out.print(&format!("{mark} the data directory is encrypted\n"))?;
    }
    Ok(())
}

/// Shows the phrase, for the only time.
fn show(context: &mut Context, phrase: &Secret) -> Result<(), CliError> {
    if context.out.json {
        return context.out.json(&Phrase { encrypted: true, recovery_phrase: phrase.expose() });
    }
    context.out.print(&format!(
        "recovery phrase, shown this once; write it on paper:\n\n  {}\n\n",
        phrase.expose()
    ))?;
    context.out.note("it opens your data when the key is lost: `satchel keys change --recovery`");
    Ok(())
}

/// Lets a person at a terminal confirm that they have the phrase, or skip that. Does not wait if there is no
/// terminal.
async fn written_down(context: &mut Context, unlock: &Unlock, phrase: &Secret) -> Result<(), CliError> {
    if !unlock.terminal || context.out.json {
        return Ok(());
    }
    let phrase = phrase.clone();
    let asked =
        tokio::task::spawn_blocking(move || ask_for(&phrase, &mut io::stdin().lock(), &mut io::stderr()));
    let failed = |source| CliError::File { action: "ask at", path: "the terminal".into(), source };
    let broken = |error: tokio::task::JoinError| CliError::Step {
        what: "the question broke off".to_owned(),
        source: error.into(),
    };
    asked.await.map_err(broken)?.map_err(failed)
}

/// Asks for the phrase until it is right, the line is empty, or it was wrong too often. This only checks what was
/// written on paper.
fn ask_for(phrase: &Secret, answers: &mut dyn BufRead, say: &mut dyn Write) -> io::Result<()> {
    for _ in 0..TRIES {
        write!(say, "type it off your paper to check it, or press Enter to go on: ")?;
        say.flush()?;
        let mut line = String::new();
        answers.take(MAX_PHRASE).read_line(&mut line)?;
        let words = |text: &str| text.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>();
        match words(&line) {
            none if none.is_empty() => return Ok(()),
            typed if typed == words(phrase.expose()) => return writeln!(say, "that is it"),
            _ => writeln!(say, "that is not the phrase above; look at your paper again")?,
        }
    }
    writeln!(say, "`satchel keys recovery` makes another phrase")
}

fn opener(lock: &LockArgs) -> Result<Opener, CliError> {
    let LockArgs { key_file, passphrase, key_store: _ } = lock;
    Ok(match (key_file, passphrase) {
        (Some(path), _) => Opener::KeyFile(super::absolute(path)?),
        (None, true) => Opener::Passphrase,
        (None, false) => Opener::KeyStore,
    })
}

/// Returns the recovery phrase, typed at the terminal or read from standard input.
pub(super) fn phrase(unlock: &Unlock) -> Result<Secret, CliError> {
    if unlock.terminal {
        return vault::ask("recovery phrase: ").map_err(refused);
    }
    let mut text = String::new();
    let read = io::stdin().take(MAX_PHRASE).read_to_string(&mut text);
    read.map_err(|source| CliError::File { action: "read", path: "standard input".into(), source })?;
    Ok(Secret::new(text))
}

fn refused(error: VaultError) -> CliError {
    match error {
        VaultError::Encrypted | VaultError::Plain => CliError::Declined(error.to_string()),
        error => CliError::Step { what: "the command was not carried out".to_owned(), source: error.into() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_phrase_is_waited_for_and_checked() {
        let phrase = Secret::new("able baker charlie".to_owned());
        let cases = [
            ("\n", 1, ""),
            ("Able  baker charlie\n", 1, "that is it"),
            ("able baker\nable baker charlie\nrest\n", 2, "not the phrase"),
            ("a\nb\nc\nd\n", 3, "makes another"),
            ("", 1, ""),
        ];
        for (typed, asked, told) in cases {
            let (mut answers, mut said) = (typed.as_bytes(), Vec::new());
            ask_for(&phrase, &mut answers, &mut said).expect("a text in memory");
            let said = String::from_utf8_lossy(&said);
            assert_eq!(said.matches("press Enter").count(), asked, "{typed:?}: {said}");
            assert!(said.contains(told), "{typed:?}: {said}");
        }
    }

    #[test]
    fn the_status_says_what_opens_the_data() {
        let told = Told {
            encrypted: true,
            complete: true,
            opened_by: vec!["key file /home/ana/data.key".to_owned()],
            recovery_phrase: true,
        };
        let expected = "\
data       encrypted with XChaCha20-Poly1305
opened by  key file /home/ana/data.key
recovery   a phrase on paper
";
        assert_eq!(render(&told, Look::plain(80)), expected);
        let plain = Told { encrypted: false, complete: true, opened_by: Vec::new(), recovery_phrase: false };
        assert!(render(&plain, Look::plain(80)).contains("not encrypted"));
    }
}
