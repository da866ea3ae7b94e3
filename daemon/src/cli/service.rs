//! `service`: lets the service manager of the system run the daemon.
//!
//! The files and commands for this are determined in `systemd` and `launchd`, which are pure; this module writes
//! and runs them.

mod call;
mod description;
mod launchd;
mod system;
mod systemd;

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

use serde::Serialize;

use self::{
    call::{Call, File},
    description::Description,
    system::{Processes, Runner, System, ours},
};
use super::{
    Environment,
    args::{Global, InstallArgs, Service},
    error::CliError,
    exit::Exit,
    facts::Facts,
    out::Out,
    text,
};

/// The first line of every file that we write.
const MARKER: &str = "# Written by `satchel service install`, which writes it anew.";

/// Runs the command.
///
/// # Errors
/// Fails for paths that a service cannot use, for files that we did not write, and if the file system refuses.
pub(super) fn run(
    command: &Service,
    global: &Global,
    environment: &Environment,
    out: &mut Out,
) -> Result<Exit, CliError> {
    let system = System::here(environment)?;
    let mut desk = Desk { system, runner: &mut Processes, out };
    match command {
        Service::Install(args) => {
            let description = Description::of(global, args, environment)?;
            desk.install(&description, args)
        }
        Service::Status => desk.status(),
        Service::Uninstall => desk.uninstall(),
    }
}

/// The system to work on, and the means to run commands and print.
struct Desk<'a> {
    system: System,
    runner: &'a mut dyn Runner,
    out: &'a mut Out,
}

/// What `install` and `uninstall` print as JSON.
#[derive(Debug, Default, Serialize)]
struct Report {
    written: Vec<PathBuf>,
    removed: Vec<PathBuf>,
    unchanged: Vec<PathBuf>,
    ran: Vec<String>,
    /// Commands left to run, because the service manager does not answer.
    to_run: Vec<String>,
    problem: Option<String>,
}

/// What `status` prints as JSON.
#[derive(Debug, Serialize)]
struct State {
    /// True if the files exist.
    installed: bool,
    files: Vec<PathBuf>,
    /// In the words of the service manager; null if it does not answer.
    enabled: Option<String>,
    running: Option<String>,
}

