//! `rebuild`: rebuilds the database from the journal.

mod loss;

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use satchel_core::vault;
use satchel_store::{CheckProgress, Damage, OpenEvent, OpenOptions, Store, StoreError};
use serde::Serialize;

use self::loss::DataLoss;
use super::{
    Context,
    args::RebuildArgs,
    byte_progress::ByteProgress,
    error::CliError,
    exit::Exit,
    properties::Properties,
    style::{Paint, TerminalStyle},
    text,
};

/// What `--json` prints.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RebuildReport {
    revision: u64,
    digest: String,
    journal_bytes: u64,
    database_bytes: u64,
    elapsed_ms: u64,
    bytes_per_second: u64,
    /// What the journal had lost; the journal stays damaged.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<DataLoss>,
    /// Where the previous database, which still has it, was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<PathBuf>,
}

/// What `--put-back --json` prints.
#[derive(Clone, Debug, Serialize)]
struct RestoredDatabase {
    put_back: PathBuf,
}

/// Sets the database aside and builds a new one from the journal.
///
/// # Errors
/// Fails if a daemon has the store open, if the journal has lost data, or if the file system refuses.
pub(crate) async fn run(context: &mut Context, args: RebuildArgs) -> Result<Exit, CliError> {
    let config = context.location.local_config("rebuild works on a local data directory")?;
    let dir = config.data_dir.clone();
    let failed = |source: StoreError| CliError::Store { dir: config.data_dir.clone(), source: source.into() };
    if args.put_back {
        return restore_kept_database(context, &dir);
    }
    let options = vault::open_options(&config.data_dir, &config.unlock, config.cache_bytes);
    let options =
        options.map_err(|error| CliError::Store { dir: config.data_dir.clone(), source: error.into() })?;
    let aborted = |error: tokio::task::JoinError| CliError::step("the rebuild was aborted", error);
    let work = {
        let (dir, options) = (dir.clone(), options.clone());
        move |progress: &mut dyn FnMut(CheckProgress)| loss::assess(&dir, options, progress)
    };
    let assessed = ByteProgress::run_blocking(&mut context.out, "reading the journal", work).await;
    let lost = assessed.map_err(aborted)?.map_err(failed)?;
    if let Some(lost) = lost.as_ref().filter(|_| !args.accept_loss) {
        return Err(CliError::step("the database was not rebuilt", lost.message()));
    }
    let options = OpenOptions { rebuild: true, ..options };
    let work = move |progress: &mut dyn FnMut(CheckProgress)| match lost {
        None => rebuild(&dir, options, progress),
        Some(lost) => rebuild_from_damaged(&dir, options, lost, progress),
    };
    let outcome = ByteProgress::run_blocking(&mut context.out, "rebuilding the database", work).await;
    let rebuilt = outcome.map_err(aborted)?.map_err(failed)?;
    if context.out.json {
        context.out.json(&rebuilt)?;
    } else {
        context.out.print(&render(&rebuilt, context.out.style))?;
        if rebuilt.kept.is_some() {
            context.out.note("`satchel rebuild --put-back` restores the old database");
        }
    }
    Ok(if rebuilt.lost.is_some() { Exit::CheckFailed } else { Exit::Done })
}

