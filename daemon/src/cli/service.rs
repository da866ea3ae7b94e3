//! `service`: lets the service manager of the system run the daemon.
//!
//! The files and commands for this are determined in `systemd` and `launchd`, which are pure; this module writes
//! and runs them.

mod launchd;
mod spec;
mod system;
mod systemd;

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

use serde::Serialize;

use self::{
    spec::{ManagerCommand, ServiceFile, ServiceSpec},
    system::{CommandRunner, ProcessRunner, ServiceManager, written_by_us},
};
use super::{
    Environment,
    args::{Global, InstallArgs, Service},
    error::CliError,
    exit::Exit,
    output::Output,
    properties::Properties,
    text,
};

/// The first line of every file that we write.
const GENERATED_MARKER: &str = "# Written by `satchel service install`, which writes it anew.";

/// Runs the command.
///
/// # Errors
/// Fails for paths that a service cannot use, for files that we did not write, and if the file system refuses.
pub(super) fn run(
    command: &Service,
    global: &Global,
    environment: &Environment,
    out: &mut Output,
) -> Result<Exit, CliError> {
    let system = ServiceManager::detect(environment)?;
    let mut commands = ServiceCommands { system, runner: &mut ProcessRunner, out };
    match command {
        Service::Install(args) => {
            let spec = ServiceSpec::from_args(global, args, environment)?;
            commands.install(&spec, args)
        }
        Service::Status => commands.status(),
        Service::Uninstall => commands.uninstall(),
    }
}

/// The system to work on, and the means to run commands and print.
struct ServiceCommands<'a> {
    system: ServiceManager,
    runner: &'a mut dyn CommandRunner,
    out: &'a mut Output,
}

/// What `install` and `uninstall` print as JSON.
#[derive(Debug, Default, Serialize)]
struct ServiceReport {
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
struct ServiceState {
    /// True if the files exist.
    installed: bool,
    files: Vec<PathBuf>,
    /// In the words of the service manager; null if it does not answer.
    enabled: Option<String>,
    running: Option<String>,
}

impl ServiceCommands<'_> {
    fn install(&mut self, spec: &ServiceSpec, args: &InstallArgs) -> Result<Exit, CliError> {
        let files = self.system.files(spec)?;
        let mut report = ServiceReport::default();
        let mut stale = Vec::new();
        for file in &files {
            match read_if_exists(&file.path)? {
                Some(text) if text == file.text => report.unchanged.push(file.path.clone()),
                Some(text) if !written_by_us(&text) && !args.force => return Err(not_ours(&file.path)),
                _ => stale.push(file),
            }
        }
        for file in stale {
            write_atomically(file)?;
            report.written.push(file.path.clone());
        }
        let calls = self.system.install(args.now, !report.written.is_empty(), &files);
        self.run(&calls, &mut report);
        let exit = self.print_report(&report)?;
        if exit == Exit::Done {
            let next =
                if args.now { "" } else { "it starts at your next login (`--now` starts it immediately); " };
            self.out.note(&format!("{next}{}", self.system.hint()));
        }
        Ok(exit)
    }

    fn uninstall(&mut self) -> Result<Exit, CliError> {
        let mut report = ServiceReport::default();
        let mut present = Vec::new();
        for file in self.file_paths()? {
            match read_if_exists(&file.path)? {
                Some(text) if written_by_us(&text) => present.push(file.path),
                Some(_) => return Err(not_ours(&file.path)),
                None => {}
            }
        }
        if present.is_empty() {
            return self.print_report(&report);
        }
        let (before, after) = self.system.uninstall();
        self.run(&before, &mut report);
        for path in present {
            fs::remove_file(&path).map_err(CliError::file("remove", &path))?;
            report.removed.push(path);
        }
        self.run(&after, &mut report);
        self.print_report(&report)
    }

