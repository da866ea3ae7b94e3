//! Child processes, their processor time and their private memory.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};

/// Interval at which private memory is sampled.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);
/// How long a daemon may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval at which its socket is looked for: a fraction of the time that a start takes.
const START_POLL: Duration = Duration::from_millis(1);
/// The unit of processor time in `/proc`: on every machine, Linux reports 100 of them per second to programs.
const TICK: Duration = Duration::from_millis(10);

/// The cost of one run of a program.
pub(crate) struct RunCost {
    /// Wall time in seconds.
    pub(crate) seconds: f64,
    /// Highest `RssAnon` that was sampled, in MiB.
    pub(crate) private_mib: u64,
    /// Standard output.
    pub(crate) output: Vec<u8>,
}

/// Returns the program that was built together with this benchmark, or the one named by `SATCHEL`.
pub(crate) fn satchel_program() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os("SATCHEL") {
        return Ok(named.into());
    }
    let here = std::env::current_exe()?;
    let folder = here.parent().and_then(|deps| deps.parent()).context("no target folder")?;
    let program = folder.join("satchel");
    ensure!(program.exists(), "build the program first: cargo build --release -p satchel-daemon");
    Ok(program)
}

/// Returns the program of the official SDK, if it is installed.
pub(crate) fn pam_program() -> Option<PathBuf> {
    let named = std::env::var_os("PAM").map_or_else(|| PathBuf::from("pam"), PathBuf::from);
    let works = Command::new(&named).arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status();
    works.is_ok_and(|status| status.success()).then_some(named)
}

/// Runs a program until it exits.
pub(crate) fn run<S: AsRef<OsStr>>(program: &PathBuf, arguments: &[S]) -> Result<RunCost> {
    run_with(program, arguments, &[])
}

/// Like [`run`], with additional environment variables.
pub(crate) fn run_with<S: AsRef<OsStr>>(
    program: &PathBuf,
    arguments: &[S],
    variables: &[(&str, &Path)],
) -> Result<RunCost> {
    let start = Instant::now();
    let mut command = Command::new(program);
    command.args(arguments).envs(variables.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn()?;
    let memory = MemorySampler::of(child.id());
    let output = child.wait_with_output()?;
    let seconds = start.elapsed().as_secs_f64();
    let private_mib = memory.peak()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program:?} ended with {}: {stderr}", output.status);
    Ok(RunCost { seconds, private_mib, output: output.stdout })
}

/// Samples the private memory of a process until the peak is requested.
pub(crate) struct MemorySampler {
    ended: mpsc::Sender<()>,
    watching: JoinHandle<u64>,
}

impl MemorySampler {
    fn of(id: u32) -> Self {
        let (ended, watch) = mpsc::channel::<()>();
        Self { ended, watching: thread::spawn(move || peak(id, &watch)) }
    }

    /// Returns the highest sampled `RssAnon`, in MiB.
    pub(crate) fn peak(self) -> Result<u64> {
        drop(self.ended);
        self.watching.join().map_err(|_| anyhow::anyhow!("the sampling thread panicked"))
    }
}

fn peak(id: u32, ended: &mpsc::Receiver<()>) -> u64 {
    let mut peak = 0;
    while ended.recv_timeout(SAMPLE_INTERVAL) == Err(mpsc::RecvTimeoutError::Timeout) {
        peak = peak.max(private_kib(id).unwrap_or(0));
    }
    peak / 1024
}

fn private_kib(id: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

/// A daemon that is killed when it is dropped.
pub(crate) struct DaemonProcess(Child);

impl DaemonProcess {
    /// Starts a daemon and waits for its socket.
    pub(crate) fn start(program: &PathBuf, data_dir: &Path) -> Result<Self> {
        Self::start_with(program, data_dir, &[])
    }

    /// Starts a daemon that watches `folder`.
    pub(crate) fn watching(program: &PathBuf, data_dir: &Path, folder: &Path) -> Result<Self> {
        Self::start_with(program, data_dir, &[OsStr::new("--watch"), folder.as_os_str()])
    }

    /// Starts a daemon that also accepts devices, on a free port of this machine.
    pub(crate) fn listening(program: &PathBuf, data_dir: &Path) -> Result<Self> {
        Self::start_with(program, data_dir, &[OsStr::new("--listen"), OsStr::new("127.0.0.1:0")])
    }

    fn start_with(program: &PathBuf, data_dir: &Path, arguments: &[&OsStr]) -> Result<Self> {
        let socket = data_dir.join("satchel.sock");
        // A socket left behind by a killed daemon would look like that of the new one.
        match std::fs::remove_file(&socket) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let child = Command::new(program)
            .arg("--data-dir")
            .arg(data_dir)
            .arg("serve")
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let daemon = Self(child);
        let begun = Instant::now();
        while begun.elapsed() < START_TIMEOUT {
            if socket.exists() {
                return Ok(daemon);
            }
            thread::sleep(START_POLL);
        }
        anyhow::bail!("the daemon did not start")
    }

    /// Sends SIGTERM and waits until the daemon has closed its store.
    pub(crate) fn stop(mut self) -> Result<()> {
        let id = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(id, rustix::process::Signal::TERM)?;
        let ended = self.0.wait()?;
        ensure!(ended.success(), "the daemon ended with {ended}");
        Ok(())
    }

    /// Starts to sample the private memory of the daemon.
    pub(crate) fn memory(&self) -> MemorySampler {
        MemorySampler::of(self.0.id())
    }

    /// Returns the current private memory, in MiB.
    pub(crate) fn private_mib(&self) -> Result<u64> {
        Ok(private_kib(self.0.id()).context("the daemon is gone")? / 1024)
    }

    /// Returns the processor time used so far by all threads, including those that have ended.
    pub(crate) fn processor_time(&self) -> Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id()))?;
        // The name may contain spaces and brackets. Of the fields after it, the 12th and 13th are user and system time.
        let (_, rest) = stat.rsplit_once(')').context("a process has a name")?;
        let ticks = rest.split_whitespace().skip(11).take(2).map(str::parse::<u32>);
        Ok(TICK * ticks.sum::<Result<u32, _>>()?)
    }
}

impl Drop for DaemonProcess {
    fn drop(&mut self) {
        // The daemon may have exited by itself; in both cases it is gone afterwards.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
