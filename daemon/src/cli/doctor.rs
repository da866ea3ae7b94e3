//! `doctor`: checks whether the data directory holds what it should.

mod importers;
mod leftovers;
mod open_errors;

use std::{error::Error, fs, os::unix::fs::PermissionsExt, path::Path};

use satchel_core::{
    integrity::{self, DATABASE_DIFFERS, IntegrityFinding, IntegrityReport, JOURNAL_DAMAGED},
    open_store, residue, vault,
};
use satchel_proto::{
    integers::unsigned,
    v1::{
        GetSigningKeysRequest, GetStatusRequest, Problem, StoreCheck, VerifyStoreRequest,
        operation::Result as Reached,
    },
};
use satchel_server::{
    config::Config,
    connect::{ConnectError, connect},
};
use satchel_store::{OpenEvent, OpenOptions, Store};
use serde::Serialize;

use self::leftovers::ResidueReport;
use super::{
    Context,
    args::DoctorArgs,
    byte_progress::ByteProgress,
    client::{DaemonClient, DaemonLocation},
    error::CliError,
    exit::Exit,
    json::admin::Problem as ProblemJson,
    operation::unexpected_result,
    rebuild,
    status::render_problem,
    style::TerminalStyle,
    text,
};

/// What to do if the key that signs exports cannot be used.
const SIGNING_KEY_FIX: &str =
    "restore keys/signing.json from a backup, or run `satchel keys rotate --new-identity`";

/// What was checked, and what is wrong.
#[derive(Debug, Default)]
struct DoctorReport {
    checked: Vec<String>,
    /// What was repaired.
    repaired: Vec<String>,
    problems: Vec<Problem>,
    residue: Vec<ResidueReport>,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Diagnosis<'a> {
    healthy: bool,
    checked: &'a [String],
    repaired: &'a [String],
    problems: Vec<ProblemJson<'a>>,
    leftovers: &'a [ResidueReport],
}

/// Runs all possible checks. If a daemon is running, the daemon checks its store and keeps it open.
///
/// # Errors
/// Fails if the check itself cannot be run.
pub(crate) async fn run(context: &mut Context, args: DoctorArgs) -> Result<Exit, CliError> {
    let mut findings = DoctorReport::default();
    match context.location.clone() {
        DaemonLocation::DataDir(config) => check_local(context, &config, args, &mut findings).await?,
        DaemonLocation::Socket(_) | DaemonLocation::Paired(_) => {
            check_through_daemon(context, args, &mut findings).await?;
        }
    }
    if context.out.json {
        let problems = findings.problems.iter().map(ProblemJson::new).collect();
        let healthy = findings.problems.is_empty();
        context.out.json(&Diagnosis {
            healthy,
            checked: &findings.checked,
            repaired: &findings.repaired,
            problems,
            leftovers: &findings.residue,
        })?;
    } else {
        context.out.print(&findings.render(context.out.style))?;
    }
    Ok(if findings.problems.is_empty() { Exit::Done } else { Exit::CheckFailed })
}

async fn check_local(
    context: &mut Context,
    config: &Config,
    args: DoctorArgs,
    findings: &mut DoctorReport,
) -> Result<(), CliError> {
    findings.check_folder(&config.data_dir)?;
    match connect(&config.data_dir).await {
        Ok(_) => {
            check_through_daemon(context, args, findings).await?;
            findings.check_data_key(&[], &config.data_dir);
            findings.check_installed_importers(&config.data_dir);
            findings.handle_leftovers(&config.data_dir, &[]);
        }
        Err(ConnectError::NotRunning { .. }) => {
            let spinner = context.out.spinner("checking the store");
            let config = config.clone();
            let checked = tokio::task::spawn_blocking(move || {
                let mut found = DoctorReport::default();
                let outcome = found.check_store(&config, args.repair);
                found.check_built_in_importers(&config);
                found.check_installed_importers(&config.data_dir);
                outcome.map(|()| found)
            });
            let found = checked.await.map_err(|error| CliError::step("the check was aborted", error));
            spinner.finish_and_clear();
            let found = found??;
            findings.checked.extend(found.checked);
            findings.repaired.extend(found.repaired);
            findings.problems.extend(found.problems);
            findings.residue.extend(found.residue);
        }
        Err(error) => {
            let problem = text::one_line(&satchel_source::chain(&error));
            findings.add_problem("SOCKET", &problem, "stop the process that serves it, or remove the socket");
        }
    }
    Ok(())
}

