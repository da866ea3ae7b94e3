//! The cost of an incremental export compared with the size of the store: the same hundred changes in a small and in a
//! large store.
//!
//! `SATCHEL_BENCH_FEW` and `SATCHEL_BENCH_MANY` set the number of memories in the two stores.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::BufWriter,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use satchel_pam::{
    hash::ContentHash,
    store::{Owner, StoreHeader, Writer},
    time::Timestamp,
};
use serde_json::{Value, json};

use crate::{
    RUNS, median, print_line,
    process::{DaemonProcess, RunCost, run, satchel_program},
    setting,
};

/// Number of memories in the two stores.
const FEW: u64 = 10_000;
const MANY: u64 = 1_000_000;
/// Number of memories that change between a full export and its increment.
const CHANGED: u64 = 100;
/// Number of memories in one imported document. Each import looks at all stored memories, so a few large documents are
/// faster.
const MEMORIES_PER_DOCUMENT: u64 = 250_000;
/// The tag of the memories that change.
const TAG: &str = "changing";

/// The cost of the exports of one store, in seconds and in MiB of the daemon's private memory.
struct ExportCosts {
    memories: u64,
    full: f64,
    full_mib: u64,
    increment: f64,
    increment_mib: u64,
    rest_mib: u64,
}

pub(crate) fn all(folder: &Path, _: u64) -> Result<()> {
    let few = measure_store(folder, setting("SATCHEL_BENCH_FEW", FEW))?;
    let many = measure_store(folder, setting("SATCHEL_BENCH_MANY", MANY))?;
    for taken in [&few, &many] {
        print_line(&format!(
            "{} memories: full export {:.2} s, private memory at most {} MiB ({} MiB at rest); increment of {CHANGED} changed \
             ones {:.0} ms, at most {} MiB",
            taken.memories,
            taken.full,
            taken.full_mib,
            taken.rest_mib,
            taken.increment * 1e3,
            taken.increment_mib
        ));
    }
    print_line(&format!(
        "increment of {CHANGED} out of {} compared with that out of {}: {:.2} times as long",
        many.memories,
        few.memories,
        many.increment / few.increment
    ));
    Ok(())
}

/// Measures a store with this many memories: its full export and the incremental exports after it, all by one newly
/// started daemon.
fn measure_store(scratch: &Path, memories: u64) -> Result<ExportCosts> {
    let (data, out) = (scratch.join("counted"), scratch.join("exported"));
    fs::create_dir_all(&out)?;
    fill(&data, scratch, memories)?;
    let daemon = DaemonProcess::start(&satchel_program()?, &data)?;
    run_command(&data, &[&"status"])?;
    let rest_mib = daemon.private_mib()?;
    let watched = daemon.memory();
    let full = run_command(&data, &[&"export", &"--output", &out.join("full.zip")])?;
    let full_mib = watched.peak()?;
    assert_memory_count(&full, memories)?;
    let count = CHANGED.to_string();
    run_command(&data, &[&"memories", &"status", &"archived", &"--tag", &TAG, &"--expect", &count])?;
    let (mut times, watched) = (Vec::new(), daemon.memory());
    for turn in 0..RUNS {
        let path = out.join(format!("changes-{turn}.zip"));
        let cost = run_command(&data, &[&"export", &"--incremental", &"--output", &path])?;
        assert_memory_count(&cost, CHANGED)?;
        times.push(cost.seconds);
    }
    let increment_mib = watched.peak()?;
    run_command(
        &data,
        &[&"verify", &out.join("changes-0.zip"), &"--base", &out.join("full.zip"), &"--strict"],
    )?;
    daemon.stop()?;
    for folder in [data, out] {
        fs::remove_dir_all(folder)?;
    }
    Ok(ExportCosts {
        memories,
        full: full.seconds,
        full_mib,
        increment: median(times),
        increment_mib,
        rest_mib,
    })
}

/// Fails if an export contains a different number of memories.
fn assert_memory_count(export: &RunCost, memories: u64) -> Result<()> {
    let answer: Value = serde_json::from_slice(&export.output)?;
    ensure!(export_number(&answer, "memories") == Some(memories), "not {memories} memories: {answer}");
    Ok(())
}

/// Returns a number from the answer to an export, at the top level or inside `export`.
fn export_number(answer: &Value, name: &str) -> Option<u64> {
    answer.get("export").unwrap_or(answer)[name].as_u64()
}

/// Runs a command on the data directory with JSON output.
fn run_command(data: &Path, words: &[&dyn AsRef<std::ffi::OsStr>]) -> Result<RunCost> {
    let global: [&dyn AsRef<std::ffi::OsStr>; 3] = [&"--data-dir", &data, &"--json"];
    let words: Vec<OsString> = global.iter().chain(words).map(|word| word.as_ref().to_owned()).collect();
    run(&satchel_program()?, &words)
}

/// Imports documents until the store holds this many memories. The memories that will change are spread over all of
/// them.
fn fill(data: &Path, scratch: &Path, memories: u64) -> Result<()> {
    let daemon = DaemonProcess::start(&satchel_program()?, data)?;
    let every = (memories / CHANGED).max(1);
    let mut from = 0;
    while from < memories {
        let until = memories.min(from + MEMORIES_PER_DOCUMENT);
        let path = document(scratch, from..until, every)?;
        let cost = run_command(data, &[&"import", &path])?;
        let answer: Value = serde_json::from_slice(&cost.output)?;
        let new = answer["imports"][0]["memories"]["new"].as_u64();
        ensure!(new == Some(until - from), "not all memories arrived: {answer}");
        fs::remove_file(path)?;
        from = until;
    }
    daemon.stop()
}

/// Writes a PAM document with these memories.
fn document(scratch: &Path, numbers: std::ops::Range<u64>, every: u64) -> Result<PathBuf> {
    let path = scratch.join("memory-store.json");
    let owner = Owner { id: "0d0c0b0a-0000-4000-8000-000000000001".into(), did: None, created_at: None };
    let header = StoreHeader {
        export_id: Some(format!("{:08x}-0000-4000-8000-00000000000e", numbers.start)),
        export_date: Some(Timestamp::saturating(1_700_000_000_000_000)),
        ..StoreHeader::new(owner)
    };
    let mut writer = Writer::new(BufWriter::with_capacity(1 << 20, File::create(&path)?), header)?;
    for number in numbers {
        let content = format!(
            "The bed with the number {number} has beans in it, and needs water every second day in summer."
        );
        let tags = if number % every == 0 && number / every < CHANGED { vec![TAG] } else { vec!["garden"] };
        let memory = json!({
            "id": format!("{number:08x}-0000-4000-8000-000000000000"), "type": "fact", "status": "active", "content": content,
            "content_hash": ContentHash::of(&content).to_string(), "tags": tags,
            "temporal": {"created_at": Timestamp::saturating(1_700_000_000_000_000).to_string()},
            "provenance": {"platform": "chatgpt", "extraction_method": "api_export"},
        });
        writer.memory(&serde_json::from_value(memory)?)?;
    }
    let out = writer.finish(None)?.out;
    out.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all().context("the document")?;
    Ok(path)
}
