//! `doctor`: does the data directory hold what it should?

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use satchel_proto::v1::{GetStatusRequest, Problem};
use satchel_store::{CheckReport, OpenEvent, OpenOptions, Store};
use serde::Serialize;

use super::{
    Context,
    error::CliError,
    exit::Exit,
    json::admin::Problem as ProblemJson,
    link::{Link, Place},
    look::Look,
    status::render_problem,
    text,
};
use crate::{
    config::Config,
    connect::{ConnectError, connect},
    plugins::Plugins,
};

/// What was looked at, and what is wrong.
#[derive(Debug, Default)]
struct Findings {
    looked_at: Vec<String>,
    problems: Vec<Problem>,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Diagnosis<'a> {
    healthy: bool,
    checked: &'a [String],
    problems: Vec<ProblemJson<'a>>,
}

/// Checks everything that can be checked; a running daemon is asked, and keeps its store.
///
/// # Errors
/// When the check itself cannot be done.
pub(crate) async fn run(context: &mut Context) -> Result<Exit, CliError> {
    let mut findings = Findings::default();
    match context.place.clone() {
        Place::Local(config) => local(context, &config, &mut findings).await?,
        Place::Named(_) => daemon(context, &mut findings).await?,
    }
    if context.out.json {
        let problems = findings.problems.iter().map(ProblemJson::new).collect();
        let healthy = findings.problems.is_empty();
        context.out.json(&Diagnosis { healthy, checked: &findings.looked_at, problems })?;
    } else {
        context.out.print(&findings.render(context.out.look))?;
    }
    Ok(if findings.problems.is_empty() { Exit::Done } else { Exit::CheckFailed })
}

async fn local(context: &mut Context, config: &Config, findings: &mut Findings) -> Result<(), CliError> {
    if !config.data_dir.exists() {
        findings.looked_at.push(format!("{}: nothing is there yet", config.data_dir.display()));
        return Ok(());
    }
    findings.folder(&config.data_dir)?;
    match connect(&config.data_dir).await {
        Ok(_) => daemon(context, findings).await?,
        Err(ConnectError::NotRunning { .. }) => {
            let spinner = context.out.spinner("reading every byte of the store");
            let config = config.clone();
            let checked = tokio::task::spawn_blocking(move || {
                let mut found = Findings::default();
                let outcome = found.store(&config);
                found.importers(&config);
                outcome.map(|()| found)
            });
            let found = checked.await.map_err(|error| CliError::Step {
                what: "the check broke off".to_owned(),
                source: error.into(),
            });
            spinner.finish_and_clear();
            let found = found??;
            findings.looked_at.extend(found.looked_at);
            findings.problems.extend(found.problems);
        }
        Err(error) => {
            let problem = text::one_line(&crate::chain(&error));
            findings.problem("SOCKET", &problem, "stop the process that serves it, or remove the socket");
        }
    }
    Ok(())
}

async fn daemon(context: &mut Context, findings: &mut Findings) -> Result<(), CliError> {
    let place = context.place.clone();
    let link = Link::open(&place, &mut context.out).await?;
    let status = link.admin().get_status(GetStatusRequest {}).await?.into_inner();
    findings.looked_at.push(format!("the daemon, process {}: what it reports", status.pid));
    findings.problems.extend(status.problems);
    context.out.note("a daemon runs; stop it and run `satchel doctor` again to have every byte checked");
    link.close(&place).await
}

impl Findings {
    fn problem(&mut self, reason: &str, message: &str, fix: &str) {
        self.problems.push(Problem {
            reason: reason.to_owned(),
            message: message.to_owned(),
            fix: fix.to_owned(),
        });
    }

    fn folder(&mut self, dir: &Path) -> Result<(), CliError> {
        let found = fs::metadata(dir);
        let found =
            found.map_err(|source| CliError::File { action: "look at", path: dir.to_owned(), source })?;
        let mode = found.permissions().mode() & 0o777;
        #[expect(clippy::verbose_bit_mask, reason = "modes are read in octal")]
        let closed = mode & 0o077 == 0;
        if closed {
            self.looked_at.push(format!("{}: closed to other users", dir.display()));
        } else {
            let message = format!("{} is open to other users (mode {mode:03o})", dir.display());
            self.problem(
                "OPEN_TO_OTHERS",
                &message,
                &format!("chmod 700 {}", super::exports::quoted(&dir.to_string_lossy())),
            );
        }
        Ok(())
    }