/// Lets the daemon check its store while it continues to serve.
async fn check_through_daemon(
    context: &mut Context,
    args: DoctorArgs,
    findings: &mut DoctorReport,
) -> Result<(), CliError> {
    if args.repair {
        return Err(CliError::Declined(
            "a daemon is running; stop it, then run `satchel doctor --repair`".to_owned(),
        ));
    }
    let location = context.location.clone();
    let client = DaemonClient::open(&location, &mut context.out).await?;
    let status = client.admin().get_status(GetStatusRequest {}).await?.into_inner();
    findings.checked.push(format!("the status of the daemon (process {})", status.pid));
    findings.problems.extend(status.problems);
    let data_dir = status.data_dir;
    let operation = client.start(client.admin().verify_store(VerifyStoreRequest {})).await?.operation;
    let mut progress = ByteProgress::new(&context.out, "checking the store");
    let ended =
        client.result_of(operation, |operation| progress.show_operation(&mut context.out, operation)).await;
    progress.finish();
    let Reached::StoreCheck(check) = ended? else { return Err(unexpected_result()) };
    let StoreCheck { frames, records, files, problems, orphans } = check;
    findings.add_counts(unsigned(frames), unsigned(records), unsigned(files));
    findings.add_orphans(unsigned(orphans), Path::new(&data_dir));
    // The check finds damage again that the daemon has known of since its start.
    findings.problems.retain(|known| known.reason != "STORE_CORRUPT" || problems.is_empty());
    findings.problems.extend(problems);
    if let Err(status) = client.exports().get_signing_keys(GetSigningKeysRequest {}).await {
        findings.add_problem("SIGNING_KEY", status.message(), SIGNING_KEY_FIX);
    }
    client.close(&location).await
}

impl DoctorReport {
    fn add_problem(&mut self, reason: &str, message: &str, fix: &str) {
        self.problems.push(Problem {
            reason: reason.to_owned(),
            message: message.to_owned(),
            fix: fix.to_owned(),
        });
    }

    fn add_error(&mut self, reason: &str, error: &dyn Error, fix: &str) {
        self.add_problem(reason, &satchel_source::chain(error), fix);
    }

    fn check_folder(&mut self, dir: &Path) -> Result<(), CliError> {
        let found = fs::metadata(dir);
        let found = found.map_err(CliError::file("read", dir))?;
        let mode = found.permissions().mode() & 0o777;
        #[expect(clippy::verbose_bit_mask, reason = "modes are read in octal")]
        let closed = mode & 0o077 == 0;
        if closed {
            self.checked.push(format!("{}: not accessible to other users", dir.display()));
        } else {
            let message = format!("{} is accessible to other users (mode {mode:03o})", dir.display());
            self.add_problem(
                "OPEN_TO_OTHERS",
                &message,
                &format!("chmod 700 {}", text::shell_quoted(&dir.to_string_lossy())),
            );
        }
        Ok(())
    }

    fn check_store(&mut self, config: &Config, repair: bool) -> Result<(), CliError> {
        self.report_unfinished(&config.data_dir);
        // A database that is set aside after this point is kept, so that the fault can be examined.
        let old = if repair { residue::find(&config.data_dir).unwrap_or_default() } else { Vec::new() };
        let damaged = vault::check_key_files(&config.data_dir);
        let options = match vault::open_options(&config.data_dir, &config.unlock, config.cache_bytes) {
            Ok(options) => options,
            Err(error) => {
                self.add_error("KEY", &error, "provide the key or passphrase, and run it again");
                self.handle_leftovers(&config.data_dir, &[]);
                return Ok(());
            }
        };
        let opened = open_store::open_or_read_only(&config.data_dir, options.clone(), &mut |event| {
            self.record_event(&event);
        });
        let mut store = match opened {
            Ok((store, only)) => {
                if let Some(why) = only {
                    let message = format!("the store is read-only, because nothing can be written: {why}");
                    self.add_problem(
                        "READ_ONLY",
                        &message,
                        "free some disk space, or make the disk writable",
                    );
                }
                store
            }
            Err(error) => {
                self.add_error("STORE", &error, &open_errors::remedy(&error));
                self.handle_leftovers(&config.data_dir, &[]);
                return Ok(());
            }
        };
        let failed = |source: satchel_store::StoreError| CliError::Store {
            dir: config.data_dir.clone(),
            source: source.into(),
        };
        vault::confirm(&config.data_dir);
        self.check_data_key(&damaged, &config.data_dir);
        self.check_signing_key(&store, &config.data_dir);
        let mut examined = integrity::check(&store, &mut |_| {}).map_err(failed)?;
        let found = |reason: &str| examined.findings.iter().any(|finding| finding.reason == reason);
        // A database built from a damaged journal may hold less than the current one; `satchel rebuild` reports
        // what would be missing.
        let damaged = found(JOURNAL_DAMAGED);
        if repair && !damaged && found(DATABASE_DIFFERS) {
            store.close().map_err(failed)?;
            let rebuilding = OpenOptions { rebuild: true, ..options.clone() };
            match rebuild::rebuild(&config.data_dir, rebuilding, &mut |_| {}) {
                Ok(_) => self
                    .repaired
                    .push("the database differed from the journal, and was rebuilt from it".to_owned()),
                Err(error) => {
                    self.add_error("DATABASE", &error, &open_errors::remedy(&error));
                }
            }
            store = Store::open(&config.data_dir, options, &mut |_| {}).map_err(failed)?;
            examined = integrity::check(&store, &mut |_| {}).map_err(failed)?;
        }
        let orphans = std::mem::take(&mut examined.orphans);
        self.add_integrity(examined);
        if repair && !orphans.is_empty() {
            // Remove them before the store is closed: after that, another process may refer to them.
            self.remove_orphans(&store, &orphans).map_err(failed)?;
        } else {
            self.add_orphans(orphans.len() as u64, &config.data_dir);
        }
        store.close().map_err(failed)?;
        // If the journal is damaged, a database that was set aside may hold the missing data, so none is removed.
        self.handle_leftovers(&config.data_dir, if damaged { &[] } else { &old });
        Ok(())
    }

