//! Child processes, their time and their private memory.

use std::{
    ffi::OsStr,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};

/// How often private memory is looked at.
const SAMPLE: Duration = Duration::from_millis(50);

/// What a run of a program took.
pub(crate) struct Cost {
    /// Seconds.
    pub(crate) seconds: f64,
    /// Highest `RssAnon` seen, in MiB.
    pub(crate) private_mib: u64,
    /// Standard output.
    pub(crate) output: Vec<u8>,
}

/// The program that was built beside this benchmark.
pub(crate) fn satchel() -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    let folder = here.parent().and_then(|deps| deps.parent()).context("no target folder")?;
    let program = folder.join("satchel");
    ensure!(program.exists(), "build the program first: cargo build --release -p satchel-daemon");
    Ok(program)
}

/// The official SDK's program, if it is there.
pub(crate) fn pam() -> Option<PathBuf> {
    let named = std::env::var_os("PAM").map_or_else(|| PathBuf::from("pam"), PathBuf::from);
    let works = Command::new(&named).arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status();
    works.is_ok_and(|status| status.success()).then_some(named)
}

/// Runs a program to its end.
pub(crate) fn run<S: AsRef<OsStr>>(program: &PathBuf, arguments: &[S]) -> Result<Cost> {
    let start = Instant::now();
    let child = Command::new(program).args(arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let (ended, watch) = mpsc::channel::<()>();
    let id = child.id();
    let watching = thread::spawn(move || peak(id, &watch));
    let output = child.wait_with_output()?;
    let seconds = start.elapsed().as_secs_f64();
    drop(ended);
    let private_mib = watching.join().map_err(|_| anyhow::anyhow!("the watcher broke off"))?;
    ensure!(output.status.success(), "{program:?} ended with {}", output.status);
    Ok(Cost { seconds, private_mib, output: output.stdout })
}

fn peak(id: u32, ended: &mpsc::Receiver<()>) -> u64 {
    let mut peak = 0;
    while ended.recv_timeout(SAMPLE) == Err(mpsc::RecvTimeoutError::Timeout) {
        peak = peak.max(private_kib(id).unwrap_or(0));
    }
    peak / 1024
}

fn private_kib(id: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

/// A daemon that is killed when the benchmark is done with it.
pub(crate) struct Daemon(Child);

impl Daemon {
    /// Starts one and waits for its socket.
    pub(crate) fn start(program: &PathBuf, data_dir: &std::path::Path) -> Result<Self> {
        let child = Command::new(program)
            .arg("--data-dir")
            .arg(data_dir)
            .arg("serve")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let daemon = Self(child);
        for _ in 0..600 {
            if data_dir.join("satchel.sock").exists() {
                return Ok(daemon);
            }
            thread::sleep(SAMPLE);
        }
        anyhow::bail!("the daemon did not start")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is gone afterwards.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
