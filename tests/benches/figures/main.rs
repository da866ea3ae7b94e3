//! The figures of the README, each as a ratio to a peer measured in the same run: `make bench`.
//!
//! Sizes can be lowered for a quick look: `SATCHEL_BENCH_MB=20 make bench`. The official SDK's `pam` is the peer where it is
//! installed (`pip install 'portable-ai-memory[cli]'`, or `PAM=/path/to/pam`).

mod daily;
mod native;
mod plugin;
mod process;
mod program;

use std::path::Path;

use anyhow::Result;

/// Runs of each measurement; the median counts.
const RUNS: usize = 5;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, word, provider, folder, cache] = arguments.as_slice()
        && word == plugin::ALONE
    {
        return plugin::alone(provider, Path::new(folder), Path::new(cache)).map(drop);
    }
    // `cargo test --benches` calls this too, and only wants to know that it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let megabytes: u64 =
        std::env::var("SATCHEL_BENCH_MB").ok().and_then(|text| text.parse().ok()).unwrap_or(100);
    let folder = tempfile::tempdir()?;
    let (chatgpt, claude) = (folder.path().join("chatgpt"), folder.path().join("claude"));
    say(&format!("generating {megabytes} MB exports"));
    satchel_tests::generate::chatgpt(&chatgpt, megabytes * 1_000_000, 1)?;
    satchel_tests::generate::claude(&claude, megabytes * 1_000_000, 1)?;
    importers(folder.path(), megabytes)?;
    program::first_start(folder.path())?;
    program::import("chatgpt", &chatgpt, folder.path())?;
    program::import("claude", &claude, folder.path())?;
    let large = folder.path().join("large");
    satchel_tests::generate::chatgpt(&large, megabytes * 5_000_000, 2)?;
    program::import("chatgpt x5", &large, folder.path())?;
    program::verify(folder.path(), megabytes * 1_000)?;
    program::answer(folder.path())?;
    daily::newer(folder.path(), megabytes * 1_000_000)?;
    daily::newer(folder.path(), megabytes * 5_000_000)?;
    daily::reads(folder.path(), megabytes * 5_000_000)?;
    daily::reopen(folder.path(), megabytes * 10_000)?;
    Ok(())
}

/// Each importer over its own format, one after the other, so that only one export lies on the disk.
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
    // A closed pipe ends the benchmark at its next figure; nothing is lost by that.
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
