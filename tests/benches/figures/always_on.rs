//! Figures for a daemon that is always on: the time until a new export is imported, the cost at rest, the disk space
//! used.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use satchel_proto::integers::{signed, unsigned};
use satchel_tests::generate;
use serde_json::Value;

use crate::{
    RUNS,
    client::Client,
    daily::import,
    median, megabytes, native_readers, print_line,
    process::{DaemonProcess, run, satchel_program},
    setting,
};

/// How long a file must stay unchanged before it is imported: the default of the configuration.
const QUIET_TIME: Duration = Duration::from_secs(3);
/// Number of files that are dropped into the watched folder at once and stay there.
const FILES: u64 = 10_000;
/// How long the daemon gets to finish its work after the last import: it reports the file as imported at once, then
/// releases buffers and memory.
const COOLDOWN: Duration = Duration::from_secs(10);
/// How long the daemon is observed after that.
const IDLE_TIME: Duration = Duration::from_mins(1);
/// Number of newer exports after the first.
const MONTHS: u64 = 10;

pub(crate) fn all(folder: &Path, megabytes: u64) -> Result<()> {
    import_latency(folder)?;
    many_files(folder, setting("SATCHEL_BENCH_FILES", FILES))?;
    monthly_exports(folder, megabytes * 1_000_000)
}

/// Measures the time from a complete 1 MB export in a watched folder until its conversations can be queried.
fn import_latency(scratch: &Path) -> Result<()> {
    let program = satchel_program()?;
    let (made, inbox, data) = (scratch.join("made"), scratch.join("inbox"), scratch.join("arriving"));
    fs::create_dir(&inbox)?;
    let daemon = DaemonProcess::watching(&program, &data, &inbox)?;
    let client = Client::connect(&data)?;
    client.wait_until(|_| true)?;
    let (mut times, mut expected) = (Vec::new(), 0);
    // The first turn compiles the importers.
    for turn in 0..=RUNS as u64 {
        expected += generate::chatgpt(&made, 1_000_000, 20 + turn)?.conversations;
        fs::rename(made.join("conversations.json"), inbox.join(format!("conversations-{turn:03}.json")))?;
        let start = Instant::now();
        while client.conversations()? < expected {
            thread::sleep(Duration::from_millis(1));
        }
        times.push(start.elapsed().saturating_sub(QUIET_TIME).as_secs_f64() * 1e3);
    }
    drop(daemon);
    print_line(&format!(
        "a 1 MB export in a watched folder can be queried {:.0} ms after it stayed unchanged for {} s",
        median(times.split_off(1)),
        QUIET_TIME.as_secs()
    ));
    remove([&made, &inbox, &data])
}

/// Measures many exports that arrive at once with another import in between, then the cost at rest for some minutes.
fn many_files(scratch: &Path, files: u64) -> Result<()> {
    let program = satchel_program()?;
    let (made, inbox, data) = (scratch.join("made"), scratch.join("inbox"), scratch.join("flooded"));
    let (all, own) = (scratch.join("all"), scratch.join("own"));
    [&inbox, &all].into_iter().try_for_each(fs::create_dir)?;
    for file in 0..files {
        generate::chatgpt(&made, 2, 1_000 + file)?;
        fs::rename(made.join("conversations.json"), all.join(format!("conversations-{file:05}.json")))?;
    }
    generate::chatgpt(&own, 1_000_000, 7)?;
    let size = megabytes(&all)?;
    let daemon = DaemonProcess::watching(&program, &data, &inbox)?;
    let client = Client::connect(&data)?;
    client.wait_until(|_| true)?;
    let memory = daemon.memory();
    let start = Instant::now();
    for file in fs::read_dir(&all)? {
        let file = file?;
        fs::rename(file.path(), inbox.join(file.file_name()))?;
    }
    client.wait_until(|source| source.imported > signed(files / 10))?;
    let (meanwhile, _) = import(&program, &data, &own)?;
    let behind = files - unsigned(client.source()?.imported);
    let longest = client.wait_until(|source| source.imported == signed(files))?;
    let seconds = start.elapsed().as_secs_f64();
    print_line(&format!(
        "{files} exports of {size:.0} MB dropped at once into a watched folder: imported in {seconds:.0} s, private memory \
         {} MiB, never more than {longest:.2} s without one; a 1 MB import of somebody else, with {behind} still to come: \
         {meanwhile:.2} s",
        memory.peak()?
    ));
    drop(client);
    thread::sleep(COOLDOWN);
    idle_cost("after that import", &daemon, IDLE_TIME)?;
    drop(daemon);
    let daemon = DaemonProcess::watching(&program, &data, &inbox)?;
    Client::connect(&data)?.wait_until(|source| source.imported == signed(files))?;
    idle_cost("started anew", &daemon, Duration::from_secs(60 * setting("SATCHEL_BENCH_MINUTES", 10)))?;
    drop(daemon);
    remove([&made, &inbox, &data, &all, &own])
}

