//! `backup` and `restore`.

use std::path::{Path, PathBuf};

use satchel_core::{
    backup::{
        BackupProgress,
        restore::{self, RestoreError, RestoreOutcome},
    },
    vault,
};
use satchel_proto::{
    integers::unsigned,
    v1::{Backup, CreateBackupRequest, operation::Result as Reached},
};
use serde::Serialize;

use super::{
    Context,
    args::{BackupArgs, RestoreArgs},
    byte_progress::ByteProgress,
    client::{DaemonClient, DaemonLocation},
    error::CliError,
    exit::Exit,
    operation::unexpected_result,
    path,
    properties::Properties,
    style::{Paint, TerminalStyle},
    text,
};

/// What `backup --json` prints.
#[derive(Debug, Serialize)]
struct BackupJson<'a> {
    path: &'a str,
    revision: u64,
    bytes: u64,
    files: u64,
    digest: &'a str,
    left_out: &'a [String],
}

/// What `restore --json` prints.
#[derive(Debug, Serialize)]
struct RestoreJson<'a> {
    data_dir: &'a Path,
    revision: u64,
    store_id: &'a str,
    digest: &'a str,
    files: u64,
    set_aside: Option<&'a Path>,
}

/// Writes a backup.
///
/// # Errors
/// Returns the error of the daemon.
pub(crate) async fn create(
    context: &mut Context,
    client: &DaemonClient,
    args: &BackupArgs,
) -> Result<Exit, CliError> {
    let request = CreateBackupRequest { output: path::path_to_string(path::absolute(&args.file)?)? };
    let operation = client.start(client.admin().create_backup(request)).await?.operation;
    let mut progress = ByteProgress::new(&context.out, "writing the backup");
    let ended =
        client.result_of(operation, |operation| progress.show_operation(&mut context.out, operation)).await;
    progress.finish();
    let Reached::Backup(backup) = ended? else { return Err(unexpected_result()) };
    if context.out.json {
        let Backup { path, revision, size_bytes, files, digest, left_out } = &backup;
        let (revision, bytes, files) = (*revision, *size_bytes, *files);
        context.out.json(&BackupJson {
            path,
            revision: unsigned(revision),
            bytes: unsigned(bytes),
            files: unsigned(files),
            digest,
            left_out,
        })?;
    } else {
        context.out.print(&render_backup(&backup, context.out.style))?;
        let path = text::shell_quoted(&text::one_line(&backup.path));
        context.out.note(&format!(
            "`satchel restore --data-dir DIR {path}` restores it; keep it as safe as the data itself"
        ));
        if let Some(advice) = key_advice(&context.location) {
            context.out.note(&advice);
        }
    }
    Ok(Exit::Done)
}

/// Returns a note on what has to be kept in addition to a backup of an encrypted data directory.
fn key_advice(location: &DaemonLocation) -> Option<String> {
    let DaemonLocation::DataDir(config) = location else { return None };
    let status = vault::status(&config.data_dir).ok().flatten()?;
    let openers = status.opened_by.into_iter().chain(status.recovery.then(|| "recovery phrase".to_owned()));
    Some(format!(
        "the backup is encrypted; its keys/data-key.json is unlocked by: {}; keep these elsewhere, because nothing else opens the backup",
        openers.collect::<Vec<_>>().join(", ")
    ))
}

fn render_backup(backup: &Backup, style: TerminalStyle) -> String {
    let Backup { path, revision, size_bytes, files, digest, left_out } = backup;
    let mut properties = Properties::new();
    properties.add("path", path);
    properties.add("size", &text::bytes(unsigned(*size_bytes)));
    properties.add("files", &text::number(unsigned(*files)));
    properties.add("revision", &text::number(unsigned(*revision)));
    properties.add("digest", digest);
    let mark = style.paint(Paint::Good, "✓");
    let mut out =
        format!("{mark} backed up everything up to revision {revision}\n\n{}\n", properties.render(style));
    for hash in left_out {
        let mark = style.paint(Paint::Bad, "✗");
        text::append(&mut out, format_args!("{mark} left out: attachment {hash}, which is damaged\n"));
    }
    out
}

