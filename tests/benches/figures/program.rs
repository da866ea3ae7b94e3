//! The program as users run it, compared with the official SDK on the same files.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::{
    RUNS, median, megabytes, print_line,
    process::{DaemonProcess, RunCost, pam_program, run, run_with, satchel_program},
};

fn arguments(words: &[&dyn AsRef<std::ffi::OsStr>]) -> Vec<OsString> {
    words.iter().map(|word| word.as_ref().to_owned()).collect()
}

/// Measures the first start of a user, which compiles the importers, and a later one.
pub(crate) fn first_start(scratch: &Path) -> Result<()> {
    let program = satchel_program()?;
    let (data, home, export) = (scratch.join("new"), scratch.join("home"), scratch.join("tiny"));
    satchel_tests::generate::chatgpt(&export, 100_000, 3)?;
    import_new((&program, &home), &data, &export)?;
    std::fs::remove_dir_all(&home)?;
    let list = arguments(&[&"--data-dir", &data, &"plugins", &"list"]);
    let time = || Ok::<_, anyhow::Error>(run_with(&program, &list, &cache_variables(&home))?.seconds);
    let (first, later) = (time()?, time()?);
    [&data, &home, &export].into_iter().try_for_each(std::fs::remove_dir_all)?;
    print_line(&format!("importers compiled at the first start in {first:.2} s; a later start {later:.2} s"));
    Ok(())
}

/// Returns the variables that set where compiled importers and their key are stored for a user with this home.
fn cache_variables(home: &Path) -> [(&'static str, &Path); 2] {
    [("XDG_CACHE_HOME", home), ("XDG_STATE_HOME", home)]
}

/// Measures `satchel import` until the data is durable and queryable, compared with `pam convert`: in a data directory
/// that has imported something before, in a new one, and in the first one of a user, where the importer must be
/// compiled. The runs alternate.
pub(crate) fn import(label: &str, (folder, small): (&Path, &Path), scratch: &Path) -> Result<()> {
    let program = satchel_program()?;
    let size = megabytes(folder)?;
    let (mut ours, mut anew, mut first) = (Vec::new(), Vec::new(), Vec::new());
    let (mut memory, mut theirs) = (0, Vec::new());
    let home = scratch.join("home");
    let runs = if size > 200.0 { 1 } else { RUNS };
    for turn in 0..runs {
        let data = scratch.join(format!("data-{turn}"));
        first.push(import_new((&program, &home), &data, folder)?.seconds);
        std::fs::remove_dir_all(&data)?;
        anew.push(import_new((&program, &home), &data, folder)?.seconds);
        std::fs::remove_dir_all(&data)?;
        import_new((&program, &home), &data, small)?;
        let cost = import_new((&program, &home), &data, folder)?;
        ours.push(cost.seconds);
        memory = memory.max(cost.private_mib);
        std::fs::remove_dir_all(&data)?;
        std::fs::remove_dir_all(&home)?;
        if let Some(pam) = pam_program() {
            let out = scratch.join("pam-out");
            theirs.push(
                run(&pam, &arguments(&[&"convert", &folder.join("conversations.json"), &"-o", &out]))?
                    .seconds,
            );
            std::fs::remove_dir_all(&out)?;
        }
    }
    let (ours, anew, first) = (median(ours), median(anew), median(first));
    let mut line = format!(
        "{label}: import of {size:.0} MB in {ours:.2} s, {:.0} MB/s, private memory {memory} MiB; in a new data directory \
         {anew:.2} s, the first of a user {first:.2} s",
        size / ours
    );
    if theirs.is_empty() {
        line.push_str("; pam is not installed, so no ratio");
    } else {
        let theirs = median(theirs);
        let [warm, new, cold] = [ours, anew, first].map(|ours| theirs / ours);
        line.push_str(&format!(
            "; pam convert {theirs:.2} s, ratio {warm:.1}, in a new data directory {new:.1}, the first of a user {cold:.1}"
        ));
    }
    print_line(&line);
    Ok(())
}

/// Imports an export that is new to this data directory; fails if nothing was new.
fn import_new((program, home): (&PathBuf, &Path), data: &Path, folder: &Path) -> Result<RunCost> {
    let words = arguments(&[&"--data-dir", &data, &"--json", &"import", &folder]);
    let cost = run_with(program, &words, &cache_variables(home))?;
    let answer: Value = serde_json::from_slice(&cost.output)?;
    anyhow::ensure!(
        answer["imports"][0]["conversations"]["new"].as_u64() > Some(0),
        "nothing was imported: {answer}"
    );
    Ok(cost)
}

/// Measures `satchel verify` compared with `pam validate`.
pub(crate) fn verify(scratch: &Path, memories: u64) -> Result<()> {
    let bundle = scratch.join("bundle");
    std::fs::create_dir_all(&bundle)?;
    let store = bundle.join("memory-store.json");
    std::fs::write(&store, memory_store(memories)?)?;
    let program = satchel_program()?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let cost = run(&program, &arguments(&[&"--json", &"verify", &store]))?;
        let answer: Value = serde_json::from_slice(&cost.output)?;
        anyhow::ensure!(answer["valid"] == true, "{answer}");
        ours.push(cost.seconds);
        if let Some(pam) = pam_program() {
            theirs.push(run(&pam, &arguments(&[&"validate", &store]))?.seconds);
        }
    }
    let ours = median(ours);
    let mut line = format!("verify of {memories} memories in {ours:.2} s");
    if !theirs.is_empty() {
        let theirs = median(theirs);
        line.push_str(&format!("; pam validate {theirs:.2} s, ratio {:.1}", theirs / ours));
    }
    print_line(&line);
    Ok(())
}

/// Returns a valid store of invented memories.
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

/// Measures how long a command takes with a running daemon, from process start to exit.
pub(crate) fn command_latency(scratch: &Path) -> Result<()> {
    let program = satchel_program()?;
    let (export, data) = (scratch.join("small"), scratch.join("served"));
    let counts = satchel_tests::generate::chatgpt(&export, 22_000_000, 9)?;
    run(&program, &arguments(&[&"--data-dir", &data, &"import", &export]))?;
    let daemon = DaemonProcess::start(&program, &data)?;
    let mut times = Vec::new();
    for _ in 0..RUNS * 4 {
        let cost = run(
            &program,
            &arguments(&[&"--data-dir", &data, &"--json", &"conversations", &"list", &"--limit", &"20"]),
        )?;
        serde_json::from_slice::<Value>(&cost.output).context("no answer")?;
        times.push(cost.seconds * 1e3);
    }
    drop(daemon);
    print_line(&format!(
        "an answer of the command line from a daemon with {} messages: {:.0} ms",
        counts.messages,
        median(times)
    ));
    Ok(())
}
