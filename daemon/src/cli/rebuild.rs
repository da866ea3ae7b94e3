//! `rebuild`: the database again from the journal.

use std::time::{Duration, Instant};

use satchel_store::{CheckProgress, OpenEvent, OpenOptions, Store, StoreError};
use serde::Serialize;

use super::{
    Context,
    error::CliError,
    exit::Exit,
    facts::Facts,
    link::Place,
    look::{Look, Paint},
    steps::Steps,
    text,
};
use crate::vault;

/// What `--json` prints.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Rebuilt {
    revision: u64,
    digest: String,
    journal_bytes: u64,
    database_bytes: u64,
    elapsed_ms: u64,
    bytes_per_second: u64,
}

/// Sets the database aside and builds it from the journal.
///
/// # Errors
/// A daemon that has the store, and what the file system refuses.
pub(crate) async fn run(context: &mut Context) -> Result<Exit, CliError> {
    let Place::Local(config) = context.place.clone() else {
        return Err(CliError::Usage("rebuild works here; leave --server and SATCHEL_SERVER out".to_owned()));
    };
    let dir = config.data_dir.clone();
    let opened = vault::open_options(&config);
    let opened =
        opened.map_err(|error| CliError::Store { dir: config.data_dir.clone(), source: error.into() })?;
    let options = OpenOptions { rebuild: true, ..opened };
    let work = move |progress: &mut dyn FnMut(CheckProgress)| rebuild(&dir, options, progress);
    let outcome = Steps::follow(&mut context.out, "building the database", work).await;
    let broken = |error: tokio::task::JoinError| CliError::Step {
        what: "the rebuild broke off".to_owned(),
        source: error.into(),
    };
    let failed = |source: StoreError| CliError::Store { dir: config.data_dir.clone(), source: source.into() };
    let rebuilt = outcome.map_err(broken)?.map_err(failed)?;
    if context.out.json {
        context.out.json(&rebuilt)?;
    } else {
        context.out.print(&render(&rebuilt, context.out.look))?;
    }
    Ok(Exit::Done)
}

pub(super) fn rebuild(
    dir: &std::path::Path,
    options: OpenOptions,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<Rebuilt, StoreError> {
    let began = Instant::now();
    let mut damage = None;
    let store = Store::open(dir, options, &mut |event| match event {
        OpenEvent::Progress { done, total } => progress(CheckProgress { done, total }),
        OpenEvent::Damaged(found) => damage = damage.take().or(Some(found)),
        _ => {}
    })?;
    let elapsed = began.elapsed();
    let stats = store.stats()?;
    let rebuilt = Rebuilt {
        revision: store.revision().get(),
        digest: store.state_digest().to_string(),
        journal_bytes: stats.journal_bytes,
        database_bytes: stats.engine_bytes,
        elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        bytes_per_second: rate(stats.journal_bytes, elapsed),
    };
    store.close()?;
    match damage {
        Some(first) => Err(StoreError::DamagedJournal { first }),
        None => Ok(rebuilt),
    }
}

fn rate(bytes: u64, elapsed: Duration) -> u64 {
    let micros = elapsed.as_micros().max(1);
    u64::try_from(u128::from(bytes) * 1_000_000 / micros).unwrap_or(u64::MAX)
}

fn render(rebuilt: &Rebuilt, look: Look) -> String {
    let Rebuilt { revision, digest, journal_bytes, database_bytes, elapsed_ms, bytes_per_second } = rebuilt;
    let mut facts = Facts::new();
    facts.add(
        "journal",
        &format!("{}, {} a second", text::bytes(*journal_bytes), text::bytes(*bytes_per_second)),
    );
    facts.add("took", &format!("{} ms", text::number(*elapsed_ms)));
    facts.add("database", &text::bytes(*database_bytes));
    facts.add("revision", &text::number(*revision));
    facts.add("digest", digest);
    format!("{} the database is built again\n\n{}", look.paint(Paint::Good, "✓"), facts.render(look))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rebuild_says_how_fast_it_was() {
        let rebuilt = Rebuilt {
            revision: 57,
            digest: "00ff".to_owned(),
            journal_bytes: 40_000_000,
            database_bytes: 50_000_000,
            elapsed_ms: 500,
            bytes_per_second: rate(40_000_000, Duration::from_millis(500)),
        };
        let shown = render(&rebuilt, Look::plain(80));
        assert!(shown.contains("40 MB, 80 MB a second") && shown.contains("took      500 ms"), "{shown}");
    }
}