/// Restores a backup.
///
/// # Errors
/// Fails if the backup is not valid, or if the data directory is in use or not empty.
pub(crate) async fn restore(context: &mut Context, args: &RestoreArgs) -> Result<Exit, CliError> {
    let config = context.location.local_config("restore works on a local data directory")?;
    let (file, data_dir, replace) = (args.file.clone(), config.data_dir.clone(), args.replace);
    let mut unlock = config.unlock.clone();
    if args.recovery {
        // Check this before the person looks for the paper with the phrase.
        if !restore::encrypted(&file).map_err(restore_error)? {
            return Err(CliError::Usage(format!(
                "{file:?} is a backup of an unencrypted data directory, so it needs no recovery phrase; omit --recovery"
            )));
        }
        unlock.phrase = Some(super::keys::read_phrase(&unlock)?);
    }
    let (progress_sender, mut progress_receiver) = tokio::sync::watch::channel(BackupProgress::default());
    // Ctrl-C stops the waiting here; the work notices it at its next progress report.
    let mut restoring = tokio::task::spawn_blocking(move || {
        restore::restore(&file, &data_dir, replace, &unlock, &mut |progress| {
            progress_sender.send(progress).is_ok()
        })
    });
    let mut progress = ByteProgress::new(&context.out, "checking and restoring the backup");
    let mut cancelled = false;
    let outcome = loop {
        tokio::select! {
            outcome = &mut restoring => break outcome,
            Ok(()) = progress_receiver.changed(), if !cancelled => {
                let BackupProgress { done, total } = *progress_receiver.borrow_and_update();
                progress.update(&mut context.out, done, total);
            }
            _ = tokio::signal::ctrl_c(), if !cancelled => {
                cancelled = true;
                // Without a receiver the work stops and removes what it has written so far.
                progress_receiver = tokio::sync::watch::channel(BackupProgress::default()).1;
            }
        }
    };
    progress.finish();
    let aborted = |error: tokio::task::JoinError| CliError::step("the restore was aborted", error);
    let restored = outcome.map_err(aborted)?.map_err(restore_error)?;
    if context.out.json {
        let RestoreOutcome { revision, store_id, digest, files, set_aside } = &restored;
        let (revision, files, data_dir) = (*revision, *files, config.data_dir.as_path());
        let set_aside = set_aside.as_deref();
        context.out.json(&RestoreJson { data_dir, revision, store_id, digest, files, set_aside })?;
    } else {
        context.out.print(&render_restore(&restored, &config.data_dir, context.out.style))?;
    }
    if args.recovery {
        context.out.note("to replace the lost key, run `satchel keys change --recovery --passphrase`");
    }
    Ok(Exit::Done)
}

fn restore_error(error: RestoreError) -> CliError {
    match error {
        RestoreError::Cancelled => CliError::Cancelled,
        error => CliError::step("nothing was restored", error),
    }
}

fn render_restore(restored: &RestoreOutcome, data_dir: &Path, style: TerminalStyle) -> String {
    let RestoreOutcome { revision, store_id, digest, files, set_aside } = restored;
    let shown = |path: &PathBuf| text::one_line(&path.to_string_lossy());
    let mut properties = Properties::new();
    properties.add("data", &shown(&data_dir.to_owned()));
    properties.add("files", &text::number(*files));
    properties.add("revision", &text::number(*revision));
    properties.add("digest", &format!("{digest}, as in the backup"));
    properties.add("store", &format!("{store_id}, a new id, because its history diverges from here on"));
    if let Some(old) = set_aside {
        properties.add("set aside", &shown(old));
    }
    let mark = style.paint(Paint::Good, "✓");
    format!("{mark} restored and verified\n\n{}", properties.render(style))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use satchel_server::config::Config;
    use satchel_server::log::Log;
    use satchel_store::{OpenOptions, Store};

    use super::*;
    use crate::cli::{agent_homes::AgentHomes, output::Output, time};

    #[tokio::test(flavor = "multi_thread")]
    async fn no_phrase_is_requested_for_an_unencrypted_backup() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        let store = Store::open(&at("data"), OpenOptions::default(), &mut |_| {}).unwrap();
        satchel_core::backup::create::create(&store, &at("data"), &at("backup.zip"), 1, &mut |_| true)
            .unwrap();
        store.close().unwrap();
        let (out, results, notes) = Output::in_memory(false);
        let mut context = Context {
            out,
            calendar: time::fixed(),
            location: DaemonLocation::DataDir(Box::new(Config::new(at("restored"), at("run")))),
            log: Log::default(),
            passphrase: None,
            agent_homes: AgentHomes::default(),
            request_id: String::new(),
        };
        let mut args = RestoreArgs { file: at("backup.zip"), replace: false, recovery: true };
        let refused = restore(&mut context, &args).await;
        assert!(
            matches!(&refused, Err(CliError::Usage(message)) if message.contains("omit --recovery")),
            "{refused:?}"
        );
        assert!(!at("restored").exists() && results.text().is_empty() && notes.text().is_empty());
        args.recovery = false;
        restore(&mut context, &args).await.unwrap();
        assert!(results.text().contains("restored and verified"));
        assert!(!notes.text().contains("keys change"), "{}", notes.text());
    }

    #[test]
    fn a_backup_is_reported_with_its_path_and_contents() {
        let backup = Backup {
            path: "/home/ana/my backup.zip".to_owned(),
            revision: 57,
            size_bytes: 48_000,
            files: 4,
            digest: "00ff".to_owned(),
            left_out: vec!["ab12".to_owned()],
        };
        let expected = "\
✓ backed up everything up to revision 57

path      /home/ana/my backup.zip
size      48 kB
files     4
revision  57
digest    00ff

✗ left out: attachment ab12, which is damaged
";
        assert_eq!(render_backup(&backup, TerminalStyle::plain(120)), expected);
    }

    #[test]
    fn a_restore_names_the_data_directory_that_was_set_aside() {
        let restored = RestoreOutcome {
            revision: 57,
            store_id: "5c0a".to_owned(),
            digest: "00ff".to_owned(),
            files: 4,
            set_aside: Some("/d.replaced-1".into()),
        };
        let shown = render_restore(&restored, Path::new("/d"), TerminalStyle::plain(120));
        assert!(shown.contains("set aside  /d.replaced-1\n") && shown.contains("5c0a, a new id"), "{shown}");
    }
}
