//! A reader's folder with the programs of the page, and the tools that the page names.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;
use tokio::{sync::mpsc, time::timeout};

use super::page;
use crate::interop::{missing, output_text, python_with};

/// Longest time without a line that a test waits for. Nothing takes a tenth of it.
const LINE_TIMEOUT: Duration = Duration::from_mins(2);
const PROGRAMS: [&str; 3] = ["local", "pair", "client"];

/// The folder, with the programs in one language.
pub(super) struct Workspace {
    folder: TempDir,
    interpreter: PathBuf,
    extension: &'static str,
}

impl Workspace {
    /// Prepares a folder for the Python programs; `None` if the libraries of the page are not installed.
    pub(super) fn python() -> Result<Option<Self>> {
        let Some(python) = python_with("grpc, grpc_tools, cryptography, OpenSSL")? else { return Ok(None) };
        let workspace = Self::new(python, "python", "py")?;
        fs::create_dir(workspace.path("stubs"))?;
        let lines = page::shell_lines("python")?;
        let [generate] = &lines[..] else { anyhow::bail!("one line should generate code: {lines:?}") };
        let words = generate.strip_prefix("python").context("a line for Python")?;
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(format!("\"$PYTHON\"{words}")).env("PYTHON", &workspace.interpreter);
        let output = shell.current_dir(workspace.folder.path()).output()?;
        ensure!(output.status.success(), "{}", output_text(&output));
        Ok(Some(workspace))
    }

    /// Prepares a folder for the Node programs; `None` if Node or the libraries of the page are not installed.
    pub(super) fn node() -> Result<Option<Self>> {
        if !Command::new("node").arg("--version").output().is_ok_and(|output| output.status.success()) {
            return missing("there is no Node");
        }
        let modules = std::env::var_os("SATCHEL_NODE_MODULES").map(PathBuf::from);
        let installed = modules.filter(|modules| {
            ["grpc-js", "proto-loader"].iter().all(|name| modules.join("@grpc").join(name).is_dir())
        });
        let Some(modules) = installed else {
            return missing("SATCHEL_NODE_MODULES names no folder with @grpc/grpc-js and @grpc/proto-loader");
        };
        let workspace = Self::new("node".into(), "js", "mjs")?;
        symlink(modules, workspace.path("node_modules"))?;
        Ok(Some(workspace))
    }

    fn new(interpreter: PathBuf, language: &str, extension: &'static str) -> Result<Self> {
        let workspace = Self { folder: tempfile::tempdir()?, interpreter, extension };
        symlink(Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto"), workspace.path("proto"))?;
        for name in PROGRAMS {
            let file = format!("{name}.{extension}");
            fs::write(workspace.path(&file), page::program(language, &file)?)?;
        }
        Ok(workspace)
    }

    /// Returns the path of a file in the folder.
    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// Prepares a program with these arguments.
    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.interpreter);
        command.arg(format!("{program}.{}", self.extension)).args(arguments);
        // Python would hold lines back as long as they do not fill a block.
        command.env("PYTHONPATH", "stubs").env("PYTHONUNBUFFERED", "1").current_dir(self.folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a program until it ends.
    pub(super) async fn run(&self, program: &str, arguments: &[&str]) -> Result<Output> {
        let mut command = self.command(program, arguments);
        Ok(tokio::task::spawn_blocking(move || command.output()).await??)
    }

    /// Starts a program, whose lines are read while it runs.
    pub(super) fn start(&self, program: &str, arguments: &[&str]) -> Result<RunningProgram> {
        let mut child = self.command(program, arguments).spawn()?;
        let stdout = BufReader::new(child.stdout.take().context("its output")?);
        let mut stderr = child.stderr.take().context("its errors")?;
        let (sender, lines) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(std::result::Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let errors = std::thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).map(|_| text)
        });
        Ok(RunningProgram { child, lines, errors: Some(errors) })
    }
}

/// A program that runs. It is killed when this is dropped.
pub(super) struct RunningProgram {
    child: Child,
    lines: mpsc::UnboundedReceiver<String>,
    errors: Option<std::thread::JoinHandle<std::io::Result<String>>>,
}

impl RunningProgram {
    /// Skips lines until one begins with `start`, and returns the rest of it.
    pub(super) async fn line(&mut self, start: &str) -> Result<String> {
        while let Some(line) = self.next().await? {
            if let Some(rest) = line.strip_prefix(start) {
                return Ok(rest.to_owned());
            }
        }
        let (_, errors) = self.outcome().await?;
        anyhow::bail!("the program ended before it printed {start:?}: {errors}")
    }

    /// Waits until the program has ended, and returns how, with what it wrote to stderr.
    pub(super) async fn ended(mut self) -> Result<(ExitStatus, String)> {
        while self.next().await?.is_some() {}
        self.outcome().await
    }

    async fn next(&mut self) -> Result<Option<String>> {
        timeout(LINE_TIMEOUT, self.lines.recv()).await.context("the program hangs")
    }

    /// Reads the outcome of a program that has closed its output.
    async fn outcome(&mut self) -> Result<(ExitStatus, String)> {
        let errors = self.errors.take().context("the outcome was read before")?;
        let errors = tokio::task::spawn_blocking(move || errors.join()).await?;
        let errors = errors.map_err(|_| anyhow::anyhow!("the reader of its errors panicked"))??;
        Ok((self.child.wait()?, errors))
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        // Both fail if the program has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
