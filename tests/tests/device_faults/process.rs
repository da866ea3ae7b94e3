//! A daemon in a process of its own, so that the files, tasks and memory that it uses can be counted.

use std::{
    fs,
    io::Read as _,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use satchel_devices::PairingSecret;
use satchel_proto::v1::{
    self, DeviceRole, device_service_client::DeviceServiceClient, import_service_client::ImportServiceClient,
};
use satchel_server::config::Config;
use satchel_tests::{
    operation, test_core,
    test_device::{TestDevice, listen, policy},
};
use tempfile::TempDir;
use tonic::transport::Channel;

/// Set in the child: the folder of the daemon.
const FOLDER: &str = "SATCHEL_TEST_DEVICE_FAULTS_FOLDER";
/// How long the daemon may take to start, and to be at rest again after a load.
const TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Files and tasks that may be there besides those of before a load: those of the test's own calls, and threads that end
/// only after some seconds.
const SLACK: usize = 8;

/// Not a separate test: it is the daemon in the child process of the tests. It runs until its input ends.
#[test]
fn daemon_of_the_tests() -> Result<()> {
    let Some(folder) = std::env::var_os(FOLDER) else { return Ok(()) };
    let folder = Path::new(&folder);
    let mut config = Config::new(folder.join("data"), folder.to_owned());
    config.code_cache = Some(test_core::code_cache());
    listen(&mut config);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let metrics = runtime.metrics();
    let (tasks, temporary) = (folder.join("tasks"), folder.join("tasks.new"));
    std::thread::spawn(move || {
        loop {
            // Renamed, so that the parent reads a whole number. It ends with the folder.
            if fs::write(&temporary, metrics.num_alive_tasks().to_string()).is_err()
                || fs::rename(&temporary, &tasks).is_err()
            {
                return;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    });
    let stop = async {
        let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
        drop(ended.await);
    };
    runtime.block_on(satchel_server::run(config, |_| {}, |_| {}, stop))?;
    Ok(())
}

/// What the daemon uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    pub(crate) files: usize,
    pub(crate) tasks: usize,
    pub(crate) memory_mib: usize,
}

/// The daemon. It is killed when it is dropped.
pub(crate) struct DaemonProcess {
    child: Child,
    pub(crate) folder: TempDir,
    /// A connection over its socket.
    pub(crate) channel: Channel,
}

impl DaemonProcess {
    /// Starts a daemon on an empty data directory.
    pub(crate) async fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let child = Command::new(std::env::current_exe()?)
            .args(["--exact", "process::daemon_of_the_tests", "--test-threads", "1"])
            .env(FOLDER, folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        let begun = Instant::now();
        loop {
            match satchel_server::connect::connect(&folder.path().join("data")).await {
                Ok(channel) => return Ok(Self { child, folder, channel }),
                Err(error) if begun.elapsed() > TIMEOUT => return Err(error.into()),
                Err(_) => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    }

    /// Pairs a device with the default policy of a role.
    pub(crate) async fn pair(&self, name: &str, role: DeviceRole) -> Result<TestDevice> {
        let request =
            v1::CreatePairingRequest { policy: Some(policy(role)), name: name.to_owned(), valid_for: None };
        let mut client = DeviceServiceClient::new(self.channel.clone());
        let pairing = client.create_pairing(request).await?.into_inner();
        TestDevice::pair_with(&PairingSecret::parse(&pairing.uri)?, name).await
    }

    /// Imports a file or folder.
    pub(crate) async fn import(&self, path: &Path) -> Result<()> {
        let path = path.to_str().context("the path is UTF-8")?.to_owned();
        let request = v1::CreateImportRequest { path, ..Default::default() };
        let mut client = ImportServiceClient::new(self.channel.clone());
        let started = client.create_import(request).await?.into_inner().operation.context("an operation")?;
        let ended = operation::wait(&self.channel, &started.id).await?;
        let import = ended.imports().first().cloned().context("an import")?;
        ensure!(import.status() == v1::ImportStatus::Completed, "{import:?}");
        Ok(())
    }

    /// Returns what the daemon uses now.
    pub(crate) fn usage(&self) -> Result<Usage> {
        let process = Path::new("/proc").join(self.child.id().to_string());
        let status = fs::read_to_string(process.join("status")).context("the daemon has ended")?;
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
        let memory: usize = memory.trim().trim_end_matches(" kB").parse()?;
        Ok(Usage {
            files: fs::read_dir(process.join("fd"))?.count(),
            tasks: fs::read_to_string(self.folder.path().join("tasks"))?.parse()?,
            memory_mib: memory >> 10,
        })
    }

    /// Waits until the daemon uses no more than `before` the load, but for some memory that its allocator keeps.
    pub(crate) async fn at_rest_as(&self, before: Usage, memory_mib: usize) -> Result<()> {
        let begun = Instant::now();
        loop {
            let now = self.usage()?;
            let rests = now.files <= before.files + SLACK
                && now.tasks <= before.tasks + SLACK
                && now.memory_mib <= before.memory_mib + memory_mib;
            if rests {
                return Ok(());
            }
            ensure!(begun.elapsed() < TIMEOUT, "before the load {before:?}, long after it {now:?}");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

impl Drop for DaemonProcess {
    fn drop(&mut self) {
        // It may have ended by itself; in both cases it is gone afterwards.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