    /// Reports unfinished attachments; they are removed when the store is opened.
    fn report_unfinished(&mut self, dir: &Path) {
        let unfinished = fs::read_dir(dir.join("blobs/tmp")).map_or(0, Iterator::count) as u64;
        if unfinished > 0 {
            let files = text::count(unfinished, "unfinished file", "unfinished files");
            self.repaired.push(format!("{files} of attachments: removed"));
        }
    }

    fn record_event(&mut self, event: &OpenEvent) {
        match event {
            OpenEvent::Rebuilding { reason } => {
                self.repaired.push(format!("the database: rebuilt from the journal, because {reason}"));
            }
            OpenEvent::Replaying { from } => self.repaired.push(format!(
                "the database was behind the journal, as after a crash or if an older copy was restored: replayed the journal from \
                 revision {}",
                from.get()
            )),
            OpenEvent::TailCut { bytes } => {
                let bytes = text::bytes(*bytes);
                self.repaired.push(format!("the end of the journal: removed {bytes} that were never acknowledged"));
            }
            // The check reports damage again; successful steps need no line.
            _ => {}
        }
    }

    fn add_counts(&mut self, frames: u64, records: u64, files: u64) {
        self.checked.push(format!("the journal: {}", text::count(frames, "frame", "frames")));
        self.checked.push(format!("the database: {}", text::count(records, "record", "records")));
        self.checked.push(format!("attachments: {}", text::count(files, "file", "files")));
    }

    fn add_integrity(&mut self, examined: IntegrityReport) {
        let IntegrityReport { frames, records, files, findings, orphans: _ } = examined;
        self.add_counts(frames, records, files);
        for IntegrityFinding { reason, message, fix } in findings {
            self.add_problem(reason, &message, fix);
        }
    }

    /// Checks the key file, without which an encrypted data directory cannot be opened.
    fn check_data_key(&mut self, damaged: &[String], data_dir: &Path) {
        let left = vault::check_key_files(data_dir);
        self.repaired.extend(
            damaged
                .iter()
                .filter(|problem| !left.contains(problem))
                .map(|problem| format!("{problem}: restored from the other copy")),
        );
        for problem in &left {
            let fix = "make the folder `keys` writable, and start satchel again: it restores the file from the other copy";
            self.add_problem("KEY", problem, fix);
        }
        if left.is_empty() && matches!(vault::status(data_dir), Ok(Some(_))) {
            self.checked
                .push("keys/data-key.json, which unlocks the data: both copies are intact".to_owned());
        }
    }

    /// Checks the key that signs exports.
    fn check_signing_key(&mut self, store: &Store, data_dir: &Path) {
        match satchel_core::export::check_signer(store, data_dir) {
            Ok(true) => self.checked.push("keys/signing.json, which signs exports: intact".to_owned()),
            Ok(false) => {}
            Err(error) => {
                self.add_error("SIGNING_KEY", &error, SIGNING_KEY_FIX);
            }
        }
    }

