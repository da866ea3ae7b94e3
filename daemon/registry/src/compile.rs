//! Compiles a package in a child process that may use little memory and processor time, and stops it if it takes too
//! long.
//!
//! A compiler is a large program, and a component can be written to make it slow. The child is this program itself,
//! called as `PROGRAM plugins compile-child PACKAGE [CACHE-FOLDER CACHE-KEY]`. It compiles the package, lets it describe
//! itself, puts the code into the cache, and answers with one line of JSON.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Resource, Rlimit, setrlimit};
use satchel_host::{CodeCache, Host, HostOptions, PluginInfo};
use serde::{Deserialize, Serialize};

use crate::{
    files,
    package::{MAX_PACKAGE_BYTES, Package},
};

/// Memory of the child, in bytes. The largest toolchain that was measured (`StarlingMonkey`) needs 474 MB.
const MEMORY_BYTES: u64 = 1 << 30;
/// Processor time of the child. The largest toolchain that was measured needs 11 s on two processors.
const CPU_SECONDS: u64 = 120;
/// How long the child may take altogether.
const WALL_TIME: Duration = Duration::from_mins(5);
/// Interval between two looks at the child.
const POLL: Duration = Duration::from_millis(20);
/// Largest answer of a child, in bytes.
const MAX_ANSWER: u64 = 64 << 10;

/// What a component says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    pub name: String,
    pub version: String,
    pub platform: String,
    pub importer_version: String,
    pub formats: Vec<String>,
}

/// The reason why a package could not be compiled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The component is refused.
    #[error("{0}")]
    Refused(String),
    /// The child needed too much memory or time, or crashed.
    #[error(
        "compiling the importer was stopped: it {problem}, more than any real importer needs; do not install it, or ask \
         its author for a smaller one"
    )]
    Stopped { problem: String },
    /// The child cannot be started or does not answer.
    #[error("the importer cannot be compiled: {problem}; try again")]
    Child { problem: String },
    /// The caller cancelled.
    #[error("the installation was cancelled")]
    Cancelled,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Compiled(Description),
    Refused(String),
}

impl From<&PluginInfo> for Description {
    fn from(info: &PluginInfo) -> Self {
        let PluginInfo { name, version, platform, importer_version, formats } = info.clone();
        Self { name, version, platform, importer_version, formats }
    }
}

/// Compiles the package at `path` with `program` in a child process, until `stop` returns true.
///
/// # Errors
/// The component is refused, or the child was stopped.
pub(crate) fn in_child(
    program: &Path,
    path: &Path,
    cache: Option<&CodeCache>,
    stop: &dyn Fn() -> bool,
) -> Result<Description, CompileError> {
    let mut command = Command::new(program);
    command.args(["plugins", "compile-child"]).arg(path);
    if let Some(cache) = cache {
        command.arg(&cache.folder).arg(&cache.key_file);
    }
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let child =
        command.spawn().map_err(|error| problem(format!("{program:?} cannot be started: {error}")))?;
    let mut child = Running(child);
    let mut output = child.0.stdout.take().ok_or_else(|| problem("it has no output".to_owned()))?;
    let reader = thread::spawn(move || {
        let mut answer = Vec::new();
        (&mut output).take(MAX_ANSWER).read_to_end(&mut answer).map(|_| answer)
    });
    let started = Instant::now();
    let status = loop {
        let ended = child.0.try_wait().map_err(|error| problem(error.to_string()))?;
        if let Some(status) = ended {
            break status;
        }
        if stop() {
            return Err(CompileError::Cancelled);
        }
        if started.elapsed() > WALL_TIME {
            let problem = format!("took longer than {} minutes", WALL_TIME.as_secs() / 60);
            return Err(CompileError::Stopped { problem });
        }
        thread::sleep(POLL);
    };
    let answer = reader.join().map_err(|_| problem("its answer was lost".to_owned()))?;
    let answer = answer.map_err(|error| problem(error.to_string()))?;
    match serde_json::from_slice(&answer) {
        Ok(Answer::Compiled(description)) if status.success() => Ok(description),
        Ok(Answer::Refused(reason)) => Err(CompileError::Refused(reason)),
        _ => {
            let (memory, seconds) = (MEMORY_BYTES >> 20, CPU_SECONDS);
            let problem = format!(
                "ended with {status}, which happens when it needs more than {memory} MiB of memory or {seconds} s of \
                 processor time"
            );
            Err(CompileError::Stopped { problem })
        }
    }
}

/// A child that does not outlive its caller.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // A child that has ended already cannot be killed, which is as good.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn problem(problem: String) -> CompileError {
    CompileError::Child { problem }
}

/// The work of the child: limits itself, compiles the package at `path`, and returns the line to print and whether the
/// component was accepted.
pub fn child(path: &Path, cache: Option<(PathBuf, PathBuf)>) -> (String, bool) {
    let result = limit_self().and_then(|()| {
        let bytes = files::read_limited(path, MAX_PACKAGE_BYTES as u64).map_err(|error| error.to_string())?;
        let cache = cache.map(|(folder, key_file)| CodeCache { folder, key_file });
        let package = Package::read(bytes).map_err(|error| error.to_string())?;
        let host = Host::new(HostOptions { cache, ..HostOptions::default() });
        let plugin = host.and_then(|host| host.load(package.bytes()));
        plugin.map(|plugin| Description::from(plugin.info())).map_err(|error| satchel_source::chain(&error))
    });
    let accepted = result.is_ok();
    let answer = result.map_or_else(Answer::Refused, Answer::Compiled);
    (serde_json::to_string(&answer).unwrap_or_default(), accepted)
}

/// Limits what this process may use. `Data` counts the memory that is written to, not the address space that the
/// sandbox reserves.
fn limit_self() -> Result<(), String> {
    let limits = [(Resource::Data, MEMORY_BYTES), (Resource::Cpu, CPU_SECONDS), (Resource::Core, 0)];
    limits.into_iter().try_for_each(|(resource, most)| {
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(resource, limit).map_err(|error| format!("its limits cannot be set: {error}"))
    })
}