/// Builds the database from a damaged journal, and keeps the previous one, which has more data.
fn rebuild_from_damaged(
    dir: &Path,
    options: OpenOptions,
    lost: DataLoss,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<RebuildReport, StoreError> {
    let lock = satchel_store::lock_store(dir)?;
    let kept = satchel_store::preserve_database(&lock, dir)?;
    drop(lock);
    let mut rebuilt = build(dir, options, progress)?.0;
    (rebuilt.lost, rebuilt.kept) = (Some(lost), kept);
    Ok(rebuilt)
}

/// Restores the database that the last rebuild from a damaged journal kept.
fn restore_kept_database(context: &mut Context, dir: &Path) -> Result<Exit, CliError> {
    let failed = |source: StoreError| CliError::Store { dir: dir.to_owned(), source: source.into() };
    let lock = satchel_store::lock_store(dir).map_err(failed)?;
    let Some(put_back) = satchel_store::restore_preserved_database(&lock, dir).map_err(failed)? else {
        return Err(CliError::Usage(format!(
            "no database was kept in {}; there is nothing to restore",
            dir.display()
        )));
    };
    if context.out.json {
        context.out.json(&RestoredDatabase { put_back })?;
    } else {
        let mark = context.out.style.paint(Paint::Good, "✓");
        context
            .out
            .print(&format!("{mark} restored the database that was kept as {}\n", put_back.display()))?;
    }
    Ok(Exit::Done)
}

pub(super) fn rebuild(
    dir: &Path,
    options: OpenOptions,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<RebuildReport, StoreError> {
    match build(dir, options, progress)? {
        (_, Some(first)) => Err(StoreError::DamagedJournal { first }),
        (rebuilt, None) => Ok(rebuilt),
    }
}

fn build(
    dir: &Path,
    options: OpenOptions,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<(RebuildReport, Option<Damage>), StoreError> {
    let began = Instant::now();
    let mut damage = None;
    let store = Store::open(dir, options, &mut |event| match event {
        OpenEvent::Progress { done, total } => progress(CheckProgress { done, total }),
        OpenEvent::Damaged(found) => damage = damage.take().or(Some(found)),
        _ => {}
    })?;
    let elapsed = began.elapsed();
    let stats = store.stats()?;
    let rebuilt = RebuildReport {
        revision: store.revision().get(),
        digest: store.state_digest().to_string(),
        journal_bytes: stats.journal_bytes,
        database_bytes: stats.engine_bytes,
        elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        bytes_per_second: rate(stats.journal_bytes, elapsed),
        lost: None,
        kept: None,
    };
    store.close()?;
    Ok((rebuilt, damage))
}

fn rate(bytes: u64, elapsed: Duration) -> u64 {
    let micros = elapsed.as_micros().max(1);
    u64::try_from(u128::from(bytes) * 1_000_000 / micros).unwrap_or(u64::MAX)
}

fn render(rebuilt: &RebuildReport, style: TerminalStyle) -> String {
    let RebuildReport {
        revision,
        digest,
        journal_bytes,
        database_bytes,
        elapsed_ms,
        bytes_per_second,
        lost,
        kept,
    } = rebuilt;
    let mut properties = Properties::new();
    properties
        .add("journal", &format!("{}, {}/s", text::bytes(*journal_bytes), text::bytes(*bytes_per_second)));
    properties.add("took", &format!("{} ms", text::number(*elapsed_ms)));
    properties.add("database", &text::bytes(*database_bytes));
    properties.add("revision", &text::number(*revision));
    properties.add("digest", digest);
    if let Some(lost) = lost {
        properties.add("lost", &lost.summary());
    }
    if let Some(kept) = kept {
        properties.add("kept", &kept.display().to_string());
    }
    let head = match lost {
        None => format!("{} rebuilt the database", style.paint(Paint::Good, "✓")),
        Some(_) => format!(
            "{} rebuilt the database from the readable part of the journal, which stays damaged and read-only",
            style.paint(Paint::Warn, "!")
        ),
    };
    format!("{head}\n\n{}", properties.render(style))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rebuild_reports_its_speed() {
        let rebuilt = RebuildReport {
            revision: 57,
            digest: "00ff".to_owned(),
            journal_bytes: 40_000_000,
            database_bytes: 50_000_000,
            elapsed_ms: 500,
            bytes_per_second: rate(40_000_000, Duration::from_millis(500)),
            lost: None,
            kept: None,
        };
        let shown = render(&rebuilt, TerminalStyle::plain(80));
        assert!(shown.contains("40 MB, 80 MB/s") && shown.contains("took      500 ms"), "{shown}");
    }
}
