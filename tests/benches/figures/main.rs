//! The figures of the README, each as a ratio to a peer measured in the same run, with the processor on which they were
//! measured: `make bench`.
//!
//! Sizes can be lowered for a quick run: `SATCHEL_BENCH_MB=20 make bench`. The `pam` program of the official SDK is the
//! peer if it is installed (`pip install 'portable-ai-memory[cli]'`, or `PAM=/path/to/pam`).
//! `SATCHEL_BENCH_ONLY=always,load` measures only these groups; the groups are `importers`, `program`, `daily`,
//! `reads`, `always`, `load`, `sealed` and `delta`. `SATCHEL=/path/to/satchel` measures another build.

mod always;
mod client;
mod daily;
mod delta;
mod load;
mod native;
mod plugin;
mod process;
mod processor;
mod program;
mod sealed;

use std::path::Path;

use anyhow::Result;

/// Number of runs of each measurement; the median is reported.
const RUNS: usize = 5;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, word, provider, folder, cache] = arguments.as_slice()
        && word == plugin::ALONE
    {
        return plugin::alone(provider, Path::new(folder), Path::new(cache)).map(drop);
    }
    // `cargo test --benches` also runs this program, only to check that it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    say(&processor::line());
    let folder = tempfile::tempdir()?;
    let (scratch, megabytes) = (folder.path(), number("SATCHEL_BENCH_MB", 100));
    let groups: [(&str, Group); 8] = [
        ("importers", importers),
        ("program", programs),
        ("daily", days),
        ("reads", reads),
        ("always", always::all),
        ("load", load::all),
        ("sealed", sealed::all),
        ("delta", delta::all),
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
type Group = fn(&Path, u64) -> Result<()>;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn programs(folder: &Path, megabytes: u64) -> Result<()> {
    let (chatgpt, claude, large) = (folder.join("chatgpt"), folder.join("claude"), folder.join("large"));
    say(&format!("generating {megabytes} MB exports"));
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
    program::answer(folder)?;
    for export in [chatgpt, claude, large] {
        std::fs::remove_dir_all(export)?;
    }
    Ok(())
}

fn days(folder: &Path, megabytes: u64) -> Result<()> {
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
    for (provider, generate) in satchel_tests::generate::ALL {
        let export = folder.join("export");
        generate(&export, megabytes * 1_000_000, 1)?;
        plugin::figures(provider, &export, &cache)?;
        std::fs::remove_dir_all(&export)?;
    }
    Ok(())
}

fn say(text: &str) {
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
    let sizes = native::files(path)?.into_iter().map(|file| Ok(std::fs::metadata(file)?.len()));
    Ok(sizes.sum::<std::io::Result<u64>>()? as f64 / 1e6)
}
