//! `doctor`: checks whether the data directory holds what it should.

mod left;
mod refused;

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use satchel_core::{
    examine::{self, DATABASE_DIFFERS, Examined, Finding, JOURNAL_DAMAGED},
    leftovers,
    plugins::Plugins,
    reading, vault,
};
use satchel_host::CacheUse;
use satchel_proto::{
    signed::unsigned,
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

use self::left::Left;
use super::{
    Context,
    args::DoctorArgs,
    error::CliError,
    exit::Exit,
    json::admin::Problem as ProblemJson,
    link::{Link, Place},
    look::Look,
    operation::unexpected,
    rebuild,
    status::render_problem,
    steps::Steps,
    text,
};

/// What was checked, and what is wrong.
#[derive(Debug, Default)]
struct Findings {
    looked_at: Vec<String>,
    /// What was repaired.
    repaired: Vec<String>,
    problems: Vec<Problem>,
    left: Vec<Left>,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Diagnosis<'a> {
    healthy: bool,
    checked: &'a [String],
    repaired: &'a [String],
    problems: Vec<ProblemJson<'a>>,
    leftovers: &'a [Left],
}

/// Runs all possible checks. If a daemon is running, the daemon checks its store and keeps it open.
///
/// # Errors
/// Fails if the check itself cannot be run.
pub(crate) async fn run(context: &mut Context, args: DoctorArgs) -> Result<Exit, CliError> {
    let mut findings = Findings::default();
    match context.place.clone() {
        Place::Local(config) => local(context, &config, args, &mut findings).await?,
        Place::Named(_) => daemon(context, args, &mut findings).await?,
    }
    if context.out.json {
        let problems = findings.problems.iter().map(ProblemJson::new).collect();
        let healthy = findings.problems.is_empty();
        context.out.json(&Diagnosis {
            healthy,
            checked: &findings.looked_at,
            repaired: &findings.repaired,
            problems,
            leftovers: &findings.left,
        })?;
    } else {
        context.out.print(&findings.render(context.out.look))?;
    }
    Ok(if findings.problems.is_empty() { Exit::Done } else { Exit::CheckFailed })
}

async fn local(
    context: &mut Context,
    config: &Config,
    args: DoctorArgs,
    findings: &mut Findings,
) -> Result<(), CliError> {
    findings.folder(&config.data_dir)?;
    match connect(&config.data_dir).await {
        Ok(_) => {
            daemon(context, args, findings).await?;
            findings.data_key(&[], &config.data_dir);
            findings.leftovers(&config.data_dir, &[]);
        }
        Err(ConnectError::NotRunning { .. }) => {
            let spinner = context.out.spinner("reading every byte of the store");
            let config = config.clone();
            let checked = tokio::task::spawn_blocking(move || {
                let mut found = Findings::default();
                let outcome = found.store(&config, args.repair);
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
            findings.repaired.extend(found.repaired);
            findings.problems.extend(found.problems);
            findings.left.extend(found.left);
        }
        Err(error) => {
            let problem = text::one_line(&satchel_source::chain(&error));
            findings.problem("SOCKET", &problem, "stop the process that serves it, or remove the socket");
        }
    }
    Ok(())
}

/// Lets the daemon check its store while it continues to serve.
async fn daemon(context: &mut Context, args: DoctorArgs, findings: &mut Findings) -> Result<(), CliError> {
    if args.repair {
        return Err(CliError::Declined(
            "a daemon has the store; stop it, then run `satchel doctor --repair`".to_owned(),
        ));
    }
    let place = context.place.clone();
    let link = Link::open(&place, &mut context.out).await?;
    let status = link.admin().get_status(GetStatusRequest {}).await?.into_inner();
    findings.looked_at.push(format!("the daemon, process {}: what it reports", status.pid));
    findings.problems.extend(status.problems);
    let data_dir = status.data_dir;
    let operation = link.admin().verify_store(VerifyStoreRequest {}).await?.into_inner().operation;
    let mut steps = Steps::new(&context.out, "reading every byte of the store");
    let ended = link.result_of(operation, |operation| steps.show(&mut context.out, operation)).await;
    steps.end();
    let Reached::StoreCheck(check) = ended? else { return Err(unexpected()) };
    let StoreCheck { frames, records, files, problems, orphans } = check;
    findings.counted(unsigned(frames), unsigned(records), unsigned(files));
    findings.orphaned(unsigned(orphans), Path::new(&data_dir));
    // The check finds damage again that the daemon has known of since its start.
    findings.problems.retain(|known| known.reason != "STORE_CORRUPT" || problems.is_empty());
    findings.problems.extend(problems);
    if let Err(status) = link.exports().get_signing_keys(GetSigningKeysRequest {}).await {
        findings.problem("SIGNING_KEY", status.message(), "exports are not signed until then");
    }
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
                &format!("chmod 700 {}", text::quoted(&dir.to_string_lossy())),
            );
        }
        Ok(())
    }

    fn store(&mut self, config: &Config, repair: bool) -> Result<(), CliError> {
        self.unfinished(&config.data_dir);
        // A database that is set aside after this point is kept, so that the fault can be examined.
        let old = if repair { leftovers::find(&config.data_dir).unwrap_or_default() } else { Vec::new() };
        let damaged = vault::key_files(&config.data_dir);
        let options = match vault::open_options(&config.data_dir, &config.unlock, config.cache_bytes) {
            Ok(options) => options,
            Err(error) => {
                self.problem(
                    "KEY",
                    &satchel_source::chain(&error),
                    "give what opens the data, and run it again",
                );
                self.leftovers(&config.data_dir, &[]);
                return Ok(());
            }
        };
        let opened = reading::open(&config.data_dir, options.clone(), &mut |event| self.opened(&event));
        let mut store = match opened {
            Ok((store, only)) => {
                if let Some(why) = only {
                    let message = format!("what is stored is only read, as nothing can be written: {why}");
                    self.problem("READ_ONLY", &message, "give the disk room, or make it writable");
                }
                store
            }
            Err(error) => {
                self.problem("STORE", &satchel_source::chain(&error), &refused::remedy(&error));
                self.leftovers(&config.data_dir, &[]);
                return Ok(());
            }
        };
        let failed = |source: satchel_store::StoreError| CliError::Store {
            dir: config.data_dir.clone(),
            source: source.into(),
        };
        vault::confirm(&config.data_dir);
        self.data_key(&damaged, &config.data_dir);
        self.signing_key(&store, &config.data_dir);
        let mut examined = examine::examine(&store, &mut |_| {}).map_err(failed)?;
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
                    .push("the database differed from the journal, and was built again from it".to_owned()),
                Err(error) => {
                    self.problem("DATABASE", &satchel_source::chain(&error), &refused::remedy(&error));
                }
            }
            store = Store::open(&config.data_dir, options, &mut |_| {}).map_err(failed)?;
            examined = examine::examine(&store, &mut |_| {}).map_err(failed)?;
        }
        let orphans = std::mem::take(&mut examined.orphans);
        self.examined(examined);
        if repair && !orphans.is_empty() {
            // Remove them before the store is closed: after that, another process may refer to them.
            self.remove_orphans(&store, &orphans).map_err(failed)?;
        } else {
            self.orphaned(orphans.len() as u64, &config.data_dir);
        }
        store.close().map_err(failed)?;
        // If the journal is damaged, a database that was set aside may hold the missing data, so none is removed.
        self.leftovers(&config.data_dir, if damaged { &[] } else { &old });
        Ok(())
    }

    /// Reports unfinished attachments; they are removed when the store is opened.
    fn unfinished(&mut self, dir: &Path) {
        let unfinished = fs::read_dir(dir.join("blobs/tmp")).map_or(0, Iterator::count) as u64;
        if unfinished > 0 {
            let files = text::count(unfinished, "unfinished file", "unfinished files");
            self.repaired.push(format!("{files} of attachments that nothing refers to: removed"));
        }
    }

    fn opened(&mut self, event: &OpenEvent) {
        match event {
            OpenEvent::Rebuilding { reason } => {
                self.repaired.push(format!("the database: built again from the journal, because {reason}"));
            }
            OpenEvent::Replaying { from } => self.repaired.push(format!(
                "the database was behind the journal, as after a kill or with an older copy in its place: what came after \
                 revision {} was brought into it",
                from.get()
            )),
            OpenEvent::TailCut { bytes } => {
                let bytes = text::bytes(*bytes);
                self.repaired.push(format!("the journal's end: {bytes} that were never confirmed were cut"));
            }
            // The check reports damage again; successful steps need no line.
            _ => {}
        }
    }

    fn counted(&mut self, frames: u64, records: u64, files: u64) {
        self.looked_at.push(format!("the journal: {}", text::count(frames, "frame", "frames")));
        self.looked_at.push(format!("the database: {}", text::count(records, "record", "records")));
        self.looked_at.push(format!("files of attachments: {}", text::number(files)));
    }

    fn examined(&mut self, examined: Examined) {
        let Examined { frames, records, files, findings, orphans: _ } = examined;
        self.counted(frames, records, files);
        for Finding { reason, message, fix } in findings {
            self.problem(reason, &message, fix);
        }
    }

    fn importers(&mut self, config: &Config) {
        let plugins = Plugins::built_in(config.code_cache.clone());
        match plugins.all() {
            Ok(all) => self.looked_at.push(format!("importers: {} load", all.len())),
            Err(error) => {
                self.problem("IMPORTERS", &satchel_source::chain(&error), "install the program again");
            }
        }
        match plugins.cache() {
            CacheUse::On { folder, rejected } if rejected > 0 => {
                let entries = text::count(rejected as u64, "entry", "entries");
                let folder = folder.display();
                self.repaired.push(format!(
                    "compiled importers in {folder}: {entries} damaged or not written by you, and compiled anew"
                ));
            }
            CacheUse::On { folder, .. } => {
                self.looked_at.push(format!("compiled importers in {}", folder.display()));
            }
            CacheUse::Unusable { reason } => {
                self.looked_at.push(format!("importers are compiled at each start: {reason}"));
            }
            CacheUse::Off => {}
        }
    }

    /// Checks the key file, without which an encrypted data directory cannot be opened.
    fn data_key(&mut self, damaged: &[String], data_dir: &Path) {
        let left = vault::key_files(data_dir);
        self.repaired.extend(
            damaged
                .iter()
                .filter(|problem| !left.contains(problem))
                .map(|problem| format!("{problem}: written again from the other of the two")),
        );
        for problem in &left {
            let fix = "start satchel again: it is written anew from the other of the two, if satchel may write to `keys`";
            self.problem("KEY", problem, fix);
        }
        if left.is_empty() && matches!(vault::status(data_dir), Ok(Some(_))) {
            self.looked_at
                .push("keys/data-key.json, which opens the data: kept twice, both whole".to_owned());
        }
    }

    /// Checks the key that signs exports.
    fn signing_key(&mut self, store: &Store, data_dir: &Path) {
        match satchel_core::export::check_signer(store, data_dir) {
            Ok(true) => self.looked_at.push("keys/signing.json, which signs exports: whole".to_owned()),
            Ok(false) => {}
            Err(error) => {
                self.problem(
                    "SIGNING_KEY",
                    &satchel_source::chain(&error),
                    "exports are not signed until then",
                );
            }
        }
    }

    fn render(&self, look: Look) -> String {
        let mark = look.paint(super::look::Paint::Good, "✓");
        let mut out = String::new();
        for line in &self.looked_at {
            text::append(&mut out, format_args!("{mark} {}\n", text::one_line(line)));
        }
        for line in &self.repaired {
            let mark = look.paint(super::look::Paint::Good, "+");
            text::append(&mut out, format_args!("{mark} {}\n", text::one_line(line)));
        }
        for left in &self.left {
            let bytes = left.bytes.map(|bytes| format!(", {}", text::bytes(bytes))).unwrap_or_default();
            let (path, what, fix) = (text::one_line(&left.path), &left.what, text::one_line(&left.fix));
            text::append(&mut out, format_args!("· could go: {path}: {what}{bytes}\n  try: {fix}\n"));
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
pub(super) mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named_with_what_to_do() {
        let mut findings = Findings::default();
        let finding =
            Finding { reason: DATABASE_DIFFERS, message: "memory \"m\" differs".to_owned(), fix: "run it" };
        let findings_of = vec![finding];
        findings.examined(Examined {
            frames: 1_204,
            records: 12,
            findings: findings_of,
            ..Examined::default()
        });
        findings.repaired.push("the end was cut".to_owned());
        findings.orphaned(2, Path::new("/data"));
        let expected = "\
✓ the journal: 1,204 frames
✓ the database: 12 records
✓ files of attachments: 0
+ the end was cut
· could go: /data/blobs: 2 files of attachments that no message refers to, as an import leaves them that was killed
  try: satchel doctor --repair
✗ memory \"m\" differs
  try: run it

1 problem
";
        assert_eq!(findings.render(Look::plain(80)), expected);
    }

    pub(super) fn looked(config: &Config, repair: bool) -> Findings {
        let mut findings = Findings::default();
        findings.store(config, repair).unwrap();
        findings
    }

    #[test]
    fn a_database_that_differs_is_built_again_when_that_is_asked_for() {
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
        store.spoil().unwrap();
        store.close().unwrap();
        for _ in 0..2 {
            let found = looked(&config, false);
            assert!(found.repaired.is_empty() && !found.problems.is_empty(), "{found:?}");
            assert!(found.problems.iter().all(|problem| problem.reason == DATABASE_DIFFERS), "{found:?}");
            assert!(found.problems[0].fix.contains("doctor --repair"), "{found:?}");
        }
        let mended = looked(&config, true);
        assert!(mended.problems.is_empty() && mended.repaired.len() == 1, "{mended:?}");
        assert!(mended.repaired[0].contains("differed from the journal"), "{mended:?}");
        // The faulty database is kept for examination until the next repair.
        assert!(mended.left.len() == 1 && mended.left[0].path.contains("db.broken-"), "{mended:?}");
        let well = looked(&config, true);
        assert!(well.problems.is_empty() && well.left.is_empty(), "{well:?}");
        assert!(well.repaired.len() == 1 && well.repaired[0].contains("db.broken-"), "{well:?}");
        let store = Store::open(&config.data_dir, OpenOptions::default(), &mut |_| {}).unwrap();
        assert_eq!(store.memory("m", None).unwrap().unwrap().memory.content, text);
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