    fn render(&self, style: TerminalStyle) -> String {
        let mark = style.paint(super::style::Paint::Good, "✓");
        let mut out = String::new();
        for line in &self.checked {
            text::append(&mut out, format_args!("{mark} {}\n", text::one_line(line)));
        }
        for line in &self.repaired {
            let mark = style.paint(super::style::Paint::Good, "+");
            text::append(&mut out, format_args!("{mark} {}\n", text::one_line(line)));
        }
        for left in &self.residue {
            let bytes = left.bytes.map(|bytes| format!(", {}", text::bytes(bytes))).unwrap_or_default();
            let (path, what, fix) = (text::one_line(&left.path), &left.what, text::one_line(&left.fix));
            text::append(&mut out, format_args!("· leftover: {path}: {what}{bytes}\n  try: {fix}\n"));
        }
        for problem in &self.problems {
            out.push_str(&render_problem(problem, style));
        }
        let verdict = match self.problems.len() as u64 {
            0 => "no problems found".to_owned(),
            n => text::count(n, "problem", "problems"),
        };
        text::append(&mut out, format_args!("\n{verdict}\n"));
        out
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
pub(super) mod tests {
    use super::*;

    #[test]
    fn problems_are_shown_with_a_fix() {
        let mut findings = DoctorReport::default();
        let finding = IntegrityFinding {
            reason: DATABASE_DIFFERS,
            message: "memory \"m\" differs".to_owned(),
            fix: "run it",
        };
        let findings_of = vec![finding];
        findings.add_integrity(IntegrityReport {
            frames: 1_204,
            records: 12,
            findings: findings_of,
            ..IntegrityReport::default()
        });
        findings.repaired.push("the end was cut".to_owned());
        findings.add_orphans(2, Path::new("/data"));
        let expected = "\
✓ the journal: 1,204 frames
✓ the database: 12 records
✓ attachments: 0 files
+ the end was cut
· leftover: /data/blobs: 2 attachment files that no message refers to, left behind by an interrupted import
  try: satchel doctor --repair
✗ memory \"m\" differs
  try: run it

1 problem
";
        assert_eq!(findings.render(TerminalStyle::plain(80)), expected);
    }

    pub(super) fn diagnose(config: &Config, repair: bool) -> DoctorReport {
        let mut findings = DoctorReport::default();
        findings.check_store(config, repair).unwrap();
        findings
    }

    #[test]
    fn a_database_that_differs_is_rebuilt_only_with_repair() {
        let home = tempfile::tempdir().unwrap();
        let config = Config::new(home.path().join("data"), home.path().to_owned());
        let store = Store::open(&config.data_dir, OpenOptions::default(), &mut |_| {}).unwrap();
        let text = "Paula likes tea";
        let memory = serde_json::json!({
            "id": "m", "type": "fact", "status": "active", "content": text,
            "content_hash": satchel_pam::hash::ContentHash::of(text).to_string(),
            "temporal": {"created_at": "2026-01-02T03:04:05Z"}, "provenance": {"platform": "chatgpt"},
        });
        let change = satchel_store::Change::Memory(serde_json::from_value(memory).unwrap());
        store.commit(satchel_store::Batch { changes: vec![change], ..Default::default() }).unwrap();
        store.remove_first_memory().unwrap();
        store.close().unwrap();
        for _ in 0..2 {
            let found = diagnose(&config, false);
            assert!(found.repaired.is_empty() && !found.problems.is_empty(), "{found:?}");
            assert!(found.problems.iter().all(|problem| problem.reason == DATABASE_DIFFERS), "{found:?}");
            assert!(found.problems[0].fix.contains("doctor --repair"), "{found:?}");
        }
        let repaired = diagnose(&config, true);
        assert!(repaired.problems.is_empty() && repaired.repaired.len() == 1, "{repaired:?}");
        assert!(repaired.repaired[0].contains("differed from the journal"), "{repaired:?}");
        // The faulty database is kept for examination until the next repair.
        assert!(
            repaired.residue.len() == 1 && repaired.residue[0].path.contains("db.broken-"),
            "{repaired:?}"
        );
        let again = diagnose(&config, true);
        assert!(again.problems.is_empty() && again.residue.is_empty(), "{again:?}");
        assert!(again.repaired.len() == 1 && again.repaired[0].contains("db.broken-"), "{again:?}");
        let store = Store::open(&config.data_dir, OpenOptions::default(), &mut |_| {}).unwrap();
        assert_eq!(store.memory("m", None).unwrap().unwrap().memory.content, text);
    }

    #[test]
    fn a_folder_accessible_to_others_is_a_problem() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut findings = DoctorReport::default();
        findings.check_folder(dir.path()).unwrap();
        assert_eq!(findings.problems.len(), 1);
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let mut findings = DoctorReport::default();
        findings.check_folder(dir.path()).unwrap();
        assert!(findings.problems.is_empty());
    }
}