impl Desk<'_> {
    fn install(&mut self, description: &Description, args: &InstallArgs) -> Result<Exit, CliError> {
        let files = self.system.files(description)?;
        let mut report = Report::default();
        let mut stale = Vec::new();
        for file in &files {
            match found(&file.path)? {
                Some(text) if text == file.text => report.unchanged.push(file.path.clone()),
                Some(text) if !ours(&text) && !args.force => return Err(foreign(&file.path)),
                _ => stale.push(file),
            }
        }
        for file in stale {
            put(file)?;
            report.written.push(file.path.clone());
        }
        let calls = self.system.install(args.now, !report.written.is_empty(), &files);
        self.run(&calls, &mut report);
        let exit = self.tell(&report)?;
        if exit == Exit::Done {
            let next =
                if args.now { "" } else { "it starts at your next login; `--now` starts it at once; " };
            self.out.note(&format!("{next}{}", self.system.hint()));
        }
        Ok(exit)
    }

    fn uninstall(&mut self) -> Result<Exit, CliError> {
        let mut report = Report::default();
        let mut present = Vec::new();
        for file in self.named_files()? {
            match found(&file.path)? {
                Some(text) if ours(&text) => present.push(file.path),
                Some(_) => return Err(foreign(&file.path)),
                None => {}
            }
        }
        if present.is_empty() {
            return self.tell(&report);
        }
        let (before, after) = self.system.uninstall();
        self.run(&before, &mut report);
        for path in present {
            fs::remove_file(&path).map_err(|source| refused("remove", &path, source))?;
            report.removed.push(path);
        }
        self.run(&after, &mut report);
        self.tell(&report)
    }

    fn status(&mut self) -> Result<Exit, CliError> {
        let files = self.named_files()?;
        let all = files.len();
        let mut present = Vec::new();
        for file in files {
            if found(&file.path)?.is_some_and(|text| ours(&text)) {
                present.push(file.path);
            }
        }
        let (enabled, running) = self.system.state(self.runner);
        let state = State { installed: present.len() == all, files: present, enabled, running };
        if self.out.json {
            self.out.json(&state)?;
        } else {
            let text = render(&state, self.out);
            self.out.print(&text)?;
        }
        Ok(Exit::Done)
    }

    /// Returns the paths of the files; their contents do not matter here.
    fn named_files(&self) -> Result<Vec<File>, CliError> {
        let nobody = Description { executable: String::new(), words: Vec::new(), socket: String::new() };
        self.system.files(&nobody)
    }

    /// Runs the commands in order. If one fails that must succeed, the remaining commands are left to the person.
    fn run(&mut self, calls: &[Call], report: &mut Report) {
        for call in calls {
            if report.problem.is_some() {
                report.to_run.push(call.typed());
                continue;
            }
            let problem = match self.runner.run(call) {
                Ok(outcome) if outcome.success || !call.must => None,
                Ok(outcome) => Some(outcome.stderr),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    Some(format!("{} is not there", call.words[0]))
                }
                Err(error) => Some(error.to_string()),
            };
            match problem {
                None => report.ran.push(call.typed()),
                Some(problem) => {
                    report.to_run.push(call.typed());
                    report.problem = Some(problem);
                }
            }
        }
    }

    /// Prints exactly what was done, and what remains to be done.
    fn tell(&mut self, report: &Report) -> Result<Exit, CliError> {
        let exit = if report.problem.is_none() { Exit::Done } else { Exit::Failed };
        if self.out.json {
            self.out.json(report)?;
            return Ok(exit);
        }
        let Report { written, removed, unchanged, ran, to_run, problem } = report;
        let mut lines = Vec::new();
        for (word, paths) in [("wrote", written), ("removed", removed), ("unchanged", unchanged)] {
            lines.extend(paths.iter().map(|path| format!("{word} {}", path.display())));
        }
        lines.extend(ran.iter().map(|call| format!("ran {call}")));
        if lines.is_empty() && problem.is_none() {
            lines.push("no service is installed".to_owned());
        }
        if let Some(problem) = problem {
            lines.push(format!("the service manager cannot be asked: {problem}"));
            lines.extend(to_run.iter().map(|call| format!("run this yourself: {call}")));
        }
        for line in lines {
            self.out.print(&format!("{}\n", text::one_line(&line)))?;
        }
        Ok(exit)
    }
}

fn render(state: &State, out: &Out) -> String {
    let mut facts = Facts::new();
    let unknown = "unknown; the service manager does not answer";
    facts.add("installed", if state.installed { "yes" } else { "no; `satchel service install --now`" });
    for file in &state.files {
        facts.add("file", &file.display().to_string());
    }
    facts.add("starts at login", state.enabled.as_deref().unwrap_or(unknown));
    facts.add("running", state.running.as_deref().unwrap_or(unknown));
    facts.render(out.look)
}

/// Returns the content of the file at `path`, or `None` if there is none.
fn found(path: &Path) -> Result<Option<String>, CliError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(refused("read", path, source)),
    }
}

/// Writes a file atomically.
fn put(file: &File) -> Result<(), CliError> {
    let failed = |source| refused("write", &file.path, source);
    let folder = file.path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(failed)?;
    let mut fresh = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    fresh.write_all(file.text.as_bytes()).map_err(failed)?;
    fresh.persist(&file.path).map_err(|error| failed(error.error))?;
    Ok(())
}

fn foreign(path: &Path) -> CliError {
    CliError::Usage(format!(
        "{path:?} was not written by `satchel service install`; move it away, or replace it with `satchel service install --force`"
    ))
}

fn refused(action: &'static str, path: &Path, source: io::Error) -> CliError {
    CliError::File { action, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests;