    fn status(&mut self) -> Result<Exit, CliError> {
        let files = self.file_paths()?;
        let all = files.len();
        let mut present = Vec::new();
        for file in files {
            if read_if_exists(&file.path)?.is_some_and(|text| written_by_us(&text)) {
                present.push(file.path);
            }
        }
        let (enabled, running) = self.system.state(self.runner);
        let state = ServiceState { installed: present.len() == all, files: present, enabled, running };
        if self.out.json {
            self.out.json(&state)?;
        } else {
            let text = render(&state, self.out);
            self.out.print(&text)?;
        }
        Ok(Exit::Done)
    }

    /// Returns the paths of the files; their contents do not matter here.
    fn file_paths(&self) -> Result<Vec<ServiceFile>, CliError> {
        let empty = ServiceSpec { executable: String::new(), words: Vec::new(), socket: String::new() };
        self.system.files(&empty)
    }

    /// Runs the commands in order. If one fails that must succeed, the remaining commands are left to the person.
    fn run(&mut self, calls: &[ManagerCommand], report: &mut ServiceReport) {
        for call in calls {
            if report.problem.is_some() {
                report.to_run.push(call.shell_line());
                continue;
            }
            let problem = match self.runner.run(call) {
                Ok(outcome) if outcome.success || !call.required => None,
                Ok(outcome) => Some(outcome.stderr),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    Some(format!("{} was not found", call.words[0]))
                }
                Err(error) => Some(error.to_string()),
            };
            match problem {
                None => report.ran.push(call.shell_line()),
                Some(problem) => {
                    report.to_run.push(call.shell_line());
                    report.problem = Some(problem);
                }
            }
        }
    }

    /// Prints exactly what was done, and what remains to be done.
    fn print_report(&mut self, report: &ServiceReport) -> Result<Exit, CliError> {
        let exit = if report.problem.is_none() { Exit::Done } else { Exit::Failed };
        if self.out.json {
            self.out.json(report)?;
            return Ok(exit);
        }
        let ServiceReport { written, removed, unchanged, ran, to_run, problem } = report;
        let mut lines = Vec::new();
        for (word, paths) in [("wrote", written), ("removed", removed), ("unchanged", unchanged)] {
            lines.extend(paths.iter().map(|path| format!("{word} {}", path.display())));
        }
        lines.extend(ran.iter().map(|call| format!("ran {call}")));
        if lines.is_empty() && problem.is_none() {
            lines.push("the service is not installed".to_owned());
        }
        if let Some(problem) = problem {
            lines.push(format!("cannot control the service manager: {problem}"));
            lines.extend(to_run.iter().map(|call| format!("run this manually: {call}")));
        }
        for line in lines {
            self.out.print(&format!("{}\n", text::one_line(&line)))?;
        }
        Ok(exit)
    }
}

fn render(state: &ServiceState, out: &Output) -> String {
    let mut properties = Properties::new();
    let unknown = "unknown; the service manager does not answer";
    properties.add(
        "installed",
        if state.installed { "yes" } else { "no; install it with `satchel service install --now`" },
    );
    for file in &state.files {
        properties.add("file", &file.display().to_string());
    }
    properties.add("starts at login", state.enabled.as_deref().unwrap_or(unknown));
    properties.add("running", state.running.as_deref().unwrap_or(unknown));
    properties.render(out.style)
}

/// Returns the content of the file at `path`, or `None` if there is none.
fn read_if_exists(path: &Path) -> Result<Option<String>, CliError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CliError::file("read", path)(error)),
    }
}

/// Writes a file atomically.
fn write_atomically(file: &ServiceFile) -> Result<(), CliError> {
    let failed = CliError::file("write", &file.path);
    let folder = file.path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(&failed)?;
    let mut fresh = tempfile::NamedTempFile::new_in(folder).map_err(&failed)?;
    fresh.write_all(file.text.as_bytes()).map_err(&failed)?;
    fresh.persist(&file.path).map_err(|error| failed(error.error))?;
    Ok(())
}

fn not_ours(path: &Path) -> CliError {
    CliError::Usage(format!(
        "{path:?} was not written by `satchel service install`; move it away, or overwrite it with `satchel service install --force`"
    ))
}

#[cfg(test)]
mod tests;