    fn store(&mut self, config: &Config) -> Result<(), CliError> {
        let options = OpenOptions { cache_bytes: config.cache_bytes, ..OpenOptions::default() };
        let store = match Store::open(&config.data_dir, options, &mut |event| self.opened(&event)) {
            Ok(store) => store,
            Err(error) => {
                self.problem("STORE", &crate::chain(&error), "restore the data directory from a backup");
                return Ok(());
            }
        };
        let failed = |source| CliError::Store { dir: config.data_dir.clone(), source };
        let report = store.check(true, &mut |_| {}).map_err(|error| failed(error.into()))?;
        self.checked(&report);
        store.close().map_err(|error| failed(error.into()))
    }

    fn opened(&mut self, event: &OpenEvent) {
        match event {
            OpenEvent::Rebuilding { reason } => {
                self.looked_at.push(format!("the database: built again from the journal, because {reason}"));
            }
            OpenEvent::TailCut { bytes } => {
                let bytes = text::bytes(*bytes);
                self.looked_at.push(format!("the journal's end: {bytes} that were never confirmed were cut"));
            }
            // What is damaged, the check finds again; what goes well needs no line.
            _ => {}
        }
    }

    fn checked(&mut self, report: &CheckReport) {
        let frames = text::count(report.frames, "frame", "frames");
        self.looked_at.push(format!("the journal: {frames}"));
        self.looked_at.push(format!("the database: {}", text::count(report.records, "record", "records")));
        self.looked_at.push(format!("files of attachments: {}", text::number(report.blobs)));
        for damage in &report.damage {
            let fix = "what is left can be read: export it now, then restore a backup";
            self.problem("JOURNAL_DAMAGED", &format!("the journal is damaged: {damage}"), fix);
        }
        for problem in &report.engine_problems {
            let fix = "start the daemon: it builds the database again from the journal";
            self.problem("DATABASE_DIFFERS", problem, fix);
        }
        for problem in &report.blob_problems {
            self.problem("FILE_DAMAGED", problem, "import the export again that the file came with");
        }
    }

    fn importers(&mut self, config: &Config) {
        let cache = config.data_dir.join("cache");
        match Plugins::built_in(Some(cache)).all() {
            Ok(all) => self.looked_at.push(format!("importers: {} load", all.len())),
            Err(error) => self.problem("IMPORTERS", &crate::chain(&error), "install the program again"),
        }
    }

    fn render(&self, look: Look) -> String {
        let mark = look.paint(super::look::Paint::Good, "✓");
        let mut out = String::new();
        for line in &self.looked_at {
            text::append(&mut out, format_args!("{mark} {}\n", text::one_line(line)));
        }
        for problem in &self.problems {
            out.push_str(&render_problem(problem, look));
        }
        let verdict = match self.problems.len() as u64 {
            0 => "all is well".to_owned(),
            n => text::count(n, "problem", "problems"),
        };
        text::append(&mut out, format_args!("\n{verdict}\n"));
        out
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named_with_what_to_do() {
        let mut findings = Findings::default();
        let report = CheckReport {
            frames: 1_204,
            records: 12,
            engine_problems: vec!["memory \"m\" differs".to_owned()],
            ..CheckReport::default()
        };
        findings.checked(&report);
        let expected = "\
✓ the journal: 1,204 frames
✓ the database: 12 records
✓ files of attachments: 0
✗ memory \"m\" differs
  try: start the daemon: it builds the database again from the journal

1 problem
";
        assert_eq!(findings.render(Look::plain(80)), expected);
    }

    #[test]
    fn a_folder_that_others_may_read_is_a_problem() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut findings = Findings::default();
        findings.folder(dir.path()).unwrap();
        assert_eq!(findings.problems.len(), 1);
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let mut findings = Findings::default();
        findings.folder(dir.path()).unwrap();
        assert!(findings.problems.is_empty());
    }
}
