//! `backup` and `restore`.

use std::path::{Path, PathBuf};

use satchel_core::{
    backup::{
        Progress,
        restore::{self, RestoreError, Restored},
    },
    vault,
};
use satchel_proto::{
    signed::unsigned,
    v1::{Backup, CreateBackupRequest, operation::Result as Reached},
};
use serde::Serialize;

use super::{
    Context,
    args::{BackupArgs, RestoreArgs},
    error::CliError,
    exit::Exit,
    facts::Facts,
    link::{Link, Place},
    look::{Look, Paint},
    operation::unexpected,
    path,
    steps::Steps,
    text,
};

/// What `backup --json` prints.
#[derive(Debug, Serialize)]
struct Written<'a> {
    path: &'a str,
    revision: u64,
    bytes: u64,
    files: u64,
    digest: &'a str,
    left_out: &'a [String],
}

/// What `restore --json` prints.
#[derive(Debug, Serialize)]
struct PutBack<'a> {
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
pub(crate) async fn create(context: &mut Context, link: &Link, args: &BackupArgs) -> Result<Exit, CliError> {
    let absolute = std::path::absolute(&args.file);
    let output =
        absolute.map_err(|source| CliError::File { action: "find", path: args.file.clone(), source })?;
    let request = CreateBackupRequest { output: path::text_of(output)? };
    let operation = link.admin().create_backup(request).await?.into_inner().operation;
    let mut steps = Steps::new(&context.out, "writing the backup");
    let ended = link.result_of(operation, |operation| steps.show(&mut context.out, operation)).await;
    steps.end();
    let Reached::Backup(backup) = ended? else { return Err(unexpected()) };
    if context.out.json {
        let Backup { path, revision, size_bytes, files, digest, left_out } = &backup;
        let (revision, bytes, files) = (*revision, *size_bytes, *files);
        context.out.json(&Written {
            path,
            revision: unsigned(revision),
            bytes: unsigned(bytes),
            files: unsigned(files),
            digest,
            left_out,
        })?;
    } else {
        context.out.print(&written(&backup, context.out.look))?;
        let path = text::quoted(&text::one_line(&backup.path));
        context.out.note(&format!(
            "`satchel restore --data-dir DIR {path}` puts it back; keep it as safe as the data itself"
        ));
        if let Some(advice) = key_advice(&context.place) {
            context.out.note(&advice);
        }
    }
    Ok(Exit::Done)
}

/// Returns a note on what has to be kept in addition to a backup of an encrypted data directory.
fn key_advice(place: &Place) -> Option<String> {
    let Place::Local(config) = place else { return None };
    let status = vault::status(&config.data_dir).ok().flatten()?;
    let openers = status.opened_by.into_iter().chain(status.recovery.then(|| "recovery phrase".to_owned()));
    Some(format!(
        "it is encrypted; keys/data-key.json, in it twice, is opened by: {}; keep that somewhere else, nothing else opens the backup",
        openers.collect::<Vec<_>>().join(", ")
    ))
}

fn written(backup: &Backup, look: Look) -> String {
    let Backup { path, revision, size_bytes, files, digest, left_out } = backup;
    let mut facts = Facts::new();
    facts.add("where", path);
    facts.add("size", &text::bytes(unsigned(*size_bytes)));
    facts.add("files", &text::number(unsigned(*files)));
    facts.add("revision", &text::number(unsigned(*revision)));
    facts.add("digest", digest);
    let mark = look.paint(Paint::Good, "✓");
    let mut out =
        format!("{mark} everything up to revision {revision} is in the backup\n\n{}\n", facts.render(look));
    for hash in left_out {
        let mark = look.paint(Paint::Bad, "✗");
        text::append(
            &mut out,
            format_args!("{mark} left out: attachment {hash}, whose bytes are not what they were\n"),
        );
    }
    out
}

