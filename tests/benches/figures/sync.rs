//! Two daemons on this machine that keep their stores in step, compared with a copy of the same data directory.

mod groups;

use std::{
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use satchel_proto::v1::{
    self, DeviceRole, device_service_client::DeviceServiceClient, memory_service_client::MemoryServiceClient,
    peer_service_client::PeerServiceClient,
};
use tokio::runtime::Runtime;
use tonic::transport::Channel;

use crate::{
    RUNS, median, megabytes, print_line,
    process::{DaemonProcess, run, satchel_program},
};

/// Edits whose way to the other store is measured.
const EDITS: usize = 200;
/// Edits that are made in each store while they are apart.
const APART: usize = 5_000;
/// How long an idle pair is observed.
const IDLE: Duration = Duration::from_mins(2);
/// How long to wait before that.
const SETTLED: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(1);
/// Upper limit for every wait; no measurement takes longer.
const WAIT_TIMEOUT: Duration = Duration::from_mins(30);

/// A daemon and a connection to it.
struct Machine {
    runtime: Runtime,
    channel: Channel,
    daemon: DaemonProcess,
}

impl Machine {
    fn start(program: &PathBuf, data: &Path) -> Result<Self> {
        let daemon = DaemonProcess::listening(program, data)?;
        let runtime = Runtime::new()?;
        let channel = runtime.block_on(satchel_server::connect::connect(data))?;
        Ok(Self { runtime, channel, daemon })
    }

    fn memories(&self) -> MemoryServiceClient<Channel> {
        MemoryServiceClient::new(self.channel.clone())
    }

    fn peers(&self) -> PeerServiceClient<Channel> {
        PeerServiceClient::new(self.channel.clone())
    }

    fn add(&self, content: String) -> Result<String> {
        self.add_tagged(content, &[])
    }

    fn add_tagged(&self, content: String, tags: &[&str]) -> Result<String> {
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        let memory = v1::Memory { content, tags, ..v1::Memory::default() };
        let request = v1::CreateMemoryRequest { memory: Some(memory), ..v1::CreateMemoryRequest::default() };
        let answer = self.runtime.block_on(self.memories().create_memory(request))?.into_inner();
        Ok(answer.memory.context("a memory")?.id)
    }

    fn has(&self, id: &str) -> Result<bool> {
        let request = v1::GetMemoryRequest { id: id.to_owned(), view: 0, as_of_revision: None };
        match self.runtime.block_on(self.memories().get_memory(request)) {
            Ok(_) => Ok(true),
            Err(status) if status.code() == tonic::Code::NotFound => Ok(false),
            Err(status) => Err(status.into()),
        }
    }

    fn in_step(&self) -> Result<bool> {
        let request = v1::ListPeersRequest::default();
        let known = self.runtime.block_on(self.peers().list_peers(request))?.into_inner().peers;
        Ok(!known.is_empty() && known.iter().all(|peer| peer.in_step))
    }

    fn pause(&self, paused: bool) -> Result<()> {
        let request =
            v1::UpdatePeerRequest { peer: "desk".to_owned(), paused: Some(paused), ..Default::default() };
        self.runtime.block_on(self.peers().update_peer(request))?;
        Ok(())
    }

    fn digest(&self) -> Result<String> {
        let request = v1::GetSyncStatusRequest { digest: true };
        Ok(self.runtime.block_on(self.peers().get_sync_status(request))?.into_inner().digest)
    }
}

/// Measures all figures about two stores; takes a folder for its files and the size of an export in MB.
pub(crate) fn all(scratch: &Path, megabytes_of_export: u64) -> Result<()> {
    let program = satchel_program()?;
    let (export, desk_data, laptop_data) =
        (scratch.join("export"), scratch.join("desk"), scratch.join("laptop"));
    let counts = satchel_tests::generate::chatgpt(&export, megabytes_of_export * 1_000_000, 7)?;
    let words = |data: &Path| -> Vec<std::ffi::OsString> {
        vec!["--data-dir".into(), data.into(), "import".into(), export.clone().into()]
    };
    run(&program, &words(&desk_data))?;
    // Before there is a socket in the folder.
    let copies = (0..RUNS).map(|_| copy_for_comparison(&desk_data, scratch)).collect::<Result<_>>()?;
    let (copied, size) = (median(copies), megabytes(&desk_data)?);
    let (desk, laptop) = (Machine::start(&program, &desk_data)?, Machine::start(&program, &laptop_data)?);
    let seconds = first_sync(&desk, &laptop)?;
    print_line(&format!(
        "first sync of {} messages, {:.0} MB on the disk, in {seconds:.1} s; a copy of the directory with fsync {copied:.2} s, ratio {:.1}; \
         private memory of the two daemons {} and {} MiB",
        counts.messages,
        size,
        seconds / copied,
        desk.daemon.private_mib()?,
        laptop.daemon.private_mib()?
    ));
    latency(&desk, &laptop, "desk to laptop")?;
    latency(&laptop, &desk, "laptop to desk")?;
    apart(&desk, &laptop)?;
    latency(&desk, &laptop, &format!("desk to laptop, with {} more memories", 2 * APART))?;
    // What follows the last exchange is over.
    thread::sleep(SETTLED);
    idle()?;
    groups::small_difference((&desk, &laptop), scratch, megabytes_of_export)?;
    groups::part(&desk, scratch)?;
    ensure!(desk.digest()? == laptop.digest()?, "the stores differ");
    drop((desk, laptop));
    groups::chain_and_ring(scratch)?;
    groups::growth(scratch)
}

/// Copies a data directory file by file, each with fsync; returns the seconds.
fn copy_for_comparison(data: &Path, scratch: &Path) -> Result<f64> {
    let target = scratch.join("copied");
    let begun = Instant::now();
    let copied = Command::new("cp").arg("-r").arg(data).arg(&target).status()?;
    ensure!(copied.success(), "cp failed");
    let files = crate::native_readers::files(&target)?;
    files.into_iter().try_for_each(|file| std::fs::File::open(file)?.sync_all())?;
    let seconds = begun.elapsed().as_secs_f64();
    std::fs::remove_dir_all(&target)?;
    Ok(seconds)
}

/// Pairs the laptop with the desk; returns the seconds until both are in step.
fn first_sync(desk: &Machine, laptop: &Machine) -> Result<f64> {
    sync_part(desk, laptop, "laptop", None)
}

/// Pairs another machine with the desk, of which it gets a part; returns the seconds until both are in step.
fn sync_part(
    desk: &Machine,
    laptop: &Machine,
    name: &str,
    selection: Option<v1::DeviceSelection>,
) -> Result<f64> {
    let policy = v1::DevicePolicy { role: DeviceRole::Peer.into(), selection, ..v1::DevicePolicy::default() };
    let request = v1::CreatePairingRequest { policy: Some(policy), name: name.to_owned(), valid_for: None };
    let mut devices = DeviceServiceClient::new(desk.channel.clone());
    let pairing = desk.runtime.block_on(devices.create_pairing(request))?.into_inner();
    let begun = Instant::now();
    let request = v1::AddPeerRequest {
        code: pairing.uri,
        addresses: Vec::new(),
        name: "desk".to_owned(),
        device_name: name.to_owned(),
        ..v1::AddPeerRequest::default()
    };
    laptop.runtime.block_on(laptop.peers().add_peer(request))?;
    wait("in step", || Ok(laptop.in_step()? && desk.in_step()?))?;
    Ok(begun.elapsed().as_secs_f64())
}

/// Measures how long it takes until an edit in one store is seen in the other one.
fn latency(from: &Machine, to: &Machine, label: &str) -> Result<()> {
    let mut times = Vec::new();
    for number in 0..EDITS {
        let id = from.add(format!("Note {number}, {label}"))?;
        let begun = Instant::now();
        wait("the memory", || to.has(&id))?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let at = |percent: usize| times.get(times.len() * percent / 100).copied().unwrap_or_default();
    print_line(&format!(
        "an edit is seen in the other store, {label}: p50 {:.0} ms, p99 {:.0} ms",
        at(50),
        at(99)
    ));
    Ok(())
}

/// Measures how long edits take that were made in both stores while they were apart.
fn apart(desk: &Machine, laptop: &Machine) -> Result<()> {
    laptop.pause(true)?;
    for number in 0..APART {
        desk.add(format!("On the desk, {number}"))?;
        laptop.add(format!("On the laptop, {number}"))?;
    }
    let begun = Instant::now();
    laptop.pause(false)?;
    wait("in step", || Ok(laptop.in_step()? && desk.in_step()?))?;
    print_line(&format!(
        "{} edits made apart are in both stores after {:.1} s",
        APART * 2,
        begun.elapsed().as_secs_f64()
    ));
    Ok(())
}

/// Returns how many bytes the loopback interface has received.
fn loopback_bytes() -> Result<f64> {
    let table = std::fs::read_to_string("/proc/net/dev")?;
    let line = table.lines().find_map(|line| line.trim().strip_prefix("lo:")).context("no loopback")?;
    Ok(line.split_whitespace().next().context("no count")?.parse()?)
}

/// Measures what two daemons that have nothing to exchange send each other. Nothing else may use the loopback interface.
fn idle() -> Result<()> {
    let before = loopback_bytes()?;
    thread::sleep(IDLE);
    let sent = loopback_bytes()? - before;
    let minutes = IDLE.as_secs_f64() / 60.0;
    print_line(&format!("an idle pair sends {:.0} bytes a minute, with all headers", sent / minutes));
    Ok(())
}

fn wait(what: &str, holds: impl Fn() -> Result<bool>) -> Result<()> {
    let begun = Instant::now();
    while !holds()? {
        ensure!(begun.elapsed() < WAIT_TIMEOUT, "{what}: timed out");
        thread::sleep(POLL);
    }
    Ok(())
}
