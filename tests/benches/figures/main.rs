//! The figures of the README, each as a ratio to a peer measured in the same run, with the processor on which they were
//! measured: `make bench`.
//!
//! Sizes can be lowered for a quick run: `SATCHEL_BENCH_MB=20 make bench`. The `pam` program of the official SDK is the
//! peer if it is installed (`pip install 'portable-ai-memory[cli]'`, or `PAM=/path/to/pam`).
//! `SATCHEL_BENCH_ONLY=always,load` measures only these groups; the groups are `importers`, `program`, `daily`,
//! `reads`, `always`, `sessions`, `load`, `sealed`, `delta`, `installed`, `api`, `sync` and `mcp`, and `search` and `vectors` in `daemon/search/benches`. `SATCHEL=/path/to/satchel` measures another build.

mod always_on;
mod api;
mod client;
mod daily;
mod databases;
mod delta;
mod encryption;
mod growing_sessions;
mod importer;
mod installed;
mod large_exports;
mod mcp;
mod native_readers;
mod process;
mod program;
mod sync;

use std::path::Path;

use anyhow::Result;

/// Number of runs of each measurement; the median is reported.
const RUNS: usize = 5;
/// The flags for SHA-256 instructions in `/proc/cpuinfo`, on x86 and on ARM.
const SHA_FLAGS: [&str; 2] = ["sha_ni", "sha2"];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, word, provider, folder, cache] = arguments.as_slice()
        && word == importer::IMPORTER_ARGUMENT
    {
        return importer::run_importer(provider, Path::new(folder), Path::new(cache)).map(drop);
    }
    if let [_, word, uri, memory] = arguments.as_slice()
        && word == api::flood::FLOOD_ARGUMENT
    {
        return api::flood::run_flood(uri, memory);
    }
    // `cargo test --benches` also runs this program, only to check that it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    print_line(&processor_line());
    let folder = tempfile::tempdir()?;
    let (scratch, megabytes) = (folder.path(), setting("SATCHEL_BENCH_MB", 100));
    let groups: [(&str, BenchGroup); 13] = [
        ("importers", importers),
        ("program", program_group),
        ("daily", daily_group),
        ("reads", reads),
        ("always", always_on::all),
        ("sessions", growing_sessions::all),
        ("load", large_exports::all),
        ("sealed", encryption::all),
        ("delta", delta::all),
        ("installed", installed::all),
        ("api", api::all),
        ("sync", sync::all),
        ("mcp", mcp::all),
    ];
    let only = std::env::var("SATCHEL_BENCH_ONLY").ok();
    for (name, group) in groups {
        if only.as_deref().is_none_or(|only| only.split(',').any(|one| one == name)) {
            group(scratch, megabytes)?;
        }
    }
    Ok(())
}

/// A group of figures; takes a folder for its files and the size of an export in MB.
type BenchGroup = fn(&Path, u64) -> Result<()>;

fn setting(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn program_group(folder: &Path, megabytes: u64) -> Result<()> {
    let (chatgpt, claude, large) = (folder.join("chatgpt"), folder.join("claude"), folder.join("large"));
    print_line(&format!("generating {megabytes} MB exports"));
    satchel_tests::generate::chatgpt(&chatgpt, megabytes * 1_000_000, 1)?;
    satchel_tests::generate::claude(&claude, megabytes * 1_000_000, 1)?;
    program::first_start(folder)?;
    let small = folder.join("small-chatgpt");
    satchel_tests::generate::chatgpt(&small, 100_000, 3)?;
    program::import("chatgpt", (&chatgpt, &small), folder)?;
    let small_claude = folder.join("small-claude");
    satchel_tests::generate::claude(&small_claude, 100_000, 3)?;
    program::import("claude", (&claude, &small_claude), folder)?;
    satchel_tests::generate::chatgpt(&large, megabytes * 5_000_000, 2)?;
    program::import("chatgpt x5", (&large, &small), folder)?;
    program::verify(folder, megabytes * 1_000)?;
    program::command_latency(folder)?;
    for export in [chatgpt, claude, large] {
        std::fs::remove_dir_all(export)?;
    }
    Ok(())
}

fn daily_group(folder: &Path, megabytes: u64) -> Result<()> {
    daily::newer(folder, megabytes * 1_000_000)?;
    daily::newer(folder, megabytes * 5_000_000)?;
    daily::reopen(folder, megabytes * 10_000)
}

fn reads(folder: &Path, megabytes: u64) -> Result<()> {
    daily::reads(folder, megabytes * 5_000_000)
}

/// Measures each importer on its own format, one after the other, so that only one export is on the disk at a time.
fn importers(folder: &Path, megabytes: u64) -> Result<()> {
    let cache = folder.join("importers");
    for (provider, generate) in satchel_tests::generate::GENERATORS {
        let export = folder.join("export");
        generate(&export, megabytes * 1_000_000, 1)?;
        importer::measure(provider, &native_readers::native_readers(provider), &export, &cache)?;
        for (_, script, fill) in databases::DATABASES.iter().filter(|(name, ..)| *name == provider) {
            let database = folder.join("database");
            std::fs::create_dir_all(&database)?;
            databases::make(&database.join("conversations.db"), script, *fill, &export)?;
            print_line(&format!("{provider}: the same in its database"));
            importer::measure(provider, &[databases::NATIVE_READER], &database, &cache)?;
            std::fs::remove_dir_all(&database)?;
        }
        std::fs::remove_dir_all(&export)?;
    }
    Ok(())
}

fn print_line(text: &str) {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    // If the pipe is closed, the benchmark ends at its next figure; nothing is lost.
    if writeln!(out, "{text}").is_err() {
        std::process::exit(1);
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[expect(clippy::cast_precision_loss, reason = "sizes of files")]
fn megabytes(path: &Path) -> Result<f64> {
    let sizes = native_readers::files(path)?.into_iter().map(|file| Ok(std::fs::metadata(file)?.len()));
    Ok(sizes.sum::<std::io::Result<u64>>()? as f64 / 1e6)
}

/// Returns one line about the processor on which the figures were measured, which differ by a factor of three between
/// processors: its name, the number of processors, and whether it has SHA-256 instructions.
fn processor_line() -> String {
    describe_processor(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default(), processor_count())
}

fn processor_count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn describe_processor(info: &str, processors: usize) -> String {
    let value = |keys: &[&str]| {
        let mut pairs = info.lines().filter_map(|line| line.split_once(':'));
        pairs.find(|(key, _)| keys.contains(&key.trim())).map(|(_, value)| value.trim().to_owned())
    };
    let name = value(&["model name", "Model", "CPU part"]).unwrap_or_else(|| "unknown".to_owned());
    let sha = match value(&["flags", "Features"]) {
        None => "not known whether with SHA instructions",
        Some(flags) if flags.split_whitespace().any(|flag| SHA_FLAGS.contains(&flag)) => {
            "with SHA instructions"
        }
        Some(_) => "without SHA instructions",
    };
    format!("processor: {name}, {processors} processors, {}, {sha}", std::env::consts::ARCH)
}