/// Restores a backup.
///
/// # Errors
/// Fails if the backup is not valid, or if the data directory is in use or not empty.
pub(crate) async fn restore(context: &mut Context, args: &RestoreArgs) -> Result<Exit, CliError> {
    let Place::Local(config) = context.place.clone() else {
        return Err(CliError::Usage("restore works here; leave --server and SATCHEL_SERVER out".to_owned()));
    };
    let (file, data_dir, replace) = (args.file.clone(), config.data_dir.clone(), args.replace);
    let mut unlock = config.unlock.clone();
    if args.recovery {
        // Check this before the person looks for the paper with the phrase.
        if !restore::encrypted(&file).map_err(refused)? {
            return Err(CliError::Usage(format!(
                "{file:?} is of a data directory that is not encrypted, so no phrase opens it; leave --recovery out"
            )));
        }
        unlock.phrase = Some(super::keys::phrase(&unlock)?);
    }
    let (tell, mut told) = tokio::sync::watch::channel(Progress::default());
    // Ctrl-C stops the waiting here; the work notices it at its next progress report.
    let mut work = tokio::task::spawn_blocking(move || {
        restore::restore(&file, &data_dir, replace, &unlock, &mut |progress| tell.send(progress).is_ok())
    });
    let mut steps = Steps::new(&context.out, "checking and restoring the backup");
    let mut cancelled = false;
    let outcome = loop {
        tokio::select! {
            outcome = &mut work => break outcome,
            Ok(()) = told.changed(), if !cancelled => {
                let Progress { done, total } = *told.borrow_and_update();
                steps.at(&mut context.out, done, total);
            }
            _ = tokio::signal::ctrl_c(), if !cancelled => {
                cancelled = true;
                // Without a receiver the work stops and removes what it has written so far.
                told = tokio::sync::watch::channel(Progress::default()).1;
            }
        }
    };
    steps.end();
    let broken = |error: tokio::task::JoinError| CliError::Step {
        what: "the restore broke off".to_owned(),
        source: error.into(),
    };
    let restored = outcome.map_err(broken)?.map_err(refused)?;
    if context.out.json {
        let Restored { revision, store_id, digest, files, set_aside } = &restored;
        let (revision, files, data_dir) = (*revision, *files, config.data_dir.as_path());
        let set_aside = set_aside.as_deref();
        context.out.json(&PutBack { data_dir, revision, store_id, digest, files, set_aside })?;
    } else {
        context.out.print(&put_back(&restored, &config.data_dir, context.out.look))?;
    }
    if args.recovery {
        context.out.note("`satchel keys change --recovery --passphrase` lets something else open it than the key that is lost");
    }
    Ok(Exit::Done)
}

fn refused(error: RestoreError) -> CliError {
    match error {
        RestoreError::Cancelled => CliError::Cancelled,
        error => CliError::Step { what: "nothing was restored".to_owned(), source: error.into() },
    }
}

fn put_back(restored: &Restored, data_dir: &Path, look: Look) -> String {
    let Restored { revision, store_id, digest, files, set_aside } = restored;
    let shown = |path: &PathBuf| text::one_line(&path.to_string_lossy());
    let mut facts = Facts::new();
    facts.add("data", &shown(&data_dir.to_owned()));
    facts.add("files", &text::number(*files));
    facts.add("revision", &text::number(*revision));
    facts.add("digest", &format!("{digest}, as backed up"));
    facts.add("store", &format!("{store_id}, a new id: what is stored from here on is a history of its own"));
    if let Some(old) = set_aside {
        facts.add("set aside", &shown(old));
    }
    let mark = look.paint(Paint::Good, "✓");
    format!("{mark} restored, every byte checked\n\n{}", facts.render(look))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use satchel_server::config::Config;
    use satchel_server::log::Log;
    use satchel_store::{OpenOptions, Store};

    use super::*;
    use crate::cli::{out::Out, time};

    #[tokio::test(flavor = "multi_thread")]
    async fn no_phrase_is_asked_for_where_none_opens_anything() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        let store = Store::open(&at("data"), OpenOptions::default(), &mut |_| {}).unwrap();
        satchel_core::backup::create::create(&store, &at("data"), &at("backup.zip"), 1, &mut |_| true)
            .unwrap();
        store.close().unwrap();
        let (out, results, notes) = Out::in_memory(false);
        let mut context = Context {
            out,
            calendar: time::fixed(),
            place: Place::Local(Box::new(Config::new(at("restored"), at("run")))),
            log: Log::default(),
            passphrase: None,
            request_id: String::new(),
        };
        let mut args = RestoreArgs { file: at("backup.zip"), replace: false, recovery: true };
        let refused = restore(&mut context, &args).await;
        assert!(
            matches!(&refused, Err(CliError::Usage(told)) if told.contains("leave --recovery out")),
            "{refused:?}"
        );
        assert!(!at("restored").exists() && results.text().is_empty() && notes.text().is_empty());
        args.recovery = false;
        restore(&mut context, &args).await.unwrap();
        assert!(results.text().contains("restored, every byte checked"));
        assert!(!notes.text().contains("keys change"), "{}", notes.text());
    }

    #[test]
    fn a_backup_says_where_it_is_and_how_to_use_it() {
        let backup = Backup {
            path: "/home/ana/my backup.zip".to_owned(),
            revision: 57,
            size_bytes: 48_000,
            files: 4,
            digest: "00ff".to_owned(),
            left_out: vec!["ab12".to_owned()],
        };
        let expected = "\
✓ everything up to revision 57 is in the backup

where     /home/ana/my backup.zip
size      48 kB
files     4
revision  57
digest    00ff

✗ left out: attachment ab12, whose bytes are not what they were
";
        assert_eq!(written(&backup, Look::plain(120)), expected);
    }

    #[test]
    fn a_restore_names_what_was_set_aside() {
        let restored = Restored {
            revision: 57,
            store_id: "5c0a".to_owned(),
            digest: "00ff".to_owned(),
            files: 4,
            set_aside: Some("/d.replaced-1".into()),
        };
        let shown = put_back(&restored, Path::new("/d"), Look::plain(120));
        assert!(shown.contains("set aside  /d.replaced-1\n") && shown.contains("5c0a, a new id"), "{shown}");
    }
}
