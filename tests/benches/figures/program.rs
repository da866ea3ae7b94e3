//! The program as people run it, beside the official SDK on the same files.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::{
    RUNS, median, megabytes,
    process::{Cost, Daemon, pam, run, satchel},
    say,
};

fn words(words: &[&dyn AsRef<std::ffi::OsStr>]) -> Vec<OsString> {
    words.iter().map(|word| word.as_ref().to_owned()).collect()
}

/// The first start in a new data directory, which compiles the importers, beside a later one.
pub(crate) fn first_start(scratch: &Path) -> Result<()> {
    let program = satchel()?;
    let data = scratch.join("new");
    let list = words(&[&"--data-dir", &data, &"plugins", &"list"]);
    let (first, later) = (run(&program, &list)?.seconds, run(&program, &list)?.seconds);
    std::fs::remove_dir_all(&data)?;
    say(&format!("importers compiled at the first start in {first:.2} s; a later start {later:.2} s"));
    Ok(())
}

/// `satchel import` to durable and queryable, beside `pam convert`: in a data directory that has imported something before, and in
/// a new one, where the importer has to be compiled. The three take turns.
pub(crate) fn import(label: &str, (folder, small): (&Path, &Path), scratch: &Path) -> Result<()> {
    let program = satchel()?;
    let size = megabytes(folder)?;
    let (mut ours, mut anew, mut memory, mut theirs) = (Vec::new(), Vec::new(), 0, Vec::new());
    let runs = if size > 200.0 { 1 } else { RUNS };
    for turn in 0..runs {
        let data = scratch.join(format!("data-{turn}"));
        anew.push(imported(&program, &data, folder)?.seconds);
        std::fs::remove_dir_all(&data)?;
        imported(&program, &data, small)?;
        let cost = imported(&program, &data, folder)?;
        ours.push(cost.seconds);
        memory = memory.max(cost.private_mib);
        std::fs::remove_dir_all(&data)?;
        if let Some(pam) = pam() {
            let out = scratch.join("pam-out");
            theirs.push(
                run(&pam, &words(&[&"convert", &folder.join("conversations.json"), &"-o", &out]))?.seconds,
            );
            std::fs::remove_dir_all(&out)?;
        }
    }
    let (ours, anew) = (median(ours), median(anew));
    let mut line = format!(
        "{label}: import of {size:.0} MB in {ours:.2} s, {:.0} MB/s, private memory {memory} MiB; in a new data directory \
         {anew:.2} s",
        size / ours
    );
    if theirs.is_empty() {
        line.push_str("; pam is not installed, so no ratio");
    } else {
        let theirs = median(theirs);
        let (warm, cold) = (theirs / ours, theirs / anew);
        line.push_str(&format!(
            "; pam convert {theirs:.2} s, ratio {warm:.1}, in a new data directory {cold:.1}"
        ));
    }
    say(&line);
    Ok(())
}

/// Imports what is new to this data directory.
fn imported(program: &PathBuf, data: &Path, folder: &Path) -> Result<Cost> {
    let cost = run(program, &words(&[&"--data-dir", &data, &"--json", &"import", &folder]))?;
    let answer: Value = serde_json::from_slice(&cost.output)?;
    anyhow::ensure!(
        answer["imports"][0]["conversations"]["new"].as_u64() > Some(0),
        "nothing was imported: {answer}"
    );
    Ok(cost)
}

/// `satchel verify`, beside `pam validate`.
pub(crate) fn verify(scratch: &Path, memories: u64) -> Result<()> {
    let bundle = scratch.join("bundle");
    std::fs::create_dir_all(&bundle)?;
    let store = bundle.join("memory-store.json");
    std::fs::write(&store, memory_store(memories)?)?;
    let program = satchel()?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let cost = run(&program, &words(&[&"--json", &"verify", &store]))?;
        let answer: Value = serde_json::from_slice(&cost.output)?;
        anyhow::ensure!(answer["valid"] == true, "{answer}");
        ours.push(cost.seconds);
        if let Some(pam) = pam() {
            theirs.push(run(&pam, &words(&[&"validate", &store]))?.seconds);
        }
    }
    let ours = median(ours);
    let mut line = format!("verify of {memories} memories in {ours:.2} s");
    if !theirs.is_empty() {
        let theirs = median(theirs);
        line.push_str(&format!("; pam validate {theirs:.2} s, ratio {:.1}", theirs / ours));
    }
    say(&line);
    Ok(())
}

/// A valid store of invented memories.
fn memory_store(memories: u64) -> Result<Vec<u8>> {
    use satchel_pam::{
        store::{Owner, StoreHeader, Writer},
        time::Timestamp,
    };
    let owner = Owner { id: "0d0c0b0a-0000-4000-8000-000000000001".into(), did: None, created_at: None };
    let mut writer = Writer::new(Vec::new(), StoreHeader::new(owner))?;
    for number in 0..memories {
        let content = format!(
            "The garden has a row of plants with the number {number} and it needs water every second day in summer."
        );
        let memory = json!({
            "id": format!("{number:08}-0000-4000-8000-000000000000"), "type": "fact", "status": "active", "content": content,
            "content_hash": satchel_pam::hash::ContentHash::of(&content).to_string(), "tags": ["garden"],
            "temporal": {"created_at": Timestamp::saturating(1_700_000_000_000_000).to_string()},
            "provenance": {"platform": "chatgpt", "extraction_method": "api_export"},
        });
        writer.memory(&serde_json::from_value(memory)?)?;
    }
    Ok(writer.finish(None)?.out)
}

/// A command's answer from a running daemon, from process start to end.
pub(crate) fn answer(scratch: &Path) -> Result<()> {
    let program = satchel()?;
    let (export, data) = (scratch.join("small"), scratch.join("served"));
    let counts = satchel_tests::generate::chatgpt(&export, 22_000_000, 9)?;
    run(&program, &words(&[&"--data-dir", &data, &"import", &export]))?;
    let daemon = Daemon::start(&program, &data)?;
    let mut times = Vec::new();
    for _ in 0..RUNS * 4 {
        let cost = run(
            &program,
            &words(&[&"--data-dir", &data, &"--json", &"conversations", &"list", &"--limit", &"20"]),
        )?;
        serde_json::from_slice::<Value>(&cost.output).context("no answer")?;
        times.push(cost.seconds * 1e3);
    }
    drop(daemon);
    say(&format!(
        "an answer of the command line from a daemon with {} messages: {:.0} ms",
        counts.messages,
        median(times)
    ));
    Ok(())
}