fn idle_cost(when: &str, daemon: &DaemonProcess, time: Duration) -> Result<()> {
    let before = daemon.processor_time()?;
    let memory = daemon.memory();
    thread::sleep(time);
    let share = (daemon.processor_time()?.saturating_sub(before)).as_secs_f64() / time.as_secs_f64();
    print_line(&format!(
        "at rest with these files, {when}: {:.3} % of a processor over {:.1} minutes, private memory {} MiB",
        share * 1e2,
        time.as_secs_f64() / 60.0,
        memory.peak()?
    ));
    Ok(())
}

/// Measures the disk space of the first import and of ten newer versions, and how long it takes to rebuild the database
/// from it.
fn monthly_exports(scratch: &Path, bytes: u64) -> Result<()> {
    let program = satchel_program()?;
    let (export, data) = (scratch.join("monthly"), scratch.join("monthly-data"));
    let mut first = 0.0;
    for month in 0..=MONTHS {
        generate::chatgpt_later(&export, bytes, 8, month)?;
        import(&program, &data, &export)?;
        if month == 0 {
            first = disk_usage(&data)?;
            print_line(&format!(
                "on disk: {:.2} bytes for each of a {:.0} MB export ({:.0} MB)",
                first / megabytes(&export)?,
                megabytes(&export)?,
                first
            ));
        }
    }
    let last = disk_usage(&data)?;
    print_line(&format!(
        "on disk after {MONTHS} more versions, each 2 % newer: {last:.0} MB, {:.2} times the first; {:.2} bytes for each of the \
         newest",
        last / first,
        last / megabytes(&export)?
    ));
    let words = ["--data-dir".as_ref(), data.as_os_str(), "--json".as_ref(), "rebuild".as_ref()];
    let cost = run(&program, &words)?;
    let answer: Value = serde_json::from_slice(&cost.output)?;
    let figure = |name: &str| answer[name].as_f64().with_context(|| format!("no {name} in {answer}"));
    ensure!(figure("revision")? > 0.0, "nothing was built: {answer}");
    print_line(&format!(
        "the database built again from a journal of {:.0} MB: {:.1} s, {:.0} MB/s, private memory {} MiB",
        figure("journal_bytes")? / 1e6,
        figure("elapsed_ms")? / 1e3,
        figure("bytes_per_second")? / 1e6,
        cost.private_mib
    ));
    remove([&export, &data])
}

/// Returns the disk space of a data directory in MB.
#[expect(clippy::cast_precision_loss, reason = "sizes of files")]
fn disk_usage(data: &Path) -> Result<f64> {
    let folders = fs::read_dir(data)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    let mut blocks = 0;
    for folder in folders.iter().filter(|path| path.is_dir()) {
        for file in native_readers::files(folder)? {
            blocks += fs::metadata(file)?.blocks();
        }
    }
    // `blocks` counts units of 512 bytes, whatever block size the file system uses.
    Ok(blocks as f64 * 512.0 / 1e6)
}

fn remove<'a>(folders: impl IntoIterator<Item = &'a std::path::PathBuf>) -> Result<()> {
    folders
        .into_iter()
        .filter(|folder| folder.exists())
        .try_for_each(|folder| Ok(fs::remove_dir_all(folder)?))
}
