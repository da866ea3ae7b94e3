//! The cost that encryption adds to an import.

use std::{ffi::OsString, path::Path};

use anyhow::Result;

use crate::{
    RUNS, median, megabytes, print_line,
    process::{run, satchel_program},
};

/// Measures exports of both shapes: many short messages, and few long ones.
pub(crate) fn all(folder: &Path, megabytes: u64) -> Result<()> {
    let (chatgpt, claude) = (folder.join("chatgpt"), folder.join("claude"));
    satchel_tests::generate::chatgpt(&chatgpt, megabytes * 1_000_000, 1)?;
    satchel_tests::generate::claude(&claude, megabytes * 1_000_000, 1)?;
    for (label, export) in [("chatgpt", chatgpt), ("claude", claude)] {
        import(label, &export, folder)?;
        std::fs::remove_dir_all(export)?;
    }
    Ok(())
}

/// Imports once into a new data directory; returns the seconds and the private memory that it used.
fn import_once(folder: &Path, data: &Path, key: Option<&Path>) -> Result<(f64, u64)> {
    let program = satchel_program()?;
    let of_data = |words: &[&dyn AsRef<std::ffi::OsStr>]| -> Vec<OsString> {
        let global: [&dyn AsRef<std::ffi::OsStr>; 2] = [&"--data-dir", &data];
        global.iter().chain(words).map(|word| word.as_ref().to_owned()).collect()
    };
    if let Some(key) = key {
        run(&program, &of_data(&[&"keys", &"encrypt", &"--key-file", &key]))?;
    }
    let cost = run(&program, &of_data(&[&"import", &folder]))?;
    std::fs::remove_dir_all(data)?;
    Ok((cost.seconds, cost.private_mib))
}

/// Measures imports with and without encryption in alternating runs, so that a busy moment of the machine affects both.
fn import(label: &str, folder: &Path, scratch: &Path) -> Result<()> {
    let (key, data) = (scratch.join("bench.key"), scratch.join("sealed"));
    let (mut plain, mut sealed, mut ratios, mut memory) = (Vec::new(), Vec::new(), Vec::new(), 0);
    // Compiles the importer.
    import_once(folder, &data, None)?;
    for _ in 0..RUNS {
        let (without, _) = import_once(folder, &data, None)?;
        let (with, most) = import_once(folder, &data, Some(&key))?;
        plain.push(without);
        sealed.push(with);
        ratios.push(with / without);
        memory = memory.max(most);
    }
    let (plain, sealed, ratio) = (median(plain), median(sealed), median(ratios));
    print_line(&format!(
        "{label}: import of {:.0} MB encrypted in {sealed:.2} s, plain in {plain:.2} s: {:+.1} %, private memory {memory} MiB",
        megabytes(folder)?,
        (ratio - 1.0) * 100.0
    ));
    Ok(())
}
